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
from tacit.silo.party.hello import Refusal
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


def read_data(source: str | Path | None, *, label: str | None = None) -> OwnData:
    """A party's data, or a `Refusal`: a file in any format that the package reads, or the training
    part of a data set that is at hand by name, for a try-out.
    """
    from tacit.data.formats import read_table
    from tacit.data.load import known_names, load_part

    by_name = source is not None and str(source) in known_names()
    if source is None or not (Path(source).is_file() or by_name):
        what = "this party has no data" if source is None else f"there is no data file {source}"
        raise Refusal(
            f"{what}; give --data FILE, or 'data' in party.toml.", public="it has no data file"
        )
    try:
        if Path(source).is_file():
            X, labels = read_table(Path(source), label=label)
        else:
            X, found = load_part(str(source), otherwise="train", label=label)
            labels = np.asarray(found, dtype=np.str_)
    except TacitError as error:
        raise Refusal(str(error), public="its own data were rejected") from error
    return OwnData(X=X, labels=labels)
