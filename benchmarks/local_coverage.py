"""How often the intervals of a prevalence hold the true share, by channel and number of releases.

    python benchmarks/local_coverage.py [--draws 2000] [--out FILE]

Trains label and place releases at epsilon 2 on ArrowHead (three classes), with both channels,
draws the counts of n releases from a population with stated shares as often as asked, and counts
how often the interval of 95 % holds the share, for shares of device labels and of true classes.
Classes err, and labels have their places, as the model says. Prints one JSON line for each.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any, Literal

import numpy as np

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


def lines(draws: int) -> Iterator[dict[str, Any]]:
    data = load_dataset("ArrowHead")
    releases: tuple[Literal["label", "place"], ...] = ("label", "place")
    channels: tuple[ChannelKind, ...] = ("krr", "optimal")
    for release, channel in product(releases, channels):
        made: Any = DPSoftShapeClassifier(2.0, release=release, channel=channel, random_state=0)
        model = made.fit(data.X_train, data.y_train).model_
        targets: tuple[Target, ...] = ("device_labels", "classes")
        for of, n in product(targets, SIZES):
            held = coverage(model, n=n, of=of, draws=draws)
            yield {
                "release": release, "channel": channel, "of": of, "n": n, "draws": draws,
                "level": LEVEL, "coverage": held.round(4).tolist(), "worst": float(held.min()),
            }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--draws", type=int, default=2000)
    parser.add_argument("--out", type=Path, help="append the lines to this file")
    options = parser.parse_args()
    for line in lines(options.draws):
        text = json.dumps({**line, "commit": commit(), "versions": versions()})
        print(text, flush=True)
        if options.out is not None:
            with options.out.open("a") as file:
                file.write(text + "\n")


if __name__ == "__main__":
    main()
