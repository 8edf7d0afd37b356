"""The data set as everything else sees it: cubes of series with string labels."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Cube

Labels = NDArray[np.str_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """The content of one file: series (n, channels, length) and what is known about each."""

    X: Cube = field(repr=False)
    y: Labels | None = field(default=None, repr=False)
    subject: NDArray[Any] | None = field(default=None, repr=False)
    rate: float | None = None
    channel_names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """Training and test series, (n, channels, length) in float64, with their labels.

    `subject_train` and `subject_test` hold a person or device per series where the source has
    one; `rate` is in samples per second and `channel_names` has a name per channel, where they
    are known; `note` says where the data came from and how it was split.

    Example
    -------
    >>> from tacit import Dataset, load_dataset
    >>> data = load_dataset("ItalyPowerDemand")
    >>> isinstance(data, Dataset)
    True
    >>> data.name, data.X_train.shape, data.classes
    ('ItalyPowerDemand', (67, 1, 24), ('1', '2'))
    """

    name: str
    X_train: Cube = field(repr=False)
    y_train: Labels = field(repr=False)
    X_test: Cube = field(repr=False)
    y_test: Labels = field(repr=False)
    classes: tuple[str, ...]
    subject_train: NDArray[Any] | None = field(default=None, repr=False)
    subject_test: NDArray[Any] | None = field(default=None, repr=False)
    rate: float | None = None
    channel_names: tuple[str, ...] = ()
    note: str = ""

    @property
    def channels(self) -> int:
        """Number of channels of every series."""
        return int(self.X_train.shape[1])

    @property
    def length(self) -> int:
        """Number of time steps of every series."""
        return int(self.X_train.shape[2])

    def summary(self) -> dict[str, Any]:
        """Shapes and classes, as `tacit data show` prints them."""
        return {
            "name": self.name,
            "n_train": len(self.y_train),
            "n_test": len(self.y_test),
            "length": self.length,
            "channels": self.channels,
            "n_classes": len(self.classes),
            "classes": list(self.classes),
            "class_counts_train": {
                label: int(np.count_nonzero(self.y_train == label)) for label in self.classes
            },
            "channel_names": list(self.channel_names),
            "rate": self.rate,
            "subjects": self.subjects(),
            "note": self.note,
        }

    def subjects(self) -> dict[str, int] | None:
        """How many persons each part has and how many are in both; None if nobody is named."""
        if self.subject_train is None or self.subject_test is None:
            return None
        train, test = set(self.subject_train.tolist()), set(self.subject_test.tolist())
        return {"train": len(train), "test": len(test), "in_both": len(train & test)}
