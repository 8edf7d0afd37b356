"""Class shares from randomised labels: unbiased, honest intervals, refusal where impossible."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from tacit.arrays import Codes, Floats
from tacit.errors import TacitError
from tacit.local.encoding.body import train_kernels
from tacit.local.model import LocalModel
from tacit.local.prevalence import Target, estimate_prevalence
from tacit.local.releases.channel import design_channel, label_gain
from tacit.local.releases.label import LabelHead
from tacit.noise import SYSTEM_NOISE

FALSE_ALARM = 1e-6
N = 40_000
TRUE_SHARES = np.array([0.6, 0.3, 0.1])


def model_with(channel: Floats, gain: Floats) -> LocalModel:
    """A head with a given channel; the body is never asked here."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((9, 1, 16)), np.arange(9) % 3
    body = train_kernels(X, y, n_classes=3, rng=rng).body
    head = LabelHead(body, channel, gain, 1.0)
    names = ("a", "b", "c")
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
    error = (found.high - found.share) / stats.norm.ppf(0.975)
    return np.asarray((found.share - true) / error)


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
    error = (expected.high - expected.share) / stats.norm.ppf(0.975)
    z = (expected.share - TRUE_SHARES) / error
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


def test_a_channel_that_drops_labels_is_refused_with_the_way_out() -> None:
    gain = np.diag([0.9, 0.06, 0.04])
    model = model_with(design_channel(gain, epsilon=0.5), gain)
    assert isinstance(model.head, LabelHead)
    assert np.count_nonzero(model.head.channel.max(axis=0)) < 3
    with pytest.raises(TacitError, match="channel='krr'"):
        estimate_prevalence(model, model.randomize(np.array([0, 1, 2])))


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
