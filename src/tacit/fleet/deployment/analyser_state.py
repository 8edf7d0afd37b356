"""The analyser's state on disk: model, round, what every batch came to, and the batch at hand."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from tacit.errors import BundleError, reason_of
from tacit.fleet.deployment.config import AnalyserConfig, RunDescription, read_config, read_run
from tacit.fleet.deployment.shuffler_state import Batch
from tacit.fleet.learning.learner import model_from_bytes
from tacit.fleet.model import FleetModel
from tacit.fleet.reports.mechanisms import report_of
from tacit.system.files import write_secret

CHECKPOINT = "checkpoint.npz"


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalyserRound:
    """What one batch came to; `n` is the number of reports that counted."""

    round_number: int
    batch_id: str
    n: int
    left_out: int
    released: bool
    epsilon: float  # composed over all rounds up to this one


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalyserState:
    """All that survives a crash, in one file."""

    model: bytes
    next_round: int = 1
    history: tuple[AnalyserRound, ...] = ()
    stopped: str | None = None

    def to_bytes(self, run: str) -> bytes:
        """One npz: the model, and the rest as JSON."""
        meta = {
            "run": run,
            "next_round": self.next_round,
            "history": [asdict(record) for record in self.history],
            "stopped": self.stopped,
        }
        text = np.frombuffer(json.dumps(meta).encode(), dtype=np.uint8)
        out = BytesIO()
        np.savez(out, model=np.frombuffer(self.model, dtype=np.uint8), meta=text)
        return out.getvalue()

    @classmethod
    def read(cls, path: Path, *, run: str) -> AnalyserState:
        """Read back what `to_bytes` wrote, for the same run only."""
        try:
            with np.load(BytesIO(path.read_bytes()), allow_pickle=False) as arrays:
                model, meta = arrays["model"].tobytes(), json.loads(arrays["meta"].tobytes())
            history = tuple(AnalyserRound(**record) for record in meta["history"])
            found = meta["run"]
            out = cls(
                model=model,
                next_round=int(meta["next_round"]),
                history=history,
                stopped=meta["stopped"],
            )
        except (OSError, ValueError, KeyError, TypeError, EOFError, BadZipFile) as error:
            raise BundleError(
                f"{path} is not a whole checkpoint ({reason_of(error)}); restore it from a copy, "
                "because starting over would forget what was spent."
            ) from error
        if found != run:
            raise BundleError(f"{path} belongs to run {found}, not to {run}; check the plan.")
        return out

    def unreleased(self, batch_id: str, *, n: int, epsilon: float) -> AnalyserState:
        """The state after a round of which nothing was released; `n` reports count as seen."""
        record = AnalyserRound(
            round_number=self.next_round,
            batch_id=batch_id,
            n=n,
            left_out=0,
            released=False,
            epsilon=epsilon,
        )
        return replace(self, next_round=self.next_round + 1, history=(*self.history, record))

    def public(self) -> dict[str, Any]:
        """What anybody may know of this state."""
        return {
            "round": self.next_round,
            "stopped": self.stopped,
            "history": [asdict(record) for record in self.history],
        }

    def fleet_model(self, fleet: RunDescription) -> FleetModel:
        """The model of this state, under the guarantee of the batches that were opened for it."""
        head = model_from_bytes(self.model, fleet.plan)
        opened = [record.n for record in self.history if record.n]
        guarantee = report_of(fleet.plan).guarantee(opened)
        if guarantee is None or head.round_number == 0:
            raise BundleError(
                f"no round of the run {fleet.run} has been released; wait for the first."
            )
        return FleetModel(fleet.plan, head.average, guarantee, head.round_number)


def failure(batch: Batch, error: Exception) -> str:
    """Why a run ends; public, so it names the kind of error only: the text may quote data."""
    return (
        f"round {batch.round_number} could not be processed ({type(error).__name__}); nothing of "
        "it was released, see the analyser's log and begin a new run."
    )


def analyser_config(folder: Path) -> AnalyserConfig:
    """The analyser's configuration, from its folder or that of the whole fleet."""
    inner = folder / "analyser" / "analyser.toml"
    return read_config(inner if inner.exists() else folder / "analyser.toml", AnalyserConfig)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFiles:
    """Where the analyser keeps one run: its plan, and its state with checkpoint and ledger."""

    plan: Path
    state: Path

    @property
    def checkpoint(self) -> Path:
        """What the run came to."""
        return self.state / CHECKPOINT


def is_earlier_run(folder: Path) -> bool:
    """Whether this is `runs/RUN` of an analyser, where 'take-plan' puts a run that is over."""
    return (folder / CHECKPOINT).exists() and (folder / "plan.toml").exists()


def run_files(folder: Path) -> RunFiles:
    """Those of the present run of an analyser's or a whole fleet's folder, or of `runs/RUN`."""
    if is_earlier_run(folder):
        return RunFiles(plan=folder / "plan.toml", state=folder)
    config = analyser_config(folder)
    files = RunFiles(plan=config.plan, state=config.state)
    if not files.checkpoint.exists():
        earlier = [one for one in sorted((config.state.parent / "runs").glob("*")) if one.is_dir()]
        offer = f", or give an earlier run: {', '.join(map(str, earlier))}" if earlier else ""
        raise BundleError(f"there is no checkpoint {files.checkpoint}; run the fleet first{offer}.")
    return files


def read_fleet_model(folder: Path) -> FleetModel:
    """The model of a deployment, from a folder that `run_files` knows."""
    files = run_files(folder)
    fleet = read_run(files.plan)
    return AnalyserState.read(files.checkpoint, run=fleet.run).fleet_model(fleet)


def write_inbox(path: Path, batch: Batch) -> None:
    """One batch as the shuffler sent it, whole or not at all, for the analyser alone to read."""
    meta = json.dumps({k: v for k, v in asdict(batch).items() if k != "messages"})
    messages = np.frombuffer(batch.messages, dtype=np.uint8)
    out = BytesIO()
    np.savez(out, messages=messages, meta=np.frombuffer(meta.encode(), dtype=np.uint8))
    write_secret(path, out.getvalue())


def read_inbox(path: Path) -> Batch:
    """Read back what `write_inbox` wrote."""
    with np.load(BytesIO(path.read_bytes()), allow_pickle=False) as arrays:
        meta = json.loads(arrays["meta"].tobytes())
        return Batch(**meta, messages=arrays["messages"].tobytes())
