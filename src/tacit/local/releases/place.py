"""The `place` release: the class of a series and where its evidence lies, as one randomised symbol.

The device classifies its series, then asks where the evidence lies: it replaces each quarter of the
series by the public mean of the training series and takes the quarter without which its own label
scores lowest. A second, small encoder does that, so that a device is done within milliseconds. The
pair (class, quarter) is one symbol, drawn from one channel: no budget is split. The server reads
the class and has a posterior over the quarters for a picture.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Codes, Floats, Floats32
from tacit.errors import TacitError
from tacit.local.encoding.body import Body, body_from_arrays
from tacit.local.encoding.lone_classes import is_measured
from tacit.local.encoding.random_kernels import Encoder, fit_encoder
from tacit.local.encoding.ridge import fit_ridge, left_out_influence
from tacit.local.release import Kind
from tacit.local.releases.channel import (
    ChannelKind,
    design_channel,
    label_gain,
    posterior_table,
)
from tacit.local.releases.channel_head import ChannelHead
from tacit.local.releases.confusion import class_shares, design_gain, with_class_shares
from tacit.local.releases.place_channel import (
    SLACK,
    check_pairs,
    design_place_channel,
    place_table,
)
from tacit.system.progress import Progress, silent

_MOST_PLACES = 4
# Small enough that all four encodings take less time than the one of the label.
_N_PROPORTIONS = 504
_N_GROUPS = 2
_SAME_LAW = 1e-9
_BATCH = 64  # series whose occluded copies are held at once


@dataclass(frozen=True, slots=True, eq=False)
class Places:
    """Where the evidence lies: place p is steps edges[p] to edges[p + 1]; posterior (n, places)."""

    edges: Codes
    posterior: Floats


@dataclass(frozen=True, slots=True, eq=False)
class PlaceHead(ChannelHead):
    """The symbol is a pair of label and place, randomised; the guarantee is `ChannelHead`'s.

    A locator on the device says where; the channel has a row for each pair, class by class.
    """

    kind: ClassVar[Kind] = "place"

    locator: Body
    fill: Floats32  # (channels, T): what an occluded quarter is replaced by
    place_shares: Floats  # (classes, places): shares of the places given the device label

    def _check_shapes(self) -> None:
        size, n_classes = self.place_shares.size, len(self.place_shares)
        if self.channel.shape != (size, size) or self.gain.shape != (n_classes, n_classes):
            raise TacitError(
                f"the channel has shape {self.channel.shape} and the confusion {self.gain.shape}, "
                f"for places of shape {self.place_shares.shape}; they do not fit, train again."
            )

    @property
    def n_places(self) -> int:
        """Number of parts that a series is cut into."""
        return int(self.place_shares.shape[1])

    def summarise(self, X: Floats) -> Codes:
        """The device's own pair of label and place, as one number: private, not yet randomised."""
        called = self.body.posterior(X).argmax(axis=1)
        starts = range(0, len(X), _BATCH)
        where = [self._deciding_places(X[a : a + _BATCH], called[a : a + _BATCH]) for a in starts]
        return np.asarray(called * self.n_places + np.concatenate(where))

    def decide(self, values: Codes) -> Codes:
        """The server's label: the class of the released pair."""
        return values // self.n_places

    def label_channel(self) -> Floats:
        """The channel from label to label, where places are as common as in training."""
        return np.asarray(np.einsum("kp,kpc->kc", self.place_shares, self._from_pairs()))

    def labels_alone_decide(self) -> bool:
        """Whether the decided label has the same law for all places of a device label: k-RR."""
        apart = np.ptp(self._from_pairs(), axis=1)
        return bool(apart.max() < _SAME_LAW)

    def posterior(self, values: Codes) -> Floats:
        """P(class | symbol) by Bayes' rule through channel, confusion, places and class shares."""
        joint = (self.gain[:, None, :] * self.place_shares[:, :, None]).reshape(
            len(self.channel), -1
        )
        return np.asarray(posterior_table(joint, self.channel)[values])

    def places(self, values: Codes) -> Places:
        """P(place | symbol) likewise, with the steps that each place covers."""
        pairs = self.gain.sum(axis=1)[:, None, None] * self.place_shares[:, :, None]
        joint = (pairs * np.eye(self.n_places)).reshape(len(self.channel), -1)
        posterior = np.asarray(posterior_table(joint, self.channel)[values])
        return Places(edges_of(self.fill.shape[1], self.n_places), posterior)

    def rates(self, own: Codes) -> dict[str, float]:
        """How often the place is right, for devices whose own pairs are `own`, over the noise.

        `place_right`: the released place is the device's. `table_right`: what the best public
        table from classes to places would reach with a label release.
        """
        called, where = own // self.n_places, own % self.n_places
        sent = self.channel[own].reshape(len(own), -1, self.n_places)
        label = design_channel(self.gain, epsilon=self.epsilon)
        table = place_table(self.gain, self.place_shares, label)
        named = label[called] * (table == where[:, None])
        return {
            "place_right": float(sent[np.arange(len(own)), :, where].sum(axis=1).mean()),
            "table_right": float(named.sum(axis=1).mean()),
        }

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Named arrays for a bundle."""
        names = ("fill", "channel", "gain", "place_shares")
        own: dict[str, NDArray[Any]] = {name: getattr(self, name) for name in names}
        located, _ = self.locator.arrays()
        return {**own, **{f"locator.{name}": array for name, array in located.items()}}

    def values(self) -> dict[str, Any]:
        """Plain values for a bundle."""
        return {"locator": self.locator.arrays()[1]}

    @classmethod
    def from_arrays(
        cls, body: Body, arrays: dict[str, NDArray[Any]], values: dict[str, Any], *, epsilon: float
    ) -> PlaceHead:
        """Rebuild what `arrays` and `values` described."""
        prefix = "locator."
        located = {
            name.removeprefix(prefix): array
            for name, array in arrays.items()
            if name.startswith(prefix)
        }
        return cls(
            body,
            arrays["channel"],
            arrays["gain"],
            epsilon,
            body_from_arrays(located, values["locator"]),
            arrays["fill"],
            arrays["place_shares"],
        )

    def _from_pairs(self) -> Floats:
        """P(decided label | device label, place)."""
        n_classes, n_places = self.place_shares.shape
        released = self.channel.reshape(n_classes, n_places, n_classes, n_places)
        return np.asarray(released.sum(axis=3))

    def _deciding_places(self, X: Floats, called: Codes) -> Codes:
        edges = edges_of(X.shape[2], self.n_places)
        hidden = np.concatenate([occluded(X, self.fill, edges, p) for p in range(self.n_places)])
        features = self.locator.encoder.encode(hidden).reshape(self.n_places, len(X), -1)
        weights = self.locator.classifier.weights[:, called].T
        return np.asarray(np.einsum("pnm,nm->np", features, weights).argmin(axis=1))


def edges_of(n_timepoints: int, n_places: int) -> Codes:
    """First steps of the places, and the end of the series."""
    return np.linspace(0, n_timepoints, n_places + 1).round().astype(np.intp)


def occluded(X: Floats, fill: Floats32, edges: Codes, place: int) -> Floats:
    """The series with one place replaced by the public fill."""
    hidden = X.copy()
    steps = slice(int(edges[place]), int(edges[place + 1]))
    hidden[:, :, steps] = fill[:, steps]
    return hidden


def n_places_of(n_timepoints: int) -> int:
    """Quarters, or single steps where a series has fewer than four."""
    return min(_MOST_PLACES, n_timepoints)


def check_place_release(*, n_classes: int, n_timepoints: int) -> None:
    """Refuse, before anything is trained, what no channel can be computed for."""
    check_pairs(n_classes, n_places_of(n_timepoints))


def fit_place(
    body: Body,
    held_out: Floats,
    X: Floats,
    y: Codes,
    *,
    epsilon: float,
    rng: np.random.Generator,
    channel: ChannelKind = "optimal",
    shares: Floats | None = None,
    slack: float = SLACK,
    progress: Progress = silent,
) -> PlaceHead:
    """Train the locator on the body's training series and build the channel over pairs.

    Which places are common for which label is counted on each training series as if it had been
    left out of the fit, like the confusion. `shares` are class shares that are expected among the
    releases instead of the training set's.
    """
    n_classes = held_out.shape[1]
    check_place_release(n_classes=n_classes, n_timepoints=X.shape[2])
    progress(0, 2, "places")
    fill = X.mean(axis=0).astype(np.float32)
    called = held_out.argmax(axis=1)
    locator, where = _train_locator(X, y, called, fill, n_classes=n_classes, rng=rng)
    known = is_measured(y)  # without its only series, a fit cannot place a class
    place_shares = shares_of_places(called[known], where[known], n_classes, n_places_of(X.shape[2]))
    design, gain = design_gain(held_out, y), label_gain(held_out, y)
    if shares is not None:
        design, gain = (with_class_shares(joint, shares) for joint in (design, gain))
    progress(1, 2, "linear program")
    chosen = design_place_channel(design, place_shares, epsilon=epsilon, slack=slack, kind=channel)
    return PlaceHead(body, chosen, gain, epsilon, locator, fill, place_shares)


def shares_of_places(called: Codes, where: Codes, n_classes: int, n_places: int) -> Floats:
    """P(place | device label): counts drawn to equal shares as far as they may be chance."""
    counts = np.zeros((n_classes, n_places))
    np.add.at(counts, (called, where), 1.0)
    return np.stack([class_shares(row) for row in counts])


def _train_locator(
    X: Floats,
    y: Codes,
    called: Codes,
    fill: Floats32,
    *,
    n_classes: int,
    rng: np.random.Generator,
) -> tuple[Body, Codes]:
    """The small encoder with its classifier, and the left-out place of each training series."""
    encoder = fit_encoder(X, rng=rng, n_proportions=_N_PROPORTIONS, n_groups=_N_GROUPS)
    features, sizes = encoder.encode(X), encoder.block_sizes()
    fit = fit_ridge(features, y, n_classes=n_classes, block_sizes=sizes)
    influence, residuals = left_out_influence(
        features, y, n_classes=n_classes, block_sizes=sizes, penalty=fit.penalty
    )
    locator = Body("kernels", encoder, fit.classifier)
    rows = np.arange(len(y))
    weights = fit.classifier.weights[:, called] - influence * residuals[rows, called]
    return locator, _left_out_places(X, encoder, fill, weights)


def _left_out_places(X: Floats, encoder: Encoder, fill: Floats32, weights: Floats) -> Codes:
    """The place whose occlusion leaves the lowest score, by each series' own weights (m, n)."""
    n_places = n_places_of(X.shape[2])
    edges = edges_of(X.shape[2], n_places)
    hidden = (encoder.encode(occluded(X, fill, edges, place)) for place in range(n_places))
    scores = [np.einsum("nm,mn->n", features, weights) for features in hidden]
    return np.asarray(np.argmin(scores, axis=0))
