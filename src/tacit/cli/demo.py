"""`tacit demo`: try each family on an embedded data set."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

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


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the page.")] = Path("tacit-demo"),
    seed: SeedOption = 0,
    as_json: JsonFlag = False,
) -> None:
    """Train every installed family on GunPoint and write a page about the results.

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
            (
                name,
                f"{run['accuracy']:.3f}",
                run["left_the_owner"],
                run["guarantee"]["sentence"],
                f"{run['seconds']:.1f}",
            )
            for name, run in result["families"].items()
        ]
        columns = ("family", "accuracy", "what left the owner", "guarantee", "seconds")
        print_table(rows, columns=columns, title=f"{result['data']}, one run")
        for name in result["not_installed"]:
            typer.echo(f"Not installed: {name} (pip install 'tacit-ts[{name}]').")
        typer.echo(f"Page: {result['report']}")

    emit(result, as_json=as_json, render=render)
