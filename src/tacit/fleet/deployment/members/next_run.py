"""The next run of a fleet: another plan for the same nodes, services, keys and persons' ledgers.

Whoever plans writes the plan; every part takes it for itself, a node's owner too: no part changes
what it promises because another one says so. The last run's state is kept in a folder of its name.
The persons' ledgers lie outside and go on: what the last run spent stays spent.

    python -m tacit.fleet.deployment.members.next_run FOLDER PLAN
"""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path

from tacit.errors import TacitError
from tacit.fleet.deployment.analyser_state import AnalyserState
from tacit.fleet.deployment.config import RunDescription, read_run
from tacit.fleet.deployment.members.renewal import PARTS, part_of
from tacit.fleet.deployment.seal import public_of
from tacit.system.files import move_synced, write_atomic
from tacit.system.locks import try_lock


def take_plan(folder: Path, plan: Path, *, abandon: bool = False) -> list[str]:
    """Let a part, or every part of a fleet's folder, take the plan; returns their names.

    A run that is not finished is left only with `abandon`: what it spent stays spent.
    """
    folders = [folder]
    if not _is_part(folder):
        folders = [*(folder / name for name in ("shuffler", "analyser", "server"))]
        folders += sorted((folder / "nodes").glob("*")) if (folder / "nodes").exists() else []
        folders = [one for one in folders if _is_part(one)]
    if not folders:
        raise TacitError(f"{folder} holds no part of a fleet; check the path.")
    fleet = read_run(plan)
    content = plan.read_bytes()
    waiting = [one for one in folders if read_run(one / "plan.toml") != fleet]
    for one in waiting:  # everything is checked before the first part changes
        _check(one, fleet, abandon=abandon)
    for one in waiting:
        _take(one, fleet, content)
    if folders != [folder]:
        write_atomic(folder / "plan.toml", content)
    return [one.name for one in waiting]


def _check(folder: Path, fleet: RunDescription, *, abandon: bool) -> None:
    part, last = part_of(folder), read_run(folder / "plan.toml")
    if last.plan.classes != fleet.plan.classes or last.plan.mechanism != fleet.plan.mechanism:
        raise TacitError(f"{folder} serves other classes or another mechanism; set up a new fleet.")
    if fleet.run == last.run or (folder / "runs" / fleet.run).exists():
        raise TacitError(
            f"{folder} has served run {fleet.run} before, under another plan or to its end; write "
            "a plan with 'tacit fleet next-run', which names a new run."
        )
    if part in ("shuffler", "analyser"):
        _sealing_key(folder, part, fleet)
        _check_stopped(folder)
    checkpoint = folder / "state" / "checkpoint.npz"
    if part == "analyser" and checkpoint.exists() and not abandon:
        state = AnalyserState.read(checkpoint, run=last.run)
        if state.stopped is None and state.next_round <= last.plan.n_rounds:
            raise TacitError(
                f"run {last.run} is at round {state.next_round} of {last.plan.n_rounds}; let it "
                "finish, or give it up with --abandon."
            )


def _check_stopped(folder: Path) -> None:
    if not (folder / "state").exists():
        return
    handle = try_lock(folder / "state" / "lock")
    if handle is None:
        raise TacitError(f"the service of {folder} is running; stop it first.")
    os.close(handle)


def _take(folder: Path, fleet: RunDescription, content: bytes) -> None:
    part, last = part_of(folder), read_run(folder / "plan.toml")
    if part in ("shuffler", "analyser"):
        following = _sealing_key(folder, part, fleet)
        if following is not None:
            move_synced(following, folder / "sealing.key")
            (folder / "sealing-next.pub").unlink(missing_ok=True)
    state = folder / "state"
    if part != "server" and state.exists():  # the server's remembers the nodes' Flower keys
        (folder / "runs").mkdir(exist_ok=True)
        # An earlier run can be read, and disclosed, by the plan that it followed.
        write_atomic(state / "plan.toml", (folder / "plan.toml").read_bytes())
        with contextlib.suppress(FileNotFoundError):
            move_synced(state, folder / "runs" / last.run)
    write_atomic(folder / "plan.toml", content)


def _sealing_key(folder: Path, part: str, fleet: RunDescription) -> Path | None:
    """The prepared key if the plan names it, None if it names the present one."""
    wanted = fleet.public_key if part == "analyser" else fleet.helper_key
    following, present = folder / "sealing-next.key", folder / "sealing.key"
    if following.exists() and public_of(following.read_bytes()) == wanted:
        return following
    if public_of(present.read_bytes()) == wanted:
        return None
    raise TacitError(f"the plan names a sealing key that is not the one of {folder}.")


def _is_part(folder: Path) -> bool:
    return any((folder / f"{part}.toml").exists() for part in PARTS)


def main(arguments: list[str]) -> int:
    """`next_run FOLDER PLAN`, for installations without the command line's packages."""
    try:
        folder, plan = arguments
        take_plan(Path(folder), Path(plan))
    except ValueError as error:
        said = str(error) if isinstance(error, TacitError) else "usage: next_run FOLDER PLAN"
        sys.stderr.write(f"tacit: {said}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
