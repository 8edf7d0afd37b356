"""What the classes of a training set must be like, and what is assumed where they are small."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Codes, Floats
from tacit.errors import TacitError, is_number
from tacit.local.encoding.lone_classes import is_measured


def check_class_sizes(codes: Codes) -> None:
    """Refuse training data from which nothing can be held out; one small class is no reason."""
    if not is_measured(codes).any():
        raise TacitError(
            f"each of the {len(codes)} classes has one training series, so nothing says how well "
            "they are told apart; add series."
        )


def single_series_notes(codes: Codes, classes: NDArray[Any]) -> list[str]:
    """One sentence where a class has a single training series, none otherwise."""
    names = [repr(str(classes[code])) for code in codes[~is_measured(codes)]]
    if not names:
        return []
    subject = (
        f"class {names[0]} has" if len(names) == 1 else f"classes {', '.join(names)} each have"
    )
    return [
        f"{subject} one training series, so how well it is recognised cannot be measured and is "
        "assumed to be as for the other classes; expect less than the held-out accuracy says, or "
        "add series."
    ]


def expected_shares(given: Mapping[Any, float] | None, classes: NDArray[Any]) -> Floats | None:
    """Class shares in the order of the classes, or a refusal that names what is wrong."""
    if given is None:
        return None
    if not hasattr(given, "items") or not all(is_number(share) for _, share in given.items()):
        raise TacitError(
            "class_shares must give each class a number, such as {'1': 0.9, '2': 0.1}, "
            f"got {given!r}."
        )
    by_name = {str(label): float(share) for label, share in given.items()}
    known = [str(label) for label in classes]
    if set(by_name) != set(known):
        raise TacitError(
            f"class_shares name the classes {sorted(by_name)}, the training data have {known}; "
            "give one share for each."
        )
    shares = np.array([by_name[label] for label in known])
    if not (np.all(shares > 0.0) and abs(shares.sum() - 1.0) <= 1e-6):
        raise TacitError(
            f"class_shares must be above 0 and sum to 1, got {shares.tolist()} with the sum "
            f"{shares.sum():g}."
        )
    expected: Floats = shares / shares.sum()
    return expected
