from __future__ import annotations

import numpy as np
import pytest

from tacit.errors import TacitError
from tacit.system.seeds import generator, whole_seed


def test_equal_states_give_equal_draws() -> None:
    for make in (lambda: 3, lambda: np.random.default_rng(3), lambda: np.random.RandomState(3)):
        assert generator(make()).integers(2**60) == generator(make()).integers(2**60)
    assert generator(None).integers(2**60) != generator(None).integers(2**60)


@pytest.mark.parametrize("state", [-1, 1.5, "seed"])
def test_other_states_are_refused(state: object) -> None:
    with pytest.raises(TacitError, match="random_state"):
        generator(state)


def test_a_whole_number_is_its_own_seed() -> None:
    assert [whole_seed(state) for state in (0, 7, np.int64(9), 2**40)] == [0, 7, 9, 2**40]
    for make in (lambda: np.random.default_rng(3), lambda: np.random.RandomState(3)):
        assert whole_seed(make()) == whole_seed(make())
    assert whole_seed(None) != whole_seed(None)
    for wrong in (-1, True, "seed"):
        with pytest.raises(TacitError, match="random_state"):
            whole_seed(wrong)
