"""Commands of the local family: train, release on a device, classify releases."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli.common import (
    DataOption,
    JsonFlag,
    LabelOption,
    SeedOption,
    check_new_folder,
    check_new_page,
    emit,
    print_table,
    progress_bar,
)
from tacit.cli.ledger import AnchorOption
from tacit.errors import TacitError, check_epsilon

if TYPE_CHECKING:
    from tacit.ledger import Ledger
    from tacit.local.model import LocalModel
    from tacit.local.prevalence import Prevalence

BundleArgument = Annotated[
    Path,
    typer.Argument(metavar="BUNDLE", help="Folder that 'train --out' wrote, or a device file."),
]


def train_softshape(
    data: DataOption,
    epsilon: Annotated[
        float, typer.Option("--epsilon", help="Total privacy budget of one series.")
    ] = 1.0,
    mode: Annotated[
        str, typer.Option("--mode", help="sound, or published (no guarantee, leakage measured).")
    ] = "sound",
    release: Annotated[
        str, typer.Option("--release", help="What a device sends: label, place, vector or shapes.")
    ] = "label",
    encoder: Annotated[
        str, typer.Option("--encoder", help="Features: kernels, or softshape (a network).")
    ] = "kernels",
    channel: Annotated[
        str, typer.Option("--channel", help="optimal for accuracy, krr to estimate prevalence.")
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
    page: Annotated[
        Path | None, typer.Option("--page", help="HTML file with pictures of the result.")
    ] = None,
    label: LabelOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Train a classifier of locally private releases and measure it on the test part.

    Example: `tacit train softshape --data GunPoint --epsilon 2 --out gunpoint`
    """
    from tacit.data import load_dataset
    from tacit.local.estimator import DPSoftShapeClassifier

    check_epsilon(epsilon, name="--epsilon")
    check_new_page(page)
    check_new_bundle(out)
    dataset = load_dataset(data, label=label)
    with progress_bar("training") as report:
        classifier = DPSoftShapeClassifier(
            epsilon,
            mode,  # type: ignore[arg-type]  # the estimator checks it
            release,  # type: ignore[arg-type]
            encoder=encoder,  # type: ignore[arg-type]
            channel=channel,  # type: ignore[arg-type]
            class_shares=None if class_shares is None else _shares(class_shares),
            random_state=seed,
            progress=report,
        )
        start = time.perf_counter()
        classifier.fit(dataset.X_train, dataset.y_train)
        seconds = time.perf_counter() - start
    right = classifier.predict(dataset.X_test) == dataset.y_test
    result: dict[str, Any] = {
        "accuracy": float(right.mean()),
        "accuracy_interval": _accuracy_interval(int(right.sum()), len(right)),
        "guarantee": classifier.guarantee_,
        "train_seconds": seconds,
        "seed": seed,
        "data": dataset.name,
        "mode": mode,
        "release": release if mode == "sound" else None,
    }
    if mode == "published":
        result |= {"nominal_epsilon": epsilon, "leakage": classifier.leakage_}
    else:
        result |= _comparison(classifier, dataset)
    result["warnings"] = _accuracy_warnings(result, dataset)
    if out is not None:
        classifier.save(out)
        result["bundle"] = out
    if page is not None:
        from tacit.report.local_page import write_softshape_page

        result["page"] = write_softshape_page(
            page, classifier=classifier, dataset=dataset, accuracy=result["accuracy"]
        )
    for sentence in result["warnings"]:
        _note(sentence)
    emit(result, as_json=as_json, render=lambda: _show(_readable(result)))


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


