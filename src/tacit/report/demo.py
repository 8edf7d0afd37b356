"""The demonstration: train each installed family on one data set, and write a page about it."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tacit.data import Dataset, load_dataset
from tacit.guarantee import Guarantee
from tacit.report.charts import FAMILY_COLOURS, Line, alt, bar_chart, line_chart
from tacit.report.page import FurtherGuarantee, Table, Text, write_page
from tacit.system.progress import Progress, silent

DATA = "GunPoint"


@dataclass(frozen=True, slots=True, kw_only=True)
class FamilyRun:
    """What one family did: its accuracy is never shown without its guarantee."""

    family: str
    method: str
    accuracy: float
    left: str
    guarantee: Guarantee
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """The keys of the command's JSON."""
        return {
            "method": self.method,
            "accuracy": self.accuracy,
            "left_the_owner": self.left,
            "guarantee": self.guarantee.to_dict(),
            "seconds": round(self.seconds, 2),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """How the demonstration runs one family, and the package that it needs."""

    name: str
    needs: str
    method: str
    left: str
    make: Callable[[int, Progress], Any]


def _local(seed: int, progress: Progress) -> Any:
    from tacit.local import DPSoftShapeClassifier

    return DPSoftShapeClassifier(epsilon=2.0, random_state=seed, progress=progress)


def _silo(seed: int, progress: Progress) -> Any:
    from tacit.silo import FedSTClassifier

    return FedSTClassifier(
        n_parties=3, n_candidates=100, n_shapelets=20, random_state=seed, progress=progress
    )


def _fleet(seed: int, progress: Progress) -> Any:
    from tacit.fleet import DPTimeFLClassifier

    return DPTimeFLClassifier(
        n_clients=50,
        epsilon=8.0,
        delta=1e-5,
        mechanism="distributed",
        random_state=seed,
        progress=progress,
    )


FAMILIES = (
    Family(
        name="local",
        needs="tacit.local",
        method="DP-SoftShape, sound label release",
        left="one randomized label per series",
        make=_local,
    ),
    Family(
        name="silo",
        needs="spu",
        method="FedST, three parties over TLS",
        left="secret shares",
        make=_silo,
    ),
    Family(
        name="fleet",
        needs="tacit.fleet",
        method="DP-TimeFL, sound distributed noise, 50 clients",
        left="noised shares of one clipped update per client and round",
        make=_fleet,
    ),
)


def installed_families() -> list[Family]:
    """The families whose engine is installed."""
    return [family for family in FAMILIES if importlib.util.find_spec(family.needs)]


def run_demo(
    out: Path, *, seed: int = 0, progress: Callable[[str], Progress] | None = None
) -> dict[str, Any]:
    """Run every installed family on the demonstration's data set and write the page."""
    data = load_dataset(DATA)
    runs = []
    for family in installed_families():
        report = progress(family.name) if progress else silent
        runs.append(_run_family(family, data, seed, report))
    missing = [family.name for family in FAMILIES if family not in installed_families()]
    page = _page(out / "index.html", data, runs, missing)
    return {
        "data": data.name,
        "families": {run.family: run.to_dict() for run in runs},
        "not_installed": missing,
        "floor": _floor(data),
        "report": str(page),
    }


def _run_family(family: Family, data: Dataset, seed: int, progress: Progress) -> FamilyRun:
    start = time.perf_counter()
    classifier = family.make(seed, progress)
    classifier.fit(data.X_train, data.y_train)
    accuracy = float(np.mean(classifier.predict(data.X_test) == data.y_test))
    return FamilyRun(
        family=family.name,
        method=family.method,
        accuracy=accuracy,
        left=family.left,
        guarantee=classifier.guarantee_,
        seconds=time.perf_counter() - start,
    )


def _floor(data: Dataset) -> float:
    """Accuracy of always naming the largest training class."""
    labels, counts = np.unique(data.y_train, return_counts=True)
    return float(np.mean(data.y_test == labels[counts.argmax()]))


def _page(path: Path, data: Dataset, runs: list[FamilyRun], missing: list[str]) -> Path:
    rows = [
        (r.family, r.method, f"{r.accuracy:.3f}", r.left, r.guarantee.sentence, f"{r.seconds:.1f}")
        for r in runs
    ]
    columns = ("family", "method", "accuracy", "what left the owner", "guarantee", "seconds")
    note = (
        f"One run on {data.name}: {len(data.y_train)} training and {len(data.y_test)} test series. "
        "Noise is fresh in each run, so the figures move. The families protect from different "
        "adversaries: their accuracies are not a ranking."
    )
    if missing:
        note += f" Not installed here: {', '.join(missing)}."
    blocks: list[Any] = [Text(note), Table(columns, rows), _bars(data, runs), _series(data)]
    blocks += [FurtherGuarantee(run.family, run.guarantee) for run in runs]
    return write_page(path, title="Tacit: classify what nobody has to show", blocks=blocks)


def _bars(data: Dataset, runs: list[FamilyRun]) -> alt.LayerChart:
    return bar_chart(
        "Accuracy in one run",
        {run.family: run.accuracy for run in runs},
        x="accuracy",
        colours=[FAMILY_COLOURS[run.family] for run in runs],
        x_range=(0.0, 1.0),
        level=("largest class", _floor(data)),
        notes=[run.guarantee.sentence for run in runs],
    )


def _series(data: Dataset) -> alt.LayerChart:
    lines = [
        Line(f"class {label}", list(enumerate(data.X_train[row, 0].tolist())), dots=False)
        for label in data.classes
        for row in np.flatnonzero(data.y_train == label)[:2]
    ]
    title = "What stayed with its owner: four training series"
    return line_chart(title, lines, x="step", y="value")
