"""How often the intervals of a prevalence hold the true share: the table of docs/guide/local.md.

    python benchmarks/local_coverage.py [--draws 2000] [--every] [--out FILE]

Two classes (ItalyPowerDemand, k-ary randomised response at epsilon 2): the coverage over all
outcomes of n releases, the worst of 21 shares, and two intervals. Three classes (ArrowHead at
epsilon 1): counts are drawn from a population with stated shares as often as asked, and the worst
class is told; classes err as the model says. With --every also label and place releases with both
channels, for shares of device labels and of true classes. Prints one JSON line for each.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from itertools import chain, product
from pathlib import Path
from typing import Any, Literal

import numpy as np
from scipy import stats

from tacit.arena.record import commit, versions
from tacit.arrays import Floats
from tacit.data import load_dataset
from tacit.local.estimator import DPSoftShapeClassifier
from tacit.local.model import LocalModel
from tacit.local.prevalence import Target, prevalence_of_counts
from tacit.local.releases.channel import ChannelKind
from tacit.local.releases.channel_head import ChannelHead
from tacit.local.releases.place import PlaceHead

SHARES = np.array([0.6, 0.3, 0.1])
SIZES = (1, 5, 50, 600, 10**6)
LEVEL = 0.95
Release = Literal["label", "place"]
NEARLY = 1e-12  # shares at the end of the range meet limits there


def expected_symbols(head: ChannelHead, of: Target) -> Floats:
    """P(symbol) in a population whose device labels, or true classes, have the stated shares."""
    labels = SHARES
    if of == "classes":
        labels = (head.gain / head.gain.sum(axis=0)) @ SHARES
    if isinstance(head, PlaceHead):
        labels = (labels[:, None] * head.place_shares).ravel()
    return np.asarray(labels @ head.channel)


def coverage(model: LocalModel, *, n: int, of: Target, draws: int) -> Floats:
    assert isinstance(model.head, ChannelHead)
    symbols = expected_symbols(model.head, of)
    counts = np.random.default_rng(n).multinomial(n, symbols / symbols.sum(), size=draws)
    distinct, times = np.unique(counts, axis=0, return_counts=True)
    hits = np.zeros(len(SHARES))
    for row, often in zip(distinct, times, strict=True):
        found = prevalence_of_counts(model, row, of=of, level=LEVEL)
        hits += often * ((found.low - NEARLY <= SHARES) & (found.high + NEARLY >= SHARES))
    return np.asarray(hits / draws)


def covering(model: LocalModel, *, n: int, share: float) -> tuple[int, int]:
    """The hits of class 0 whose interval holds the share: from the first to before the second."""

    def first(side: int) -> int:
        below, above = -1, n + 1  # limits rise with the hits
        while above - below > 1:
            middle = (below + above) // 2
            found = prevalence_of_counts(model, np.array([middle, n - middle]), level=LEVEL)
            if int(found.low[0] > share) - int(found.high[0] < share) >= side:
                above = middle
            else:
                below = middle
        return above

    return first(0), first(1)


def exact_coverage(model: LocalModel, *, n: int, share: float) -> float:
    assert isinstance(model.head, ChannelHead)
    off, on = float(model.head.channel[1, 0]), float(model.head.channel[0, 0])
    law = stats.binom(n, share * on + (1.0 - share) * off)
    start, stop = covering(model, n=n, share=share)
    return float(law.cdf(stop - 1) - law.cdf(start - 1))


def two_classes() -> Iterator[dict[str, Any]]:
    model = model_for("ItalyPowerDemand", 2.0, "label", "krr")
    assert isinstance(model.head, ChannelHead)
    off, on = float(model.head.channel[1, 0]), float(model.head.channel[0, 0])
    for n in SIZES:
        shares = np.linspace(0.0, 1.0, 21)
        hits = round(n * (0.3 * on + 0.7 * off))
        some, none = (
            prevalence_of_counts(model, np.array([count, n - count]), level=LEVEL)
            for count in (hits, 0)
        )
        yield {
            "classes": 2, "epsilon": 2.0, "n": n, "level": LEVEL,
            "worst": min(exact_coverage(model, n=n, share=float(share)) for share in shares),
            "interval_of_a_share_of_.3": [float(some.low[0]), float(some.high[0])],
            "interval_without_a_hit": [float(none.low[0]), float(none.high[0])],
        }  # fmt: skip


def model_for(data: str, epsilon: float, release: Release, channel: ChannelKind) -> LocalModel:
    found = load_dataset(data)
    made: Any = DPSoftShapeClassifier(epsilon, release=release, channel=channel, random_state=0)
    model: LocalModel = made.fit(found.X_train, found.y_train).model_
    return model


def three_classes(draws: int, *, every: bool) -> Iterator[dict[str, Any]]:
    releases: tuple[Release, ...] = ("label", "place") if every else ("label",)
    channels: tuple[ChannelKind, ...] = ("krr", "optimal") if every else ("krr",)
    targets: tuple[Target, ...] = ("device_labels", "classes") if every else ("classes",)
    for release, channel in product(releases, channels):
        model = model_for("ArrowHead", 1.0, release, channel)
        for of, n in product(targets, SIZES):
            held = coverage(model, n=n, of=of, draws=draws)
            yield {
                "classes": 3, "epsilon": 1.0, "release": release, "channel": channel, "of": of,
                "n": n, "draws": draws, "level": LEVEL, "coverage": held.round(4).tolist(),
                "worst": float(held.min()),
            }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--draws", type=int, default=2000)
    parser.add_argument("--every", action="store_true", help="all releases, channels and shares")
    parser.add_argument("--out", type=Path, help="append the lines to this file")
    options = parser.parse_args()
    for line in chain(two_classes(), three_classes(options.draws, every=options.every)):
        text = json.dumps({**line, "commit": commit(), "versions": versions()})
        print(text, flush=True)
        if options.out is not None:
            with options.out.open("a") as file:
                file.write(text + "\n")


if __name__ == "__main__":
    main()
