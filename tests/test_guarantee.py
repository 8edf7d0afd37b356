from __future__ import annotations

import dataclasses
import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.errors import TacitError, TrustModelMismatch
from tacit.guarantee import (
    DpGuarantee,
    Guarantee,
    MpcGuarantee,
    Unprotected,
    composed,
    from_dict,
    from_json,
    round_up,
    rounded_down,
    rounded_up,
)

LOCAL = DpGuarantee(
    epsilon=1.0, model="local", unit="series", assumptions=("secret noise",), not_covered=("time",)
)
MPC = MpcGuarantee(
    n_parties=3,
    max_corrupt=1,
    adversary="passive",
    protocol="ABY3",
    opened=("shapelet indices -> P0",),
    also=dataclasses.replace(LOCAL, model="central", unit="person"),
)
NONE = Unprotected(reason="the noise scale depends on the data", nominal_epsilon=0.1)
ALL: list[Guarantee] = [LOCAL, MPC, NONE]


@pytest.mark.parametrize("guarantee", ALL, ids=lambda g: g.kind)
def test_json_round_trip_gives_an_equal_object(guarantee: Guarantee) -> None:
    assert from_json(guarantee.to_json()) == guarantee
    assert from_dict(guarantee.to_dict()).to_json() == guarantee.to_json()


@pytest.mark.parametrize("guarantee", ALL, ids=lambda g: g.kind)
def test_each_says_itself_in_words_and_carries_its_parts(guarantee: Guarantee) -> None:
    assert guarantee.sentence.endswith(".")
    assert "\n" not in guarantee.sentence
    plain = guarantee.to_dict()
    assert {"kind", "trust_model", "unit", "assumptions", "not_covered", "sentence"} <= set(plain)


@pytest.mark.parametrize("guarantee", ALL, ids=lambda g: g.kind)
def test_guarantees_cannot_be_changed(guarantee: Guarantee) -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        guarantee.unit = "symbol"  # type: ignore[misc]


def test_the_smaller_epsilon_is_stronger() -> None:
    tighter = dataclasses.replace(LOCAL, epsilon=0.5)
    assert tighter.stronger_or_equal(LOCAL)
    assert not LOCAL.stronger_or_equal(tighter)
    assert not dataclasses.replace(LOCAL, epsilon=0.5, delta=1e-6).stronger_or_equal(LOCAL)


@pytest.mark.parametrize(
    "other",
    [
        MPC,
        NONE,
        dataclasses.replace(LOCAL, model="central"),
        dataclasses.replace(LOCAL, unit="client"),
        dataclasses.replace(LOCAL, neighbours="add-remove"),
    ],
)
def test_ranking_across_trust_models_raises(other: Guarantee) -> None:
    with pytest.raises(TrustModelMismatch, match="different adversaries"):
        LOCAL.stronger_or_equal(other)
    with pytest.raises(TrustModelMismatch):
        other.stronger_or_equal(LOCAL)


def test_opening_less_is_stronger() -> None:
    closed = dataclasses.replace(MPC, opened=())
    assert closed.stronger_or_equal(MPC)
    assert not MPC.stronger_or_equal(closed)


def test_opening_with_less_noise_is_weaker() -> None:
    noised, noisier = (
        dataclasses.replace(MPC, also=DpGuarantee(epsilon=e, model="distributed", unit="series"))
        for e in (2.0, 1.0)
    )
    clear = dataclasses.replace(MPC, also=None)
    order = [clear, noised, noisier]
    for weak, strong in ((i, j) for i in range(3) for j in range(3) if i < j):
        assert order[strong].stronger_or_equal(order[weak])
        assert not order[weak].stronger_or_equal(order[strong])
    assert all(guarantee.stronger_or_equal(guarantee) for guarantee in order)


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.inf, math.nan])
def test_an_impossible_epsilon_is_refused(epsilon: float) -> None:
    with pytest.raises(TacitError, match="finite epsilon"):
        DpGuarantee(epsilon=epsilon, model="local", unit="series")


@pytest.mark.parametrize("delta", [-1e-9, 1.0, math.nan])
def test_an_impossible_delta_is_refused(delta: float) -> None:
    with pytest.raises(TacitError, match="delta"):
        dataclasses.replace(LOCAL, delta=delta)


