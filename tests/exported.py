"""Models exported for browsers and C, compiled or loaded once, that several tests share."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from local_problems import model_of, trained, trained_multivariate
from system_packages import needed
from tacit.arrays import Codes, Floats, Floats32
from tacit.data import load_dataset
from tacit.local.estimator import DPSoftShapeClassifier
from tacit.local.exports.golden import Golden, golden_vectors
from tacit.local.exports.portable import PortableModel, portable_model
from tacit.local.exports.write import Format
from tacit.local.model import LocalModel
from tacit.local.release import Kind

FALSE_ALARM = 1e-6
STRICT = ("-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "-ffp-contract=off", "-O2")
HARNESS = Path(__file__).parent / "local" / "exports" / "harness.c"


@cache
def gunpoint(release: Kind) -> DPSoftShapeClassifier:
    data = load_dataset("GunPoint")
    classifier = DPSoftShapeClassifier(2.0, release=release, random_state=0)
    classifier.fit(data.X_train, data.y_train)
    return classifier


@cache
def problem(name: str) -> tuple[DPSoftShapeClassifier, Floats]:
    """A trained model and series that it has to agree on."""
    if name == "channels":
        return trained_multivariate("place")
    if name.startswith("italy"):
        epsilon = float(name.removeprefix("italy ") or 2.0)
        return trained("label", epsilon), load_dataset("ItalyPowerDemand").X_test[:12]
    kind: Kind = "place" if name == "gunpoint place" else "label"
    return gunpoint(kind), load_dataset("GunPoint").X_test[:12]


@cache
def golden(name: str) -> tuple[Golden, ...]:
    """What the reference says of these series."""
    return golden_vectors(portable(name), problem(name)[1])


def model(name: str) -> LocalModel:
    return model_of(problem(name)[0])


def portable(name: str) -> PortableModel:
    return portable_model(model(name), format="c")


def exported(name: str, folder: Path, format: Format) -> Path:
    """The folder of an export."""
    place = folder / f"{name} {format}".replace(" ", "-")
    if not place.exists():
        problem(name)[0].export_device(place, format=format)
    return place


def compiled(name: str, folder: Path) -> Path:
    """The harness with an exported device."""
    place = exported(name, folder, "c")
    program = place / "harness"
    if not program.exists():
        sources = [str(HARNESS), str(place / "tacit_device.c")]
        done = subprocess.run(
            [needed("cc"), *STRICT, f"-I{place}", "-o", str(program), *sources, "-lm"],
            capture_output=True, text=True, timeout=120,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
    return program


def asked(program: Path, *task: str, series: Floats | None = None) -> bytes:
    sent = b"" if series is None else np.ascontiguousarray(series, dtype="<f8").tobytes()
    return subprocess.run(
        [str(program), *task], input=sent, capture_output=True, check=True, timeout=120
    ).stdout


def answers(program: Path, series: Floats, n_features: int) -> tuple[Codes, Codes, Floats32]:
    """Codes, private symbols and features of a compiled device."""
    kind = np.dtype([("code", "<i4"), ("symbol", "<i4"), ("features", "<f4", (n_features,))])
    rows = np.frombuffer(asked(program, "answer", series=series), dtype=kind)
    return rows["code"], rows["symbol"], rows["features"]


def worst_p_value(counts: NDArray[np.int64], thresholds: NDArray[np.int64]) -> float:
    """The smallest binomial p-value of any cell, times the number of cells."""
    weights = np.diff(thresholds, axis=1, prepend=0)
    cells = [
        float(stats.binomtest(int(hits), int(row.sum()), int(weight) / 2**62).pvalue)
        for row, own in zip(counts, weights, strict=True)
        for hits, weight in zip(row, own, strict=True)
    ]
    return min(cells) * len(cells)
