"""Roots and standardised features: exact by every route, and every message looks random."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from replicated_parties import assert_uniform, one_share_only, shares_of, together
from tacit.silo.fedst.classifiers import standard as module
from tacit.silo.fedst.classifiers.standard import (
    LARGEST,
    STANDARDISE,
    plain_roots,
    roots,
    standard_from,
    standardise,
)
from tacit.silo.secure.jax_x64 import enable_x64


def problem() -> NDArray[Any]:
    rng = np.random.default_rng(4)
    features = rng.integers(0, 2**20, size=(6, 90))
    features[0, :4] = [0, 1, 2**20 - 1, 2**20 - 2]
    features[1, :30] = 7  # constant at P0: the largest multiplier, and clipping
    features[2] //= 2**12
    return features


def test_roots_are_exact_up_to_the_edges() -> None:
    near = np.arange(2, 1024)[:, None] ** 2 + np.array([-1, 0, 1])
    values = np.concatenate([np.arange(50), near.ravel(), [2**20 - 1]])
    expected = [math.isqrt(16 * int(v)) for v in values]
    assert plain_roots(values).tolist() == expected
    with enable_x64():
        assert np.asarray(roots(values)).tolist() == expected


def test_plaintext_and_shared_standardisation_agree() -> None:
    features = problem()
    standard = standard_from(features[:, :30])
    with enable_x64():
        shared = np.asarray(standardise(features, standard.centre, standard.multiplier))
    np.testing.assert_array_equal(shared.T / 1024, standard.apply(features))
    assert np.abs(shared).max() == LARGEST  # some are clipped
    assert abs(shared[0, :30].mean()) < 10


def test_the_protocol_gives_the_same_integers(monkeypatch: Any) -> None:
    features = problem()
    standard = standard_from(features[:, :30])
    operands = (features, standard.centre, standard.multiplier)
    with enable_x64():
        expected = np.asarray(standardise(*operands))
    rng = np.random.default_rng(0)
    monkeypatch.setattr(module, "_BLOCK_VALUES", 6 * 40)  # three blocks, the last one shorter
    found, _, _ = together(
        STANDARDISE.replicated, *(shares_of(x, np.uint64, rng) for x in operands)
    )
    assert np.array_equal(found.astype(np.int64), expected)


def test_every_message_is_uniform() -> None:
    """One secret for all values; a sound run is called uneven about once in 10^8 runs."""
    features = np.full((8, 512), 2**19)
    standard = standard_from(features)
    operands = (features, standard.centre, standard.multiplier)
    _, wire, _ = together(STANDARDISE.replicated, *(one_share_only(x) for x in operands))
    assert_uniform(wire)