def test_foreign_json_is_refused() -> None:
    with pytest.raises(TacitError, match="unknown kind"):
        from_dict({"kind": "magic"})
    with pytest.raises(TacitError, match="not a dp guarantee"):
        from_dict({**LOCAL.to_dict(), "strength": "high"})
    with pytest.raises(TacitError, match="one JSON object"):
        from_json("{")


@given(st.floats(min_value=0, max_value=1e6), st.integers(0, 6))
def test_rounding_never_goes_down(value: float, digits: int) -> None:
    rounded = round_up(value, digits=digits)
    assert value <= rounded <= value + 10.0**-digits * 1.0000001


@pytest.mark.parametrize("value", [1e25, 1.7e308])
def test_rounding_takes_large_numbers(value: float) -> None:
    assert round_up(value) == value


@given(st.floats(min_value=1e-300, max_value=1e300), st.integers(1, 9))
def test_what_is_shown_errs_on_the_safe_side(value: float, digits: int) -> None:
    shown, below = (Decimal(show(value, digits=digits)) for show in (rounded_up, rounded_down))
    assert below <= Decimal(repr(value)) <= shown
    assert shown <= Decimal(value) * (1 + Decimal(10) ** (1 - digits))
    assert below >= Decimal(value) * (1 - Decimal(10) ** (1 - digits))


def test_what_is_short_already_is_shown_as_it_is() -> None:
    for show in (rounded_up, rounded_down):
        assert [show(v) for v in (0.0, 0.1, 8.0, 1e-5, 100.0)] == ["0", "0.1", "8", "1e-05", "100"]
        assert (show(math.inf), show(-math.inf)) == ("inf", "-inf")


def test_the_sentence_rounds_epsilon_and_delta_up() -> None:
    assert "1.0001 " in dataclasses.replace(LOCAL, epsilon=1.00001).sentence
    large = dataclasses.replace(LOCAL, epsilon=100.0004, delta=1.0000004e-5).sentence
    assert "epsilon = 100.01, delta = 1.0001e-05 " in large
    assert "epsilon = 1e+25 " in dataclasses.replace(LOCAL, epsilon=1e25, delta=0.0).sentence
    nominal = dataclasses.replace(NONE, nominal_epsilon=100.0004).sentence
    assert "nominal epsilon of 100.01 " in nominal


def test_a_number_that_is_short_already_stays_as_it_is() -> None:
    assert [round_up(value) for value in (0.1, 0.3, 1.1, 8.0)] == [0.1, 0.3, 1.1, 8.0]


def training(**changes: Any) -> DpGuarantee:
    values: dict[str, Any] = {"epsilon": 7.9, "delta": 1e-5, "model": "distributed"}
    return DpGuarantee(**(values | {"unit": "client", "assumptions": ("sums only",)} | changes))


def local_release(**changes: Any) -> DpGuarantee:
    values: dict[str, Any] = {"epsilon": 0.1, "model": "local", "unit": "series"}
    return DpGuarantee(**(values | {"assumptions": ("secret noise",)} | changes))


def test_training_and_releases_add_up_and_round_up() -> None:
    for n_releases in (0, 1, 3, 10, 1000):
        both = composed(training(), local_release(), n_releases=n_releases)
        exact = Fraction(7.9) + n_releases * Fraction(0.1)
        assert exact <= Fraction(both.epsilon) <= exact * (1 + Fraction(1, 2**50))
        assert (both.delta, both.unit, both.model) == (1e-5, "person", "distributed")
    assert both.assumptions[:2] == ("sums only", "secret noise")
    assert "at most 1000" in both.assumptions[2]


def test_only_a_training_per_client_and_pure_releases_are_composed() -> None:
    wrong = [
        (training(unit="series"), local_release()),
        (training(), local_release(delta=1e-6)),
        (training(), local_release(model="shuffle")),
    ]
    for first, second in wrong:
        with pytest.raises(TacitError, match="composition is stated for"):
            composed(first, second, n_releases=1)
    with pytest.raises(TacitError, match="n_releases must be"):
        composed(training(), local_release(), n_releases=-1)


def test_a_notebook_shows_the_sentence_and_what_is_behind_it() -> None:
    found = Unprotected(reason="of <b>this</b> test", nominal_epsilon=2.0)._repr_html_()
    assert "of &lt;b&gt;this" in found
    sound = DpGuarantee(epsilon=2.0, model="local", unit="series", assumptions=("a & b",))
    assert sound.sentence in sound._repr_html_()
    assert "<li>a &amp; b</li>" in sound._repr_html_()
