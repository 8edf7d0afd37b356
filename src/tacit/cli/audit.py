"""`tacit audit`: run a mechanism many times and bound its epsilon from below."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tacit.cli.common import JsonFlag, emit, print_table, progress_bar

if TYPE_CHECKING:
    from tacit.audit import Audited, AuditResult


def audit_command(
    mechanism: Annotated[
        str,
        typer.Argument(
            metavar="MECHANISM|BUNDLE",
            help="Name of a mechanism, path of a saved bundle, or 'all' for every mechanism.",
        ),
    ],
    trials: Annotated[int, typer.Option(help="Runs of the mechanism in all.")] = 1_000_000,
    epsilon: Annotated[float, typer.Option(help="Build a named mechanism with this.")] = 1.0,
    delta: Annotated[float, typer.Option(help="For mechanisms that have a delta.")] = 1e-5,
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

    Example: `tacit audit krr --epsilon 1 --trials 1000000`

    See it refute: `tacit audit laplace --epsilon 1.1 --claim 1`. A bundle: `tacit audit DIR`
    """
    from tacit.audit import audit, mechanism_names

    names = mechanism_names() if mechanism == "all" else [mechanism]
    results = []
    for name in names:
        with progress_bar(name) as report:
            audited = _find(name, epsilon=epsilon, delta=delta, claim=claim)
            results.append(audit(audited, trials=trials, confidence=confidence, progress=report))
    if mechanism == "all":
        _emit_all(results, as_json=as_json)
    else:
        emit(results[0].to_dict(), as_json=as_json)


def _find(name: str, *, epsilon: float, delta: float, claim: float | None) -> Audited:
    from tacit.audit import build, mechanism_names

    if name not in mechanism_names() and Path(name).exists():
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
    columns = ("mechanism", "claimed_epsilon", "delta", "lower_bound", "verdict", "seconds")

    def render() -> None:
        rows = [result.to_dict() for result in results]
        print_table(
            [[_cell(row[key]) for key in columns] for row in rows],
            columns=columns,
            title=f"confidence {worst.confidence:g}, {worst.trials:,} runs each",
        )

    emit(summary, as_json=as_json, render=render)


def _cell(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
