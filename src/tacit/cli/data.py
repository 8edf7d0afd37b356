"""`tacit data`: what can be loaded, and what is in it."""

from __future__ import annotations

from typing import Annotated

import typer

from tacit.cli.common import JsonFlag, LabelOption, emit, new_app, print_table, progress_bar

app = new_app("Data sets: those at hand, and what is in one of them.")


@app.command("list")
def list_command(as_json: JsonFlag = False) -> None:
    """List the data sets that load without a network.

    Example: `TACIT_DATA=~/archives tacit data list`
    """
    from tacit.data.load import known_names, list_datasets

    total = len(known_names())
    rows = []
    with progress_bar("reading") as report:
        for row in list_datasets():
            rows.append(row)
            report(len(rows), total, row["name"])

    def render() -> None:
        columns = ("name", "n_train", "n_test", "channels", "length", "n_classes", "source")
        print_table([[row[key] for key in columns] for row in rows], columns=columns)

    emit({"datasets": rows}, as_json=as_json, render=render)


@app.command("show")
def show_command(
    name: Annotated[str, typer.Argument(help="Name of a data set, or path of a file or folder.")],
    label: LabelOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Show shapes, classes and counts of one data set.

    Example: `tacit data show GunPoint --json`
    """
    from tacit.data import load_dataset

    emit(load_dataset(name, label=label).summary(), as_json=as_json)
