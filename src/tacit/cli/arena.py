"""`tacit arena`: run a suite of tasks, and write the pages about its results."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tacit.cli.common import JsonFlag, check_new_folder, emit, new_app, progress_bar
from tacit.cli.manner.choices import Engine
from tacit.cli.manner.completion import data_sets, methods, suites
from tacit.errors import TacitError
from tacit.system.extras import needs

app = new_app("Compare methods: run a suite of tasks, and write the pages about it.")


@app.command("run")
def run_command(
    suite: Annotated[
        str,
        typer.Argument(
            help="quick, softshape-table2, fedst, fleet-sound, ...", autocompletion=suites
        ),
    ],
    out: Annotated[Path, typer.Option(help="Folder of the results.")],
    resume: Annotated[bool, typer.Option("--resume", help="Continue an earlier run.")] = False,
    retry_failed: Annotated[
        bool,
        typer.Option("--retry-failed", help="With --resume: run failed tasks again."),
    ] = False,
    again: Annotated[
        bool,
        typer.Option("--again", help="With --resume: run finished tasks again; the last counts."),
    ] = False,
    reuse: Annotated[
        Path | None,
        typer.Option(
            help="Folder with results: cells that another suite recorded there are copied, marked "
            "as copies, instead of run."
        ),
    ] = None,
    data: Annotated[
        list[str] | None,
        typer.Option(help="Only these data sets.", autocompletion=data_sets),
    ] = None,
    method: Annotated[
        list[str] | None, typer.Option(help="Only these methods.", autocompletion=methods)
    ] = None,
    epsilon: Annotated[
        list[str] | None, typer.Option(help="Only these budgets; 'none' means without noise.")
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option(
            help="Only tasks with this option of their method, as mechanism=privunit; preset= "
            "stands for tasks without a preset."
        ),
    ] = None,
    runs: Annotated[int | None, typer.Option(help="Number of seeds, starting at 0.")] = None,
    workers: Annotated[int, typer.Option(help="Processes at once, one thread each.")] = 2,
    engine: Annotated[Engine, typer.Option(help="Processes here, or a Ray cluster.")] = "local",
    address: Annotated[str | None, typer.Option(help="Address of the Ray cluster.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Run every task of a suite that has no result yet.

    Example: `tacit arena run quick --out quick`
    """
    from tacit.arena.grid import Choice
    from tacit.arena.reuse import copy_records
    from tacit.arena.runner import check_engine, run_suite
    from tacit.arena.store import Store
    from tacit.arena.suites import suite_tasks, without_missing
    from tacit.data import load_dataset
    from tacit.errors import check_at_least

    if retry_failed and not resume:
        raise TacitError("--retry-failed runs failed tasks of an earlier run again; add --resume.")
    if again and not resume:
        raise TacitError("--again runs tasks of an earlier run a second time; add --resume.")
    if again and reuse is not None:
        raise TacitError("--again runs what --reuse would copy; choose one of them.")
    seeds = None if runs is None else range(check_at_least(runs, 1, name="runs"))
    epsilons = None if epsilon is None else [_budget(text) for text in epsilon]
    choice = Choice(data=data, methods=method, epsilons=epsilons, seeds=seeds, options=option)
    tasks, missing = without_missing(suite_tasks(suite, choice), asked=data or ())
    check_at_least(workers, 1, name="workers")
    check_engine(engine)
    check_new_folder(out)
    store = Store(out)
    if store.path.exists() and not resume:
        raise TacitError(f"{store.path} exists; continue with --resume, or choose another folder.")
    copied = {}
    if reuse is not None:
        todo = store.remaining(tasks, retry_failed=retry_failed)
        copied = {"copied": copy_records(todo, store, source=reuse)}
    for name in dict.fromkeys(
        task.data for task in store.remaining(tasks, retry_failed=retry_failed, again=again)
    ):
        load_dataset(name)  # a missing data set stops the run now, not one task after another
    with progress_bar(suite) as report:
        tally = run_suite(
            tasks,
            store,
            workers=workers,
            engine=engine,
            address=address,
            retry_failed=retry_failed,
            again=again,
            progress=report,
        )
    emit({**tally.to_dict(), **copied, "results": store.path, **missing}, as_json=as_json)


def _budget(text: str) -> float | None:
    from tacit.errors import check_epsilon

    if text == "none":
        return None
    try:
        return check_epsilon(float(text))
    except ValueError as error:
        raise TacitError(f"--epsilon takes a number above 0 or 'none', got {text!r}.") from error


@app.command("report")
def report_command(
    folder: Annotated[
        Path, typer.Argument(help="Folder that 'tacit arena run' wrote, or one that holds several.")
    ],
    png: Annotated[bool, typer.Option("--png", help="Write the pictures as PNG too.")] = False,
    fleet_page: Annotated[
        Path | None,
        typer.Option(help="Also draw the fleet suites on this page: rounds, clients, links."),
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Write one self-contained page about the results, and its pictures as SVG files.

    Example: `tacit arena report results/current`
    """
    needs("charts", "altair", "vl_convert", what="the arena's page")
    from tacit.report.arena.page import write_arena_page

    made: dict[str, Path] = {**write_arena_page(folder, png=png)}
    if fleet_page is not None:
        made["fleet_page"] = _write_fleet_page(folder, fleet_page)
    emit(made, as_json=as_json)


def _write_fleet_page(folder: Path, page: Path) -> Path:
    from tacit.arena.results.fleet_rows import fleet_rows
    from tacit.arena.results.tables import Results
    from tacit.report.fleet_charts import write_benchmark_page

    published, sound = fleet_rows(Results(folder))
    if not (published or sound):
        raise TacitError(
            f"{folder} has no record of fleet-published or fleet-sound; run one of them first."
        )
    return write_benchmark_page(page, published=published, sound=sound)


@app.command("tables")
def tables_command(
    page: Annotated[Path, typer.Argument(help="Markdown page with a place for every table.")],
    results: Annotated[Path, typer.Option(help="Folder of the records.")] = Path("results/current"),
    as_json: JsonFlag = False,
) -> None:
    """Write the tables of a page anew from the records, so that no figure is typed by hand.

    Example: `tacit arena tables docs/results.md --results results/current`
    """
    from tacit.arena.results.page import fill_page

    emit(fill_page(page, results), as_json=as_json)
