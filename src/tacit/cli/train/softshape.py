"""`tacit train softshape`: train a classifier of private releases, and measure it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli.common import (
    DataOption,
    JsonFlag,
    LabelOption,
    PageOption,
    SeedOption,
    check_new_folder,
    check_new_page,
    emit,
    note,
    progress_bar,
)
from tacit.cli.local import show_rows
from tacit.cli.manner.choices import Channel, Encoder, Mode, Preset, ReleaseKind
from tacit.cli.train.network_settings import ABLATIONS, DIFFERENCES, changed_settings
from tacit.cli.train.scores import accuracy_interval, accuracy_words
from tacit.errors import TacitError, check_epsilon

if TYPE_CHECKING:
    from tacit.data.dataset import Dataset


def train_softshape(
    data: DataOption,
    epsilon: Annotated[
        float, typer.Option("--epsilon", help="Total privacy budget of one series.")
    ] = 1.0,
    mode: Annotated[
        Mode, typer.Option("--mode", help="published has no guarantee; its leakage is measured.")
    ] = "sound",
    preset: Annotated[
        Preset | None,
        typer.Option(
            "--preset",
            help="Of published mode: paper (to the letter, the default) or tuned (ours, better).",
        ),
    ] = None,
    change: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            help="Of published mode: change one of the preset's settings, for example epochs=100. "
            f"The presets differ in {', '.join(DIFFERENCES)}; the paper's ablations are "
            f"{', '.join(ABLATIONS)} = false.",
        ),
    ] = None,
    release: Annotated[
        ReleaseKind, typer.Option("--release", help="What a device sends.")
    ] = "label",
    encoder: Annotated[
        Encoder, typer.Option("--encoder", help="Features: random kernels, or a network.")
    ] = "kernels",
    channel: Annotated[
        Channel, typer.Option("--channel", help="optimal for accuracy, krr to estimate prevalence.")
    ] = "optimal",
    class_shares: Annotated[
        str | None,
        typer.Option(
            "--class-shares",
            help="Expected shares of the classes where devices release, if they differ from the "
            "training data's: `1=0.9,2=0.1`.",
        ),
    ] = None,
    seed: SeedOption = 0,
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder for the bundle and the device file.")
    ] = None,
    page: PageOption = None,
    label: LabelOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Train a classifier of locally private releases and measure it on the test part.

    Example: `tacit train softshape --data GunPoint --epsilon 2 --out gunpoint`
    """
    from tacit.data import load_dataset
    from tacit.data.scores import confusion
    from tacit.disclosure.training_record import write_training_record
    from tacit.local.estimator import DPSoftShapeClassifier

    check_epsilon(epsilon, name="--epsilon")
    check_new_page(page)
    check_new_bundle(out)
    check_preset(preset, mode=mode)
    settings = changed_settings(preset or "paper", change or [], mode=mode)
    dataset = load_dataset(data, label=label)
    with progress_bar("training") as report:
        classifier = DPSoftShapeClassifier(
            epsilon,
            mode,
            release,
            encoder=encoder,
            channel=channel,
            class_shares=None if class_shares is None else _shares(class_shares),
            preset=preset or "paper",
            settings=settings,
            random_state=seed,
            progress=report,
        )
        start = time.perf_counter()
        classifier.fit(dataset.X_train, dataset.y_train)
        seconds = time.perf_counter() - start
    predicted, places = _predicted(classifier, dataset.X_test)
    right = predicted == dataset.y_test
    result: dict[str, Any] = {
        "accuracy": float(right.mean()),
        "accuracy_interval": accuracy_interval(int(right.sum()), len(right)),
        "confusion": confusion(dataset.y_test, predicted),
        "guarantee": classifier.guarantee_,
        "train_seconds": seconds,
        "seed": seed,
        "data": dataset.name,
        "mode": mode,
        "release": release if mode == "sound" else None,
    }
    if mode == "published":
        result |= {
            "preset": classifier.preset,
            "changed": sorted(change or []),
            "nominal_epsilon": epsilon,
            "leakage": classifier.leakage_,
            "leakage_measured_on": "training series",
        }
    else:
        result |= _comparison(classifier, dataset) | places
    notes = classifier.history_.get("notes", [])
    result["warnings"] = [*notes, *_accuracy_warnings(result, dataset)]
    if out is not None:
        classifier.save(out)
        write_training_record(out, {**result, **_sizes(dataset)})
        result["bundle"] = out
    if page is not None:
        from tacit.report.local_page import write_softshape_page

        result["page"] = write_softshape_page(
            page, classifier=classifier, dataset=dataset, accuracy=result["accuracy"]
        )
    for sentence in result["warnings"]:
        note(sentence)
    emit(result, as_json=as_json, render=lambda: show_rows(_readable(result)))


