"""The K best, best first, ties by index."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from tacit.silo.fedst.top_k import top_indices
from tacit.silo.secure.jax_x64 import enable_x64


@pytest.mark.parametrize(("n", "k"), [(1, 1), (7, 3), (100, 40), (33, 33)])
def test_top_indices_are_those_of_a_stable_sort(n: int, k: int) -> None:
    qualities = np.random.default_rng(n).integers(0, 10, size=n)  # many ties
    with enable_x64():
        found = np.asarray(jax.jit(top_indices, static_argnames="k")(qualities, k=k))
    np.testing.assert_array_equal(found, np.argsort(-qualities, kind="stable")[:k])
