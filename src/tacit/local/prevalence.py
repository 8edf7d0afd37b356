"""How common each class is in a population, from its randomised labels.

Each device's symbol says little, but the distribution of the symbols is a known linear mixture of
the shares that one asks for. The estimate is the most likely point of the simplex. Each interval
inverts a test of "this class has share t" that holds for every number of releases, whatever the
shares of the other classes. Where a channel releases fewer symbols than there are classes, some
shares are not determined by any number of releases: the result names them, and their intervals
hold only what is certain.
"""

from __future__ import annotations

import html
import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats
from tacit.errors import TacitError
from tacit.local.model import LocalModel
from tacit.local.release import Release
from tacit.local.releases.channel_head import ChannelHead

Target = Literal["device_labels", "classes"]

_SINGULAR = 1e-8  # singular values below this share of the largest count as zero
_SAME = 1e-6
_BELOW_ONE = math.nextafter(1.0, 0.0)
_TINY = 1e-250  # smaller probabilities are summed in logarithms
# Slopes of the exponential bound, in units of 1/range: the best one for 1 to 10^10 releases.
_SLOPES = np.geomspace(1e-6, 60.0, 400)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Prevalence:
    """Estimated shares, which sum to one, with one confidence interval per class."""

    classes: tuple[str, ...]
    share: Floats
    low: Floats
    high: Floats
    level: float
    n: int
    of: Target
    assumption: str
    identifiable: tuple[bool, ...]  # whether more releases would narrow the interval to a point
    warning: str | None  # which shares the releases do not determine, and what to do

    def _repr_html_(self) -> str:
        """For notebooks: a row per class."""
        rows = "".join(
            f"<tr><td>{html.escape(name)}</td><td>{share:.1%}</td>"
            f"<td>{low:.1%} to {high:.1%}</td></tr>"
            for name, share, low, high in zip(
                self.classes, self.share, self.low, self.high, strict=True
            )
        )
        head = f"<tr><th>class</th><th>share</th><th>interval at {self.level:.0%}</th></tr>"
        note = html.escape(f"{self.n} releases; {self.assumption}.")
        return f"<table>{head}{rows}</table>{note}"

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "classes": list(self.classes),
            "share": self.share.tolist(),
            "low": self.low.tolist(),
            "high": self.high.tolist(),
            "level": self.level,
            "n": self.n,
            "of": self.of,
            "assumption": self.assumption,
            "identifiable": list(self.identifiable),
            "warning": self.warning,
        }


_ASSUMPTION = {
    "device_labels": "shares of what the devices' classifier says; nothing is assumed about how "
    "often it is right",
    "classes": "shares of the true classes, if the classifier errs in this population as it did "
    "on held-out training series",
    "stated": "shares of the true classes, if the classifier is right as often as its model states "
    "and errs evenly; the rate was stated, not measured",
}
_PLACES = ", and if the places of each label are as common as they were in training"


def estimate_prevalence(
    model: LocalModel, release: Release, *, of: Target = "device_labels", level: float = 0.95
) -> Prevalence:
    """Most likely shares of the devices' labels, or of the true classes, with intervals.

    Each interval holds its share with probability at least `level`, for any number of releases
    (one class at a time; for `of="classes"` given the confusion on held-out series). It lies in
    [0, 1] and is never a point.
    """
    head = _channel_head(model)
    model.decide(release)  # refuses releases of another model
    counts = np.bincount(release.values, minlength=len(head.channel))
    return prevalence_of_counts(model, counts, of=of, level=level)


def prevalence_of_counts(
    model: LocalModel,
    counts: NDArray[np.integer[Any]],
    *,
    of: Target = "device_labels",
    level: float = 0.95,
) -> Prevalence:
    """The same from how often each symbol was released, for stores that keep counts.

    Of a `place` release the label counts; how often a label is decided may depend on the place.
    """
    head = _channel_head(model)
    if not 0.0 < level < 1.0:
        raise TacitError(f"level must lie strictly between 0 and 1, got {level!r}.")
    mixture = _mixture(head, of)
    counts = _decided(head, counts)
    solve = np.linalg.pinv(mixture, rcond=_SINGULAR)
    known = np.abs(solve @ mixture - np.eye(len(mixture))).max(axis=1) < _SAME
    share = _most_likely(mixture, counts / counts.sum(), solve)
    limits = np.array(
        [_limits(mixture, solve[j], counts, j, 0.5 - level / 2.0) for j in range(len(mixture))]
    )
    return Prevalence(
        classes=model.classes,
        share=share,
        # The limits look at one class at a time, the estimate at all: it may lie just outside.
        low=np.minimum(limits[:, 0], share),
        high=np.maximum(limits[:, 1], share),
        level=level,
        n=int(counts.sum()),
        of=of,
        assumption=_ASSUMPTION["stated" if of == "classes" and model.training else of]
        + ("" if head.labels_alone_decide() else _PLACES),
        identifiable=tuple(bool(one) for one in known),
        warning=None if known.all() else _warning(model.classes, mixture, known),
    )


