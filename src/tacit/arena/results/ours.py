"""What is ours and beyond the papers: releases and fleets with a guarantee, and faster searches."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from tacit.arena.results.fedst import DEFAULTS, N_SETS, contracts, method_means
from tacit.arena.results.tables import (
    Record,
    Results,
    accuracies,
    below_own_fedavg,
    over_sets,
    table,
)
from tacit.arena.silo.names import secure_pairs
from tacit.arena.silo.suites import DEFAULT, SECURE_SETS
from tacit.arena.softshape.suites import SOFTSHAPE_SETS

OurRow = tuple[str, str, str, str]


def ours(results: Results) -> str:
    """One row for each thing that was measured."""
    rows = [*_labels(results), *_fleets(results), *_silo(results)]
    return table(("what", "promise", "measured", "command"), rows)


def _labels(results: Results) -> Iterable[OurRow]:
    for release in ("label", "place"):
        mine = [
            record
            for record in results.suite("softshape-sound")
            if record["task"]["method"] == f"softshape-{release}"
        ]
        parts = []
        for epsilon in sorted({r["task"]["epsilon"] for r in mine}):
            here = [r for r in mine if r["task"]["epsilon"] == epsilon]
            most = over_sets((r["task"]["data"], r["details"]["ceiling"]) for r in here)
            parts.append(f"{over_sets(accuracies(here)):.3f} of {most:.3f} at {epsilon:g}")
        if parts:
            sets = len({r["task"]["data"] for r in mine})
            yield (
                f"a device releases a {release}",
                "epsilon in total per series",
                f"accuracy, of what no method can exceed: {', '.join(parts)} ({sets} of "
                f"{len(SOFTSHAPE_SETS)} sets)",
                "`tacit arena run softshape-sound --out DIR`",
            )


def _fleets(results: Results) -> Iterable[OurRow]:
    for split, clients in (("iid", 100), ("iid", 1000), ("subject", 100), ("subject", 1000)):
        mine = [r for r in results.suite("fleet-sound") if _is_fleet(r, split, clients)]
        parts = []
        for mechanism in ("privunit", "distributed"):
            gaps = [
                below_own_fedavg(r) for r in mine if r["task"]["options"]["mechanism"] == mechanism
            ]
            if gaps:
                parts.append(f"{mechanism} {np.mean(gaps):.3f}")
        if parts:
            yield (
                f"a fleet of {clients}, UCIHAR, {split}",
                "(8, 1e-5) in total per client",
                f"below FedAvg: {', '.join(parts)}",
                "`tacit arena run fleet-sound --out DIR`",
            )


def _is_fleet(record: Record, split: str, clients: int) -> bool:
    options = record["task"]["options"]
    return (record["task"]["data"], options["split"], options["n_clients"]) == (
        "UCIHAR",
        split,
        clients,
    )


def _silo(results: Results) -> Iterable[OurRow]:
    found = method_means(results.suite("fedst"), DEFAULTS)
    if found.of:
        fed, pooled, alone = (found.of[name] for name in DEFAULTS[:3])
        yield (
            "three owners, F and ridge",
            "secret sharing, two of three must not collude",
            f"{fed - alone:+.3f} against one owner alone, {fed - pooled:+.3f} against pooling "
            f"({found.n_sets} of {N_SETS} sets)",
            "`tacit arena run fedst --out DIR`",
        )
    pairs = [
        pair
        for pair in secure_pairs(results.suite("fedst-secure"))
        if DEFAULT.items() <= pair[0]["task"]["options"].items()
    ]
    if pairs:
        equal = sum(a["details"]["predictions"] == b["details"]["predictions"] for a, b in pairs)
        yield (
            "the secure run is its plaintext twin",
            "the same",
            f"all predictions equal on {equal} of {len(pairs)} sets run, of {len(SECURE_SETS)}",
            "`tacit arena run fedst-secure --out DIR`",
        )
    lines = [line for found in contracts(results).values() for line in found]
    if lines:
        yield (
            "contracts of time with sharing and ranking",
            "the same",
            f"{sum(line['kept'] for line in lines)} of {len(lines)} kept",
            "`tacit arena run fedst-contract --out DIR`",
        )
