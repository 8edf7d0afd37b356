"""Why a series gets its class: which shapelets drove the decision, and where they match."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats, Integers
from tacit.errors import check_at_least
from tacit.silo.fedst.candidates import encode
from tacit.silo.fedst.classifiers.forest import Forest
from tacit.silo.fedst.classifiers.linear import Logistic
from tacit.silo.fedst.classifiers.ridge import Ridge
from tacit.silo.model import ShapeletModel


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """One feature over the series explained: a shapelet, an interval or a word.

    `influence` is its share of the decision, all features together 1. `distance` and the class
    distances are Eq. 1, in squared units of the compared series, or the value of the statistic or
    word; the latter are means over P0's own series of each class. Of an interval or word, `values`
    are those of the series explained where it lies, `series` is -1 and `start` is `position`.
    """

    shapelet: int
    influence: float
    position: int
    distance: float
    values: Floats
    series: int
    start: int
    class_distances: dict[str, float]
    channel: int = 0
    kind: str = "shapelet"
    description: str = ""

    @property
    def place(self) -> str:
        """The first step of the feature in the series explained, or that it is not there."""
        return str(self.position) if self.position >= 0 else "nowhere"


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """The decision for one series (channels, N), its probabilities, and what is behind it.

    `compared` is the series as shapelets are compared with it: normalised, if the settings say so.
    """

    prediction: str
    probabilities: dict[str, float]
    matches: tuple[Match, ...]
    series: Floats
    compared: Floats

    def _repr_html_(self) -> str:
        """For notebooks: the class, and a row per feature that decided it."""
        known = ", ".join(f"{name}: {p:.0%}" for name, p in self.probabilities.items())
        rows = "".join(
            f"<tr><td>{match.kind} {match.shapelet + 1}</td>"
            f"<td>{html.escape(match.description)}</td>"
            f"<td>{match.influence:.1%}</td><td>{match.place}</td></tr>"
            for match in self.matches
        )
        head = "<tr><th>feature</th><th>what it is</th><th>share</th><th>lies at</th></tr>"
        return (
            f"<b>{html.escape(self.prediction)}</b> ({html.escape(known)})"
            f"<table>{head}{rows}</table>"
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


def explain(
    model: ShapeletModel,
    x: Floats,
    *,
    classes: Sequence[str],
    own_features: Integers,
    own_codes: NDArray[np.intp],
    n_shapelets: int,
) -> Explanation:
    """Explain one series (channels, N) with the `n_shapelets` most influential shapelets."""
    check_at_least(n_shapelets, 1, name="n_shapelets")
    features = model.features(x[None])
    probabilities = model.probabilities(x[None])[0]
    winner = int(probabilities.argmax())
    shares = influence(model.classifier, features, winner)
    position, distance = model.matches(x)
    means_of = model.natural(own_features)
    encoded = encode(x[None], model.encoding)[0]
    matches = []
    for k in np.argsort(-shares, kind="stable")[:n_shapelets]:
        means = {
            label: float(means_of[k, own_codes == c].mean())
            for c, label in enumerate(classes)
            if (own_codes == c).any()
        }
        if model.items[k] < 0:
            cut = model.shapelet(int(k))
            values, series, start = cut.values, cut.series, cut.start
        else:
            start, values = model.public.place(int(model.items[k]), encoded)
            series = -1
        matches.append(
            Match(
                shapelet=int(k),
                influence=float(shares[k]),
                position=int(position[k]),
                distance=float(distance[k]),
                values=values,
                series=series,
                start=start,
                class_distances=means,
                channel=model.channel_of(int(k)),
                kind=model.kind(int(k)),
                description=model.description(int(k)),
            )
        )
    return Explanation(
        prediction=classes[winner],
        probabilities=dict(zip(classes, map(float, probabilities), strict=True)),
        matches=tuple(matches),
        series=x,
        compared=encoded / 2.0**model.encoding.fraction_bits,
    )


def influence(classifier: Forest | Logistic | Ridge, features: Integers, winner: int) -> Floats:
    """Each shapelet's share of the decision for `winner`, for one column of features (K, 1).

    Forest: how often it was tested on the paths of the trees that voted for the winner. Ridge and
    logistic: the absolute contribution to the winner's score against the mean of all classes.
    """
    if isinstance(classifier, Forest):
        raw = _tests_on_paths(classifier, features, winner)
    else:
        weights = classifier.weights - classifier.weights.mean(axis=1, keepdims=True)
        raw = np.abs(classifier.standard.apply(features)[0] * weights[:, winner])
    total = raw.sum()
    return raw / total if total > 0 else np.full(len(raw), 1.0 / len(raw))


def _tests_on_paths(forest: Forest, features: Integers, winner: int) -> Floats:
    counts = np.zeros(features.shape[0])
    trees = np.arange(len(forest.labels))
    leaf = forest.leaves(features)[:, 0]
    voted = forest.labels[trees, leaf] == winner
    depth = len(forest.features)
    for level, which in enumerate(forest.features):
        node = leaf >> (depth - level)
        np.add.at(counts, which[trees, node][voted], 1.0)
    return counts