def _channel_head(model: LocalModel) -> ChannelHead:
    if not isinstance(model.head, ChannelHead):
        raise TacitError(
            f"prevalence needs label or place releases, this model makes {model.head.kind!r} ones; "
            "train with --release label."
        )
    return model.head


def _decided(head: ChannelHead, counts: NDArray[np.integer[Any]]) -> NDArray[np.integer[Any]]:
    """How often each label was decided, after symbols that are never released were refused."""
    if not counts.sum():
        raise TacitError("there is no release to estimate from; collect at least one.")
    never = (head.channel.max(axis=0) <= 0.0) & (counts > 0)
    if never.any():
        raise TacitError(
            f"symbol {int(never.argmax())} was received {int(counts[never.argmax()])} times, but "
            "this model never releases it; take the files as the devices wrote them."
        )
    found = np.zeros(len(head.gain), dtype=np.int64)
    np.add.at(found, head.decide(np.arange(len(counts))), counts)
    return found


def _mixture(head: ChannelHead, of: Target) -> Floats:
    """Column j: the distribution of the decided label for a unit of kind j."""
    channel = head.label_channel()
    if of == "device_labels":
        return channel.T
    if of != "classes":
        raise TacitError(f"of must be 'device_labels' or 'classes', got {of!r}.")
    shares = head.gain.sum(axis=0)
    if not shares.all():
        raise TacitError(
            "a class has no share in the model's confusion, so its errors are unknown; "
            "use of='device_labels'."
        )
    given_class = head.gain / shares  # (device label, class)
    mixed: Floats = channel.T @ given_class
    return mixed


def _most_likely(mixture: Floats, frequency: Floats, solve: Floats) -> Floats:
    """The point of the simplex under which the symbols are most likely."""
    direct = solve @ frequency
    if direct.min() >= 0.0 and np.allclose(mixture @ direct, frequency, rtol=0.0, atol=1e-12):
        return np.asarray(direct / direct.sum())  # explains the symbols perfectly
    from scipy.optimize import minimize

    seen = frequency > 0.0
    rows, weight = mixture[seen], frequency[seen]

    # Columns of the mixture sum to one, so that "+ sum" puts the minimum onto the simplex.
    def loss(share: Floats) -> tuple[float, Floats]:
        expected = np.maximum(rows @ share, 1e-300)
        value = float(share.sum() - weight @ np.log(expected))
        return value, np.asarray(1.0 - rows.T @ (weight / expected))

    start = np.full(mixture.shape[1], 1.0 / mixture.shape[1])
    found = minimize(
        loss,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=[(0.0, None)] * len(start),
        options={"ftol": 1e-16, "gtol": 1e-10, "maxiter": 5000, "maxcor": 30},
    )
    return np.asarray(found.x / found.x.sum())


def _limits(
    mixture: Floats, weight: Floats, counts: NDArray[np.integer[Any]], j: int, tail: float
) -> tuple[float, float]:
    """Limits of class j's share that each fail with probability at most `tail`.

    `weight` scores the symbols, so that the expected score is the share where that is possible.
    The other classes take the shares that make the observed score most likely. Each probability
    is compared with `tail` times that of the nearest possible share (0 or 1), which is at most
    `tail`: this only widens the interval, and keeps it from vanishing when the symbols are
    unlikely under all shares.
    """
    possible = mixture.max(axis=1) > 0.0
    weight, rows, counts = weight[possible], mixture[possible], counts[possible]
    middle = (weight.max() + weight.min()) / 2.0
    high = weight > middle
    spread = weight.max() - weight.min()
    if spread <= _SAME * max(1.0, float(np.abs(weight).max())):
        return 0.0, 1.0
    steps = np.where(high, weight.max() - weight, weight - weight.min())
    if steps.max() < _SAME * spread:  # two values: their count is binomial
        return _binomial_limits(rows[high].sum(axis=0), int(counts[high].sum()), counts, j, tail)
    return _exponential_limits(rows, weight / spread, counts, j, tail)


