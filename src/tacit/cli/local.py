"""Commands of the local family in use: release on a device, classify releases."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli.common import (
    DataOption,
    JsonFlag,
    LabelOption,
    PartOption,
    emit,
    note,
    print_table,
)
from tacit.cli.ledger import AnchorOption
from tacit.cli.manner.choices import Target
from tacit.errors import TacitError

if TYPE_CHECKING:
    from tacit.ledger import Ledger
    from tacit.local.model import LocalModel
    from tacit.local.prevalence import Prevalence

BundleArgument = Annotated[
    Path,
    typer.Argument(metavar="BUNDLE", help="Folder that 'train --out' wrote, or a device file."),
]


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
    part: PartOption = None,
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
        note(
            "nothing is accounted: a second release of these series would not be refused; give "
            "--ledger FILE to keep their budget."
        )
    shown = {key: value for key, value in result.items() if key not in totals}
    emit(
        result, as_json=as_json, render=lambda: show_rows({**shown, "spent": _spent_words(totals)})
    )


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
    of: Annotated[
        Target,
        typer.Option("--of", help="Prevalence of what devices would say, or of the true classes."),
    ] = "device_labels",
    level: Annotated[
        float, typer.Option("--level", help="Level of the intervals of --prevalence.")
    ] = 0.95,
    as_json: JsonFlag = False,
) -> None:
    """Classify releases; needs no series.

    Example: `tacit classify gunpoint --releases releases.json --json`
    """
    from tacit.local.prevalence import estimate_prevalence
    from tacit.local.release import load_releases

    if not prevalence and (of, level) != ("device_labels", 0.95):
        raise TacitError("--of and --level belong to --prevalence; give it too.")
    model = load_bundle(bundle)
    received = load_releases(*releases)
    result: dict[str, Any] = {
        "labels": model.labels(received),
        "count": len(received),
        "guarantee": model.guarantee,
        **_training_of(model),
    }
    if received.kind == "place":
        found = model.places(received)
        result["places"] = {
            "edges": found.edges.tolist(),
            "posterior": found.posterior.round(6).tolist(),
        }
    shares = estimate_prevalence(model, received, of=of, level=level) if prevalence else None
    if shares is not None:
        result["prevalence"] = shares.to_dict()
        if shares.warning is not None:
            note(shares.warning)
    emit(result, as_json=as_json, render=lambda: _show_classified(result, shares))


def _show_classified(result: dict[str, Any], shares: Prevalence | None) -> None:
    """The first labels and how many there are of each; JSON has all of them."""
    labels, few = result["labels"], 20
    more = f", and {len(labels) - few} more (all with --json)" if len(labels) > few else ""
    counts = ", ".join(f"{name}: {count}" for name, count in Counter(labels).most_common())
    show_rows(
        {
            "labels": ", ".join(labels[:few]) + more,
            "count": f"{len(labels)} ({counts})" if labels else "0",
            "guarantee": result["guarantee"],
        }
    )
    if "places" in result:
        _show_places(result["places"], labels)
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


def _show_places(places: dict[str, Any], labels: list[str]) -> None:
    """Where the evidence of each class lies, on average over its releases."""
    from itertools import pairwise

    import numpy as np

    names, posterior = np.array(labels), np.array(places["posterior"])
    rows = [
        (str(name), *(f"{share:.3f}" for share in posterior[names == name].mean(axis=0)))
        for name in np.unique(names)
    ]
    steps = [f"steps {start} to {stop - 1}" for start, stop in pairwise(places["edges"])]
    title = "where the evidence lies, mean posterior (per release with --json)"
    print_table(rows, columns=("class", *steps), title=title)


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


def show_rows(rows: dict[str, Any]) -> None:
    """The rows as a table for people."""
    emit(rows, as_json=False)
