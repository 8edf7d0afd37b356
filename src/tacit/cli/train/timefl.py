"""`tacit train timefl`: simulate a fleet, train it privately, and say what was promised."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli.common import (
    DataOption,
    JsonFlag,
    LabelOption,
    SeedOption,
    check_new_file,
    check_new_page,
    emit,
    progress_bar,
)
from tacit.errors import TacitError

if TYPE_CHECKING:
    from collections.abc import Sequence

_CHOICES = {
    "mode": ("sound", "published"),
    "mechanism": ("privunit", "distributed"),
    "split": ("iid", "subject", "dirichlet"),
}


def train_timefl(
    data: DataOption,
    clients: Annotated[int, typer.Option("--clients", help="Number of clients, N.")] = 100,
    epsilon: Annotated[
        float, typer.Option("--epsilon", help="Total per client (sound); nominal (published).")
    ] = 8.0,
    delta: Annotated[
        float, typer.Option("--delta", help="Total failure probability per client.")
    ] = 1e-5,
    mode: Annotated[str, typer.Option("--mode", help="sound, or published.")] = "sound",
    mechanism: Annotated[
        str,
        typer.Option(
            "--mechanism",
            help="privunit: shuffled local reports; distributed: noise shares and a secure sum.",
        ),
    ] = "privunit",
    split: Annotated[
        str,
        typer.Option(
            "--split", help="iid; subject: test on persons without a client; dirichlet: skewed."
        ),
    ] = "iid",
    rounds: Annotated[int | None, typer.Option("--rounds", help="Rounds of training.")] = None,
    per_round: Annotated[
        int | None, typer.Option("--clients-per-round", help="Clients asked per round.")
    ] = None,
    k: Annotated[
        float, typer.Option("--k", help="The paper's privacy coefficient; published mode.")
    ] = 0.5,
    baselines: Annotated[
        bool, typer.Option("--baselines", help="Also train FedAvg and a trusted server.")
    ] = False,
    checkpoint: Annotated[
        Path | None, typer.Option("--checkpoint", help="File to save to after every round.")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue from --checkpoint; nothing is spent twice.")
    ] = False,
    report: Annotated[
        Path | None, typer.Option("--report", help="Also write an HTML page with pictures here.")
    ] = None,
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
    check_choice("mode", mode)
    check_choice("mechanism", mechanism)
    check_choice("split", split)
    if resume and checkpoint is None:
        raise TacitError("--resume needs --checkpoint FILE, the file of the run to continue.")
    if out is not None and mode != "sound":
        raise TacitError(
            "--out saves a sound model with its guarantee; omit --out, or --mode published."
        )
    for place in (checkpoint, out):
        check_new_file(place)
    check_new_page(report)
    from tacit.data import load_dataset
    from tacit.fleet.experiment import FleetTask, run_task

    task = FleetTask(
        n_clients=clients,
        clients_per_round=per_round,
        epsilon=epsilon,
        delta=delta,
        mode=mode,  # type: ignore[arg-type]  # checked above
        mechanism=mechanism,  # type: ignore[arg-type]
        split=split,  # type: ignore[arg-type]
        n_rounds=rounds,
        k=k,
        seed=seed,
        baselines=baselines,
        checkpoint=None if checkpoint is None else str(checkpoint),
        resume=resume,
        out=None if out is None else str(out),
        curves=report is not None,
    )
    with progress_bar("training") as bar:
        result = run_task(load_dataset(data, label=label), task, progress=bar)
    if report is not None:
        from tacit.report.fleet_charts import write_run_page

        result["report"] = str(write_run_page(report, result))
    emit(result, as_json=as_json, render=lambda: _render(result))


def check_choice(name: str, value: str) -> None:
    """Refuse a value that the option does not know."""
    known: Sequence[str] = _CHOICES[name]
    if value not in known:
        raise TacitError(f"--{name} must be one of {', '.join(known)}; got {value!r}.")


def _render(result: dict[str, Any]) -> None:
    from tacit.cli.common import print_table

    rows = [
        ("accuracy", f"{result['accuracy']:.4f}"),
        ("tested on", f"{result['n_test']} series: {result['evaluated_on']}"),
        ("rounds", result["rounds"]),
        ("guarantee", result["guarantee"].sentence),
    ]
    rows += [(name, f"{value:.4f}") for name, value in result.get("baselines", {}).items()]
    if result["mode"] == "published":
        rows.append(("reports joined to senders", f"{result['reidentification']}"))
        rows.append(("ended because", result["stopped"]))
    print_table([*rows, ("seconds", f"{result['seconds']:.1f}")])
