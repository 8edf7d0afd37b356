"""`tacit demo`: try each family on an embedded data set."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from tacit.cli.common import (
    JsonFlag,
    SeedOption,
    check_new_page,
    emit,
    print_table,
    progress_bar,
)
from tacit.system.progress import Progress


def _promise(guarantee: dict[str, Any]) -> str:
    from tacit.guarantee import rounded_up

    if "epsilon" not in guarantee:
        return str(guarantee["trust_model"])
    return f"epsilon {rounded_up(guarantee['epsilon'])}: {guarantee['trust_model']}"


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the page.")] = Path("tacit-demo"),
    seed: SeedOption = 0,
    as_json: JsonFlag = False,
) -> None:
    """Train every installed family on one data set and write a page: who sees what of it.

    Example: `tacit demo --out my-demo`
    """
    from tacit.report.demo import run_demo

    check_new_page(out / "index.html")
    with progress_bar("demo") as report:

        def for_family(name: str) -> Progress:
            def show(done: int, total: int, message: str) -> None:
                report(done, total, f"{name}: {message}")

            return show

        result = run_demo(out, seed=seed, progress=for_family)

    def render() -> None:
        rows = [
            (name, run["left_the_owner"], _promise(run["guarantee"]), f"{run['seconds']:.1f}")
            for name, run in result["families"].items()
        ]
        columns = ("family", "what left the owner", "promise", "seconds")
        print_table(rows, columns=columns, title=f"{result['data']}, one run")
        for name in result["not_installed"]:
            typer.echo(f"Not installed: {name} (pip install 'tacit-ts[{name}]').")
        typer.echo(f"Page: {result['report']}")
        typer.echo(f"Next: {result['next']}")
        typer.echo("There these models are looked at and attacked, and your own recordings follow.")

    emit(result, as_json=as_json, render=render)
