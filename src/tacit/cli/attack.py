"""`tacit attack`: break the mechanisms as published, and fail against the sound ones."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli.common import (
    DataOption,
    JsonFlag,
    PageOption,
    SeedOption,
    check_new_page,
    emit,
    new_app,
    plain,
    print_readable,
    progress_bar,
)
from tacit.cli.manner.choices import Preset

if TYPE_CHECKING:
    from tacit.audit.attacks import AttackResult

app = new_app("Attacks on the three published mechanisms, each also run against the sound one.")


@app.command("pidp")
def pidp_command(
    data: DataOption = "GunPoint",
    length: Annotated[int, typer.Option(help="Shapelet length L.")] = 60,
    runs: Annotated[int, typer.Option(help="Protocol runs for each dimension d.")] = 3,
    seed: SeedOption = 0,
    page: PageOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Recover the initiator's shapelet from one run of FedST's Pi_DP, exactly.

    Example: `tacit attack pidp --json`
    """
    from tacit.audit.attacks.pidp import attack_pidp

    check_new_page(page)
    with progress_bar("Pi_DP") as report:
        result = attack_pidp(data=data, length=length, runs=runs, seed=seed, progress=report)
    _finish(result, page=page, as_json=as_json)


@app.command("softshape")
def softshape_command(
    data: DataOption = "GunPoint",
    epsilon: Annotated[float, typer.Option(help="Nominal epsilon of the published model.")] = 0.1,
    candidates: Annotated[int, typer.Option(help="Test series to choose from.")] = 100,
    trick: Annotated[
        bool, typer.Option(help="Also show the initialisation trick at epsilon 0.01.")
    ] = True,
    preset: Annotated[
        Preset, typer.Option(help="Of the published network: tuned, or paper (to the letter).")
    ] = "tuned",
    bundle: Annotated[
        Path | None,
        typer.Option("--bundle", help="Sound model to attack, with its epsilon; else one is made."),
    ] = None,
    first: Annotated[int, typer.Option(min=0, help="First test series to choose from.")] = 0,
    seed: SeedOption = 0,
    page: PageOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Re-identify series from one published DP-SoftShape release each, then try sound releases.

    Example: `tacit attack softshape --data GunPoint --epsilon 0.1 --json`
    """
    from tacit.audit.attacks.softshape import attack_softshape

    check_new_page(page)
    with progress_bar("DP-SoftShape") as report:
        result = attack_softshape(
            data=data,
            epsilon=epsilon,
            n_candidates=candidates,
            seed=seed,
            trick=trick,
            preset=preset,
            model_file=bundle,
            first=first,
            progress=report,
        )
    _finish(result, page=page, as_json=as_json)


@app.command("timefl")
def timefl_command(
    data: DataOption = "BasicMotions",
    clients: Annotated[int, typer.Option(help="Clients in the fleet.")] = 40,
    epsilon: Annotated[
        float, typer.Option(help="Nominal epsilon as published; the sound run's total.")
    ] = 8.0,
    delta: Annotated[float, typer.Option(help="Delta of the sound run.")] = 1e-5,
    rounds: Annotated[int, typer.Option(help="Published rounds to attack.")] = 3,
    seed: SeedOption = 0,
    page: PageOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Join the shuffled reports of published DP-TimeFL to their clients, then try sound reports.

    Example: `tacit attack timefl --clients 40 --epsilon 8 --json`
    """
    from tacit.audit.attacks.timefl import attack_timefl

    check_new_page(page)
    with progress_bar("DP-TimeFL") as report:
        result = attack_timefl(
            data=data,
            n_clients=clients,
            epsilon=epsilon,
            delta=delta,
            n_rounds=rounds,
            seed=seed,
            progress=report,
        )
    _finish(result, page=page, as_json=as_json)


def _finish(result: AttackResult, *, page: Path | None, as_json: bool) -> None:
    told: dict[str, Any] = result.to_dict()
    if page is not None:
        from tacit.report.attack_page import write_attack_page

        told["page"] = told["report"] = write_attack_page(page, result)
    emit(told, as_json=as_json, render=lambda: _render(result, told.get("page")))


def _render(result: AttackResult, page: Path | None) -> None:
    sound = result.sound
    verdict = "within" if sound.within else "ABOVE"
    rows = [
        ("attack", result.attack),
        ("succeeded", "yes" if result.succeeded else "no"),
        ("rate on the published mechanism", f"{result.rate:.1%} (chance {result.chance:.3g})"),
        (
            "rate on the sound one",
            f"{sound.rate:.1%}, {verdict} its bound of {sound.bound:.3g} ({sound.what})",
        ),
        ("seconds", f"{result.seconds:.1f}"),
    ]
    if page is not None:
        rows.append(("page", str(page)))
    print_readable(plain(result.details), before=rows)
