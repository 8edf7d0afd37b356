"""One page about a trained `DPSoftShapeClassifier`: what leaves, what it is worth, its guarantee.

Published mode: the paper's Fig. 3 (scores and noise per patch), Fig. 4 (representations with and
without noise) and Fig. 5 (routing). Sound mode: the posterior over the places of a `place` release,
the public allocation of a `shapes` release, or the vectors before and after the noise. Both:
accuracy against epsilon under the ceiling.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tacit.guarantee import rounded_up
from tacit.report.charts import with_guarantee
from tacit.report.local_charts import (
    allocation_figure,
    budget_figure,
    latent_figure,
    places_figure,
    routing_figure,
)
from tacit.report.page import Table, Text, write_page

if TYPE_CHECKING:
    from tacit.data import Dataset
    from tacit.local.estimator import DPSoftShapeClassifier
    from tacit.local.softshape.published import TrainedSoftShape

_BUDGETS = (0.1, 0.5, 1.0, 2.0, 3.0, 5.0, 8.0)
_CEILING_NOTE = (
    "No release with this total epsilon can lie above the dashed line. A published curve above it "
    "shows that its nominal epsilon is no total."
)


def write_softshape_page(
    path: Path, *, classifier: DPSoftShapeClassifier, dataset: Dataset, accuracy: float
) -> Path:
    """Write the page of a fitted classifier and the data set it was tested on.

    Series and representations of the test part are drawn before the noise as well: the page is for
    whoever holds that data set, not for the server.
    """
    guarantee = classifier.guarantee_
    budgets = sorted({*_BUDGETS, classifier.epsilon})
    if classifier.published_ is not None:
        blocks = _published(classifier.published_, dataset, epsilon=classifier.epsilon)
        curve = _published_curve(classifier, dataset, budgets)
    else:
        blocks = _sound(classifier, dataset)
        curve = _sound_curve(classifier, dataset, budgets, accuracy)
    _, counts = np.unique(dataset.y_test, return_counts=True)
    figure = budget_figure(
        budgets,
        curve,
        ceiling=_ceiling(counts, budgets),
        floor=float(counts.max() / counts.sum()),
    )
    blocks += [Text(_CEILING_NOTE, heading="Accuracy against epsilon"), figure]
    said = f"{accuracy:.1%} of {len(dataset.y_test):,} test series get the right label."
    leaks = [[_words(key), f"{value:.4g}"] for key, value in (classifier.leakage_ or {}).items()]
    measured = [Table(["what a release reveals, measured", "value"], leaks)] if leaks else []
    return write_page(
        path,
        title=f"DP-SoftShape on {dataset.name}, {classifier.mode} mode",
        guarantee=guarantee,
        blocks=[
            Text(said),
            *measured,
            *(b if isinstance(b, Text) else with_guarantee(b, guarantee) for b in blocks),
        ],
    )


def _words(key: str) -> str:
    return key.replace("_", " ")


def _ceiling(counts: NDArray[Any], budgets: list[float]) -> list[float]:
    from tacit.local.releases.channel import accuracy_ceiling

    return [accuracy_ceiling(counts, epsilon=epsilon) for epsilon in budgets]


def _published(trained: TrainedSoftShape, dataset: Dataset, *, epsilon: float) -> list[Any]:
    from tacit.local.softshape.explain import explain

    series = dataset.X_test[0]
    found = explain(trained, series, epsilon=epsilon)
    kept = allocation_figure(
        series,
        patch_starts=found.patch_starts.tolist(),
        patch_length=found.patch_length,
        alpha=found.alpha,
        noise_scale=found.noise_scale,
    )
    clean = replace(trained, epsilon=None).traces(dataset.X_test)[0]
    latent = latent_figure(
        {"without noise": clean, "with noise": trained.traces(dataset.X_test)[0]},
        [str(label) for label in dataset.y_test],
    )
    blocks: list[Any] = [Text("", heading="The first test series"), kept]
    if found.routing is not None:
        centres = found.patch_centres.tolist()
        blocks.append(routing_figure(series, found.routing, patch_centres=centres))
    return [*blocks, Text("", heading="Representations"), latent]


def _published_curve(
    classifier: DPSoftShapeClassifier, dataset: Dataset, budgets: list[float]
) -> dict[str, list[float]]:
    """The one trained network with the noise of other nominal epsilons at test."""
    assert classifier.published_ is not None
    values = []
    for epsilon in budgets:
        scores = replace(classifier.published_, epsilon=epsilon).predict_scores(dataset.X_test)
        right = classifier.classes_[scores.argmax(axis=1)] == dataset.y_test
        values.append(float(right.mean()))
    return {f"trained at nominal epsilon {rounded_up(classifier.epsilon)}": values}


def _sound(classifier: DPSoftShapeClassifier, dataset: Dataset) -> list[Any]:
    from tacit.local.releases.place import PlaceHead
    from tacit.local.releases.shapes import ShapesHead
    from tacit.local.releases.vector import VectorHead

    assert classifier.model_ is not None
    head, series = classifier.model_.head, dataset.X_test[0]
    if isinstance(head, PlaceHead):
        sent = classifier.model_.randomize(head.summarise(dataset.X_test[:1]))
        where = head.places(sent.values)
        figure = places_figure(series, edges=where.edges.tolist(), probability=where.posterior[0])
        label = classifier.model_.labels(sent)[0]
        note = f"One release of the first test series; the server reads class {label}."
        return [Text(note, heading="What and where"), figure]
    if isinstance(head, ShapesHead):
        found = classifier.allocation()
        shares = found.epsilon.sum(axis=0) / found.epsilon.sum()
        figure = allocation_figure(
            series,
            patch_starts=found.starts.tolist(),
            patch_length=found.length,
            alpha=shares / shares.max(),
            noise_scale=_finite(found.noise_scale.min(axis=0)),
            title="The public allocation: the same for every series",
        )
        note = "Patches without a bar are not released at all."
        return [Text(note, heading="What is kept and what is blurred"), figure]
    if isinstance(head, VectorHead):
        summary = head.summarise(dataset.X_test)
        released = classifier.model_.randomize(summary).values
        vectors = latent_figure(
            {"before the noise (stays on the device)": summary, "released": released},
            [str(label) for label in dataset.y_test],
        )
        return [Text("", heading="Vectors of the test series"), vectors]
    used = int(np.count_nonzero(head.channel.max(axis=0)))
    return [Text(f"Each device sends one symbol, which is one of {used} noised labels.")]


def _finite(scale: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.where(np.isfinite(scale), scale, np.nan)


def _sound_curve(
    classifier: DPSoftShapeClassifier, dataset: Dataset, budgets: list[float], accuracy: float
) -> dict[str, list[float]]:
    """Label: the exact expectation with a channel for each budget; others: what was measured."""
    from tacit.local.releases.channel import design_channel
    from tacit.local.releases.label import LabelHead

    assert classifier.model_ is not None
    head = classifier.model_.head
    if not isinstance(head, LabelHead):
        here = [accuracy if e == classifier.epsilon else float("nan") for e in budgets]
        return {f"{head.kind} release": here}
    own = head.summarise(dataset.X_test)
    codes = np.searchsorted(classifier.classes_, dataset.y_test)
    channels = [design_channel(head.gain, epsilon=epsilon) for epsilon in budgets]
    expected = [float(channel[own, codes].mean()) for channel in channels]
    clean = float(np.mean(own == codes))
    return {"label release, expected": expected, "before the noise": [clean] * len(budgets)}
