"""Real data sets of the size that federations have, on real processes, against plaintext.

    python benchmarks/silo_real.py [--part channels] [--part electric] [--windows 600]
        [--out results/current]

channels: training windows of UCIHAR (600, or as many as asked; 0 for all 7352) with nine channels,
500 candidates. electric: all 8926
training series of ElectricDevices beside 2048 of them, with few candidates; growth is in processor
seconds of all three parties. Each run is compared with its plaintext twin array by array, and the
largest memory of one process is recorded. Needs TACIT_DATA.
"""

from __future__ import annotations

import resource
from pathlib import Path
from typing import Any

import numpy as np
from silo_speed import cpu_of_children, machine, run_parts, write_line

from tacit import load_dataset
from tacit._version import VERSION
from tacit.data import split_parties
from tacit.data.dataset import Dataset
from tacit.silo.fedst.plaintext import fit_pooled
from tacit.silo.fedst.settings import settings_from
from tacit.silo.model import trained_model
from tacit.silo.party.localhost import run_federation
from tacit.silo.plan import Plan, default_protocol, running_versions
from tacit.silo.secure.session import LocalInputs

N_PARTIES = 3


def owners_of(data: Dataset, n: int) -> list[LocalInputs]:
    """`n` training series, drawn at random, dealt to three owners in equal stratified parts."""
    rows = np.random.default_rng(0).permutation(len(data.X_train))[:n]
    codes = np.searchsorted(data.classes, data.y_train[rows]).astype(np.intp)
    owner = split_parties(codes, n_parties=N_PARTIES, rng=np.random.default_rng(1))
    return [
        LocalInputs(X=data.X_train[rows[owner == p]], y=codes[owner == p], private={"seed": 1})
        for p in range(N_PARTIES)
    ]


def measure(data: Dataset, n: int, cache: Path, **params: Any) -> dict[str, Any]:
    """One federation and its twin, as one plain record."""
    inputs = owners_of(data, n)
    settings = settings_from(params)
    plan = Plan(
        program="fedst",
        parties=tuple(f"P{p}" for p in range(N_PARTIES)),
        protocol=default_protocol(N_PARTIES),
        classes=tuple(str(label) for label in data.classes),
        series_length=data.X_train.shape[2],
        n_channels=data.X_train.shape[1],
        counts=tuple(len(own.X) for own in inputs),
        params=settings.to_params(),
    )
    before = cpu_of_children()
    outcome = run_federation(plan, inputs, cache=cache)
    spent = cpu_of_children() - before
    twin = fit_pooled(settings, inputs, n_classes=len(data.classes))
    same = [np.array_equal(twin.arrays[name], outcome.arrays[name]) for name in twin.arrays]
    model = trained_model(
        outcome.arrays, own=inputs[0].X, settings=settings, n_classes=len(data.classes)
    )
    predicted = np.asarray(data.classes)[model.probabilities(data.X_test).argmax(axis=1)]
    return {
        "data": data.name,
        "M": n,
        "N": plan.series_length,
        "channels": plan.n_channels,
        "params": dict(plan.params),
        "equal_to_plaintext": bool(all(same)) and set(twin.arrays) == set(outcome.arrays),
        "accuracy": round(float(np.mean(predicted == data.y_test)), 4),
        "stage_seconds": outcome.info["seconds"],
        "rounds": outcome.info["rounds"],
        "bytes_sent_by_party": [receipt.bytes_sent for receipt in outcome.receipts],
        "wall_seconds": round(outcome.seconds, 2),
        "cpu_seconds": round(spent, 2),
        "largest_process_mb": round(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024),
        "opened": list(outcome.receipts[0].guarantee.opened),
    }


def part_channels(cache: Path, out: Path, *, windows: int) -> None:
    """Nine channels, with the default settings, and with intervals and words beside shapelets."""
    data = load_dataset("UCIHAR")
    for features in ("shapelets", "all"):
        n = min(windows or len(data.X_train), len(data.X_train))
        save(out, {"part": "channels", **measure(data, n, cache, features=features)})


def part_electric(cache: Path, out: Path, *, windows: int) -> None:
    """A whole large set, and how its processor time grows from a part of it."""
    data = load_dataset("ElectricDevices")
    few = {"n_candidates": 100, "n_shapelets": 50}
    part = measure(data, 2048, cache, **few)
    save(out, {"part": "electric", **part})
    whole = measure(data, len(data.X_train), cache, **few)
    linear = part["cpu_seconds"] * whole["M"] / part["M"]
    whole["of_linear_growth"] = round(whole["cpu_seconds"] / linear, 2)
    save(out, {"part": "electric", **whole})


def save(out: Path, record: dict[str, Any]) -> None:
    """Append one line and print it without the settings."""
    record |= {"versions": {"tacit": VERSION, **running_versions()}, **machine()}
    write_line(out / "silo_real.jsonl", record)
    print({key: value for key, value in record.items() if key not in ("params", "versions")})


if __name__ == "__main__":
    run_parts({"channels": part_channels, "electric": part_electric}, __doc__, windows=600)
