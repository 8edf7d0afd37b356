"""`tacit audit`: run a mechanism many times and bound its epsilon from below."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tacit.cli.common import JsonFlag, emit, print_table, progress_bar
from tacit.cli.manner.completion import mechanisms

if TYPE_CHECKING:
    from tacit.audit import Audited, AuditResult


def audit_command(
    mechanism: Annotated[
        str,
        typer.Argument(
            metavar="MECHANISM|BUNDLE",
            help="Name of a mechanism or training, path of a saved bundle, or 'all'.",
            autocompletion=mechanisms,
        ),
    ],
    trials: Annotated[int, typer.Option(help="Runs of the mechanism in all.")] = 1_000_000,
    epsilon: Annotated[float, typer.Option(help="Build a named mechanism with this.")] = 1.0,
    delta: Annotated[
        float | None,
        typer.Option(help="Where there is one: 1e-5 by default, 1e-10 for a training."),
    ] = None,
    claim: Annotated[
        float | None,
        typer.Option(help="Test this epsilon instead of the one the mechanism states."),
    ] = None,
    confidence: Annotated[
        float, typer.Option(help="A sound mechanism is refuted less often than 1 - this.")
    ] = 0.999999,
    as_json: JsonFlag = False,
) -> None:
    """Bound epsilon from below; refuted means: the mechanism leaks more than it claims.

    Where a mechanism states its law the bound is exact and runs show that the code follows the law.

    Every result says what it would have noticed with 95 % power.

    Example: `tacit audit krr --epsilon 1 --trials 1000000`

    See it refute: `tacit audit laplace --epsilon 1.1 --claim 1`, or `tacit audit float-laplace`,
    noise whose last bits give the value away. A bundle: `tacit audit DIR`

    A training runs once, with every client as a canary: `tacit audit privunit-training --epsilon 8`
    """
    from tacit.audit import audit, audit_fleet, mechanism_names, training_names
    from tacit.audit.trainings import TRAINING_DELTA

    names = [*mechanism_names(), *training_names()] if mechanism == "all" else [mechanism]
    results = []
    for name in names:
        with progress_bar(name) as report:
            if name in training_names():
                result = audit_fleet(
                    name,
                    epsilon=epsilon,
                    delta=TRAINING_DELTA if delta is None else delta,
                    claim=claim,
                    confidence=confidence,
                    progress=report,
                )
            else:
                audited = _find(
                    name, epsilon=epsilon, delta=1e-5 if delta is None else delta, claim=claim
                )
                result = audit(audited, trials=trials, confidence=confidence, progress=report)
            results.append(result)
    if mechanism == "all":
        _emit_all(results, as_json=as_json)
    else:
        emit(results[0].to_dict(), as_json=as_json)


def _find(name: str, *, epsilon: float, delta: float, claim: float | None) -> Audited:
    from tacit.audit import build, demonstration_names, mechanism_names

    named = {*mechanism_names(), *demonstration_names()}
    if name not in named and Path(name).exists():
        from tacit.audit.bundles import audited_bundle

        return audited_bundle(Path(name), claim=claim)
    return build(name, epsilon=epsilon, delta=delta, claim=claim)


def _emit_all(results: list[AuditResult], *, as_json: bool) -> None:
    worst = max(results, key=lambda result: result.lower_bound - result.claimed_epsilon)
    refuted = any(result.verdict == "refuted" for result in results)
    summary = {
        **worst.to_dict(),
        "verdict": "refuted" if refuted else "consistent",
        "mechanisms": [result.to_dict() for result in results],
    }
    columns = (
        "mechanism", "claimed_epsilon", "delta", "lower_bound", "method", "verdict",
        "detectable_epsilon", "detectable_event", "seconds",
    )  # fmt: skip

    def render() -> None:
        rows = [result.to_dict() for result in results]
        print_table(
            [[_cell(key, row[key]) for key in columns] for row in rows],
            columns=columns,
            title=f"confidence {worst.confidence:g}, {worst.trials:,} runs each",
        )

    emit(summary, as_json=as_json, render=render)


def _cell(key: str, value: object) -> str:
    """A claim is shown no smaller than it is, and what the runs prove no larger."""
    from tacit.guarantee import rounded_down, rounded_up

    if not isinstance(value, float):
        return str(value)
    if key == "seconds":
        return f"{value:.3g}"
    return rounded_down(value) if key == "lower_bound" else rounded_up(value)
