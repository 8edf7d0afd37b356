"""`tacit train fedst`: shapelets chosen over the secret-shared series of several owners."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli.common import (
    DataOption,
    JsonFlag,
    LabelOption,
    SeedOption,
    check_new_page,
    emit,
    print_table,
    progress_bar,
)
from tacit.errors import TacitError

if TYPE_CHECKING:
    from tacit.silo.estimator import FedSTClassifier

_SHOWN = 10


def train_fedst(
    data: DataOption,
    parties: Annotated[int, typer.Option("--parties", help="Owners, at least 2.")] = 3,
    quality: Annotated[
        str, typer.Option("--quality", help="f, ig, or ig-basic (the basic protocol).")
    ] = "f",
    classifier: Annotated[
        str, typer.Option("--classifier", help="ridge, logistic or forest.")
    ] = "ridge",
    features: Annotated[
        str,
        typer.Option(
            "--features", help="shapelets, intervals, dictionary, several by comma, or all."
        ),
    ] = "shapelets",
    candidates: Annotated[
        int, typer.Option("--candidates", help="Windows of P0's series to examine.")
    ] = 500,
    shapelets: Annotated[int, typer.Option("--shapelets", help="Shapelets to keep.")] = 200,
    scope: Annotated[
        str,
        typer.Option(
            "--scope", help="federated, local-search, local-transform; in plaintext local, global."
        ),
    ] = "federated",
    distance: Annotated[
        str, typer.Option("--distance", help="dot, or elementwise (the basic protocol).")
    ] = "dot",
    time_contract: Annotated[
        float | None, typer.Option("--time-contract", help="Stop the search after these seconds.")
    ] = None,
    trees: Annotated[int, typer.Option("--trees", help="Trees of the forest.")] = 40,
    depth: Annotated[
        int | None, typer.Option("--depth", help="Depth of the trees; by default 5 to 8.")
    ] = None,
    epsilon: Annotated[
        float | None,
        typer.Option(
            "--epsilon",
            help="Add noise to what P0 learns; needs a forest, and local-search or quality ig.",
        ),
    ] = None,
    ledger: Annotated[
        Path | None, typer.Option("--ledger", help="Ledger to debit before an --epsilon run.")
    ] = None,
    page: Annotated[
        Path | None, typer.Option("--page", help="Write an HTML page that explains one series.")
    ] = None,
    seed: SeedOption = 0,
    label: LabelOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Train FedST: one process per owner, mutual TLS, and only the values listed are opened.

    Example: `tacit train fedst --data GunPoint --parties 3 --quality f --json`
    """
    import numpy as np

    from tacit.data import load_dataset
    from tacit.silo.estimator import FedSTClassifier

    check_new_page(page)
    dataset = load_dataset(data, label=label)
    if dataset.X_train.shape[1] != 1:
        raise TacitError(
            f"fedst takes series of one channel, {dataset.name} has {dataset.X_train.shape[1]}; "
            "save one of them as its own data set."
        )
    with progress_bar("FedST") as progress:
        model = FedSTClassifier(
            n_parties=parties,
            quality=quality,
            classifier=classifier,
            n_candidates=candidates,
            n_shapelets=shapelets,
            time_contract=time_contract,
            scope=scope,
            distance=distance,
            n_trees=trees,
            depth=depth,
            features=tuple(features.split(",")),
            epsilon=epsilon,
            ledger=None if ledger is None else str(ledger),
            random_state=seed,
            progress=progress,
        )
        model.fit(dataset.X_train, dataset.y_train)
    predicted = model.predict(dataset.X_test)
    result: dict[str, Any] = {
        "data": dataset.name,
        "accuracy": float(np.mean(predicted == dataset.y_test)),
        "guarantee": model.guarantee_,
        "seconds": model.history_["seconds"],
        "bytes_sent": model.history_["bytes_sent"],
        "shapelets": [
            {"series": s.series, "start": s.start, "length": s.length} for s in model.shapelets_
        ],
        "features": [
            {"kind": model.model_.kind(k), "description": model.model_.description(k)}
            for k in range(len(model.model_.items))
        ],
        "candidates": model.history_["n_examined"],
        "parties": parties,
        "scope": scope,
        "quality": quality,
        "classifier": classifier,
        "seed": seed,
    }
    if page is not None:
        result["page"] = str(_write_page(model, dataset.X_test[0, 0], page))
    emit(result, as_json=as_json, render=lambda: _show(result))


def _write_page(model: FedSTClassifier, series: Any, path: Path) -> Path:
    from tacit.report.silo_charts import write_explanation

    return write_explanation(
        path,
        model.explain(series),
        own_features=model.own_features_,
        own_codes=model.own_codes_,
        classes=[str(label) for label in model.classes_],
        units=model.model_.units(),
        guarantee=model.guarantee_,
    )


def _show(result: dict[str, Any]) -> None:
    seconds = ", ".join(f"{stage} {value:.1f}" for stage, value in result["seconds"].items())
    rows = [
        ("accuracy", f"{result['accuracy']:.4f}"),
        ("guarantee", result["guarantee"].sentence),
        ("seconds", seconds),
        ("sent by P0", f"{result['bytes_sent'] / 1e6:.1f} MB"),
        ("candidates", result["candidates"]),
        ("shapelets", len(result["shapelets"])),
        ("intervals and words", len(result["features"]) - len(result["shapelets"])),
    ]
    if "page" in result:
        rows.append(("page", result["page"]))
    print_table(rows, title=f"FedST on {result['data']}")
    print_table(
        [(i + 1, s["series"], s["start"], s["length"]) for i, s in enumerate(result["shapelets"])][
            :_SHOWN
        ],
        columns=("rank", "P0's series", "start", "length"),
        title=f"The {min(_SHOWN, len(result['shapelets']))} best shapelets",
    )
