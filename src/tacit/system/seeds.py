"""What estimators take as `random_state`, as one generator. Never for noise: that has no seed."""

from __future__ import annotations

from typing import Any

import numpy as np

from tacit.errors import TacitError


def generator(random_state: Any) -> np.random.Generator:
    """None, a whole number, a Generator, or scikit-learn's RandomState."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31, size=4))
    if isinstance(random_state, bool):
        raise _refusal(random_state)
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError) as error:
        raise _refusal(random_state) from error


def whole_seed(random_state: Any) -> int:
    """The seed itself where it is a whole number, so that every caller trains the same model."""
    if isinstance(random_state, int | np.integer) and not isinstance(random_state, bool):
        generator(random_state)  # refuses a negative one
        return int(random_state)
    return int(generator(random_state).integers(2**31))


def _refusal(random_state: object) -> TacitError:
    return TacitError(
        "random_state must be a whole number of at least 0, a numpy generator or None, got "
        f"{random_state!r}."
    )
