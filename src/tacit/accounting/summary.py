"""One account of shuffled rounds as plain values: what the command line and the page print."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tacit.accounting.batch import Cap, cap_at, privunit_cap
from tacit.accounting.compose import compose_mixed, compose_shuffled
from tacit.accounting.shuffle import (
    amplification_note,
    closed_form_epsilon,
    closed_form_limit,
    mixed_epsilons,
    shuffle_epsilon,
)
from tacit.errors import TacitError, check_at_least, check_epsilon
from tacit.guarantee import DpGuarantee


def summarize_shuffle(
    *,
    local_epsilon: float,
    n: int,
    delta: float,
    rounds: int = 1,
    n_symbols: int | None = None,
    cap: Cap | None = None,
    force: bool = False,
) -> dict[str, Any]:
    """Central epsilon of `rounds` batches of n reports, its theorem, conditions and a note."""
    check_at_least(rounds, 1, name="rounds")
    check_epsilon(local_epsilon, name="local_epsilon")
    own = cap_at(cap, local_epsilon)
    one = shuffle_epsilon(
        local_epsilon=local_epsilon, n=n, delta=delta, n_symbols=n_symbols, cap=own, force=force
    )
    central, theorem = one.central_epsilon, one.theorem
    if rounds > 1:
        central = compose_shuffled(
            [(local_epsilon, n)] * rounds, delta=delta, n_symbols=n_symbols, cap=own, force=force
        )
        theorem += f"; {rounds} rounds composed by privacy-loss distributions"
    closed = None
    if rounds == 1 and local_epsilon <= closed_form_limit(n=n, delta=delta):
        closed = closed_form_epsilon(local_epsilon=local_epsilon, n=n, delta=delta, force=force)
    return {
        "central_epsilon": central,
        "delta": delta,
        "local_epsilon": local_epsilon,
        "n": n,
        "rounds": rounds,
        "amplification": local_epsilon * rounds / central,
        "note": amplification_note(
            local_total=local_epsilon * rounds, central_epsilon=central, n=n
        ),
        "theorem": theorem,
        "conditions": list(one.conditions),
        "cap": own,
        "closed_form_epsilon": closed.central_epsilon if closed else None,
        "closed_form_limit": closed_form_limit(n=n, delta=delta),
        "guarantee": DpGuarantee(
            epsilon=central,
            delta=delta,
            model="shuffle",
            unit="client",
            assumptions=one.conditions,
            not_covered=("who took part", "the size of the batch", "when reports were sent"),
        ),
    }


def parse_randomizer(
    name: str | None, *, n_symbols: int | None = None, cap: float | None = None
) -> dict[str, Any]:
    """Which kind of report is accounted: keywords for the functions of this package.

    Without a name, symbols mean k-ary randomized response and a cap means PrivUnitG.
    """
    if name is None:
        name = "any" if n_symbols is None and cap is None else "krr" if cap is None else "privunit"
    if name == "any" and n_symbols is None and cap is None:
        return {}
    if name == "krr" and n_symbols is not None and cap is None:
        return {"n_symbols": n_symbols}
    if name == "privunit" and n_symbols is None:
        # Without a number, the cap of the PrivUnitG of least variance.
        return {"cap": privunit_cap if cap is None else cap}
    raise TacitError(
        "the randomizer is any, krr with a number of symbols, or privunit, which may be given a "
        f"cap; got {name!r} with symbols = {n_symbols} and cap = {cap}."
    )


def summarize_mixed(
    counts: Mapping[float, int],
    *,
    delta: float,
    rounds: int = 1,
    n_symbols: int | None = None,
    cap: Cap | None = None,
    force: bool = False,
) -> dict[str, Any]:
    """Central epsilon of the clients of each local epsilon over batches that mix several."""
    check_at_least(rounds, 1, name="rounds")
    found = mixed_epsilons(counts, delta=delta, n_symbols=n_symbols, cap=cap, force=force)
    over = {
        local: bound.central_epsilon
        if rounds == 1
        else compose_mixed(
            [counts] * rounds,
            local_epsilon=local,
            delta=delta,
            n_symbols=n_symbols,
            cap=cap,
            force=force,
        )
        for local, bound in found.items()
    }
    told = f"; {rounds} rounds composed by privacy-loss distributions" if rounds > 1 else ""
    clients: list[dict[str, Any]] = [
        {
            "local_epsilon": local,
            "n": counts[local],
            "central_epsilon": over[local],
            "theorem": bound.theorem + told,
            "conditions": list(bound.conditions),
        }
        for local, bound in found.items()
    ]
    worst = max(clients, key=lambda one: one["central_epsilon"])
    return {
        "central_epsilon": worst["central_epsilon"],
        "delta": delta,
        "n": sum(counts.values()),
        "rounds": rounds,
        "clients": clients,
        "theorem": worst["theorem"],
        "conditions": worst["conditions"],
    }


def parse_mixed(text: str) -> dict[float, int]:
    """Read LOCAL_EPSILON:N,LOCAL_EPSILON:N,... into the number of reports of each epsilon."""
    counts: dict[float, int] = {}
    for part in text.split(","):
        for local, n in parse_round(part):
            counts[local] = counts.get(local, 0) + n
    return counts


def parse_round(text: str) -> list[tuple[float, int]]:
    """Read LOCAL_EPSILON:N or LOCAL_EPSILON:NxTIMES into one pair per round."""
    local, _, rest = text.partition(":")
    n, _, times = rest.partition("x")
    try:
        return [(float(local), int(n))] * check_at_least(int(times or 1), 1, name="TIMES")
    except ValueError as error:
        raise TacitError(
            f"a round is written LOCAL_EPSILON:N or LOCAL_EPSILON:NxTIMES, for example "
            f"1.0:1000x9, got {text!r}."
        ) from error
