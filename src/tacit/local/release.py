"""What leaves a device: randomised values, their kind, and what they reveal at most."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tacit.errors import TacitError
from tacit.guarantee import DpGuarantee, Guarantee, from_dict
from tacit.system.files import write_atomic

Kind = Literal["label", "place", "vector", "shapes"]
KINDS: tuple[Kind, ...] = ("label", "place", "vector", "shapes")
SYMBOL_KINDS: tuple[Kind, ...] = ("label", "place")

NOT_COVERED = (
    "the series that the model was trained on",
    "whether, when and how often a device releases; releases about one series add up",
)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Release:
    """One row per series: a symbol (n,) of `SYMBOL_KINDS`, numbers (n, d) of the other kinds."""

    kind: Kind
    values: NDArray[Any]
    model: str  # which bundle it belongs to, so that no other one decodes it
    guarantee: Guarantee

    def __len__(self) -> int:
        return len(self.values)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; `from_plain` reads them back."""
        return {
            "kind": self.kind,
            "model": self.model,
            "guarantee": self.guarantee.to_dict(),
            "values": self.values.tolist(),
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write one JSON file, whole or not at all."""
        target = Path(path)
        text = json.dumps(self.to_dict(), allow_nan=False)
        try:
            target.parent.resolve(strict=True)  # a typing error must not make a folder
            write_atomic(target, text.encode(), mode=0o666)
        except OSError as error:
            raise TacitError(
                f"cannot write releases to {target}: {error.strerror or error}; "
                "choose another file."
            ) from error


def load_release(path: str | os.PathLike[str]) -> Release:
    """Read a file that `Release.save` wrote."""
    try:
        plain = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise TacitError(
            f"cannot read releases from {path}: {error.strerror or error}; check the path."
        ) from error
    except ValueError as error:
        raise TacitError(
            f"{path} is not a file of releases: it is not JSON; check the path."
        ) from error
    return release_from_plain(plain, where=str(path))


def release_from_plain(plain: Any, *, where: str = "the releases") -> Release:
    """Check and rebuild what `Release.to_dict` made."""
    if not isinstance(plain, dict) or not {"kind", "model", "guarantee", "values"} <= set(plain):
        raise TacitError(
            f"{where} must be one object with kind, model, guarantee and values; "
            "make it with 'tacit release'."
        )
    if plain["kind"] not in KINDS:
        raise TacitError(f"{where} has kind {plain['kind']!r}; known are {', '.join(KINDS)}.")
    wanted = np.intp if plain["kind"] in SYMBOL_KINDS else np.float64
    try:
        raw = np.asarray(plain["values"])
        values = raw.astype(wanted, casting="safe" if raw.dtype.kind in "iu" else "same_kind")
        guarantee = from_dict(plain["guarantee"])
    except (TypeError, ValueError, AttributeError) as error:
        raise TacitError(f"{where} holds values or a guarantee that cannot be read.") from error
    if values.ndim != (1 if plain["kind"] in SYMBOL_KINDS else 2) or not np.all(
        np.isfinite(values)
    ):
        raise TacitError(f"{where} holds values of shape {values.shape}, not one row per series.")
    return Release(
        kind=plain["kind"], values=values, model=str(plain["model"]), guarantee=guarantee
    )


def local_guarantee(epsilon: float, *, assumptions: tuple[str, ...]) -> DpGuarantee:
    """The guarantee of one release of one series, in total, whatever its length and channels."""
    return DpGuarantee(
        epsilon=epsilon,
        model="local",
        unit="series",
        neighbours="replace",
        assumptions=assumptions,
        not_covered=NOT_COVERED,
    )
