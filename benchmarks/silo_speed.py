"""Speed of the secure search on real processes: seconds, bytes and messages, measured in one run.

    python benchmarks/silo_speed.py [--part default|gain|ratio|growth] [--out results/current]

default: the paper's default (M=512, N=100, n=3, 500 candidates, K=200, mean length 0.6 N) with the
F-statistic and a forest of 40 trees, first with an empty cache of compiled programs, then again,
then with the logistic regression.
gain: the same search with sorting-based information gain. ratio: every variant of the paper's
Fig. 6 on the same 40 candidates of length 0.6 N, once each; compared is the search without the time
that compiling takes, because a program is compiled once and its share would depend on how many
candidates are examined (both times are recorded). growth: seconds without compiling against M, N,
n and candidates, with a page of figures. All parties share this machine's cores. Bytes and messages
are those that P0 sends; the messages are an upper bound of the rounds.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from tacit._version import VERSION
from tacit.silo.fedst.candidates import draw_candidates, encode
from tacit.silo.fedst.parameters import public_parameters
from tacit.silo.fedst.plaintext import fit_pooled
from tacit.silo.fedst.settings import settings_from
from tacit.silo.party.localhost import FederationResult, run_federation
from tacit.silo.plan import Plan, default_protocol, running_versions
from tacit.silo.secure.session import LocalInputs

PARTS = ("ridge", "size", "default", "gain", "ratio", "growth")
SEARCH_ONLY: dict[str, Any] = {
    "scope": "local-transform",
    "classifier": "forest",
    "n_trees": 1,
    "depth": 1,
}
RATIO_CANDIDATES = 40  # enough for the fixed cost of some 500 messages not to decide
VARIANTS = {
    "basic": {"distance": "elementwise", "quality": "ig-basic"},
    "+dot": {"distance": "dot", "quality": "ig-basic"},
    "+sorting": {"distance": "elementwise", "quality": "ig"},
    "+F": {"distance": "elementwise", "quality": "f"},
    "+dot+sorting": {"distance": "dot", "quality": "ig"},
    "+dot+F": {"distance": "dot", "quality": "f"},
}


def lengths_around(n: int) -> list[int]:
    """A public grid of 17 lengths with mean 0.6 N."""
    return sorted({int(v) for v in np.rint(np.linspace(0.2 * n, n, 17))})


def synthetic(*, m: int, n: int, parties: int, seed: int = 0) -> list[LocalInputs]:
    """Random walks of two classes with a bump that one class has more often."""
    rng = np.random.default_rng(seed)
    y = np.arange(m) % 2
    X = np.cumsum(rng.normal(size=(m, 1, n)), axis=2)
    X[:, 0, n // 3 : n // 2] += 3.0 * (rng.random(m) < 0.3 + 0.4 * y)[:, None]
    owner = rng.permutation(np.arange(m) % parties)
    return [
        LocalInputs(X=X[owner == p], y=y[owner == p].astype(np.intp), private={"seed": 1})
        for p in range(parties)
    ]


def run(
    *, m: int, n: int, parties: int, candidates: int, cache: Path, **params: Any
) -> tuple[FederationResult, dict[str, Any], list[LocalInputs]]:
    """One federation on synthetic series, and its figures as one plain record."""
    inputs = synthetic(m=m, n=n, parties=parties)
    chosen = {"n_candidates": candidates, "lengths": lengths_around(n)} | params
    plan = Plan(
        program="fedst",
        parties=tuple(f"P{p}" for p in range(parties)),
        protocol=default_protocol(parties),
        classes=("0", "1"),
        series_length=n,
        counts=tuple(len(own.X) for own in inputs),
        params=settings_from(chosen).to_params(),
    )
    before = cpu_of_children()
    outcome = run_federation(plan, inputs, cache=cache)
    info = outcome.info
    record = {
        "M": m,
        "N": n,
        "n": parties,
        "candidates": candidates,
        "protocol": plan.protocol,
        "params": dict(plan.params),
        "stage_seconds": info["seconds"],
        "seconds": info["seconds"]["search"],
        "seconds_without_compiling": round(
            info["seconds"]["search"] - info["compile_seconds"]["search"], 3
        ),
        "stage_bytes_sent_by_P0": info["bytes"],
        "bytes_sent_by_party": [receipt.bytes_sent for receipt in outcome.receipts],
        "rounds": info["rounds"],
        "wall_seconds": round(outcome.seconds, 3),
        # Of all parties, from start to end, imports and compiling included; unlike wall time it
        # hardly depends on what else the machine does.
        "cpu_seconds": round(cpu_of_children() - before, 2),
        "opened": list(outcome.receipts[0].guarantee.opened),
    }
    return outcome, record, inputs


def cpu_of_children() -> float:
    """Processor seconds of all finished child processes so far."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def same_shapelets(outcome: FederationResult, record: dict[str, Any], inputs: Any) -> str:
    """How many of the chosen shapelets the plaintext twin also chose."""
    twin = fit_pooled(settings_from(record["params"]), inputs, n_classes=2)
    names = ("series", "start", "length")
    mine = set(zip(*(outcome.arrays[k].tolist() for k in names), strict=True))
    theirs = set(zip(*(twin.arrays[k].tolist() for k in names), strict=True))
    return f"{len(mine & theirs)}/{len(theirs)}"


