"""The label head and its features: exact channel, calibrated posterior, encoders that agree."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
from scipy import stats

from contract import toy_problem
from local_problems import italy, label_head, trained
from tacit.arrays import Floats
from tacit.errors import TacitError
from tacit.local.encoding import random_kernels
from tacit.local.encoding.body import train_kernels
from tacit.local.encoding.random_kernels import (
    Competition,
    Proportions,
    fit_encoder,
    minirocket_kernels,
    windows,
)
from tacit.local.encoding.ridge import fit_ridge
from tacit.local.encoding.softshape_numpy import SoftShapeEncoder, gelu
from tacit.local.releases.label import LabelHead
from tacit.local.softshape.encoder import fold_of_each, numpy_encoder, train_softshape
from tacit.local.softshape.settings import SoftShapeSettings, preset_settings
from tacit.local.softshape.training import train_network
from tacit.mechanisms import channel_epsilon, krr_matrix
from tacit.noise import SYSTEM_NOISE

FALSE_ALARM = 1e-6
N = 800_000  # the twin lies 11 standard deviations off


def kept_rate_is_right(channel: Floats, claimed: Floats) -> bool:
    """Each true label sent N times; every output's count against the claimed channel."""
    head = label_head(trained("label"))
    sampled = LabelHead(head.body, channel, head.gain, channel_epsilon(channel))
    for label in range(2):
        sent = sampled.randomize(np.full(N, label), source=SYSTEM_NOISE)
        hits = int(np.count_nonzero(sent == label))
        if stats.binomtest(hits, N, claimed[label, label]).pvalue < FALSE_ALARM:
            return False
    return True


def test_symbols_leave_at_the_channels_rates() -> None:
    channel = label_head(trained("label")).channel
    assert kept_rate_is_right(channel, channel)


def test_the_check_notices_two_percent_less_privacy() -> None:
    assert not kept_rate_is_right(krr_matrix(2, 2.04), krr_matrix(2, 2.0))


def test_a_head_with_too_generous_a_channel_cannot_be_made() -> None:
    head = label_head(trained("label"))
    with pytest.raises(TacitError, match="above"):
        LabelHead(head.body, krr_matrix(2, 2.1), head.gain, 2.0)
    with pytest.raises(TacitError, match="square"):
        LabelHead(head.body, krr_matrix(3, 2.0), head.gain, 2.0)


def test_posterior_is_bayes_rule() -> None:
    """P(class | symbol) summed over symbols with their frequencies is the prior again."""
    head = label_head(trained("label", 1.0, "krr"))
    table = head.posterior(np.arange(2))
    shares = head.gain.sum(axis=1) @ head.channel
    np.testing.assert_allclose(table.sum(axis=1), 1.0)
    np.testing.assert_allclose(shares @ table, head.gain.sum(axis=0))
    kept = math.e / (math.e + 1)
    by_hand = head.gain.T @ np.array([kept, 1 - kept])
    np.testing.assert_allclose(table[0], by_hand / by_hand.sum(), atol=1e-9)


def test_proportions_agree_with_aeons_minirocket_kernels() -> None:
    """The 84 kernels in the published order, and a convolution done by hand."""
    kernels = minirocket_kernels()
    assert kernels.shape == (84, 9)
    np.testing.assert_array_equal(np.sort(kernels, axis=1)[:, -3:], 2.0)
    np.testing.assert_array_equal(kernels.sum(axis=1), 0.0)
    np.testing.assert_array_equal(kernels[0], [2, 2, 2, -1, -1, -1, -1, -1, -1])
    x = np.random.default_rng(0).standard_normal((1, 1, 50)).astype(np.float32)
    by_hand = np.convolve(x[0, 0], np.kron(kernels[5], [1, 0, 0])[::-1][2:], mode="same")
    response = (kernels @ windows(x, dilations=(3,)))[0, 0, 5]
    np.testing.assert_allclose(response, by_hand, atol=1e-5)


def test_features_do_not_depend_on_the_batch() -> None:
    X = italy().X_train
    encoder = fit_encoder(X, rng=np.random.default_rng(0))
    whole = encoder.encode(X)
    alone = np.concatenate([encoder.encode(X[i : i + 1]) for i in range(10)])
    np.testing.assert_allclose(alone, whole[:10], atol=1e-5)
    assert sum(encoder.block_sizes()) == whole.shape[1]


@pytest.mark.parametrize("length", [2, 5, 9, 17, 300])
@pytest.mark.parametrize("channels", [1, 4])
def test_features_exist_at_every_length(length: int, channels: int) -> None:
    X = np.random.default_rng(1).standard_normal((6, channels, length))
    features = fit_encoder(X, rng=np.random.default_rng(0)).encode(X)
    assert np.all(np.isfinite(features))


