"""Checkpoints of a fleet run: one file, replaced atomically, that never forgets what was spent.

`received` holds the number of reports of every round that was *opened*; a round is entered there
before its reports are drawn. A run that died between opening a round and saving its model resumes
with that round counted as spent and not repeated: it can over-count, never under-count.
"""

from __future__ import annotations

import hashlib
import io
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.errors import BundleError
from tacit.fleet.clients import HeadModel, initial_model
from tacit.fleet.config import FleetPlan, plan_from_json

_MAGIC = b"tacit fleet run 1\n"
_HEAD = len(_MAGIC) + 32


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The model, the rounds opened so far with their numbers of reports, and the plan."""

    plan: FleetPlan
    model: HeadModel
    received: tuple[int, ...]


def fresh(plan: FleetPlan) -> Checkpoint:
    """The state before the first round."""
    return Checkpoint(plan, initial_model(plan), ())


def write_atomically(path: Path, content: bytes) -> None:
    """Replace `path` by `content`: readers see the old file or the new one, never a part."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def save_checkpoint(path: Path, state: Checkpoint) -> None:
    """Write the state to one file; plain arrays, nothing executable."""
    model = state.model
    buffer = io.BytesIO()
    np.savez(
        buffer,
        plan=np.frombuffer(state.plan.to_json().encode(), dtype=np.uint8),
        weights=model.weights,
        velocity=model.velocity,
        average=model.average,
        counters=np.array([model.n_averaged, model.round_number], dtype=np.int64),
        received=np.array(state.received, dtype=np.int64),
    )
    content = buffer.getvalue()
    write_atomically(path, _MAGIC + hashlib.sha256(content).digest() + content)


def load_checkpoint(path: Path, plan: FleetPlan | None = None) -> Checkpoint:
    """Read a state back; refuse a damaged file, or one of another plan than `plan`."""
    try:
        stored = path.read_bytes()
    except OSError as error:
        raise BundleError(f"there is no checkpoint {path}; start without --resume.") from error
    head, content = stored[:_HEAD], stored[_HEAD:]
    if head != _MAGIC + hashlib.sha256(content).digest():
        raise BundleError(f"the checkpoint {path} is damaged or of another kind; start anew.")
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        return _checked(dict(arrays), path, plan)


def _checked(stored: dict[str, NDArray[Any]], path: Path, plan: FleetPlan | None) -> Checkpoint:
    held = plan_from_json(stored["plan"].tobytes().decode())
    if plan is not None and held != plan:
        raise BundleError(
            f"the checkpoint {path} belongs to another plan; resume with the same options."
        )
    shape = (len(held.classes) - 1, held.n_features)
    weights = [stored[name].astype(np.float64) for name in ("weights", "velocity", "average")]
    if any(w.shape != shape or not np.all(np.isfinite(w)) for w in weights):
        raise BundleError(f"the checkpoint {path} holds weights of another shape; start anew.")
    n_averaged, round_number = (int(value) for value in stored["counters"])
    received = tuple(int(n) for n in stored["received"])
    if not 0 <= round_number <= len(received) <= held.n_rounds or min(received, default=1) < 1:
        raise BundleError(f"the checkpoint {path} counts rounds that cannot be; start anew.")
    model = HeadModel(weights[0], weights[1], weights[2], n_averaged, round_number)
    return Checkpoint(held, model, received)