def same_as_float64(outcome: FederationResult, record: dict[str, Any], inputs: Any) -> str:
    """How many of the chosen shapelets an ordinary float64 search by ANOVA F also chooses."""
    from numpy.lib.stride_tricks import sliding_window_view
    from sklearn.feature_selection import f_classif

    settings = settings_from(record["params"])
    counts = [len(own.X) for own in inputs]
    public = public_parameters(settings, counts=counts, n_classes=2, series_length=record["N"])
    rows = np.concatenate([own.X[:, 0] for own in inputs])
    rows = (rows - rows.mean(axis=1, keepdims=True)) / rows.std(axis=1, keepdims=True)
    rng = np.random.default_rng(inputs[0].private["seed"])
    drawn = draw_candidates(encode(inputs[0].X[:, 0], public.encoding), public.batches, rng=rng)
    places, distances = [], []
    for batch, found in zip(public.batches, drawn, strict=True):
        windows = sliding_window_view(rows, batch.length, axis=1)
        for series, start in zip(found.series.tolist(), found.start.tolist(), strict=True):
            cut = rows[series, start : start + batch.length]
            distances.append(((windows - cut) ** 2).sum(axis=2).min(axis=1))
            places.append((series, start, batch.length))
    quality = f_classif(np.array(distances).T, np.concatenate([own.y for own in inputs]))[0]
    theirs = {places[i] for i in np.argsort(-quality, kind="stable")[: settings.n_shapelets]}
    names = ("series", "start", "length")
    mine = set(zip(*(outcome.arrays[k].tolist() for k in names), strict=True))
    return f"{len(mine & theirs)}/{len(theirs)}"


def part_default(cache: Path, out: Path) -> None:
    """The paper's default with each classifier."""
    for classifier in ("ridge", "forest", "logistic"):
        outcome, record, inputs = run(
            m=512, n=100, parties=3, candidates=500, cache=cache, classifier=classifier
        )
        record["equal_to_plaintext"] = same_shapelets(outcome, record, inputs)
        record["equal_to_float64"] = same_as_float64(outcome, record, inputs)
        save(out, {"part": "default", "variant": "+dot+F", "state": "first run", **record})


def part_ridge(cache: Path, out: Path) -> None:
    """The default fit alone, and a small federation as a hospital would start with."""
    for state, sizes in (
        ("default fit", {"m": 512, "n": 100, "candidates": 500}),
        ("small federation", {"m": 30, "n": 128, "candidates": 120, "n_shapelets": 50}),
    ):
        outcome, record, inputs = run(parties=3, cache=cache, **sizes)
        record["equal_to_plaintext"] = same_shapelets(outcome, record, inputs)
        save(out, {"part": "ridge", "variant": "+dot+F", "state": state, **record})


def part_size(cache: Path, out: Path) -> None:
    """Processor seconds and the largest memory of a process at four times as many series."""
    records = []
    for m in (2048, 8192):
        _, record, _ = run(
            m=m, n=100, parties=3, candidates=100, cache=cache, n_shapelets=50, lengths=[40, 70]
        )
        largest = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        record["largest_process_mb"] = round(largest / 1024)
        records.append(record)
        save(out, {"part": "size", "variant": "+dot+F", "state": "ridge", **record})
    growth = records[1]["cpu_seconds"] / records[0]["cpu_seconds"] / 4
    print(
        f"size     processor seconds at 8192 over 2048 series: {growth:.2f} of linear growth; "
        f"largest process {records[1]['largest_process_mb']} MB"
    )


def part_gain(cache: Path, out: Path) -> None:
    """The default with sorting-based information gain."""
    outcome, record, inputs = run(
        m=512, n=100, parties=3, candidates=500, cache=cache, quality="ig", **SEARCH_ONLY
    )
    record["equal_to_plaintext"] = same_shapelets(outcome, record, inputs)
    save(out, {"part": "gain", "variant": "+dot+sorting", "state": "first run", **record})


