"""Qualities against independent implementations of the corrected formulas."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.feature_selection import f_classif

from replicated_parties import assert_uniform, one_share_only, shares_of, together
from tacit.errors import TacitError
from tacit.silo.fedst.candidates import distance_bits_for
from tacit.silo.fedst.quality import (
    F_QUALITY,
    GAIN_BITS,
    MAX_SERIES,
    RATIO_BITS,
    check_series_count,
    f_quality,
    gain_in_order,
    gain_keys,
    ig_quality_basic,
    key_bits,
)
from tacit.silo.secure.jax_x64 import enable_x64
from tacit.silo.secure.sorting_network import sorted_low_bits


def ig_quality(distances: Any, indicators: Any, candidate: Any, *, tie_seed: int) -> Any:
    keys, ours = gain_keys(distances, indicators, candidate, tie_seed=tie_seed)
    ordered = sorted_low_bits(keys, n_bits=key_bits(keys.shape[1]))
    return gain_in_order(ordered, ours)


def problem(n: int = 40, n_classes: int = 3, seed: int = 0) -> tuple[NDArray[Any], NDArray[Any]]:
    rng = np.random.default_rng(seed)
    codes = np.arange(n) % n_classes
    pull = rng.uniform(0, 2, size=(12, 1)) * codes
    distances = np.abs(rng.normal(size=(12, n)) + pull) * 2**16
    return distances.astype(np.int64), codes


def f_of(distances: NDArray[Any], codes: NDArray[Any]) -> NDArray[Any]:
    one_hot = np.eye(codes.max() + 1, dtype=np.int64)[codes]
    with enable_x64():
        return np.asarray(jax.jit(f_quality)(distances, one_hot))


@pytest.mark.parametrize("n_classes", [2, 3, 7])
def test_f_is_the_between_share_of_anova(n_classes: int) -> None:
    distances, codes = problem(n_classes=n_classes)
    f = f_classif(distances.T.astype(float), codes)[0]
    ratio = f * (n_classes - 1)
    share = ratio / (ratio + len(codes) - n_classes)
    np.testing.assert_allclose(f_of(distances, codes) / 2.0**RATIO_BITS, share, atol=2e-6)


def test_f_weighs_classes_by_their_sizes() -> None:
    """Eq. 8 as printed leaves n_c out: here it would prefer the wrong candidate."""
    codes = np.array([0] * 30 + [1] * 3 + [2] * 3)
    rng = np.random.default_rng(1)
    noise = rng.normal(scale=2000.0, size=(2, 36))
    means = np.array([[40000.0, 60000.0, 60000.0], [50000.0, 37000.0, 63000.0]])
    distances = (means[:, codes] + noise).astype(np.int64)
    quality = f_of(distances, codes)
    f = f_classif(distances.T.astype(float), codes)[0]
    unweighted = [np.var([d[codes == c].mean() for c in range(3)]) for d in distances]
    assert (quality[0] > quality[1]) == (f[0] > f[1])
    assert (f[0] > f[1]) != (unweighted[0] > unweighted[1])


def test_f_of_equal_distances_and_absent_classes() -> None:
    flat = np.full((1, 9), 2**20 - 1, dtype=np.int64)
    assert f_of(flat, np.arange(9) % 3)[0] == 0
    codes = np.array([0, 0, 0, 2, 2, 2])  # class 1 has no series
    split = np.array([[1, 2, 3, 900000, 900001, 900002]])
    assert f_of(split, codes)[0] > 0.99 * 2**RATIO_BITS


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(0, 20))
def test_f_never_leaves_its_range(seed: int, bits: int) -> None:
    distances = np.random.default_rng(seed).integers(0, 2**bits, size=(4, 16), endpoint=True)
    quality = f_of(np.minimum(distances, 2**20 - 1), np.arange(16) % 2)
    assert ((quality >= 0) & (quality < 2**RATIO_BITS)).all()


def gain_by_definition(distances: NDArray[Any], ours: NDArray[Any]) -> float:
    """Eq. 2 with the weights of the sides, over all thresholds."""

    def entropy(part: NDArray[Any]) -> float:
        p = part.mean() if len(part) else 0.0
        return 0.0 if p in (0.0, 1.0) else float(-p * np.log2(p) - (1 - p) * np.log2(1 - p))

    best = 0.0
    for threshold in distances:
        left, right = ours[distances <= threshold], ours[distances > threshold]
        weighted = (len(left) * entropy(left) + len(right) * entropy(right)) / len(ours)
        best = max(best, entropy(ours) - weighted)
    return best


@pytest.mark.parametrize("route", [ig_quality, ig_quality_basic])
def test_gain_is_the_weighted_information_gain(route: Any) -> None:
    distances, codes = problem(n=24)
    distances[0] = codes * 10**5 + np.arange(24)  # a perfect split for class 0
    one_hot = np.eye(3, dtype=np.int64)[codes]
    candidate = np.arange(12) % 3
    with enable_x64():
        run = jax.jit(partial(route, tie_seed=1))
        found = np.asarray(run(distances, one_hot, one_hot[candidate]))
    for b in range(12):
        wanted = gain_by_definition(distances[b], codes == candidate[b])
        assert found[b] / 2.0**GAIN_BITS == pytest.approx(wanted, abs=0.6 * 2.0**-GAIN_BITS)


def test_equal_distances_bring_no_gain_by_luck_of_order() -> None:
    """Ties are broken by a public random rank, not by the label."""
    codes = np.arange(64) % 2
    one_hot = np.eye(2, dtype=np.int64)[codes]
    with enable_x64():
        run = jax.jit(partial(ig_quality, tie_seed=0))
        found = np.asarray(run(np.full((1, 64), 5), one_hot, one_hot[:1]))
    assert found[0] < 0.2 * 2**GAIN_BITS


def test_too_many_series_are_refused() -> None:
    check_series_count(2**16)
    check_series_count(4096, quality="ig")
    with pytest.raises(TacitError, match="at most 65536"):
        check_series_count(2**16 + 1)
    with pytest.raises(TacitError, match="at most 4096"):
        check_series_count(4097, quality="ig")


def edge_cases() -> NDArray[Any]:
    rng = np.random.default_rng(3)
    distances, _ = problem(n=40)
    distances[0] = 0  # no variance at all
    distances[1] = np.arange(40) % 3 * 2**18  # all of it between the classes
    distances[2] = rng.integers(0, 2, 40) * (2**20 - 1)
    return distances


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_the_protocol_gives_the_same_qualities(n_classes: int) -> None:
    distances, codes = edge_cases(), np.arange(40) % 3 % n_classes
    one_hot = np.eye(n_classes, dtype=np.int64)[codes]  # with 5 classes, two are absent
    rng = np.random.default_rng(0)
    found, _, sides = together(
        F_QUALITY.replicated, *(shares_of(x, np.uint64, rng) for x in (distances, one_hot))
    )
    with enable_x64():
        expected = np.asarray(jax.jit(f_quality)(distances, one_hot))
    assert np.array_equal(found.astype(np.int64), expected)
    assert expected[0] == 0
    assert sides[0].rounds < 110


def test_blocks_are_scored_like_one_table() -> None:
    distances, codes = edge_cases(), np.arange(40) % 3
    one_hot = np.eye(3, dtype=np.int64)[codes]
    rng = np.random.default_rng(0)
    parts = (distances[:5], distances[5:6], distances[6:], one_hot)
    found, _, sides = together(F_QUALITY.replicated, *(shares_of(x, np.uint64, rng) for x in parts))
    assert np.array_equal(found.astype(np.int64), f_of(distances, codes))
    assert sides[0].rounds < 110
    assert F_QUALITY.output_shape(*(x.shape for x in parts)) == found.shape


def test_sums_of_the_largest_federation_stay_exact() -> None:
    """As many series as there may be, at the largest distances: 2**58 is not passed."""
    n = MAX_SERIES
    largest = 2 ** distance_bits_for(n) - 1
    codes = np.arange(n) % 2
    distances = np.stack([codes * largest, np.full(n, largest), (codes[::-1] ^ 1) * largest])
    shares = f_of(distances, codes) / 2.0**RATIO_BITS
    np.testing.assert_allclose(shares, [1.0, 0.0, 1.0], atol=1e-6)


def test_every_message_of_the_quality_is_uniform() -> None:
    """Constant secrets; a sound run is called uneven about once in 10^8 runs."""
    distances, one_hot = np.full((200, 30), 2**19), np.ones((30, 2), dtype=np.int64)
    _, wire, _ = together(F_QUALITY.replicated, one_share_only(distances), one_share_only(one_hot))
    assert_uniform(wire)
