from __future__ import annotations

import numpy as np
import pytest

from tacit.features.counting import count_true


@pytest.mark.parametrize("length", [1, 7, 255, 256, 511, 2000])
def test_counts_are_numpys(length: int) -> None:
    flags = np.random.default_rng(length).random((3, 4, length)) < 0.9
    flags[0, 0] = True
    np.testing.assert_array_equal(count_true(flags), np.count_nonzero(flags, axis=2))
    np.testing.assert_array_equal(count_true(flags[..., ::2]), flags[..., ::2].sum(axis=2))
