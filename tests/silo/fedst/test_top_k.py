"""The K best, best first, ties by index."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from replicated_parties import assert_uniform, shares_of, together
from tacit.silo.fedst import top_k
from tacit.silo.fedst.top_k import TOP_INDICES, top_indices
from tacit.silo.secure.jax_x64 import enable_x64


@pytest.mark.parametrize(("n", "k"), [(1, 1), (7, 3), (100, 40), (33, 33)])
def test_top_indices_are_those_of_a_stable_sort(n: int, k: int) -> None:
    qualities = np.random.default_rng(n).integers(0, 10, size=n)  # many ties
    with enable_x64():
        found = np.asarray(jax.jit(top_indices, static_argnames="k")(qualities, k=k))
    np.testing.assert_array_equal(found, np.argsort(-qualities, kind="stable")[:k])


@pytest.mark.parametrize("paired", [True, False])
@pytest.mark.parametrize(("n", "k"), [(1, 1), (7, 3), (100, 40), (33, 33)])
def test_the_protocol_gives_the_same_indices(
    n: int, k: int, paired: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(top_k, "MOST_PAIRED", n if paired else 0)
    rng = np.random.default_rng(n)
    qualities = rng.integers(0, 10, size=n)
    qualities[: n // 2] += 2**24 - 10
    found, wire, _ = together(
        lambda party, q: TOP_INDICES.replicated(party, q, k=k), shares_of(qualities, np.uint64, rng)
    )
    np.testing.assert_array_equal(found, np.argsort(-qualities, kind="stable")[:k])
    if n == 100:
        assert_uniform(wire)
