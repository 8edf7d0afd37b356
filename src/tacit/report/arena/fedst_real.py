"""FedST on real processes: secure runs beside their twins, search times, contracts of time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tacit.arena.silo.names import method_name, secure_pairs, shared_shapelets
from tacit.report.arena.tables import Record, Section, short_guarantee
from tacit.report.charts import line_chart
from tacit.report.comparison_charts import dot_chart
from tacit.report.page import Table, Text


def secure_blocks(records: Sequence[Record]) -> Section:
    """Equal to the twin or not, and Fig. 7: what the search takes with each quality."""
    pairs = secure_pairs(records)
    rows = [_pair_row(*pair) for pair in pairs]
    columns = (
        "set", "method", "accuracy", "its twin", "shapelets in common", "all predictions equal",
        "search, s", "sent by P0", "guarantee",
    )  # fmt: skip
    blocks: list[Any] = [
        Text(
            "Three processes of one machine, secret shares over TLS, each beside its plaintext "
            "twin with the same seed: the same split, candidates and public choices. With F, a "
            "ridge classifier or a forest, all is exact. Information gain has logarithms that the "
            "engine approximates, so candidates of nearly equal gain may change places. Seconds "
            "of the search are without compiling and include whatever else the machine did.",
            "FedST on real processes: equal to the twin, and Figure 7",
        ),
        Table(columns, sorted(rows)),
    ]
    times = _times(pairs)
    if times:
        title = "Fig. 7: seconds of the federated search by quality measure"
        blocks.append(dot_chart(title, times, x="seconds"))
    alike = sum(secure["accuracy"] == twin["accuracy"] for secure, twin in pairs)
    said = [f"{alike} of {len(pairs)} secure accuracies equal those of their twins."]
    return [*said, *_quality_sentence(times)], blocks


def _pair_row(secure: Record, twin: Record) -> tuple[Any, ...]:
    details, other = secure["details"], twin["details"]
    common, n_chosen = shared_shapelets(secure, twin)
    return (
        secure["task"]["data"],
        method_name(secure["task"]["options"]),
        f"{secure['accuracy']:.4f}",
        f"{twin['accuracy']:.4f}",
        f"{common} of {n_chosen}",
        "yes" if details["predictions"] == other["predictions"] else "no",
        _seconds(details),
        f"{details['bytes_sent'] / 1e6:.0f} MB",
        short_guarantee(secure),
    )


def _seconds(details: dict[str, Any]) -> str:
    seconds = details.get("search_seconds_without_compiling")
    return "-" if seconds is None else f"{seconds:.1f}"


def _times(pairs: Sequence[tuple[Record, Record]]) -> dict[str, dict[str, float]]:
    """Seconds of the federated search with a forest, by set and quality."""
    times: dict[str, dict[str, float]] = {}
    for secure, _ in pairs:
        options = secure["task"]["options"]
        if (options["scope"], options["classifier"]) == ("federated", "forest"):
            found = times.setdefault(secure["task"]["data"], {})
            found[options["quality"].upper()] = secure["details"][
                "search_seconds_without_compiling"
            ]
    return times


def _quality_sentence(times: dict[str, dict[str, float]]) -> list[str]:
    ratios = [found["IG"] / found["F"] for found in times.values() if {"IG", "F"} <= found.keys()]
    if not ratios:
        return []
    return [
        f"The search with F is {np.mean(ratios):.1f} times as fast as with information gain on "
        f"{len(ratios)} sets, {min(ratios):.1f} to {max(ratios):.1f} (paper: 1.79 on average, 1.04 "
        "to 8.31 on 97 sets)."
    ]


def contract_blocks(records: Sequence[Record]) -> Section:
    """Fig. 10: real time and accuracy against contracts of 10 to 90 % of the full time."""
    found = {record["task"]["data"]: record["details"] for record in records}
    real = {
        name: [(c["contract"], c["real_seconds"]) for c in details["contracts"]]
        for name, details in found.items()
    }
    marks = sorted(x for points in real.values() for x, _ in points)
    real["the contract"] = [(x, x) for x in (marks[0], marks[-1])]
    accuracy = {
        name: [(c["share"], c["accuracy"]) for c in details["contracts"]]
        for name, details in found.items()
    }
    every = [contract for details in found.values() for contract in details["contracts"]]
    kept = sum(contract["kept"] for contract in every)
    off = [abs(c["real_seconds"] - c["contract"]) / c["contract"] for c in every]
    x, y = "contract, seconds", "real seconds of the search"
    blocks: list[Any] = [
        Text(
            "Real processes. The full search is timed first; each contract is a share of it, "
            "counted from the first share to the opened indices, with sharing and ranking. "
            f"{_without(records)}",
            "FedST, Figure 10: contracts of time",
        ),
        line_chart("Fig. 10: real time against the contract", real, x=x, y=y),
        Table(
            (
                "set",
                "full search, s",
                "again, s",
                "contracts kept",
                "candidates at 10 %",
                "at 90 %",
            ),
            [_contract_row(name, details) for name, details in sorted(found.items())],
        ),
        line_chart(
            "Fig. 10: accuracy under a time contract",
            accuracy,
            x="contract, as a share of the full time",
            y="test accuracy",
        ),
    ]
    said = [
        f"{kept} of {len(every)} searches on {len(found)} sets ended within 10 % or one batch of "
        f"their contract; the real time is {np.median(off):.0%} off at the median."
    ]
    return said, blocks


def _without(records: Sequence[Record]) -> str:
    """Which sets come from lines that have no guarantee object."""
    found = {r["task"]["data"]: r["guarantee"] is None for r in records}
    names = sorted(name for name, without in found.items() if without)
    if not names:
        return ""
    return (
        f"{', '.join(names)}: recorded before this was a suite, without the guarantee object of "
        "the run, which is secret sharing among three owners as below."
    )


def _contract_row(name: str, details: dict[str, Any]) -> tuple[Any, ...]:
    contracts = details["contracts"]
    return (
        name,
        f"{details['full']['real_seconds']:.1f}",
        f"{details['again']['real_seconds']:.1f}",
        f"{sum(contract['kept'] for contract in contracts)} of {len(contracts)}",
        contracts[0]["n_examined"],
        contracts[-1]["n_examined"],
    )
