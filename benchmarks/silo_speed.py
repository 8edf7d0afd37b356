"""Speed of the secure search on real processes: seconds, bytes and messages, measured in one run.

    python benchmarks/silo_speed.py [--part PART ...] [--out results/current]

ridge: the default fit and a small federation with the default classifier. size: growth to 8192
series. default: the paper's default (M=512, N=100, n=3, 500 candidates, K=200, mean length 0.6 N)
with the F-statistic and each classifier. gain: the same search with sorting-based information gain.
ratio: every variant of the paper's Fig. 6 on the same 40 candidates of length 0.6 N, once each;
compared is the search without the time that compiling takes, because a program is compiled once and
its share would depend on how many candidates are examined (both times are recorded). basic: the
basic protocol and ours on the same 8 candidates at M = 512, 1024 and 2048, in processor seconds of
all parties, compiling counted, with and without what a run takes to start (one with six series and
one candidate); ours and the start are means of five runs. many: ours on 500 candidates, from which
the cost of one follows. large: the basic protocol on 1 candidate at M = 4096, the most that its
gains take, and ours on 500 candidates at 4096 and 8192, once each. most: 50,000 series on 20
and on 500 candidates, and with all kinds of features, equal to plaintext or not, and the largest
process. growth: seconds without compiling
against M, N, n and candidates, with a page of figures. All parties share this machine's cores.
Bytes are those that P0 sends; rounds are the longest chain of messages over the parties. equal: the
basic protocol and ours on the same 64 candidates at M = 2048, in processor seconds with and without
what a run takes to start; half an hour. What ratio, growth, most and equal have recorded at this
commit is not measured again, so they may be stopped anywhere.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import tempfile
from collections.abc import Callable, Mapping
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

PARTS = ("ridge", "size", "default", "gain", "ratio", "basic", "many", "large", "most", "growth")
LONG_PARTS = ("equal",)  # only where they are asked for
EQUAL_CANDIDATES = 64
BASIC_CANDIDATES = 8
SIZES = (512, 1024, 2048)
REPEATS = 5  # of runs so short that what a start takes would hide them
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
        "stage_bytes_sent_by_party": [receipt.info["bytes"] for receipt in outcome.receipts],
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
    drawn = draw_candidates(encode(inputs[0].X, public.encoding), public.batches, rng=rng)
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
        record["largest_process_mb"] = largest_process()
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
        if found := recorded(out, part="ratio", variant=variant):
            basic = basic or found
            continue
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


def part_basic(cache: Path, out: Path) -> None:
    """Ours against the basic protocol at growing M, in processor seconds."""
    few = _few(cache)
    idle = several(m=6, candidates=1, **few)
    save(out, {"part": "basic", "variant": "+dot+F", "state": "start alone", **idle})
    for m in SIZES:
        slow: dict[str, Any] = {}
        for variant in ("basic", "+dot+F"):
            again = run_once if variant == "basic" else several
            record = again(m=m, candidates=BASIC_CANDIDATES, **(few | VARIANTS[variant]))
            per_candidate(record, idle)
            slow = slow or record
            record["times_faster_than_basic"] = ratio(slow, record, "cpu_without_start")
            record["times_faster_with_start"] = ratio(slow, record, "cpu_seconds")
            save(out, {"part": "basic", "variant": variant, **record})


def part_many(cache: Path, out: Path) -> None:
    """Ours on so many candidates that one of them can be told from the start of a run."""
    few = _few(cache)
    idle = several(m=6, candidates=1, **few)
    save(out, {"part": "many", "variant": "+dot+F", "state": "start alone", **idle})
    for m in SIZES:
        record = several(m=m, candidates=500, **few)
        save(out, {"part": "many", "variant": "+dot+F", **per_candidate(record, idle)})


def part_large(cache: Path, out: Path) -> None:
    """Beyond SIZES, where the basic protocol takes minutes for a candidate; one run each."""
    few = _few(cache)
    idle = several(m=6, candidates=1, **few)
    save(out, {"part": "large", "variant": "+dot+F", "state": "start alone", **idle})
    # One candidate at a time: all pairs of 4096 series take the memory of four at 2048.
    for m, variant, candidates, size in (
        (4096, "+dot+F", 500, 4),
        (8192, "+dot+F", 500, 4),
        (4096, "basic", 1, 1),
    ):
        sizes = few | VARIANTS[variant] | {"batch_size": size}
        record = per_candidate(run_once(m=m, candidates=candidates, **sizes), idle)
        record["largest_process_mb"] = largest_process()
        save(out, {"part": "large", "variant": variant, **record})


def part_most(cache: Path, out: Path) -> None:
    """More series than most federations have: exact, and in how much memory."""
    for state, candidates, features in (
        ("few candidates", 20, "shapelets"),
        ("all features", 20, "all"),
        ("500 candidates", 500, "shapelets"),
    ):
        if recorded(out, part="most", state=state):
            continue
        few = {"n_shapelets": 10, "lengths": [20, 35], "features": features}
        outcome, record, inputs = run(
            m=50_000, n=50, parties=3, candidates=candidates, cache=cache, **few
        )
        record["largest_process_mb"] = largest_process()
        twin = fit_pooled(settings_from(record["params"]), inputs, n_classes=2)
        record["equal_to_plaintext"] = all(
            np.array_equal(twin.arrays[name], outcome.arrays[name]) for name in twin.arrays
        )
        save(out, {"part": "most", "variant": "+dot+F", "state": state, **record})


def part_equal(cache: Path, out: Path) -> None:
    """Both protocols on the same candidates, with and without the time that a start takes."""
    few = _few(cache)
    alone = {"part": "equal", "variant": "+dot+F", "state": "start alone"}
    idle = recorded(out, **alone)
    if not idle:
        idle = several(m=6, candidates=1, **few)
        save(out, {**alone, **idle})
    slow: dict[str, Any] = {}
    for variant, again in (("basic", run_once), ("+dot+F", several)):
        if found := recorded(out, part="equal", variant=variant, state=None):
            slow = slow or found
            continue
        record = again(m=2048, candidates=EQUAL_CANDIDATES, **(few | VARIANTS[variant]))
        per_candidate(record, idle)
        slow = slow or record
        record["times_faster_than_basic"] = ratio(slow, record, "cpu_without_start")
        record["times_faster_with_start"] = ratio(slow, record, "cpu_seconds")
        save(out, {"part": "equal", "variant": variant, **record})


def largest_process() -> int:
    """Megabytes of the largest child process so far."""
    return round(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024)


def _few(cache: Path) -> dict[str, Any]:
    """What both protocols run: a search for one shapelet among candidates of one length."""
    # Small batches, because the basic protocol compares all pairs of series of a batch at once.
    alike = {"n_shapelets": 1, "lengths": [60], "batch_size": 4}
    return {"n": 100, "parties": 3, "cache": cache, **SEARCH_ONLY, **alike}


def per_candidate(record: dict[str, Any], idle: dict[str, Any]) -> dict[str, Any]:
    """Add what the record took beyond the start of a run, in all and for each candidate."""
    beyond = record["cpu_seconds"] - idle["cpu_seconds"]
    record["cpu_without_start"] = round(beyond, 2)
    record["cpu_per_candidate"] = round(beyond / record["candidates"], 4)
    return record


def run_once(**sizes: Any) -> dict[str, Any]:
    """The record of one run."""
    return run(**sizes)[1]


def several(**sizes: Any) -> dict[str, Any]:
    """The record of the last of some runs, with the mean of their processor seconds."""
    records = [run_once(**sizes) for _ in range(REPEATS)]
    spent = [record["cpu_seconds"] for record in records]
    return records[-1] | {"cpu_seconds": round(float(np.mean(spent)), 2), "cpu_of_runs": spent}


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
            sizes_here = {names[key]: size for key, size in (base | {axis: value}).items()}
            if found := recorded(out, part="growth", along=names[axis], **sizes_here):
                points.setdefault(names[axis], []).append(found)
                continue
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
    write_line(out / "silo_speed.jsonl", record)
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


def recorded(out: Path, **head: Any) -> dict[str, Any]:
    """The line with these values that the file holds of this commit; empty if there is none."""
    path, commit = out / "silo_speed.jsonl", machine()["commit"]
    found: dict[str, Any] = {}
    for text in path.read_text().splitlines() if path.exists() else []:
        line = json.loads(text)
        if line["commit"] == commit and all(line.get(key) == head[key] for key in head):
            found = line
    return found


def write_line(path: Path, record: dict[str, Any]) -> None:
    """Append one record to a file of lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write(json.dumps(record) + "\n")


