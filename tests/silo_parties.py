"""Real parties for tests: one process each, started like an organisation would start its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tacit.silo.party.folder import Limits, write_folders
from tacit.silo.party.localhost import local_addresses
from tacit.silo.plan import Plan, Terms, default_protocol, running_versions
from tacit.silo.secure.session import LocalInputs

HERE = Path(__file__).parent
SHORT = Limits(join_seconds=90.0, silence_seconds=10.0, engine_seconds=180.0)


def environment() -> dict[str, str]:
    """The tests' own folder on the path, so that parties can import `silo_programs`."""
    paths = [str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


def shared_cache(factory: pytest.TempPathFactory) -> Path:
    """A cache of compiled programs that all tests of one run share, whatever their process.

    Compiling takes most of a small run; what is compiled depends on source and shapes alone.
    """
    base = factory.getbasetemp()
    # A worker's base lies in that of the whole run.
    return (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "silo-cache"


def own_series(rank: int, *, length: int = 12) -> tuple[NDArray[np.float64], NDArray[Any]]:
    """A few series of one owner, and two classes that every owner has."""
    rng = np.random.default_rng(rank)
    X = rng.normal(size=(4 + rank, 1, length))
    return X, np.array([str(i % 2) for i in range(len(X))])


def plan_of(program: str, n_parties: int, **params: Any) -> tuple[Plan, list[LocalInputs]]:
    """A plan over `own_series`, and everybody's inputs."""
    data = [own_series(rank) for rank in range(n_parties)]
    plan = Plan(
        program=f"silo_programs:{program}",
        parties=tuple("abcde"[:n_parties]),
        protocol=default_protocol(n_parties),
        classes=("0", "1"),
        series_length=12,
        counts=tuple(len(X) for X, _ in data),
        params=params,
        versions=running_versions(),
    )
    return plan, [LocalInputs(X=X, y=y.astype(np.intp)) for X, y in data]


@dataclass
class Federation:
    """Folders of a federation, and the processes of the parties started so far."""

    folder: Path
    configs: Mapping[str, Path]
    terms: Terms
    runtime: Path
    running: dict[str, subprocess.Popen[str]] = field(default_factory=dict)

    def data_file(self, name: str, X: Any = None, y: Any = None) -> Path:
        """Write a party's data file; by default `own_series` of its rank."""
        own_X, own_y = own_series(self.terms.parties.index(name))
        path = self.folder / f"{name}.npz"
        np.savez(path, X=own_X if X is None else X, y=own_y if y is None else y)
        return path

    def start(
        self, name: str, *, data: Path | None = None, prelude: str = "", more: Sequence[str] = ()
    ) -> None:
        """Start one party with the command line; `prelude` is Python that runs before."""
        arguments = ["silo", "party", str(self.configs[name]), "--json"]
        arguments += ["--data", str(data or self.data_file(name))]
        arguments += ["--program", self.terms.program, *more]
        code = f"{prelude}\nimport sys\nfrom tacit.cli.app import run\nsys.exit(run({arguments!r}))"
        self.running[name] = subprocess.Popen(
            [sys.executable, "-c", code],
            env={**environment(), "XDG_RUNTIME_DIR": str(self.sockets_of(name))},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def sockets_of(self, name: str) -> Path:
        """Where the party makes the folder of its engine's sockets; empty before and after."""
        folder = self.runtime / name
        folder.mkdir(exist_ok=True)
        return folder

    def start_all(self) -> None:
        for name in self.terms.parties:
            self.start(name)

    def until_working(self, name: str) -> None:
        """Wait until the engine of a party has started to compute."""
        log = self.configs[name].parent / "working"
        deadline = time.monotonic() + 180.0
        while not log.exists():
            assert time.monotonic() < deadline, "the program did not start"
            assert self.running[name].poll() is None, self.running[name].communicate()
            time.sleep(0.05)

    def end(self, name: str, *, within: float) -> tuple[int, str, str]:
        """Wait for a party to end by itself; its exit code, output and error line."""
        out, err = self.running[name].communicate(timeout=within)
        return self.running[name].returncode, out, err.strip()

    def assert_refused(self, name: str, *words: str, within: float) -> str:
        """Code 2 within the time, one sentence with the words, no result and no engine left."""
        code, out, err = self.end(name, within=within)
        lines = [line for line in err.splitlines() if line.strip()]
        assert code == 2, (name, code, out, err)
        assert out == ""
        assert len(lines) == 1, lines
        assert lines[0].startswith("tacit: ")
        for word in words:
            assert word in lines[0], (name, word, lines[0])
        self.assert_nothing_left(name)
        return lines[0]

    def assert_nothing_left(self, name: str) -> None:
        home = self.configs[name].parent
        assert not (home / "out" / "model.safetensors").exists()
        assert not (home / "out" / "receipt.json").exists()
        assert engines_of(home) == []
        assert list(self.sockets_of(name).iterdir()) == []

    def kill_all(self) -> None:
        for process in self.running.values():
            if process.poll() is None:
                with suppress(ProcessLookupError):
                    process.send_signal(signal.SIGCONT)
                process.kill()
            process.communicate()


def engines_of(home: Path) -> list[int]:
    """Ids of engine processes whose log lies in this party's folder (Linux)."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                if "tacit.silo.party.engine_worker" in (entry / "cmdline").read_text():
                    target = str((entry / "fd" / "1").readlink())
                    if target.startswith(str(home)):
                        found.append(int(entry.name))
    return found


def listening_ports(pid: int) -> list[int]:
    """TCP ports at which a process listens (Linux)."""
    inodes = set()
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(OSError):
            inodes.add(str(descriptor.readlink()).removeprefix("socket:[").rstrip("]"))
    found = []
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and fields[9] in inodes:
                found.append(int(fields[1].rpartition(":")[2], 16))
    return found


def processes_with(variable: str) -> list[int]:
    """Ids of processes that have NAME=VALUE in their environment (Linux)."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if variable in (entry / "environ").read_text(errors="replace").split("\0"):
                found.append(int(entry.name))
    return found


@contextmanager
def federation(
    folder: Path,
    *,
    program: str = "slow_program",
    n_parties: int = 3,
    limits: Limits = SHORT,
    **params: Any,
) -> Iterator[Federation]:
    """Folders for a federation in `folder`; whatever still runs at the end is killed."""
    names = tuple("abcde"[:n_parties])
    terms = Terms(
        program=f"silo_programs:{program}",
        parties=names,
        protocol=default_protocol(n_parties),
        params=params,
    )
    with (
        local_addresses(n_parties) as addresses,
        # A socket's path is short, which those of tests are not.
        tempfile.TemporaryDirectory(prefix="t-", dir="/tmp") as runtime,
    ):
        configs = write_folders(folder / "parties", terms, addresses=addresses, limits=limits)
        made = Federation(folder=folder, configs=configs, terms=terms, runtime=Path(runtime))
        try:
            yield made
        finally:
            made.kill_all()