def release_command(
    bundle: BundleArgument,
    data: DataOption,
    out: Annotated[Path, typer.Option("--out", help="File for the releases.")],
    ledger: Annotated[
        Path | None,
        typer.Option("--ledger", help="Budget ledger; without one nothing is accounted for."),
    ] = None,
    per_series: Annotated[
        float | None,
        typer.Option("--per-series", help="Budget of each series, for a new ledger."),
    ] = None,
    anchor: AnchorOption = None,
    part: Annotated[
        str | None,
        typer.Option("--part", help="Which part of a data set: test (default) or train."),
    ] = None,
    label: LabelOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Release every series of a file once, as its devices would, debiting the ledger first.

    A file needs no labels. A data set with two parts is released by its test part.

    Example: `tacit release gunpoint --data GunPoint --out releases.json --ledger device.db`
    """
    from tacit.data import load_series
    from tacit.ledger import Ledger
    from tacit.ledger.anchors import configured_anchor
    from tacit.local.device import Device

    if out.exists():
        raise TacitError(f"{out} exists and releases cannot be made again; choose another file.")
    if not out.parent.is_dir():
        raise TacitError(f"the folder {out.parent} does not exist; nothing was released.")
    device = Device(load_bundle(bundle))
    series = load_series(data, part=part, label=label)
    totals: dict[str, Any] = {"spent": None, "accounted": False}
    if ledger is None:
        made = device.release(series)
    else:
        # A new ledger allows each series one release; an existing one keeps its budgets.
        with Ledger.open(
            ledger,
            per_subject_epsilon=per_series,
            new_per_subject_epsilon=device.guarantee.epsilon,
            anchor=anchor or configured_anchor(ledger),
        ) as account:
            made = device.release(series, ledger=account)
            totals = _totals(account)
    made.save(out)
    result = {
        "count": len(made),
        "guarantee": made.guarantee,
        **_training_of(device.model),
        **totals,
        "releases": out,
        "ledger": ledger,
    }
    if ledger is None:
        _note(
            "nothing is accounted: a second release of these series would not be refused; give "
            "--ledger FILE to keep their budget."
        )
    shown = {key: value for key, value in result.items() if key not in totals}
    emit(result, as_json=as_json, render=lambda: _show({**shown, "spent": _spent_words(totals)}))


def _training_of(model: LocalModel) -> dict[str, Any]:
    """What the model's own training promised its clients, where it promised anything."""
    return {} if model.training is None else {"training": model.training}


def _totals(account: Ledger) -> dict[str, Any]:
    """What the ledger holds, for one series and for somebody whose series they all are."""
    series = account.subjects().values()
    most = {
        "epsilon": max((one.epsilon for one in series), default=0.0),
        "delta": max((one.delta for one in series), default=0.0),
    }
    return {
        "spent": account.spent().to_dict(),  # all series together
        "accounted": True,
        "spent_per_series": most,  # of the series that spent most
        "series": len(series),
    }


def _spent_words(totals: dict[str, Any]) -> str:
    from tacit.guarantee import rounded_up

    if not totals["accounted"]:
        return "not accounted"
    each, everything = totals["spent_per_series"]["epsilon"], totals["spent"]["epsilon"]
    return (
        f"at most epsilon {rounded_up(each)} per series; {totals['series']} series in this ledger, "
        f"so at most {rounded_up(everything)} for a person who owns all of them"
    )


def classify_command(
    bundle: BundleArgument,
    releases: Annotated[
        list[Path],
        typer.Option(
            "--releases",
            help="File that 'tacit release' wrote, or a list or lines of such; may be repeated.",
        ),
    ],
    prevalence: Annotated[
        bool, typer.Option("--prevalence", help="Also estimate how common each class is.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Classify releases; needs no series.

    Example: `tacit classify gunpoint --releases releases.json --json`
    """
    from tacit.local.prevalence import estimate_prevalence
    from tacit.local.release import load_releases

    model = load_bundle(bundle)
    received = load_releases(*releases)
    result: dict[str, Any] = {
        "labels": model.labels(received),
        "count": len(received),
        "guarantee": model.guarantee,
        **_training_of(model),
    }
    shares = estimate_prevalence(model, received) if prevalence else None
    if shares is not None:
        result["prevalence"] = shares.to_dict()
        if shares.warning is not None:
            _note(shares.warning)
    emit(result, as_json=as_json, render=lambda: _show_classified(result, shares))


def _show_classified(result: dict[str, Any], shares: Prevalence | None) -> None:
    """The first labels and how many there are of each; JSON has all of them."""
    labels, few = result["labels"], 20
    more = f", and {len(labels) - few} more (all with --json)" if len(labels) > few else ""
    counts = ", ".join(f"{name}: {count}" for name, count in Counter(labels).most_common())
    _show(
        {
            "labels": ", ".join(labels[:few]) + more,
            "count": f"{len(labels)} ({counts})" if labels else "0",
            "guarantee": result["guarantee"],
        }
    )
    if shares is not None:
        values = zip(shares.classes, shares.share, shares.low, shares.high, strict=True)
        print_table(
            [
                (name, f"{share:.4f}", f"{low:.4f}", f"{high:.4f}")
                for name, share, low, high in values
            ],
            columns=("class", "share", "at least", "at most"),
            title=f"prevalence from {shares.n} releases, intervals of {shares.level:.0%}",
        )
        typer.echo(shares.assumption)


def load_bundle(path: Path) -> LocalModel:
    """The model of a folder or of a device file; a published one is refused."""
    from tacit.errors import BundleError
    from tacit.local.model import load_model

    if not path.is_dir():
        return load_model(path)
    if (path / "published.tacit").exists():
        raise BundleError(
            f"{path} holds a published model, which makes no private release; "
            "train with --mode sound."
        )
    return load_model(path / "model.tacit")


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


def _accuracy_interval(right: int, n: int, *, level: float = 0.95) -> dict[str, float]:
    """Clopper and Pearson's interval of the accuracy on series like the test part's."""
    from tacit.audit.bounds import proportion_above, proportion_below

    tail = (1.0 - level) / 2.0
    return {
        "low": proportion_above(right, n, false_alarm=tail),
        "high": proportion_below(right, n, false_alarm=tail),
        "level": level,
    }


def _accuracy_warnings(result: dict[str, Any], dataset: Any) -> list[str]:
    """What somebody who reads only the accuracy would get wrong."""
    import numpy as np

    labels, counts = np.unique(dataset.y_test, return_counts=True)
    common, label = float(counts.max() / counts.sum()), str(labels[counts.argmax()])
    accuracy, interval = result["accuracy"], result["accuracy_interval"]
    measured = (
        f"the accuracy of {accuracy:.3f} ({interval['low']:.3f} to {interval['high']:.3f} at "
        f"{interval['level']:.0%})"
    )
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
    interval = result["accuracy_interval"]
    shown = {key: result[key] for key in result if key not in ("accuracy_interval", "warnings")}
    for key in ("ceiling", "held_out_accuracy", "train_seconds"):
        if isinstance(shown.get(key), float):
            shown[key] = f"{shown[key]:.3f}"
    shown["accuracy"] = (
        f"{result['accuracy']:.3f} ({interval['low']:.3f} to {interval['high']:.3f} at "
        f"{interval['level']:.0%})"
    )
    return shown


def _show(rows: dict[str, Any]) -> None:
    emit(rows, as_json=False)


def _note(sentence: str) -> None:
    """One sentence on standard error, beside the result."""
    typer.echo(f"tacit: {sentence}", err=True)
