"""`tacit account`: what a shuffled batch, many rounds or a group of series really costs."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from tacit.cli.common import JsonFlag, emit, new_app, print_table
from tacit.cli.manner.choices import Randomizer
from tacit.cli.manner.readable import readable, words
from tacit.errors import TacitError

app = new_app("Privacy accounting: amplification by shuffling, composition, calibration.")

LocalOption = Annotated[float, typer.Option(help="Epsilon of each report on its own.")]
ReportsOption = Annotated[int, typer.Option("--n", help="Reports really in each batch.")]
DeltaOption = Annotated[float, typer.Option(help="Must be below 1/n.")]
RoundsOption = Annotated[int, typer.Option(help="Batches that one client may take part in.")]
RandomizerOption = Annotated[
    Randomizer | None,
    typer.Option(help="Which reports; krr takes --symbols. A known kind is tighter than any."),
]
SymbolsOption = Annotated[
    int | None, typer.Option(help="Symbols of k-ary randomized response, with --randomizer krr.")
]
CapOption = Annotated[
    float | None,
    typer.Option(
        help="Largest probability of PrivUnitG's cap, with --randomizer privunit; without it, "
        "that of least variance."
    ),
]
ForceFlag = Annotated[bool, typer.Option("--force", help="Allow a delta of 1/n or more.")]


@app.command("shuffle")
def shuffle_command(
    delta: DeltaOption,
    local_epsilon: Annotated[
        float | None, typer.Option(help="Epsilon of each report on its own.")
    ] = None,
    n: Annotated[int | None, typer.Option("--n", help="Reports really in each batch.")] = None,
    rounds: RoundsOption = 1,
    mixed: Annotated[
        str | None,
        typer.Option(help="Batches of several local epsilons: LOCAL_EPSILON:N,LOCAL_EPSILON:N."),
    ] = None,
    randomizer: RandomizerOption = None,
    symbols: SymbolsOption = None,
    cap: CapOption = None,
    force: ForceFlag = False,
    as_json: JsonFlag = False,
) -> None:
    """From a local epsilon to the central epsilon of shuffled batches.

    The cap of PrivUnitG is what its epsilon depends on: without --cap that of least variance, which
    fleets use; a smaller cap amplifies better and is noisier.

    With --mixed every batch mixes local epsilons, and clients of each have an epsilon of their own.

    Example: `tacit account shuffle --local-epsilon 1.16 --n 10000 --delta 1e-9`
    """
    from tacit.accounting.summary import parse_randomizer, summarize_shuffle

    if mixed is not None:
        if local_epsilon is not None or n is not None:
            raise TacitError(
                "--mixed names the epsilons and reports of every batch; leave --local-epsilon and "
                "--n out."
            )
        kind = parse_randomizer(randomizer, n_symbols=symbols, cap=cap)
        _mixed(mixed, {"delta": delta, "rounds": rounds, "force": force, **kind}, as_json)
        return
    if local_epsilon is None or n is None:
        raise TacitError("give --local-epsilon and --n, or --mixed LOCAL_EPSILON:N,...")
    result = summarize_shuffle(
        local_epsilon=local_epsilon,
        n=n,
        delta=delta,
        rounds=rounds,
        force=force,
        **parse_randomizer(randomizer, n_symbols=symbols, cap=cap),
    )

    def render() -> None:
        shown = ["central_epsilon", "delta", "rounds", "theorem"]
        shown += ["closed_form_epsilon"] if result["closed_form_epsilon"] is not None else []
        shown += ["cap"] if result["cap"] is not None else []
        print_table([(words(key), _plain(result[key])) for key in shown])
        typer.echo(result["note"])
        typer.echo("Holds if:")
        for condition in result["conditions"]:
            typer.echo(f"  - {condition}")

    emit(result, as_json=as_json, render=render)


def _mixed(text: str, given: dict[str, Any], as_json: bool) -> None:
    from tacit.accounting.summary import parse_mixed, summarize_mixed

    result = summarize_mixed(parse_mixed(text), **given)

    def render() -> None:
        keys = ("local_epsilon", "n", "central_epsilon")
        rows = [[_plain(one[key]) for key in keys] for one in result["clients"]]
        print_table(rows, columns=("local epsilon", "reports", "central epsilon"))
        typer.echo(result["theorem"])

    emit(result, as_json=as_json, render=render)


@app.command("calibrate")
def calibrate_command(
    central_epsilon: Annotated[float, typer.Option(help="Target for all rounds together.")],
    n: ReportsOption,
    delta: DeltaOption,
    rounds: RoundsOption = 1,
    randomizer: RandomizerOption = None,
    symbols: SymbolsOption = None,
    cap: CapOption = None,
    force: ForceFlag = False,
    as_json: JsonFlag = False,
) -> None:
    """The largest local epsilon per report that keeps all rounds within a central epsilon.

    Example: `tacit account calibrate --central-epsilon 1 --n 1000 --delta 1e-6 --rounds 10`
    """
    from tacit.accounting import calibrate_shuffle
    from tacit.accounting.summary import parse_randomizer, summarize_shuffle

    kind = parse_randomizer(randomizer, n_symbols=symbols, cap=cap)
    local_epsilon = calibrate_shuffle(
        central_epsilon=central_epsilon, n=n, delta=delta, rounds=rounds, force=force, **kind
    )
    account = summarize_shuffle(
        local_epsilon=local_epsilon, n=n, delta=delta, rounds=rounds, force=force, **kind
    )
    result = {"target_epsilon": central_epsilon, **account}

    def render() -> None:
        from tacit.guarantee import rounded_down

        # Rounded up, a local epsilon would exceed what it was calibrated for.
        rows = [("local epsilon", rounded_down(local_epsilon, digits=4))]
        shown = ("target_epsilon", "central_epsilon", "delta", "rounds", "theorem")
        print_table([*rows, *((words(key), _plain(result[key])) for key in shown)])
        typer.echo(result["note"])

    emit(result, as_json=as_json, render=render)


@app.command("compose")
def compose_command(
    rounds: Annotated[
        list[str], typer.Option("--round", help="LOCAL_EPSILON:N, or LOCAL_EPSILON:NxTIMES.")
    ],
    delta: DeltaOption,
    randomizer: RandomizerOption = None,
    symbols: SymbolsOption = None,
    cap: CapOption = None,
    force: ForceFlag = False,
    as_json: JsonFlag = False,
) -> None:
    """Compose shuffled rounds of different sizes and epsilons, each with its real n.

    Example: `tacit account compose --round 1.0:1000x9 --round 1.0:640 --delta 1e-6`
    """
    from tacit.accounting import compose_shuffled
    from tacit.accounting.shuffle import amplification_note
    from tacit.accounting.summary import parse_randomizer, parse_round

    parsed = [pair for text in rounds for pair in parse_round(text)]
    kind = parse_randomizer(randomizer, n_symbols=symbols, cap=cap)
    central = compose_shuffled(parsed, delta=delta, force=force, **kind)
    note = amplification_note(
        local_total=sum(local for local, _ in parsed),
        central_epsilon=central,
        n=min(n for _, n in parsed),
    )
    result = {"central_epsilon": central, "delta": delta, "rounds": len(parsed), "note": note}
    emit(result, as_json=as_json)


@app.command("group")
def group_command(
    epsilon: Annotated[float, typer.Option(help="Epsilon for one series.")],
    size: Annotated[int, typer.Option(help="Series of one person, at most.")],
    delta: Annotated[float, typer.Option(help="Delta for one series.")] = 0.0,
    as_json: JsonFlag = False,
) -> None:
    """From a guarantee per series to one per person with several series.

    Example: `tacit account group --epsilon 0.5 --size 4`
    """
    from tacit.accounting import group_privacy

    group_epsilon, group_delta = group_privacy(epsilon=epsilon, delta=delta, size=size)
    emit({"epsilon": group_epsilon, "delta": group_delta, "size": size}, as_json=as_json)


@app.command("gaussian")
def gaussian_command(
    noise_multiplier: Annotated[
        float, typer.Option(help="Noise of the sum over the clip norm of one contribution.")
    ],
    delta: Annotated[float, typer.Option(help="Well below one over the number of clients.")],
    rounds: RoundsOption = 1,
    continuous: Annotated[
        bool, typer.Option("--continuous", help="Continuous noise instead of discrete.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Epsilon of Gaussian noise on clipped sums, when one contribution is replaced.

    Example: `tacit account gaussian --noise-multiplier 12 --rounds 100 --delta 1e-5`
    """
    from tacit.accounting import compose_gaussian

    epsilon = compose_gaussian(
        noise_multiplier=noise_multiplier,
        rounds=rounds,
        delta=delta,
        noise="continuous" if continuous else "discrete",
    )
    result = {"epsilon": epsilon, "delta": delta, "rounds": rounds, "neighbours": "replace"}
    emit(result, as_json=as_json)


@app.command("table1")
def table1_command(as_json: JsonFlag = False) -> None:
    """Table I of the DP-TimeFL paper, recomputed, beside the epsilon that can be proved.

    Example: `tacit account table1`
    """
    from dataclasses import asdict

    from tacit.accounting.timefl import TABLE_DELTA, timefl_table_1

    cells = [{**asdict(cell), "reproduced": cell.reproduced} for cell in timefl_table_1()]
    result = {
        "delta": TABLE_DELTA,
        "reproduced": sum(cell["reproduced"] for cell in cells),
        "cells": cells,
        "note": "Claimed values set the constant of an O() to 1: they are no guarantee.",
    }

    def render() -> None:
        columns = ("n", "claimed", "local, printed", "local, Eq. 4", "condition", "proven", "same")
        rows = [[_plain(value) for value in cell.values()] for cell in cells]
        print_table(rows, columns=columns, title=f"Table I at delta = {TABLE_DELTA:g}")
        typer.echo(result["note"])

    emit(result, as_json=as_json, render=render)


def _plain(value: Any) -> str:
    from tacit.guarantee import rounded_up

    return rounded_up(value, digits=4) if isinstance(value, float) else readable(value)
