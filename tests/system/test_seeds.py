from __future__ import annotations

import numpy as np
import pytest

from tacit.errors import TacitError
from tacit.system.seeds import generator


def test_equal_states_give_equal_draws() -> None:
    for make in (lambda: 3, lambda: np.random.default_rng(3), lambda: np.random.RandomState(3)):
        assert generator(make()).integers(2**60) == generator(make()).integers(2**60)
    assert generator(None).integers(2**60) != generator(None).integers(2**60)


@pytest.mark.parametrize("state", [-1, 1.5, "seed"])
def test_other_states_are_refused(state: object) -> None:
    with pytest.raises(TacitError, match="random_state"):
        generator(state)
