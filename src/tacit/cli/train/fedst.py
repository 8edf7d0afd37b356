"""`tacit train fedst`: shapelets chosen over the secret-shared series of several owners."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli.common import (
    ClassifierOption,
    DataOption,
    JsonFlag,
    LabelOption,
    PageOption,
    QualityOption,
    SeedOption,
    check_new_folder,
    check_new_page,
    emit,
    print_table,
    progress_bar,
)
from tacit.cli.manner.choices import Distance, Scope
from tacit.cli.manner.completion import features as feature_names
from tacit.cli.train.scores import accuracy_interval, accuracy_words
from tacit.errors import TacitError

if TYPE_CHECKING:
    from tacit.silo.estimator import FedSTClassifier

_SHOWN = 10


def train_fedst(
    data: DataOption,
    parties: Annotated[int, typer.Option("--parties", help="Owners, at least 2.")] = 3,
    quality: QualityOption = "f",
    classifier: ClassifierOption = "ridge",
    features: Annotated[
        str,
        typer.Option(
            "--features",
            metavar="shapelets,intervals,dictionary|all",
            help="Kinds of candidates, several with commas.",
            autocompletion=feature_names,
        ),
    ] = "shapelets",
    candidates: Annotated[
        int, typer.Option("--candidates", help="Windows of P0's series to examine.")
    ] = 500,
    shapelets: Annotated[int, typer.Option("--shapelets", help="Shapelets to keep.")] = 200,
    scope: Annotated[
        Scope,
        typer.Option("--scope", help="What is computed together; local and global: in plaintext."),
    ] = "federated",
    distance: Annotated[
        Distance, typer.Option("--distance", help="elementwise is the basic protocol, slow.")
    ] = "dot",
    time_contract: Annotated[
        float | None,
        typer.Option(
            "--time-contract", help="Seconds for the search, sharing and ranking included."
        ),
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
    page: PageOption = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            help="Folder for model, receipt and P0's series; 'tacit silo classify' uses it.",
        ),
    ] = None,
    seed: SeedOption = 0,
    label: LabelOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Train FedST: one process per owner, mutual TLS, and only the values listed are opened.

    Example: `tacit train fedst --data GunPoint --parties 3 --quality f --json`
    """
    from tacit.data import load_dataset
    from tacit.data.scores import confusion
    from tacit.disclosure.training_record import write_training_record
    from tacit.silo.estimator import FedSTClassifier

    check_new_page(page)
    check_new_folder(out)
    if out is not None and scope in ("local", "global"):
        raise TacitError(
            f"--out stores a model with its receipt, and --scope {scope} runs in plaintext without "
            "one; leave out --out, or train with --scope federated."
        )
    dataset = load_dataset(data, label=label)
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
    right = predicted == dataset.y_test
    result: dict[str, Any] = {
        "data": dataset.name,
        "accuracy": float(right.mean()),
        "accuracy_interval": accuracy_interval(int(right.sum()), len(right)),
        "confusion": confusion(dataset.y_test, predicted),
        "guarantee": model.guarantee_,
        "seconds": model.history_["seconds"],
        "bytes_sent": model.history_["bytes_sent"],
        "shapelets": [
            {"series": s.series, "channel": s.channel, "start": s.start, "length": s.length}
            for s in model.shapelets_
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
    if out is not None:
        result["out"] = str(model.save(out))
        sizes = {"n_train": len(dataset.y_train), "n_test": len(dataset.y_test)}
        write_training_record(out, {**result, **sizes})
    if page is not None:
        result["page"] = str(_write_page(model, dataset.X_test[0], page))
    emit(result, as_json=as_json, render=lambda: _show(result))


def _write_page(model: FedSTClassifier, series: Any, path: Path) -> Path:
    from tacit.report.silo_charts import write_explanation

    return write_explanation(
        path,
        model.explain(series),
        own_values=model.model_.natural(model.own_features_),
        own_codes=model.own_codes_,
        classes=[str(label) for label in model.classes_],
        guarantee=model.guarantee_,
    )


def _show(result: dict[str, Any]) -> None:
    seconds = ", ".join(f"{stage} {value:.1f}" for stage, value in result["seconds"].items())
    rows = [
        ("accuracy", accuracy_words(result)),
        ("guarantee", result["guarantee"].sentence),
        ("seconds", seconds),
        ("sent by P0", f"{result['bytes_sent'] / 1e6:.1f} MB"),
        ("candidates", result["candidates"]),
        ("shapelets", len(result["shapelets"])),
        ("intervals and words", len(result["features"]) - len(result["shapelets"])),
    ]
    rows += [(key, result[key]) for key in ("page", "out") if key in result]
    print_table(rows, title=f"FedST on {result['data']}")
    print_table(
        [(i + 1, s["series"], s["start"], s["length"]) for i, s in enumerate(result["shapelets"])][
            :_SHOWN
        ],
        columns=("rank", "P0's series", "start", "length"),
        title=f"The {min(_SHOWN, len(result['shapelets']))} best shapelets",
    )
