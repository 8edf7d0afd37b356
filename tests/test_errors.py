"""Checks of single values: what is no number gets the sentence too."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest

from tacit.errors import TacitError, check_at_least, check_delta, check_epsilon, check_positive

BAD = [0, -1.0, float("nan"), float("inf"), True, "3", None, [1.0]]


@pytest.mark.parametrize("value", BAD)
def test_what_is_not_positive_is_refused(value: Any) -> None:
    with pytest.raises(TacitError, match="round_seconds must be finite and above 0"):
        check_positive(value, name="round_seconds")
    with pytest.raises(TacitError, match=r"privacy budget, for example 1\.0"):
        check_epsilon(value)
    with pytest.raises(TacitError, match="delta must lie"):
        check_delta(value)


@pytest.mark.parametrize("value", [1, 0.5, np.float32(0.5), np.int64(2)])
def test_numbers_of_any_kind_pass(value: Any) -> None:
    assert check_positive(value, name="rate") == float(value)


@pytest.mark.parametrize("value", [1, 2.5, float("nan"), float("inf"), True, "3", None])
def test_a_count_is_a_whole_number(value: Any) -> None:
    with pytest.raises(TacitError, match="clients must be a whole number of at least 2"):
        check_at_least(value, 2, name="clients")
    assert check_at_least(cast(int, np.int64(2)), 2, name="clients") == 2
