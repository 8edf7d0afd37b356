"""The plan: one fingerprint for equal plans, and a precise sentence for different ones."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.errors import TacitError
from tacit.silo.plan import (
    Facts,
    Plan,
    Terms,
    complete_plan,
    default_protocol,
    facts_from_dict,
    first_difference,
    plan_from_dict,
    terms_from_dict,
)

TERMS = Terms(program="fedst", parties=("a", "b", "c"), protocol="ABY3", params={"k": 3, "x": 0.5})
FACTS = Facts(count=4, series_length=20, n_channels=1, classes=("0", "1"))
PLAN = complete_plan(TERMS, [FACTS, FACTS, replace(FACTS, count=6)])


def test_the_fingerprint_is_the_sha256_of_the_sorted_compact_json() -> None:
    # Worked out by hand with `printf '%s' TEXT | sha256sum`.
    terms = Terms(program="p", parties=("a", "b"), protocol="CHEETAH", params={"z": 1, "a": [2]})
    text = (
        '{"classes":null,"fraction_bits":18,"n_channels":null,"params":{"a":[2],"z":1},'
        '"parties":["a","b"],'
        '"program":"p","protocol":"CHEETAH","series_length":null}'
    )
    import hashlib

    assert terms.fingerprint == hashlib.sha256(text.encode()).hexdigest()


def test_terms_that_name_the_channels_hold_every_party_to_them() -> None:
    two = replace(FACTS, n_channels=2)
    named = complete_plan(replace(TERMS, n_channels=2), [two] * 3)
    assert named == complete_plan(TERMS, [two] * 3)
    assert named.n_channels == named.terms.n_channels == 2
    with pytest.raises(TacitError, match=r"'a' .* 1 channel\(s\), the plan says 20 with 2"):
        complete_plan(replace(TERMS, n_channels=2), [FACTS] * 3)
    with pytest.raises(TacitError, match=r"'b' .* 1 channel\(s\), the plan says 20 with 2"):
        complete_plan(TERMS, [two, FACTS, two])


def test_the_order_of_parameters_does_not_matter() -> None:
    assert replace(TERMS, params={"x": 0.5, "k": 3}).fingerprint == TERMS.fingerprint


@pytest.mark.parametrize(
    "change",
    [
        {"params": {"k": 4, "x": 0.5}},
        {"parties": ("a", "c", "b")},
        {"program": "other"},
        {"fraction_bits": 17},
        {"series_length": 20},
        {"classes": ("0", "1")},
    ],
)
def test_every_field_changes_the_fingerprint_and_is_named(change: dict[str, Any]) -> None:
    other = replace(TERMS, **change)
    assert other.fingerprint != TERMS.fingerprint
    said = first_difference(TERMS.to_dict(), other.to_dict())
    assert said is not None
    assert said.startswith(next(iter(change)))


def test_the_difference_shows_both_values() -> None:
    other = replace(TERMS, params={"k": 4, "x": 0.5})
    said = first_difference(TERMS.to_dict(), other.to_dict())
    assert said == "params.k is 3 here and 4 there"


def test_equal_plans_have_no_difference() -> None:
    assert first_difference(TERMS.to_dict(), replace(TERMS).to_dict()) is None


def test_plans_terms_and_facts_survive_the_wire() -> None:
    assert plan_from_dict(PLAN.to_dict()) == PLAN
    assert terms_from_dict(TERMS.to_dict()) == TERMS
    assert facts_from_dict(FACTS.to_dict()) == FACTS


def test_a_plan_joins_what_the_parties_announce() -> None:
    assert PLAN.counts == (4, 4, 6)
    assert PLAN.classes == ("0", "1")
    assert PLAN.series_length == 20
    assert PLAN.n_computing == 3


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        (replace(FACTS, series_length=21), "party 'b' has series of length 21"),
        (replace(FACTS, n_channels=2), "party 'b' has series of length 20 with 2"),
        (replace(FACTS, classes=("0", "9")), "party 'b' has the class '9'"),
        (replace(FACTS, count=0), "party 'b' has no series"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(facts: Facts, words: str) -> None:
    with pytest.raises(TacitError, match=words.replace("(", r"\(")):
        complete_plan(TERMS, [FACTS, facts, FACTS])


def test_a_class_outside_the_agreed_ones_is_refused() -> None:
    with pytest.raises(TacitError, match="which the plan does not list"):
        complete_plan(replace(TERMS, classes=("0",)), [FACTS, FACTS, FACTS])


def test_a_parameter_that_is_none_is_as_if_it_were_not_there() -> None:
    assert replace(TERMS, params={"k": 3, "x": 0.5, "y": None}) == TERMS


@pytest.mark.parametrize(
    ("parties", "protocol"),
    [
        (("a", "b"), "ABY3"),
        (("a", "b", "c"), "CHEETAH"),
        (("a", "a", "b"), "ABY3"),
        (("a", "b", "c"), "SEMI2K"),
        (("a", "b", "../c"), "ABY3"),
        (("a", "b", ""), "ABY3"),
    ],
)
def test_impossible_federations_are_refused(parties: tuple[str, ...], protocol: str) -> None:
    with pytest.raises(TacitError):
        Terms(program="fedst", parties=parties, protocol=protocol)  # type: ignore[arg-type]


def test_protocols_by_number_of_parties() -> None:
    assert [default_protocol(n) for n in (2, 3, 5)] == ["CHEETAH", "ABY3", "ABY3"]
    with pytest.raises(TacitError, match="at least 2"):
        default_protocol(1)


def test_a_plan_refuses_what_json_cannot_say() -> None:
    with pytest.raises(TacitError, match="plain finite values"):
        replace(TERMS, params={"k": float("nan")})


def test_unknown_and_missing_fields_are_refused() -> None:
    with pytest.raises(TacitError, match="unknown surprise"):
        plan_from_dict({**PLAN.to_dict(), "surprise": 1})
    with pytest.raises(TacitError, match="missing count"):
        facts_from_dict({k: v for k, v in FACTS.to_dict().items() if k != "count"})


values = st.one_of(st.integers(-5, 5), st.booleans(), st.text(max_size=4), st.lists(st.integers()))


@pytest.mark.seconds
@settings(deadline=None)  # the machine may be busy
@given(st.dictionaries(st.text(min_size=1, max_size=4), values), st.data())
def test_any_changed_parameter_is_noticed(params: dict[str, object], data: st.DataObject) -> None:
    mine = replace(PLAN, params=params)
    assert plan_from_dict(mine.to_dict()) == Plan(**_fields(mine))
    if params:
        key = data.draw(st.sampled_from(sorted(params)))
        theirs = replace(PLAN, params={**params, key: "changed!"})
        assert theirs.fingerprint != mine.fingerprint
        assert first_difference(mine.to_dict(), theirs.to_dict()) is not None


def _fields(plan: Plan) -> dict[str, Any]:
    return {name: getattr(plan, name) for name in plan.__slots__}
