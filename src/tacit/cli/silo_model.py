"""Commands of the silo family for the initiator's model: classify new series, explain one."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tacit.cli.common import JsonFlag, LabelOption, check_new_page, emit, print_table
from tacit.errors import TacitError

if TYPE_CHECKING:
    from tacit.arrays import Cube
    from tacit.data.dataset import Labels

OutArgument = Annotated[Path, typer.Argument(help="The initiator's output folder.")]
OwnOption = Annotated[Path, typer.Option(help="The initiator's own series from that run.")]
PageOption = Annotated[Path | None, typer.Option("--page", help="Write an HTML page.")]


def _series(path: Path, label: str | None) -> tuple[Cube, Labels | None]:
    from tacit.data.formats import read_series

    if not path.is_file():
        raise TacitError(f"there is no data file {path}; check the path.")
    return read_series(path, label=label)


def classify_command(
    folder: OutArgument,
    own: OwnOption,
    data: Annotated[Path, typer.Option(help="New series; labels, if any, give the accuracy.")],
    label: LabelOption = None,
    page: PageOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Classify new series with the model that the initiator got; nothing leaves this machine.

    Example: tacit silo classify federation/north/out --own north.npz --data new.npz
    """
    from tacit.silo.stored_model import load_stored

    check_new_page(page)
    X, truth = _series(data, label)
    model = load_stored(folder, own=_series(own, label)[0])
    probabilities = model.probabilities(X)
    labels = model.labels_of(probabilities)
    result = {
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
    emit(result, as_json=as_json, render=lambda: print_table(rows, columns=columns))


def explain_command(
    folder: OutArgument,
    own: OwnOption,
    data: Annotated[Path, typer.Option(help="The file of the series to explain.")],
    index: Annotated[int, typer.Option(min=0, help="Which series of the file, from 0.")] = 0,
    shapelets: Annotated[int, typer.Option(min=1, help="How many shapelets to show.")] = 5,
    label: LabelOption = None,
    page: PageOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Explain the class of one series: which shapelets decided, and where they match.

    It uses the model, that series and the initiator's own data; nothing leaves this machine.
    Example: tacit silo explain federation/north/out --own north.npz --data new.npz --page why.html
    """
    from tacit.silo.stored_model import load_stored

    check_new_page(page)
    X, _ = _series(data, label)
    if index >= len(X):
        raise TacitError(f"--index must be below {len(X)}, the series of {data}, got {index}.")
    own_X, own_labels = _series(own, label)
    if own_labels is None:
        raise TacitError(f"{own} has no labels; give the initiator's own file of that run.")
    model = load_stored(folder, own=own_X)
    found = model.explain(X[index], own_labels=own_labels, n_shapelets=shapelets)
    result = {
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
            own_features=model.own_features,
            own_codes=model.codes_of(own_labels),
            classes=model.classes,
            units=model.model.units(),
            guarantee=model.receipt.guarantee,
        )
    rows = [
        (m.shapelet + 1, f"{m.influence:.1%}", m.position, f"{m.distance:.4g}", m.series, m.start)
        for m in found.matches
    ]
    columns = ("shapelet", "share", "matches at", "distance", "own series", "step")
    title = f"{found.prediction} ({found.probabilities[found.prediction]:.3f})"
    render = lambda: print_table(rows, columns=columns, title=title)  # noqa: E731
    emit(result, as_json=as_json, render=render)
