"""What a party brings: its own series and their labels, and what it tells the others of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats
from tacit.errors import TacitError
from tacit.silo.plan import Facts


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnData:
    """A party's own series (n, channels, T), their labels, and choices that never leave it."""

    X: Floats
    labels: NDArray[np.str_]
    private: Mapping[str, Any] = field(default_factory=dict)

    def facts(self) -> Facts:
        """What the others are told: counts and shapes."""
        n, channels, length = self.X.shape
        return Facts(
            count=n,
            series_length=length,
            n_channels=channels,
            classes=tuple(sorted(set(self.labels.tolist()))),
        )


def read_data(path: Path, *, label: str | None = None) -> OwnData:
    """A party's data file in any of the formats that the package reads."""
    from tacit.data.formats import read_table

    if not path.is_file():
        raise TacitError(f"there is no data file {path}; give this party's own series.")
    X, labels = read_table(path, label=label)
    return OwnData(X=X, labels=labels)
