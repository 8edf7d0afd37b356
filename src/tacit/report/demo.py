"""The demonstration: train each installed family on one data set, and tell what others see."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tacit.data import Dataset, load_dataset
from tacit.guarantee import Guarantee
from tacit.report.demo_story import studio_command, write_story
from tacit.system.progress import Progress, silent

# Chosen on held-out thirds of the training series: each family is right in about
# nine of ten of them.
DATA = "ItalyPowerDemand"


@dataclass(frozen=True, slots=True, kw_only=True)
class FamilyRun:
    """What one family did: its accuracy is never shown without its guarantee."""

    family: str
    method: str
    accuracy: float
    left: str
    guarantee: Guarantee
    seconds: float
    classifier: Any = field(repr=False)

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
        n_clients=60,
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
        method="DP-TimeFL, sound distributed noise, 60 clients",
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
    page = write_story(out / "index.html", data, runs, missing)
    _keep_models(out / "models", runs)
    return {
        "data": data.name,
        "families": {run.family: run.to_dict() for run in runs},
        "not_installed": missing,
        "floor": _floor(data),
        "report": str(page),
        "next": studio_command(out),
    }


def _keep_models(folder: Path, runs: Sequence[FamilyRun]) -> None:
    """Save the models that have a file, where the studio looks for them."""
    folder.mkdir(parents=True, exist_ok=True)
    for run in runs:
        place = folder / f"{DATA}-{run.family}"
        if run.family == "local":
            run.classifier.save(place)
        elif run.family == "fleet":
            run.classifier.save(str(place))


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
        classifier=classifier,
    )


def _floor(data: Dataset) -> float:
    """Accuracy of always naming the largest training class."""
    labels, counts = np.unique(data.y_train, return_counts=True)
    return float(np.mean(data.y_test == labels[counts.argmax()]))