def _predicted(classifier: Any, X: Any) -> tuple[Any, dict[str, float]]:
    """What the server makes of releases of the test part; of places, how often they are right."""
    from tacit.local.releases.place import PlaceHead

    model = classifier.model_
    if model is None or not isinstance(model.head, PlaceHead):
        return classifier.predict(X), {}
    own = model.head.summarise(model.check_series(X))
    return classifier.classes_[model.decide(model.randomize(own))], model.head.rates(own)


def check_preset(preset: str | None, *, mode: str) -> None:
    """A preset is one of published mode; elsewhere it would be ignored, so it is refused."""
    if preset is not None and mode != "published":
        raise TacitError(
            f"--preset {preset} is of --mode published, not of {mode}; leave it out, or add "
            "--mode published."
        )


def _sizes(dataset: Dataset) -> dict[str, Any]:
    return {
        "n_train": len(dataset.y_train),
        "n_test": len(dataset.y_test),
        "evaluated_on": "the test part of the data set",
    }


def check_new_bundle(folder: Path | None) -> None:
    """Releases can only be classified by the bundle that made them: none is overwritten."""
    from tacit.local.estimator import MODEL_FILE, PUBLISHED_FILE

    check_new_folder(folder)
    for name in (MODEL_FILE, PUBLISHED_FILE):
        if folder is not None and (folder / name).exists():
            raise TacitError(
                f"{folder} holds a bundle, whose releases nothing else can classify; choose "
                "another folder, or remove it first."
            )


def _shares(text: str) -> dict[str, float]:
    """Label -> share from `1=0.9,2=0.1`; a label may hold any character but a comma."""
    try:
        pairs = [part.rsplit("=", 1) for part in text.split(",")]
        shares = {label.strip(): float(share) for label, share in pairs}
    except ValueError:
        shares = {}
    if len(shares) != text.count(",") + 1:
        raise TacitError(
            f"--class-shares must look like 1=0.9,2=0.1, got {text!r}; name every class once."
        )
    return shares


def _comparison(classifier: Any, dataset: Any) -> dict[str, Any]:
    """What to compare the accuracy with: the ceiling, and the classifier before the noise."""
    import numpy as np

    from tacit.local.releases.channel import accuracy_ceiling

    _, counts = np.unique(dataset.y_test, return_counts=True)
    return {
        "ceiling": accuracy_ceiling(counts, epsilon=classifier.epsilon),
        "encoder": classifier.history_.get("encoder"),
        "held_out_accuracy": classifier.history_.get("held_out_accuracy"),
    }


def _accuracy_warnings(result: dict[str, Any], dataset: Any) -> list[str]:
    """What somebody who reads only the accuracy would get wrong."""
    import numpy as np

    labels, counts = np.unique(dataset.y_test, return_counts=True)
    common, label = float(counts.max() / counts.sum()), str(labels[counts.argmax()])
    accuracy, interval = result["accuracy"], result["accuracy_interval"]
    measured = f"the accuracy of {accuracy_words(result)}"
    found = []
    if interval["low"] <= common:
        verdict = "is no better" if accuracy <= common else "is not shown to be better"
        found.append(
            f"{measured} {verdict} than always answering the commonest class, {label!r} "
            f"({common:.3f}); raise --epsilon, choose --release label, or train on more series."
        )
    ceiling = result.get("ceiling", 1.0)
    if accuracy > ceiling:
        reason = (
            "which chance rarely does; repeat it with another --seed, and 'tacit audit' the bundle."
            if interval["low"] > ceiling
            else "by chance: more test series would bring it below."
        )
        found.append(f"{measured} lies above the ceiling of {ceiling:.3f}, {reason}")
    return found


def _readable(result: dict[str, Any]) -> dict[str, Any]:
    """The result of a training for people: numbers that can be read, warnings said already."""
    hidden = ("accuracy_interval", "confusion", "warnings")
    shown = {key: result[key] for key in result if key not in hidden}
    for key in ("ceiling", "held_out_accuracy", "train_seconds", "place_right", "table_right"):
        if isinstance(shown.get(key), float):
            shown[key] = f"{shown[key]:.3f}"
    shown["accuracy"] = accuracy_words(result)
    return shown