@pytest.mark.parametrize("channels", [1, 3])
def test_dilations_encoded_together_give_the_same_bits(
    channels: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    X = np.random.default_rng(3).standard_normal((4, channels, 150))
    together = fit_encoder(X, rng=np.random.default_rng(0))
    monkeypatch.setattr(random_kernels, "_STACK_VALUES", 0)
    apart = fit_encoder(X, rng=np.random.default_rng(0))
    assert sum(map(len, apart.pools)) > 2 * sum(map(len, together.pools))
    np.testing.assert_array_equal(together.encode(X), apart.encode(X))


def test_pools_do_what_their_names_say() -> None:
    """Two dilations at once against loops over kernels and steps."""
    rng = np.random.default_rng(4)
    x = rng.standard_normal((1, 1, 30)).astype(np.float32)
    dilations = (1, 2)
    shifts = windows(x, dilations=dilations)[:, 0]
    biases = rng.standard_normal((2, 84, 3)).astype(np.float32)
    kernels = np.stack([minirocket_kernels()] * 2)
    found = Proportions(dilations, kernels, biases, (0, 1)).encode(x).reshape(2, 84, 3)
    for d, dilation in enumerate(dilations):
        for kernel in range(84):
            response = kernels[d, kernel] @ shifts[d]
            if kernel % 2 == d:
                response = response[4 * dilation : -4 * dilation]
            share = (response[:, None] > biases[d, kernel]).mean(axis=0)
            np.testing.assert_allclose(found[d, kernel], share, atol=1e-6)
    kernels = rng.standard_normal((2, 5 * 4, 9)).astype(np.float32)  # 5 kernels in 4 groups
    found = Competition(dilations, kernels, 4).encode(x).reshape(2, 2, 4, 5)
    for d, group in itertools.product(range(2), range(4)):
        response = kernels[d].reshape(5, 4, 9)[:, group] @ shifts[d]
        best, worst = response.argmax(axis=0), response.argmin(axis=0)
        for kernel in range(5):
            strength = max(response[kernel, best == kernel].sum() / 30, 0.0)
            expected = np.sqrt([strength, np.mean(worst == kernel)])
            np.testing.assert_allclose(found[d, :, group, kernel], expected, atol=1e-5)


def test_leave_one_out_is_what_refitting_gives() -> None:
    """The closed form against honest refits without each series, at the chosen penalty."""
    rng = np.random.default_rng(2)
    features = rng.standard_normal((14, 30)).astype(np.float32)
    y = np.arange(14) % 2
    fit = fit_ridge(features, y, n_classes=2, block_sizes=(30,))
    Z = features.astype(np.float64) - features.mean(axis=0, dtype=np.float64)
    Z *= np.sqrt(14 / 30) / features.std(axis=0, dtype=np.float64)
    for i in range(14):
        rest = np.delete(np.arange(14), i)
        design = np.column_stack([np.ones(13), Z[rest]])
        penalty = np.diag([0.0, *np.full(30, fit.penalty)])
        target = np.eye(2)[y[rest]]
        weights = np.linalg.solve(design.T @ design + penalty, design.T @ target)
        scores = np.concatenate([[1.0], Z[i]]) @ weights
        expected = np.exp(fit.classifier.temperature * scores)
        np.testing.assert_allclose(fit.held_out[i], expected / expected.sum(), atol=1e-6)


def test_many_series_take_the_other_decomposition() -> None:
    rng = np.random.default_rng(3)
    y = np.arange(60) % 3
    features = (rng.standard_normal((60, 8)) + 3 * np.eye(8)[y]).astype(np.float32)
    fit = fit_ridge(features, y, n_classes=3, block_sizes=(4, 4))
    assert np.mean(fit.held_out.argmax(axis=1) == y) > 0.8
    assert np.mean(fit.classifier.posterior(features).argmax(axis=1) == y) > 0.8


@pytest.mark.parametrize(
    "settings",
    [
        SoftShapeSettings(steps=2),
        SoftShapeSettings(steps=2, n_blocks=2, clip=1.0, top_k=2),
        SoftShapeSettings(steps=2, use_moe=False, soft=False, rho=1.0),
        preset_settings("paper", steps=2),
    ],
)
@pytest.mark.parametrize("channels", [1, 3])
def test_the_network_in_numpy_equals_pytorch(settings: SoftShapeSettings, channels: int) -> None:
    X, y = toy_problem(channels=channels)
    trained = train_network(X, (y == "b").astype(int), 2, settings=settings, seed=1)
    encoder = numpy_encoder(trained)
    with torch.inference_mode():
        there = trained.network.run(trained.prepare(X))[0].numpy()
    np.testing.assert_allclose(encoder.encode(X), there, atol=1e-5)
    again = SoftShapeEncoder.from_arrays(*encoder.arrays())
    np.testing.assert_array_equal(again.encode(X), encoder.encode(X))


def test_gelu_is_exact_enough() -> None:
    x = np.linspace(-8, 8, 1001).astype(np.float32)
    np.testing.assert_allclose(gelu(x), x * stats.norm.cdf(x), atol=1e-6)


def test_the_softshape_body_trains_and_holds_out() -> None:
    X, y = toy_problem()
    seen = []
    body = train_softshape(
        X,
        (y == "b").astype(np.intp),
        n_classes=2,
        rng=np.random.default_rng(0),
        settings=SoftShapeSettings(steps=20),
        progress=lambda done, total, message: seen.append(message),
    )
    assert body.body.kind == "softshape"
    assert body.held_out.shape == (24, 2)
    assert len(seen) == 4
    posterior = body.body.posterior(X)
    np.testing.assert_allclose(posterior.sum(axis=1), 1.0)


def test_folds_spread_every_class() -> None:
    y = np.repeat([0, 1, 2], [7, 3, 2])
    fold = fold_of_each(y, n_folds=3, rng=np.random.default_rng(0))
    for code in range(3):
        counts = np.bincount(fold[y == code], minlength=3)
        assert counts.max() - counts.min() <= 1


def test_kernels_recognise_held_out_waves() -> None:
    X, y = toy_problem(n_classes=3, n_series=45)
    codes = np.unique(y, return_inverse=True)[1]
    body = train_kernels(X, codes, n_classes=3, rng=np.random.default_rng(0))
    assert body.accuracy > 0.9
