"""Commands of the silo family for the initiator's model: classify new series, explain one."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from tacit.cli.common import (
    DataOption,
    JsonFlag,
    LabelOption,
    PageOption,
    PartOption,
    check_new_page,
    emit,
    print_table,
)
from tacit.cli.manner.completion import data_sets
from tacit.cli.manner.readable import FEW
from tacit.errors import TacitError

OutArgument = Annotated[Path, typer.Argument(help="The initiator's output folder.")]
OwnOption = Annotated[
    str,
    typer.Option("--own", help="What the initiator gave as --data.", autocompletion=data_sets),
]


def classify_command(
    folder: OutArgument,
    own: OwnOption,
    data: DataOption,
    part: PartOption = None,
    label: LabelOption = None,
    page: PageOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Classify new series with the model that the initiator got; nothing leaves this machine.

    Labels, if the series have any, give the accuracy.

    Example: `tacit silo classify federation/north/out --own north.npz --data new.npz`
    """
    from tacit.data.load import load_part
    from tacit.silo.stored_model import load_stored

    check_new_page(page)
    X, truth = load_part(data, part=part, label=label)
    model = load_stored(folder, own=load_part(own, otherwise="train", label=label)[0])
    probabilities = model.probabilities(X)
    labels = model.labels_of(probabilities)
    result: dict[str, Any] = {
        "labels": labels.tolist(),
        "classes": list(model.classes),
        "probabilities": probabilities.round(6).tolist(),
        "accuracy": None if truth is None else float((labels == truth).mean()),
        "guarantee": model.receipt.guarantee,
    }
    if page is not None:
        from tacit.report.silo_charts import write_classification

        result["page"] = write_classification(
            page,
            labels=labels,
            probabilities=probabilities,
            classes=model.classes,
            guarantee=model.receipt.guarantee,
        )
    rows = [
        (i, name, *(f"{p:.3f}" for p in row))
        for i, (name, row) in enumerate(zip(labels, probabilities, strict=True))
    ]
    columns = ("series", "label", *model.classes)

    def render() -> None:
        more = f", the first {FEW} (all with --json)" if len(rows) > FEW else ""
        print_table(rows[:FEW], columns=columns, title=f"{len(rows)} series{more}")
        if result["accuracy"] is not None:
            typer.echo(f"accuracy {result['accuracy']:.4f}")
        if page is not None:
            typer.echo(f"page {page}")

    emit(result, as_json=as_json, render=render)


def explain_command(
    folder: OutArgument,
    own: OwnOption,
    data: DataOption,
    part: PartOption = None,
    index: Annotated[int, typer.Option(min=0, help="Which series of them, from 0.")] = 0,
    shapelets: Annotated[int, typer.Option(min=1, help="How many features to show.")] = 5,
    label: LabelOption = None,
    page: PageOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Explain the class of one series: which features decided, and where they lie.

    It uses the model, that series and the initiator's own data; nothing leaves this machine.

    Example: `tacit silo explain federation/north/out --own north.npz --data new.npz`
    """
    from tacit.data.load import load_part
    from tacit.silo.stored_model import load_stored

    check_new_page(page)
    X, _ = load_part(data, part=part, label=label)
    if index >= len(X):
        raise TacitError(f"--index must be below {len(X)}, the series of {data}, got {index}.")
    own_X, own_labels = load_part(own, otherwise="train", label=label)
    if own_labels is None:
        raise TacitError(f"{own} has no labels; give the initiator's own file of that run.")
    model = load_stored(folder, own=own_X)
    found = model.explain(X[index], own_labels=own_labels, n_shapelets=shapelets)
    result: dict[str, Any] = {
        "label": found.prediction,
        "probabilities": found.probabilities,
        "shapelets": [asdict(match) for match in found.matches],
        "index": index,
        "guarantee": model.receipt.guarantee,
    }
    if page is not None:
        from tacit.report.silo_charts import write_explanation

        result["page"] = write_explanation(
            page,
            found,
            own_values=model.model.natural(model.own_features),
            own_codes=model.codes_of(own_labels),
            classes=model.classes,
            guarantee=model.receipt.guarantee,
        )
    rows = [
        (m.shapelet + 1, m.description, f"{m.influence:.1%}", m.place, f"{m.distance:.4g}")
        for m in found.matches
    ]
    columns = ("feature", "what it is", "share", "lies at", "distance or value")
    title = f"{found.prediction} ({found.probabilities[found.prediction]:.3f})"
    render = lambda: print_table(rows, columns=columns, title=title)  # noqa: E731
    emit(result, as_json=as_json, render=render)
