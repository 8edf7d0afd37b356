"""`tacit train timefl`: simulate a fleet, train it privately, and say what was promised."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from tacit.cli.common import (
    DataOption,
    JsonFlag,
    LabelOption,
    MechanismOption,
    PageOption,
    SeedOption,
    SplitOption,
    check_new_file,
    check_new_page,
    emit,
    note,
    progress_bar,
)
from tacit.cli.manner.choices import Mode, Network, Preset
from tacit.cli.train.scores import accuracy_interval, accuracy_words
from tacit.errors import TacitError


def train_timefl(
    data: DataOption,
    clients: Annotated[int, typer.Option("--clients", help="Number of clients, N.")] = 100,
    epsilon: Annotated[
        float, typer.Option("--epsilon", help="Total per client (sound); nominal (published).")
    ] = 8.0,
    delta: Annotated[
        float | None,
        typer.Option(
            "--delta",
            help="Total failure probability per client, 1e-5 if left out; in published mode the "
            "limit that ends the run, as in Table II if left out.",
        ),
    ] = None,
    mode: Annotated[
        Mode, typer.Option("--mode", help="published has no guarantee; its leakage is measured.")
    ] = "sound",
    mechanism: MechanismOption = "privunit",
    split: SplitOption = "iid",
    rounds: Annotated[int | None, typer.Option("--rounds", help="Rounds of training.")] = None,
    per_round: Annotated[
        int | None, typer.Option("--clients-per-round", help="Clients asked per round.")
    ] = None,
    k: Annotated[
        float, typer.Option("--k", help="The paper's privacy coefficient; published mode.")
    ] = 0.5,
    preset: Annotated[
        Preset | None,
        typer.Option(
            "--preset",
            help="Of published mode: paper if left out; tuned: a lighter network, fewer epochs.",
        ),
    ] = None,
    epochs: Annotated[
        int | None, typer.Option("--epochs", help="Local epochs a round; published mode.")
    ] = None,
    batch_size: Annotated[
        int | None,
        typer.Option(
            "--batch-size",
            help="Series a step; as in Table II if left out (28, or what it names for the data "
            "set); published mode.",
        ),
    ] = None,
    network: Annotated[
        Network | None, typer.Option("--network", help="paper or light; published mode.")
    ] = None,
    clip_norm: Annotated[
        float | None, typer.Option("--clip-norm", help="Longest update; published mode.")
    ] = None,
    delays: Annotated[
        list[float] | None,
        typer.Option(
            "--delay",
            help="The longest delay T_i that clients propose, once or once for each client; the "
            "median is used. Published mode.",
        ),
    ] = None,
    baselines: Annotated[
        bool, typer.Option("--baselines", help="Also train FedAvg and a trusted server.")
    ] = False,
    checkpoint: Annotated[
        Path | None, typer.Option("--checkpoint", help="File to save to after every round.")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue from --checkpoint; nothing is spent twice.")
    ] = False,
    page: PageOption = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="File for the trained model; 'tacit fleet classify' uses it."),
    ] = None,
    seed: SeedOption = 0,
    label: LabelOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Train a classifier over many clients and test it on series that no client holds.

    Example: `tacit train timefl --data UCIHAR --clients 1000 --epsilon 8 --delta 1e-5`
    """
    only_published = {"--preset": preset, "--epochs": epochs,
                      "--batch-size": batch_size, "--network": network,
                      "--clip-norm": clip_norm, "--delay": delays}  # fmt: skip
    given = [name for name, value in only_published.items() if value is not None]
    if mode == "sound" and given:
        raise TacitError(f"{given[0]} is a setting of the published mode; add --mode published.")
    if resume and checkpoint is None:
        raise TacitError("--resume needs --checkpoint FILE, the file of the run to continue.")
    if out is not None and mode != "sound":
        raise TacitError(
            "--out saves a sound model with its guarantee; omit --out, or --mode published."
        )
    for place in (checkpoint, out):
        check_new_file(place)
    check_new_page(page)
    from tacit.data import load_dataset
    from tacit.disclosure.training_record import write_training_record
    from tacit.fleet.experiment import FleetTask, run_task

    task = FleetTask(
        n_clients=clients,
        clients_per_round=per_round,
        epsilon=epsilon,
        delta=delta,
        mode=mode,
        mechanism=mechanism,
        split=split,
        n_rounds=rounds,
        k=k,
        preset=preset or "paper",
        local_epochs=epochs,
        batch_size=batch_size,
        network=network,
        clip_norm=clip_norm,
        proposals=None if delays is None else tuple(delays),
        seed=seed,
        baselines=baselines,
        checkpoint=None if checkpoint is None else str(checkpoint),
        resume=resume,
        out=None if out is None else str(out),
        curves=page is not None,
    )
    with progress_bar("training") as bar:
        result = run_task(load_dataset(data, label=label), task, progress=bar, note=note)
    right = round(result["accuracy"] * result["n_test"])
    result["accuracy_interval"] = accuracy_interval(right, result["n_test"])
    if out is not None:
        result["out"] = str(out)
        write_training_record(out, result)
    if page is not None:
        from tacit.report.fleet_charts import write_run_page

        result["page"] = result["report"] = str(write_run_page(page, result))
    emit(result, as_json=as_json, render=lambda: _render(result))


def _render(result: dict[str, Any]) -> None:
    from tacit.cli.common import print_table

    rows = [
        ("accuracy", accuracy_words(result)),
        ("tested on", f"{result['n_test']} series: {result['evaluated_on']}"),
        ("rounds", result["rounds"]),
        ("guarantee", result["guarantee"].sentence),
    ]
    rows += [(name, f"{value:.4f}") for name, value in result.get("baselines", {}).items()]
    if result["mode"] == "published":
        rows.append(("reports joined to senders", f"{result['reidentification']}"))
        rows.append(("ended because", result["stopped"]))
    rows += [(key, result[key]) for key in ("page", "out") if result.get(key)]
    print_table([*rows, ("seconds", f"{result['seconds']:.1f}")])