def _binomial_limits(
    chance: Floats, hits: int, counts: NDArray[np.integer[Any]], j: int, tail: float
) -> tuple[float, float]:
    """Clopper and Pearson's limits: `chance[i]` is that of a hit for a unit of kind i."""
    from scipy.optimize import brentq

    n, own, others = int(counts.sum()), float(chance[j]), np.delete(chance, j)
    least, most = float(others.min()), float(others.max())

    def too_few(t: float) -> float:
        return _log_at_most(hits, n, least + t * (own - least)) - few_at_zero - math.log(tail)

    def too_many(t: float) -> float:
        missed = 1.0 - most - t * (own - most)
        return _log_at_most(n - hits, n, missed) - many_at_one - math.log(tail)

    few_at_zero = _log_at_most(hits, n, least)
    many_at_one = _log_at_most(n - hits, n, 1.0 - own)
    low, high = 0.0, 1.0
    if own > least and too_few(1.0) < 0.0:
        high = float(brentq(too_few, 0.0, 1.0, xtol=1e-15, rtol=1e-13))
    if own > most and too_many(0.0) < 0.0:
        low = float(brentq(too_many, 0.0, 1.0, xtol=1e-15, rtol=1e-13))
    return low, high


def _log_at_most(hits: int, n: int, chance: float) -> float:
    """log P(Binomial(n, chance) <= hits), also where the probability is no float."""
    from scipy import special

    if hits >= n or chance <= 0.0:
        return 0.0
    chance = min(chance, _BELOW_ONE)
    plain = float(special.betaincc(hits + 1, n - hits, chance))
    if plain > _TINY:
        return math.log(plain)
    # Far below the mean the terms fall at least as quickly as the first two do.
    odds = (1.0 - chance) / chance
    terms = math.ceil(40.0 / (1.0 - hits / (n - hits + 1.0) * odds))
    before = np.arange(hits, max(hits - terms, 0), -1.0)
    falling = np.cumprod(before / (n - before + 1.0) * odds)
    ways = special.gammaln(n + 1) - special.gammaln(hits + 1) - special.gammaln(n - hits + 1)
    first = ways + hits * math.log(chance) + (n - hits) * math.log1p(-chance)
    return float(first) + math.log1p(float(falling.sum()))


def _exponential_limits(
    rows: Floats, weight: Floats, counts: NDArray[np.integer[Any]], j: int, tail: float
) -> tuple[float, float]:
    """Limits from Chernoff's bound on the mean score; `weight` has range one.

    The mean of exp(slope * score) is linear in the shares, so the worst shares of the other
    classes are all on one of them, and each slope gives its limit in closed form.
    """
    n = int(counts.sum())
    mean = float(counts @ weight) / n

    def against(sign: float) -> tuple[Floats, Floats]:
        # How far the mean of exp(slope * (score - mean)) lies above 1: own class, worst other.
        growth = np.expm1(np.outer(sign * _SLOPES, weight - mean)) @ rows
        return growth[:, j], np.delete(growth, j, axis=1).max(axis=1)

    own, other = against(-1.0)
    at_zero = min(0.0, float(np.log1p(other).min()))
    needed = math.expm1(math.log(tail) / n + at_zero)
    falls = other > own
    high = np.min((other - needed)[falls] / (other - own)[falls], initial=1.0)

    own, other = against(1.0)
    at_one = min(0.0, float(np.log1p(own).min()))
    needed = math.expm1(math.log(tail) / n + at_one)
    rises = own > other
    low = np.max((needed - other)[rises] / (own - other)[rises], initial=0.0)
    return float(low), float(high)


def _warning(classes: tuple[str, ...], mixture: Floats, known: NDArray[np.bool_]) -> str:
    """Which classes the releases do not tell apart, and the way out."""
    open_ones = np.flatnonzero(~known)
    alike = [
        f"{classes[i]!r} from {classes[j]!r}"
        for number, i in enumerate(open_ones)
        for j in open_ones[number + 1 :]
        if np.abs(mixture[:, i] - mixture[:, j]).max() < _SAME
    ]
    released = int(np.count_nonzero(mixture.max(axis=1) > 0.0))
    names = ", ".join(repr(classes[i]) for i in open_ones)
    return (
        f"this model's channel releases {released} of {len(mixture)} labels in a way that does not "
        f"determine the shares of {names}"
        + (f" (it cannot tell {', '.join(alike)})" if alike else "")
        + "; their intervals stay wide however many releases there are, train with channel='krr' "
        "to estimate them."
    )
