"""The section on FedST: who may use whose series, and what that costs on real processes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tacit.arena.paper import FEDST_F_BELOW_IG
from tacit.arena.statistics import grid
from tacit.report.arena_tables import (
    Record,
    Section,
    rank_figure,
    ranking,
    renamed,
    short_guarantee,
)
from tacit.report.charts import line_chart, scatter_chart
from tacit.report.comparison_charts import dot_chart
from tacit.report.page import Table, Text

_SCOPES = {
    "federated": "FedST",
    "global": "GlobalST",
    "local": "LocalST",
    "local-search": "LocalS+FedT",
    "local-transform": "FedS+LocalT",
}


def fedst_blocks(records: Sequence[Record]) -> Section:
    """Figures 4, 5, 7, 8 and 10 of FedST: scopes, qualities and time contracts over UCR sets."""
    twin = [r for r in records if r["task"]["options"].get("engine") == "twin"]
    secure = [r for r in records if r["task"]["options"].get("engine") != "twin"]
    said, blocks = _scope_blocks(twin) if twin else ([], [])
    more, pictures = _secure_blocks(secure) if secure else ([], [])
    return [*said, *more], [*blocks, *pictures]


def _scope_blocks(records: Sequence[Record]) -> Section:
    named = [renamed(record, _fedst_name(record)) for record in records]
    table = grid(named)
    means = dict(zip(table.methods, table.accuracy.mean(axis=0), strict=True))
    blocks: list[Any] = [
        Text(
            f"{len(table.data)} UCR sets, three owners, equal settings for all methods. Accuracies "
            "come from the plaintext twin of the federation, which gives its model up to rounding.",
            "FedST, Figures 4, 5 and 8: who may use whose series",
        ),
        ranking(table),
    ]
    if "FedST-F" in table.methods and len(table.methods) > 1:
        blocks.append(_pairs(table))
    if len(table.methods) > 2 and len(table.data) > 2:
        blocks.append(rank_figure(table, "Fig. 5 and 8: average ranks of the scopes"))
    return _fedst_sentences(means, len(table.data)), blocks


def _secure_blocks(records: Sequence[Record]) -> Section:
    """Figures 7 and 10: what the two qualities and a time contract cost on real processes."""
    times: dict[str, dict[str, float]] = {}
    contracts: dict[str, dict[float, Record]] = {}
    rows = []
    for record in records:
        task, details = record["task"], record["details"]
        options, seconds = task["options"], details.get("search_seconds")
        if seconds is None:
            continue
        contract, quality = options.get("time_contract"), options.get("quality", "f").upper()
        rows.append(
            (
                task["data"],
                quality,
                "-" if contract is None else f"{contract:g} s",
                f"{record['accuracy']:.3f}",
                f"{seconds:.1f}",
                details.get("n_examined", "-"),
                f"{details.get('bytes_sent', 0) / 1e6:.0f} MB",
                short_guarantee(record),
            )
        )
        if contract is None:
            times.setdefault(task["data"], {})[quality] = seconds
        else:
            contracts.setdefault(task["data"], {})[contract] = record
    columns = (
        "set", "quality", "time contract", "accuracy", "search, s", "candidates", "sent by P0",
        "guarantee",
    )  # fmt: skip
    blocks: list[Any] = [
        Text(
            "Three processes of one machine, secret shares over TLS; seconds include whatever "
            "else that machine did. A time contract bounds the examination of candidates; sharing, "
            "compiling and ranking come on top.",
            "FedST, Figures 7 and 10: time on real processes",
        ),
        Table(columns, sorted(rows)),
    ]
    if times:
        title = "Fig. 7: seconds of the federated search by quality measure"
        blocks.append(dot_chart(title, times, x="seconds"))
    blocks += _contract_figures(contracts)
    return _quality_sentence(times), blocks


def _contract_figures(contracts: dict[str, dict[float, Record]]) -> list[Any]:
    if not contracts:
        return []
    accuracy = {
        name: [(contract, found[contract]["accuracy"]) for contract in sorted(found)]
        for name, found in contracts.items()
    }
    seconds = {
        name: [(c, found[c]["details"]["search_seconds"]) for c in sorted(found)]
        for name, found in contracts.items()
    }
    marks = sorted({contract for found in contracts.values() for contract in found})
    seconds["the contract"] = [(contract, contract) for contract in marks]
    x = "time contract, seconds"
    return [
        line_chart("Fig. 10: accuracy under a time contract", accuracy, x=x, y="test accuracy"),
        line_chart("Fig. 10: seconds of the whole search under it", seconds, x=x, y="seconds"),
    ]


def _quality_sentence(times: dict[str, dict[str, float]]) -> list[str]:
    ratios = [found["IG"] / found["F"] for found in times.values() if {"IG", "F"} <= found.keys()]
    if not ratios:
        return []
    return [
        f"The search with F is {np.mean(ratios):.1f} times as fast as with information gain on "
        f"{len(ratios)} sets, {min(ratios):.1f} to {max(ratios):.1f} (paper: 1.79 on average, 1.04 "
        "to 8.31 on 97 sets)."
    ]


def _fedst_name(record: Record) -> str:
    options = record["task"]["options"]
    scope = _SCOPES.get(options.get("scope", "federated"), "FedST")
    return f"{scope}-{options.get('quality', 'f').upper()}"


def _pairs(table: Any) -> Any:
    fed = table.accuracy[:, table.methods.index("FedST-F")]
    clouds = {
        method: list(zip(table.accuracy[:, i].tolist(), fed.tolist(), table.data, strict=True))
        for i, method in enumerate(table.methods)
        if method != "FedST-F"
    }
    title = "Fig. 4: FedST against each other scope, one dot per data set"
    return scatter_chart(
        title, clouds, x="accuracy of the other", y="accuracy of FedST-F", diagonal=True
    )


def _fedst_sentences(means: dict[str, float], n_sets: int) -> list[str]:
    if "FedST-F" not in means:
        return []
    others = [
        f"{other} {means['FedST-F'] - means[other]:+.4f}"
        for other in ("GlobalST-F", "LocalST-F", "LocalS+FedT-F", "FedS+LocalT-F")
        if other in means
    ]
    said = [f"FedST on {n_sets} sets, mean accuracy minus that of {', '.join(others)}."]
    if "FedST-IG" in means:
        said.append(
            f"F instead of information gain: {means['FedST-F'] - means['FedST-IG']:+.4f} "
            f"(paper {-FEDST_F_BELOW_IG:+.3f} on 97 sets)."
        )
    return said
