"""Class shares from randomised labels: right on average, intervals that keep their level."""

from __future__ import annotations

import math
import time
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from local_problems import italy, model_of, trained
from tacit.arrays import Codes, Floats
from tacit.errors import TacitError
from tacit.local.encoding.body import train_kernels
from tacit.local.model import LocalModel
from tacit.local.prevalence import (
    Prevalence,
    Target,
    _exponential_limits,
    _log_at_most,
    _mixture,
    estimate_prevalence,
    prevalence_of_counts,
)
from tacit.local.releases.channel import design_channel, label_gain
from tacit.local.releases.label import LabelHead
from tacit.local.releases.place import PlaceHead
from tacit.mechanisms import krr_matrix
from tacit.noise import SYSTEM_NOISE

FALSE_ALARM = 1e-6
N = 40_000
TRUE_SHARES = np.array([0.6, 0.3, 0.1])


def model_with(channel: Floats, gain: Floats) -> LocalModel:
    """A head with a given channel; the body is never asked here."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((9, 1, 16)), np.arange(9) % len(channel)
    body = train_kernels(X, y, n_classes=len(channel), rng=rng).body
    head = LabelHead(body, channel, gain, 2.0)
    names = ("a", "b", "c")[: len(channel)]
    return LocalModel(
        head=head, classes=names, class_type="str", n_channels=1, n_timepoints=16
    ).identified()


@pytest.fixture(scope="module")
def confusion() -> Floats:
    y = np.repeat([0, 1, 2], [60, 30, 30])
    wrong = np.where(np.arange(120) % 8 == 0, (y + 1) % 3, y)
    return label_gain(0.9 * np.eye(3)[wrong] + 0.1 / 3, y)


@pytest.fixture(scope="module")
def krr(confusion: Floats) -> LocalModel:
    return model_with(design_channel(confusion, epsilon=1.0, kind="krr"), confusion)


def device_labels(shares: Floats, n: int) -> Codes:
    counts = np.round(shares * n).astype(int)
    return np.repeat(np.arange(len(shares)), counts)


def z_scores(model: LocalModel, *, true: Floats, labels: Codes, of: Target) -> Floats:
    found = estimate_prevalence(model, model.randomize(labels), of=of, level=0.95)
    return np.asarray((found.share - true) / standard_error(model, true, n=len(labels), of=of))


def standard_error(model: LocalModel, true: Floats, *, n: int, of: Target) -> Floats:
    """Of the solved mixture for a random sample; a fixed group of devices varies less."""
    assert isinstance(model.head, LabelHead)
    mixture = _mixture(model.head, of)
    solve = np.linalg.inv(mixture)
    return np.asarray(np.sqrt(((solve**2) @ (mixture @ true) - true**2) / n))


def test_shares_of_device_labels_are_unbiased(krr: LocalModel) -> None:
    """Each |z| exceeds 5.2 with probability below 3e-7; three checks, false alarm below 1e-6."""
    labels = device_labels(TRUE_SHARES, N)
    z = z_scores(krr, true=TRUE_SHARES, labels=labels, of="device_labels")
    assert np.abs(z).max() < stats.norm.isf(FALSE_ALARM / 6)


def test_the_check_notices_shares_that_are_off_by_five_percent(krr: LocalModel) -> None:
    labels = device_labels(np.array([0.55, 0.35, 0.1]), N)
    z = z_scores(krr, true=TRUE_SHARES, labels=labels, of="device_labels")
    assert np.abs(z).max() > stats.norm.isf(FALSE_ALARM / 6)


def test_shares_of_true_classes_undo_the_confusion(krr: LocalModel, confusion: Floats) -> None:
    """Device labels drawn with the modelled confusion: the class shares come back."""
    given_class = confusion / confusion.sum(axis=0)
    labels = device_labels(given_class @ TRUE_SHARES, N)
    expected = estimate_prevalence(krr, krr.randomize(labels), of="classes")
    z = (expected.share - TRUE_SHARES) / standard_error(krr, TRUE_SHARES, n=N, of="classes")
    assert np.abs(z).max() < stats.norm.isf(FALSE_ALARM / 6) + 0.1  # 0.1: whole numbers of devices
    assert expected.assumption.startswith("shares of the true classes, if")


def test_intervals_cover_at_their_level(krr: LocalModel) -> None:
    """600 repetitions at 95 %: fewer than 90.5 % or more than 98.5 % hits are below 1e-6."""
    labels = device_labels(TRUE_SHARES, 500)
    hits = 0
    for _ in range(600):
        found = estimate_prevalence(krr, krr.randomize(labels))
        hits += bool(found.low[0] <= TRUE_SHARES[0] <= found.high[0])
    # The population is fixed, so the multinomial variance is an upper bound: coverage >= 95 %.
    assert stats.binom.cdf(hits, 600, 0.95) > FALSE_ALARM


SIZES = (1, 5, 50, 600, 10**6)
SHARES = (0.0, 0.03, 0.3, 0.5, 0.9, 1.0)


@pytest.fixture(scope="module")
def two() -> LocalModel:
    gain = np.diag([0.5, 0.5])
    return model_with(design_channel(gain, epsilon=2.0, kind="krr"), gain)


def hit_chances(model: LocalModel) -> tuple[float, float]:
    """P(symbol 0) of a device with label 1, and with label 0."""
    assert isinstance(model.head, LabelHead)
    return float(model.head.channel[1, 0]), float(model.head.channel[0, 0])


def covers(model: LocalModel, hits: int, *, n: int, share: float, level: float) -> int:
    """0 if the interval after `hits` times symbol 0 holds the share, else the side it is on."""
    found = prevalence_of_counts(model, np.array([hits, n - hits]), level=level)
    return int(found.low[0] > share) - int(found.high[0] < share)


def first_hits(model: LocalModel, side: int, *, n: int, share: float, level: float) -> int:
    """The fewest hits for which `covers` is at least `side`; limits rise with the hits."""
    below, above = -1, n + 1
    while above - below > 1:
        middle = (below + above) // 2
        if covers(model, middle, n=n, share=share, level=level) >= side:
            above = middle
        else:
            below = middle
    return above


def exact_coverage(model: LocalModel, *, n: int, share: float, level: float) -> float:
    """P(the interval of class 0 holds its share) over all outcomes of n devices."""
    off, on = hit_chances(model)
    chance = share * on + (1.0 - share) * off
    first = first_hits(model, 0, n=n, share=share, level=level)
    after = first_hits(model, 1, n=n, share=share, level=level)
    return float(stats.binom.cdf(after - 1, n, chance) - stats.binom.cdf(first - 1, n, chance))


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("level", [0.8, 0.95])
def test_exact_coverage_of_two_classes(two: LocalModel, n: int, level: float) -> None:
    found = [exact_coverage(two, n=n, share=share, level=level) for share in SHARES]
    assert min(found) >= level - 1e-9
    if n >= 600:  # and the intervals are no wider than they must be
        assert found[3] <= level + 0.03


def test_the_exact_check_notices_a_level_that_is_not_kept(two: LocalModel) -> None:
    for n in (50, 600, 10**6):
        assert min(exact_coverage(two, n=n, share=t, level=0.93) for t in SHARES) < 0.95


@pytest.mark.parametrize("n", [5, 50, 600])
def test_exact_coverage_of_a_fixed_group_of_devices(two: LocalModel, n: int) -> None:
    """The labels are given and only the noise is random: two binomials add up."""
    off, on = hit_chances(two)
    for positive in {0, 1, n // 10, n // 2, n}:
        ones = stats.binom.pmf(np.arange(positive + 1), positive, on)
        zeros = stats.binom.pmf(np.arange(n - positive + 1), n - positive, off)
        chances, share = np.convolve(ones, zeros), positive / n
        first = first_hits(two, 0, n=n, share=share, level=0.95)
        after = first_hits(two, 1, n=n, share=share, level=0.95)
        assert chances[first:after].sum() >= 0.95 - 1e-9


def held(found: Prevalence, true: Floats) -> Codes:
    slack = 1e-12  # shares of exactly 0 and 1 meet limits of exactly 0 and 1
    return np.asarray((found.low - slack <= true) & (true <= found.high + slack), dtype=np.intp)


@pytest.mark.parametrize("n", [1, 5, 12])
@pytest.mark.parametrize("of", ["device_labels", "classes"])
def test_exact_coverage_of_three_classes(krr: LocalModel, n: int, of: Target) -> None:
    assert isinstance(krr.head, LabelHead)
    mixture = _mixture(krr.head, of)
    trues = (TRUE_SHARES, np.array([1.0, 0.0, 0.0]), np.array([0.0, 0.5, 0.5]))
    coverage = np.zeros((len(trues), 3))
    for a in range(n + 1):
        for b in range(n + 1 - a):
            counts = np.array([a, b, n - a - b])
            found = prevalence_of_counts(krr, counts, of=of)
            assert found.share.min() >= 0.0
            assert found.share.sum() == pytest.approx(1.0)
            assert np.all((found.low >= 0.0) & (found.low < found.high) & (found.high <= 1.0))
            for row, true in enumerate(trues):
                chance = stats.multinomial.pmf(counts, n, mixture @ true)
                coverage[row] += chance * held(found, true)
    assert coverage.min() >= 0.95 - 1e-9


@pytest.mark.seconds
@pytest.mark.parametrize("n", [600, 10**6])
@pytest.mark.parametrize("of", ["device_labels", "classes"])
def test_measured_coverage_of_three_classes(krr: LocalModel, n: int, of: Target) -> None:
    """400 draws; coverage of 95 % gives so few hits with probability below 1e-6 per class."""
    assert isinstance(krr.head, LabelHead)
    expected = _mixture(krr.head, of) @ TRUE_SHARES
    draws = np.random.default_rng(n).multinomial(n, expected, size=400)
    hits = sum(held(prevalence_of_counts(krr, counts, of=of), TRUE_SHARES) for counts in draws)
    assert stats.binom.cdf(np.min(hits), 400, 0.95) > FALSE_ALARM


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("of", ["device_labels", "classes"])
def test_equal_symbols_give_an_interval_that_is_no_point(
    krr: LocalModel, two: LocalModel, n: int, of: Target
) -> None:
    for model, counts in ((two, [n, 0]), (two, [0, n]), (krr, [n, 0, 0]), (krr, [0, 0, n])):
        found = prevalence_of_counts(model, np.array(counts), of=of)
        assert found.share == pytest.approx(np.array(counts) / n, abs=1e-6)
        assert np.all((found.low >= 0.0) & (found.high <= 1.0))
        assert np.all(found.high - found.low > 0.01 / n)
        assert np.all((found.low <= found.share) & (found.share <= found.high))


def test_fifty_equal_symbols(two: LocalModel) -> None:
    """The limit where 50 misses are a 40th as likely as without any device of the class."""
    found = prevalence_of_counts(two, np.array([50, 0]))
    off, on = 1.0 / (1.0 + np.exp(2.0)), 1.0 / (1.0 + np.exp(-2.0))
    limit = (1.0 - (1.0 - off) * 0.025 ** (1 / 50) - off) / (on - off)
    assert found.high[1] == pytest.approx(limit)
    assert (found.low[1], found.high[0]) == (0.0, 1.0)
    assert found.low[0] == pytest.approx(1.0 - limit)


@pytest.mark.parametrize("counts", [(40, 5, 5), (5, 0, 45), (1, 0, 0), (300, 301, 0)])
@pytest.mark.parametrize("of", ["device_labels", "classes"])
def test_no_other_shares_are_more_likely(
    krr: LocalModel, counts: tuple[int, ...], of: Target
) -> None:
    """The condition for a maximum on the simplex: no class has a slope above one."""
    assert isinstance(krr.head, LabelHead)
    mixture, n = _mixture(krr.head, of), sum(counts)
    found = prevalence_of_counts(krr, np.array(counts), of=of)
    slope = mixture.T @ (np.array(counts) / n / (mixture @ found.share))
    assert slope.max() < 1.0 + 1e-6


def test_a_million_releases_take_less_than_a_second(krr: LocalModel) -> None:
    release = krr.randomize(device_labels(TRUE_SHARES, 10**6))
    start = time.process_time()
    found = estimate_prevalence(krr, release, of="classes")
    assert time.process_time() - start < 1.0
    assert found.n == 10**6
    assert np.max(found.high - found.low) < 0.03


def test_classes_that_the_channel_cannot_tell_apart_are_named() -> None:
    gain = np.diag([0.9, 0.06, 0.04])
    model = model_with(design_channel(gain, epsilon=0.5), gain)
    assert isinstance(model.head, LabelHead)
    assert np.count_nonzero(model.head.channel.max(axis=0)) < 3
    found = estimate_prevalence(model, model.randomize(np.array([0, 1, 2])))
    assert not all(found.identifiable)
    assert found.warning is not None
    for part in ("of 3 labels", "does not determine the shares of", "channel='krr'"):
        assert part in found.warning
    assert found.to_dict()["identifiable"] == list(found.identifiable)


def test_intervals_of_classes_that_look_alike_hold_every_split() -> None:
    """Labels 1 and 2 are released alike: their sum is known, their split is anything."""
    channel = np.array([[0.6, 0.4, 0.0], [0.4, 0.6, 0.0], [0.4, 0.6, 0.0]])
    model = model_with(channel, np.eye(3) / 3)
    n = 10**6
    found = prevalence_of_counts(model, np.array([46 * n // 100, 54 * n // 100, 0]))
    assert found.identifiable == (True, False, False)
    assert found.warning is not None
    assert "cannot tell 'b' from 'c'" in found.warning
    assert found.share[0] == pytest.approx(0.3, abs=1e-4)
    assert found.low[0] < 0.3 < found.high[0] < found.low[0] + 0.02
    assert np.all(found.low[1:] == 0.0)
    assert np.all((found.high[1:] > 0.7) & (found.high[1:] < 0.72))


def test_a_channel_that_says_nothing_bounds_nothing() -> None:
    model = model_with(np.tile([1.0, 0.0, 0.0], (3, 1)), np.eye(3) / 3)
    found = prevalence_of_counts(model, np.array([50, 0, 0]))
    assert found.identifiable == (False, False, False)
    assert (found.low.tolist(), found.high.tolist()) == ([0.0] * 3, [1.0] * 3)
    with pytest.raises(TacitError, match="symbol 1 was received 2 times"):
        prevalence_of_counts(model, np.array([50, 2, 0]))


def test_bad_requests_are_refused(krr: LocalModel, confusion: Floats) -> None:
    release = krr.randomize(np.array([0, 1, 2]))
    for level in (0.0, 1.0, float("nan")):
        with pytest.raises(TacitError, match="level"):
            estimate_prevalence(krr, release, level=level)
    with pytest.raises(TacitError, match="of must be"):
        estimate_prevalence(krr, release, of="persons")  # type: ignore[arg-type]
    with pytest.raises(TacitError, match="no release"):
        estimate_prevalence(krr, krr.randomize(np.array([], dtype=np.intp)))
    other = model_with(design_channel(confusion, epsilon=0.9, kind="krr"), confusion)
    with pytest.raises(TacitError, match="bundle that"):
        estimate_prevalence(other, release)


def test_noise_source_is_the_systems() -> None:
    assert LocalModel.randomize.__kwdefaults__ == {"source": SYSTEM_NOISE}


@pytest.mark.parametrize("hits", [0, 10, 900])
def test_probabilities_below_the_smallest_float_are_summed_right(hits: int) -> None:
    """P(Binomial(2000, 0.9) <= hits) in whole numbers."""
    exact = sum(math.comb(2000, k) * 9**k for k in range(hits + 1))
    logarithm = math.log(exact) - 2000 * math.log(10)
    assert logarithm < -600.0
    assert _log_at_most(hits, 2000, 0.9) == pytest.approx(logarithm, rel=1e-12)


@pytest.mark.parametrize("n", [20, 600, 10**6])
def test_the_exponential_limits_are_chernoffs(two: LocalModel, n: int) -> None:
    """On a count of two symbols the bound is exp(-n KL): its divergence is known at the limit."""
    assert isinstance(two.head, LabelHead)
    off, on = hit_chances(two)
    hits, tail = n // 2, 0.025
    limits = _exponential_limits(
        two.head.channel.T, np.array([1.0, 0.0]), np.array([hits, n - hits]), 0, tail
    )
    for limit in limits:
        chance = off + limit * (on - off)
        divergence = -0.5 * math.log(4.0 * chance * (1.0 - chance))
        assert n * divergence == pytest.approx(-math.log(tail), rel=2e-3)


def test_a_notebook_shows_shares_and_the_promise_of_releases() -> None:
    classifier = trained("label", 2.0, "krr")
    release = classifier.release(italy().X_test[:50])
    assert release.guarantee.sentence in release._repr_html_()
    assert "<b>50 label releases</b>" in release._repr_html_()
    shown = estimate_prevalence(model_of(classifier), release)._repr_html_()
    assert shown.count("<tr>") == 3
    assert "50 releases; shares of" in shown


@pytest.fixture(scope="module", params=["krr", "optimal"])
def placed(request: pytest.FixtureRequest) -> LocalModel:
    return model_of(trained("place", 2.0, request.param))


def pairs_of(model: LocalModel, labels: Codes) -> Codes:
    """Pairs whose places are as common for each label as the model says, up to rounding."""
    assert isinstance(model.head, PlaceHead)
    found = np.empty_like(labels)
    for label, shares in enumerate(model.head.place_shares):
        rows = np.flatnonzero(labels == label)
        edges = np.round(np.cumsum(shares)[:-1] * len(rows)).astype(int)
        place = np.searchsorted(edges, np.arange(len(rows)), side="right")
        found[rows] = label * model.head.n_places + place
    return found


def test_places_are_counted_by_their_class(placed: LocalModel) -> None:
    """Shares within 6 standard errors and .002 for rounding: a false alarm is below 1e-6."""
    true = np.array([0.7, 0.3])
    labels = device_labels(true, N)
    found = estimate_prevalence(placed, placed.randomize(pairs_of(placed, labels)))
    assert isinstance(placed.head, PlaceHead)
    gap = abs(np.linalg.det(placed.head.label_channel()))
    assert found.share == pytest.approx(true, abs=6 * 0.5 / math.sqrt(N) / gap + 0.002)
    assert np.all((found.low > 0.0) & (found.high < 1.0))
    assert found.classes == placed.classes


def test_only_a_channel_that_looks_at_places_assumes_something_of_them() -> None:
    model = model_of(trained("place", 2.0, "krr"))
    assert isinstance(model.head, PlaceHead)
    assert model.head.labels_alone_decide()
    counts = np.full(len(model.head.channel), 5)
    assert "places" not in prevalence_of_counts(model, counts).assumption
    channel = krr_matrix(len(counts), 1.0)
    channel[:: model.head.n_places] = 1.0 / len(counts)  # in the first place, labels say nothing
    looking = replace(model, head=replace(model.head, channel=channel))
    assert isinstance(looking.head, PlaceHead)
    assert not looking.head.labels_alone_decide()
    assert "places of each label" in prevalence_of_counts(looking, counts).assumption
    said = looking.head.label_channel()
    assert said.sum(axis=1) == pytest.approx(1.0)
    first = looking.head.place_shares[0, 0]
    wanted = first / 2 + (1 - first) * channel[1, : model.head.n_places].sum()
    assert said[0, 0] == pytest.approx(wanted)


def test_with_k_rr_the_places_of_a_population_do_not_move_its_shares() -> None:
    """All devices of a label in one place or spread: the same law of the decided labels."""
    model = model_of(trained("place", 2.0, "krr"))
    assert isinstance(model.head, PlaceHead)
    n_places = model.head.n_places
    decided = model.head.channel.reshape(-1, 2, n_places).sum(axis=2)
    for label in range(2):
        rows = decided[label * n_places : (label + 1) * n_places]
        np.testing.assert_allclose(rows, np.tile(model.head.label_channel()[label], (n_places, 1)))


def test_vectors_say_no_shares() -> None:
    model = model_of(trained("vector", 2.0))
    with pytest.raises(TacitError, match="label or place releases"):
        estimate_prevalence(model, trained("vector", 2.0).release(italy().X_test[:3]))
