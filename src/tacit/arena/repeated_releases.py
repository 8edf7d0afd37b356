"""A sound release of the test series drawn many times, so that one lucky draw decides nothing."""

from __future__ import annotations

from typing import Any

import numpy as np

from tacit.arena.outcome import Outcome
from tacit.arrays import Codes
from tacit.data import Dataset
from tacit.local.release import SYMBOL_KINDS

SYMBOL_RELEASES = 50_000  # in all: drawing a symbol costs next to nothing


def measure_releases(classifier: Any, data: Dataset, *, draws: int) -> Outcome:
    """Fit once, then average the accuracy over at least `draws` releases of the test series.

    A symbol is drawn more often, so that chance moves its mean by less than a third of a point.
    Its details hold exact figures as well: `expected_accuracy` over the channel's noise, and of a
    label `hindsight`, that of the best channel for this classifier had the test labels been known;
    of a place `place_right`, how often the released place is the device's, and `table_right`, how
    often a label release with a public table from classes to places would name it.
    """
    classifier.fit(data.X_train, data.y_train)
    model = classifier.model_
    truth = np.searchsorted(classifier.classes_, data.y_test)
    summary = model.head.summarise(model.check_series(data.X_test))
    details = {**classifier.history_, **class_bounds(data, epsilon=classifier.epsilon)}
    if model.head.kind in SYMBOL_KINDS:
        draws = max(draws, SYMBOL_RELEASES // len(truth))
        figures = _label_figures if model.head.kind == "label" else _place_figures
        details |= figures(model.head, summary, truth)
    rates = [np.mean(model.decide(model.randomize(summary)) == truth) for _ in range(draws)]
    return Outcome(
        accuracy=float(np.mean(rates)),
        guarantee=classifier.guarantee_,
        details={**details, "draws": draws},
    )


def class_bounds(data: Dataset, *, epsilon: float | None) -> dict[str, float]:
    """What the most frequent training class reaches, and what no release of `epsilon` exceeds."""
    from tacit.local import accuracy_ceiling

    labels, counts = np.unique(data.y_train, return_counts=True)
    bounds = {"floor": float(np.mean(data.y_test == labels[counts.argmax()]))}
    if epsilon is not None:
        _, test_counts = np.unique(data.y_test, return_counts=True)
        shares = test_counts / test_counts.sum()
        bounds["ceiling"] = accuracy_ceiling(shares, epsilon=epsilon)
    return bounds


def _label_figures(head: Any, called: Codes, truth: Codes) -> dict[str, float]:
    from tacit.local.releases.channel import design_channel

    found = np.zeros(head.channel.shape)
    np.add.at(found, (called, truth), 1.0 / len(truth))
    best = design_channel(found, epsilon=head.epsilon)
    return {
        "clean_accuracy": float(np.mean(called == truth)),
        "expected_accuracy": float((head.channel * found).sum()),
        "hindsight": float((best * found).sum()),
    }


def _place_figures(head: Any, own: Codes, truth: Codes) -> dict[str, float]:
    rows = np.arange(len(own))
    sent = head.channel[own].reshape(len(own), -1, head.n_places)
    return {
        "clean_accuracy": float(np.mean(own // head.n_places == truth)),
        "expected_accuracy": float(sent[rows, truth].sum(axis=1).mean()),
        **head.rates(own),
    }
