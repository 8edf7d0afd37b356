"""A trained fleet model as one file: the plan, the head and what was promised; no series in it.

Whoever holds the file classifies on the spot: the features are public and the head was released
under the guarantee that the file carries, so using it reveals nothing more about any client.
"""

from __future__ import annotations

import hashlib
import io
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats
from tacit.data import as_cube
from tacit.errors import BundleError, TacitError
from tacit.fleet.learning.head import class_scores, feature_map
from tacit.fleet.plan import FleetPlan, plan_from_json
from tacit.guarantee import DpGuarantee, from_dict
from tacit.system.files import write_secret

_MAGIC = b"tacit fleet model 1\n"
_HEAD = len(_MAGIC) + 32


@dataclass(frozen=True, slots=True, eq=False)
class FleetModel:
    """The head that predicts, after `rounds` rounds of the plan."""

    plan: FleetPlan
    average: Floats  # (classes - 1, features)
    guarantee: DpGuarantee
    rounds: int

    def __post_init__(self) -> None:
        wanted = (len(self.plan.classes) - 1, self.plan.n_features)
        if self.average.shape != wanted or not np.all(np.isfinite(self.average)):
            raise BundleError(
                f"the model has weights of shape {self.average.shape} where its plan needs finite "
                f"ones of {wanted}; save it again."
            )

    def labels(self, X: Floats) -> NDArray[np.str_]:
        """The most likely class of every series (n, channels, length)."""
        cube = as_cube(X)
        scores = class_scores(feature_map(self.plan).transform(cube), self.average)
        chosen: NDArray[np.str_] = np.array(self.plan.classes)[scores.argmax(axis=1)]
        return chosen

    def save(self, path: Path) -> None:
        """Write one file, whole or not at all; plain arrays, nothing executable."""
        meta = {
            "plan": json.loads(self.plan.to_json()),
            "guarantee": self.guarantee.to_dict(),
            "rounds": self.rounds,
        }
        buffer = io.BytesIO()
        text = np.frombuffer(json.dumps(meta).encode(), dtype=np.uint8)
        np.savez(buffer, meta=text, average=self.average)
        content = buffer.getvalue()
        write_secret(path, _MAGIC + hashlib.sha256(content).digest() + content)


def is_fleet_model(path: Path) -> bool:
    """Whether the file begins as a fleet model does."""
    with path.open("rb") as file:
        return file.read(len(_MAGIC)) == _MAGIC


def load_fleet_model(path: Path) -> FleetModel:
    """Read back what `save` wrote; refuse a file that is damaged or of another kind."""
    try:
        stored = path.read_bytes()
    except OSError as error:
        raise BundleError(
            f"cannot read the model {path}: {error.strerror}; give a file of 'train timefl --out'."
        ) from error
    content = stored[_HEAD:]
    if stored[:_HEAD] != _MAGIC + hashlib.sha256(content).digest():
        raise BundleError(f"{path} is not a fleet model, or is damaged; save it again.")
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
            meta = json.loads(arrays["meta"].tobytes())
            guarantee = from_dict(meta["guarantee"])
            plan = plan_from_json(json.dumps(meta["plan"]))
            average, rounds = arrays["average"], int(meta["rounds"])
    except (KeyError, ValueError, TypeError) as error:
        if isinstance(error, TacitError):
            raise
        raise BundleError(f"{path} lacks a part of a fleet model ({error}).") from error
    if not isinstance(guarantee, DpGuarantee):
        raise BundleError(f"{path} states no differential privacy; it is not a sound model.")
    return FleetModel(plan, average, guarantee, rounds)
