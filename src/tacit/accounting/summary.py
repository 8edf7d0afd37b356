"""One account of shuffled rounds as plain values: what the command line and the page print."""

from __future__ import annotations

from typing import Any

from tacit.accounting.compose import compose_shuffled
from tacit.accounting.shuffle import (
    amplification_note,
    closed_form_epsilon,
    closed_form_limit,
    shuffle_epsilon,
)
from tacit.errors import TacitError, check_at_least
from tacit.guarantee import DpGuarantee


def summarize_shuffle(
    *,
    local_epsilon: float,
    n: int,
    delta: float,
    rounds: int = 1,
    n_symbols: int | None = None,
    force: bool = False,
) -> dict[str, Any]:
    """Central epsilon of `rounds` batches of n reports, its theorem, conditions and a note."""
    check_at_least(rounds, 1, name="rounds")
    if rounds > 1 and n_symbols is not None:
        raise TacitError(
            "the bound for randomized response is for one round; leave the symbols out for more."
        )
    one = shuffle_epsilon(
        local_epsilon=local_epsilon, n=n, delta=delta, n_symbols=n_symbols, force=force
    )
    central, theorem = one.central_epsilon, one.theorem
    if rounds > 1:
        central = compose_shuffled([(local_epsilon, n)] * rounds, delta=delta, force=force)
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
