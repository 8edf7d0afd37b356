"""`tacit train hybrid`: trained by a fleet, released by devices; nobody shows a series."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from tacit.cli.common import (
    DataOption,
    JsonFlag,
    LabelOption,
    MechanismOption,
    SeedOption,
    SplitOption,
    emit,
    print_table,
    progress_bar,
)
from tacit.cli.train.scores import accuracy_interval, accuracy_words
from tacit.cli.train.softshape import check_new_bundle


def train_hybrid(
    data: DataOption,
    clients: Annotated[int, typer.Option("--clients", help="Number of training clients.")] = 100,
    epsilon: Annotated[float, typer.Option("--epsilon", help="Total per training client.")] = 8.0,
    delta: Annotated[
        float, typer.Option("--delta", help="Total failure probability per training client.")
    ] = 1e-5,
    release_epsilon: Annotated[
        float, typer.Option("--release-epsilon", help="Total per released series.")
    ] = 5.0,
    mechanism: MechanismOption = "distributed",
    split: SplitOption = "iid",
    rounds: Annotated[int | None, typer.Option("--rounds", help="Rounds of training.")] = None,
    recognition: Annotated[
        float,
        typer.Option(
            "--recognition", help="Stated rate of right labels, for the server's probabilities."
        ),
    ] = 0.95,
    seed: SeedOption = 0,
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder for the bundle that devices release with.")
    ] = None,
    label: LabelOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Train over many clients, then classify what devices release; no series is shown to anybody.

    Example: `tacit train hybrid --data UCIHAR --clients 1000 --release-epsilon 5 --out har`
    """
    check_new_bundle(out)
    from tacit.data import load_dataset
    from tacit.disclosure.training_record import write_training_record
    from tacit.hybrid.experiment import HybridTask, run_task

    task = HybridTask(
        n_clients=clients,
        epsilon=epsilon,
        delta=delta,
        release_epsilon=release_epsilon,
        mechanism=mechanism,
        split=split,
        n_rounds=rounds,
        recognition=recognition,
        seed=seed,
    )
    with progress_bar("training") as bar:
        result = run_task(load_dataset(data, label=label), task, out=out, progress=bar)
    n_test = result["n_test"]
    result["accuracy_interval"] = accuracy_interval(round(result["accuracy"] * n_test), n_test)
    if out is not None:
        write_training_record(out, result)
    emit(result, as_json=as_json, render=lambda: _render(result))


def _render(result: dict[str, Any]) -> None:
    promised = result["guarantee"]
    rows = [
        ("accuracy of releases", accuracy_words(result)),
        ("ceiling at this epsilon", f"{result['ceiling']:.3f}"),
        ("accuracy before noise", f"{result['clean_accuracy']:.3f}"),
        ("tested on", f"{result['n_test']} series: {result['evaluated_on']}"),
        ("training clients", promised["training"].sentence),
        ("released series", promised["release"].sentence),
        ("who trains and releases once", promised["both"].sentence),
    ]
    if "bundle" in result:
        rows.append(("bundle", result["bundle"]))
    print_table([*rows, ("seconds", f"{result['seconds']:.1f}")])