def part_ratio(cache: Path, out: Path) -> None:
    """All variants on the same candidates of length 0.6 N; ratios as the module says."""
    basic: dict[str, Any] = {}
    for variant, params in VARIANTS.items():
        _, record, _ = run(
            m=512,
            n=100,
            parties=3,
            candidates=RATIO_CANDIDATES,
            cache=cache,
            n_shapelets=2,
            **(params | SEARCH_ONLY | {"lengths": [60]}),
        )
        basic = basic or record
        record["times_faster_than_basic"] = ratio(basic, record, "seconds_without_compiling")
        record["times_faster_with_compiling"] = ratio(basic, record, "seconds")
        save(out, {"part": "ratio", "variant": variant, **record})


def ratio(basic: dict[str, Any], record: dict[str, Any], key: str) -> float:
    """How many times less this record took than the basic one."""
    return round(float(basic[key] / record[key]), 1)


def part_growth(cache: Path, out: Path) -> None:
    """Seconds of the search, without compiling, against one size at a time."""
    base: dict[str, Any] = {"m": 512, "n": 100, "parties": 3, "candidates": 272}
    names = {"m": "M", "n": "N", "parties": "n", "candidates": "candidates"}
    sizes = {
        "m": (256, 512, 768, 1024),
        "n": (50, 100, 150, 200),
        "parties": (3, 4, 5),
        "candidates": (136, 272, 408, 544),
    }
    points: dict[str, list[dict[str, Any]]] = {}
    for axis, values in sizes.items():
        for value in values:
            _, record, _ = run(**(base | {axis: value}), cache=cache, n_shapelets=10, **SEARCH_ONLY)
            record["seconds"] = record["seconds_without_compiling"]
            line = {"part": "growth", "along": names[axis], "variant": "+dot+F", **record}
            points.setdefault(names[axis], []).append(line)
            save(out, line)
        print(linearity(points[names[axis]], names[axis]), flush=True)
    draw(points, out / "silo_growth.html")


def linearity(lines: list[dict[str, Any]], along: str) -> str:
    """The straight line through the points, and the part of the variance it explains."""
    x, y = (np.array([line[key] for line in lines], dtype=float) for key in (along, "seconds"))
    slope, start = np.polyfit(x, y, 1)
    rest = y - (start + slope * x)
    explained = 1.0 - rest.var() / y.var()
    return f"growth   seconds = {start:.2f} + {slope:.3g} * {along}, R^2 = {explained:.3f}"


def draw(points: dict[str, list[dict[str, Any]]], path: Path) -> None:
    """One page with a figure per size."""
    from tacit.guarantee import Unprotected
    from tacit.report.page import write_page
    from tacit.report.silo_charts import growth_figure

    guarantee = Unprotected(reason="synthetic series; only the cost of the protocol is shown")
    figures = [
        growth_figure(lines, along=along, guarantee=guarantee) for along, lines in points.items()
    ]
    write_page(path, title="FedST: growth of the search", guarantee=guarantee, blocks=figures)


def save(out: Path, record: dict[str, Any]) -> None:
    """Append one line and say the essentials."""
    record |= {"versions": {"tacit": VERSION, **running_versions()}, **machine()}
    out.mkdir(parents=True, exist_ok=True)
    with (out / "silo_speed.jsonl").open("a") as file:
        file.write(json.dumps(record) + "\n")
    sent = record["stage_bytes_sent_by_P0"]["search"] / 1e6
    print(
        f"{record['part']:8} {record['variant']:13} M={record['M']} N={record['N']} "
        f"n={record['n']} candidates={record['candidates']}: search {record['seconds']:.2f} s "
        f"({record['seconds_without_compiling']:.2f} s without compiling), "
        f"{sent:.1f} MB sent by P0 in {record['rounds']['search']} rounds; all parties "
        f"{[round(b / 1e6, 1) for b in record['bytes_sent_by_party']]} MB, rounds "
        f"{record['rounds']}, stages {record['stage_seconds']}, "
        f"{record['cpu_seconds']} CPU s; equal to plaintext "
        f"{record.get('equal_to_plaintext', '-')}, float64 {record.get('equal_to_float64', '-')}; "
        f"faster than basic {record.get('times_faster_than_basic', '-')}",
        flush=True,
    )


def machine() -> dict[str, Any]:
    """Commit, processor and cores."""
    head = subprocess.run(
        ["git", "describe", "--always", "--dirty"],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parent,
    )
    load = round(os.getloadavg()[0], 2)
    return {
        "commit": head.stdout.strip() or "unknown",
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, load {load}",
    }


def main() -> None:
    """Run the parts asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", choices=PARTS, action="append")
    parser.add_argument("--out", type=Path, default=Path("results/current"))
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as cache:
        for part in asked.part or PARTS:
            globals()[f"part_{part}"](Path(cache), asked.out)


if __name__ == "__main__":
    main()
