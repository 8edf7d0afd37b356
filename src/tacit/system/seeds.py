"""What estimators take as `random_state`, as one generator. Never for noise: that has no seed."""

from __future__ import annotations

from typing import Any

import numpy as np

from tacit.errors import TacitError


def generator(random_state: Any) -> np.random.Generator:
    """None, a whole number, a Generator, or scikit-learn's RandomState."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31, size=4))
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError) as error:
        raise TacitError(
            f"random_state must be a whole number of at least 0, a numpy generator or None, got "
            f"{random_state!r}."
        ) from error
