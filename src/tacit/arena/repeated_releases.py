"""A sound release of the test series drawn many times, so that one lucky draw decides nothing."""

from __future__ import annotations

from typing import Any

import numpy as np

from tacit.arena.outcome import Outcome
from tacit.arrays import Codes
from tacit.data import Dataset

LABEL_RELEASES = 50_000  # in all: drawing a label costs next to nothing


def measure_releases(classifier: Any, data: Dataset, *, draws: int) -> Outcome:
    """Fit once, then average the accuracy over at least `draws` releases of the test series.

    A label is drawn more often, so that chance moves its mean by less than a third of a point.
    Its details hold two exact figures as well: `expected_accuracy` over the channel's noise, and
    `hindsight`, that of the best channel for this classifier had the test labels been known.
    """
    classifier.fit(data.X_train, data.y_train)
    model = classifier.model_
    truth = np.searchsorted(classifier.classes_, data.y_test)
    summary = model.head.summarise(model.check_series(data.X_test))
    details = {**classifier.history_, **class_bounds(data, epsilon=classifier.epsilon)}
    if model.head.kind == "label":
        draws = max(draws, LABEL_RELEASES // len(truth))
        details |= _exact_figures(model.head, summary, truth)
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


def _exact_figures(head: Any, called: Codes, truth: Codes) -> dict[str, float]:
    from tacit.local.releases.channel import design_channel

    found = np.zeros(head.channel.shape)
    np.add.at(found, (called, truth), 1.0 / len(truth))
    best = design_channel(found, epsilon=head.epsilon)
    return {
        "clean_accuracy": float(np.mean(called == truth)),
        "expected_accuracy": float((head.channel * found).sum()),
        "hindsight": float((best * found).sum()),
    }
