"""Every field of a disclosure, flat: a name, a value, and where the value was read."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from tacit.audit.bounds import proportion_above, proportion_below
from tacit.disclosure.evidence import Evidence, Fact
from tacit.guarantee import DpGuarantee, Guarantee, MpcGuarantee, Unprotected, round_up

_LEVEL = 0.95
_LARGEST_EXPONENT = 700.0  # beyond it the odds are no float
_QUOTED = (
    *("accuracy", "ceiling", "clean_accuracy", "held_out_accuracy", "data", "evaluated_on"),
    *("n_train", "n_test", "split", "clients", "rounds", "seed", "version"),
)


def fields_of(evidence: Evidence) -> dict[str, Fact]:
    """All facts by their names; a name stands once."""
    return {fact.key: fact for fact in _all(evidence)}


def _all(evidence: Evidence) -> Iterator[Fact]:
    for name, guarantee in evidence.guarantees.items():
        yield from _promise(name, guarantee, evidence.sources[name])
    for name, private in evidence.private.items():
        yield from _loss(name, private, evidence)
    yield from evidence.facts
    yield from _measured(evidence)
    yield from _spent(evidence)


def _promise(name: str, guarantee: Guarantee, source: str) -> Iterator[Fact]:
    for part in ("kind", "sentence", "unit"):
        value = getattr(guarantee, part)
        yield Fact(key=f"{name}.{part}", value=value, source=_inside(source, part))
    for part in ("assumptions", "not_covered"):
        listed = list(getattr(guarantee, part))
        yield Fact(key=f"{name}.{part}", value=listed, source=_inside(source, part))
    if isinstance(guarantee, MpcGuarantee):
        for part in ("n_parties", "max_corrupt", "adversary", "protocol"):
            value = getattr(guarantee, part)
            yield Fact(key=f"{name}.{part}", value=value, source=_inside(source, part))
    if isinstance(guarantee, Unprotected) and guarantee.nominal_epsilon is not None:
        yield Fact(
            key=f"{name}.nominal_epsilon",
            value=guarantee.nominal_epsilon,
            source=_inside(source, "nominal_epsilon"),
        )


def _inside(source: str, part: str) -> str:
    """The field of a guarantee that a file holds; what was computed has no field of its own."""
    return source if source.startswith("computed") else f"{source}.{part}"


def _loss(name: str, private: DpGuarantee, evidence: Evidence) -> Iterator[Fact]:
    inside = "" if private is evidence.guarantees[name] else ".also"
    source = f"{evidence.sources[name]}{inside}"
    epsilon = round_up(private.epsilon)
    exact = "" if epsilon == private.epsilon else ", rounded up"
    values = {"delta": private.delta, "model": private.model, "neighbours": private.neighbours}
    yield Fact(key=f"{name}.epsilon", value=epsilon, source=f"{_inside(source, 'epsilon')}{exact}")
    for part, value in values.items():
        yield Fact(key=f"{name}.{part}", value=value, source=_inside(source, part))
    if private.epsilon <= _LARGEST_EXPONENT:
        yield Fact(
            key=f"{name}.odds",
            value=round_up(math.exp(epsilon), digits=2),
            source=f"computed from {name}.epsilon: e to its power, rounded up",
        )


def _measured(evidence: Evidence) -> Iterator[Fact]:
    record, source = evidence.record, evidence.record_source
    if record is None:
        return
    for key in _QUOTED:
        if key in record:
            counted = key in record.get("computed", ())
            stands = f"computed from {source}: labels" if counted else f"{source}: {key}"
            yield Fact(key=f"record.{key}", value=record[key], source=stands)
    low, high, how = _interval(record, source)
    if low is not None:
        ends = ("", "") if how.startswith("computed") else (".low", ".high")
        yield Fact(key="record.accuracy_low", value=low, source=how + ends[0])
        yield Fact(key="record.accuracy_high", value=high, source=how + ends[1])
    for number, warning in enumerate(record.get("warnings", ()), start=1):
        yield Fact(
            key=f"record.warning_{number}", value=warning, source=f"{source}: warnings.{number - 1}"
        )


def _interval(record: Mapping[str, Any], source: str) -> tuple[float | None, float | None, str]:
    """The 95 % interval of the accuracy: recorded, or Clopper and Pearson's of the counts."""
    known = record.get("accuracy_interval")
    if known is not None:
        return known["low"], known["high"], f"{source}: accuracy_interval"
    if "accuracy" not in record or "n_test" not in record:
        return None, None, ""
    n, tail = int(record["n_test"]), (1.0 - _LEVEL) / 2.0
    right = round(record["accuracy"] * n)
    return (
        proportion_above(right, n, false_alarm=tail),
        proportion_below(right, n, false_alarm=tail),
        f"computed from {source}: Clopper and Pearson's interval of accuracy and n_test",
    )


def _spent(evidence: Evidence) -> Iterator[Fact]:
    account = evidence.account
    if account is None:
        return
    values = {
        "ledger.debits": account.debits,
        "ledger.debits_here": account.debits_here,
        "ledger.subjects": account.subjects,
        "ledger.most_epsilon_of_one_subject": account.most_epsilon,
        "ledger.most_delta_of_one_subject": account.most_delta,
        "ledger.budget_epsilon": account.budget_epsilon,
        "ledger.per_subject_epsilon": account.per_subject_epsilon,
        "ledger.anchor": account.anchor,
        "ledger.anchored_elsewhere": account.anchored,
    }
    for key, value in values.items():
        yield Fact(key=key, value=value, source=f"computed from {account.file}: its entries")