def machine() -> dict[str, Any]:
    """Commit, processor and cores; a commit is dirty if package or scripts differ from it."""
    here = Path(__file__).parents[1]
    asked = (["describe", "--always"], ["status", "--porcelain", "--", "src", "benchmarks"])
    head, changed = (
        subprocess.run(["git", *what], capture_output=True, text=True, check=False, cwd=here)
        for what in asked
    )
    dirty = "-dirty" if changed.stdout.strip() else ""
    load = round(os.getloadavg()[0], 2)
    return {
        "commit": (head.stdout.strip() or "unknown") + dirty,
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, load {load}",
    }


def run_parts(
    parts: Mapping[str, Callable[..., None]], description: str | None, **numbers: int
) -> None:
    """Run the parts that the command line asks for, or all, with one cache of compiled programs.

    `numbers` are further options with their defaults, given to every part.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--part", choices=tuple(parts), action="append")
    parser.add_argument("--out", type=Path, default=Path("results/current"))
    for name, default in numbers.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    asked = parser.parse_args()
    more = {name: getattr(asked, name) for name in numbers}
    with tempfile.TemporaryDirectory() as cache:
        for part in asked.part or [part for part in parts if part not in LONG_PARTS]:
            parts[part](Path(cache), asked.out, **more)


if __name__ == "__main__":
    run_parts({part: globals()[f"part_{part}"] for part in (*PARTS, *LONG_PARTS)}, __doc__)
