"""Secure == twin == pooled plaintext, on real processes, for 2, 3 and 5 owners."""

from __future__ import annotations

import numpy as np
import pytest

from silo_problems import owners, plan_for
from tacit.silo.fedst.plaintext import fit_pooled
from tacit.silo.fedst.program import fedst_program
from tacit.silo.fedst.settings import settings_from
from tacit.silo.model import trained_model
from tacit.silo.party.localhost import run_federation
from tacit.silo.secure.plain_session import run_plain


def assert_equal_models(a: object, b: object) -> None:
    assert set(a) == set(b)  # type: ignore[call-overload]
    for name in a:  # type: ignore[attr-defined]
        np.testing.assert_array_equal(a[name], b[name], err_msg=name)  # type: ignore[index]


@pytest.mark.seconds
@pytest.mark.parametrize("scope", ["federated", "local-search", "local-transform"])
def test_pooled_plaintext_equals_the_twin_bit_for_bit(scope: str) -> None:
    inputs = owners(9, 7, 8)
    plan = plan_for(inputs, scope=scope)
    twin, _ = run_plain(fedst_program, plan, inputs)
    pooled = fit_pooled(settings_from(plan.params), inputs, n_classes=3)
    assert_equal_models(pooled.arrays, twin[0].arrays)


@pytest.mark.seconds
@pytest.mark.parametrize("counts", [(9, 15), (9, 7, 8), (9, 3, 5, 4, 3)])
def test_secure_model_equals_plaintext_bit_for_bit(counts: tuple[int, ...]) -> None:
    inputs = owners(*counts)
    plan = plan_for(inputs)
    secure = run_federation(plan, inputs)
    pooled = fit_pooled(settings_from(plan.params), inputs, n_classes=3)
    assert_equal_models(pooled.arrays, secure.arrays)
    assert secure.receipts[0].guarantee.opened == (
        "shapelet indices -> P0",
        "forest splits -> P0",
        "forest leaf labels -> P0",
    )
    assert secure.receipts[1].opened == secure.receipts[0].opened


@pytest.mark.seconds
@pytest.mark.parametrize(
    ("counts", "n_channels"), [((9, 15), 1), ((9, 15), 3), ((9, 7, 8), 1), ((9, 7, 8), 3)]
)
def test_secure_ridge_equals_plaintext_bit_for_bit(
    counts: tuple[int, ...], n_channels: int
) -> None:
    inputs = owners(*counts, n_channels=n_channels)
    plan = plan_for(inputs, classifier="ridge")
    secure = run_federation(plan, inputs)
    pooled = fit_pooled(settings_from(plan.params), inputs, n_classes=3)
    assert_equal_models(pooled.arrays, secure.arrays)
    opened = ("shapelet indices -> P0", "ridge weights -> P0")
    assert secure.receipts[0].guarantee.opened == opened
    assert (len(np.unique(secure.arrays["channel"])) > 1) == (n_channels > 1)


@pytest.mark.seconds
@pytest.mark.parametrize("params", [{"quality": "ig"}, {"distance": "elementwise"}])
def test_several_channels_by_the_other_routes(params: dict[str, str]) -> None:
    inputs = owners(9, 7, 8, n_channels=2)
    plan = plan_for(inputs, **params)
    secure = run_federation(plan, inputs)
    pooled = fit_pooled(settings_from(plan.params), inputs, n_classes=3)
    assert_equal_models(pooled.arrays, secure.arrays)


def test_a_candidate_sees_its_own_channel_only() -> None:
    """Channels that say nothing of the class change nothing of what the others give."""
    inputs = owners(9, 7, 8, n_channels=2)
    model = fit_pooled(settings_from(plan_for(inputs).params), inputs, n_classes=3)
    found = trained_model(
        model.arrays, own=inputs[0].X, settings=settings_from(plan_for(inputs).params), n_classes=3
    )
    first = found.features(inputs[1].X)
    changed = inputs[1].X.copy()
    changed[:, 1] = np.random.default_rng(0).normal(size=changed[:, 1].shape)
    same = (found.features(changed) == first).all(axis=1)
    assert 0 < same.sum() < len(same)
    np.testing.assert_array_equal(same, found.channel == 0)


@pytest.mark.seconds
@pytest.mark.parametrize("quality", ["f", "ig-basic"])
def test_what_the_engine_computes_fits_the_protocols_after_it(quality: str) -> None:
    """The engine ends shifts and roundings with shares of bits; kernels take shares of sums."""
    inputs = owners(9, 7, 8)
    plan = plan_for(inputs, distance="elementwise", quality=quality, classifier="ridge")
    secure = run_federation(plan, inputs)
    pooled = fit_pooled(settings_from(plan.params), inputs, n_classes=3)
    assert_equal_models(pooled.arrays, secure.arrays)


@pytest.mark.seconds
def test_secure_gain_and_logistic_agree_with_plaintext() -> None:
    inputs = owners(9, 7, 8)
    plan = plan_for(inputs, quality="ig", classifier="logistic", n_steps=60)
    secure = run_federation(plan, inputs)
    pooled = fit_pooled(settings_from(plan.params), inputs, n_classes=3)
    for name in ("series", "start", "length"):
        np.testing.assert_array_equal(pooled.arrays[name], secure.arrays[name])
    np.testing.assert_allclose(secure.arrays["weights"], pooled.arrays["weights"], atol=0.02)
    # The features are exact integers on both sides, and so are P0's centres and multipliers.
    for name in ("centre", "multiplier"):
        np.testing.assert_array_equal(pooled.arrays[name], secure.arrays[name])
