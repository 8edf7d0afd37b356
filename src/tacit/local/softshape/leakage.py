"""What a published DP-SoftShape release reveals, measured with the attacker's full knowledge.

The attacker knows the network, epsilon and the candidate series, and sees one release: the noisy
embeddings S^priv of Eq. 4 of the first block. Given a candidate, every coordinate is Laplace with
known centre and scale, so its likelihood is exact and the best test is the likelihood ratio. The
published model also uses the clean scores afterwards; that further leak is not counted here, so
every figure below is a lower bound.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypedDict

import numpy as np
import torch
from numpy.typing import NDArray

from tacit.arrays import Floats
from tacit.errors import TacitError, check_at_least, check_epsilon
from tacit.local.softshape.network import SMALLEST_SCALE
from tacit.local.softshape.published import TrainedSoftShape, train_published
from tacit.local.softshape.settings import SoftShapeSettings
from tacit.noise import SYSTEM_NOISE, NoiseSource, float_laplace
from tacit.system.progress import Progress


class Leakage(TypedDict):
    """The leakage block of a published result."""

    claimed_total: float
    """Median over series of sum_p epsilon / (1 - alpha_p): the paper's own composition, in nats."""
    empirical_sensitivity: float
    """Largest L1 distance between two series' embeddings of one patch; the paper sets it to 1."""
    realised_loss_median: float
    """Median log-likelihood ratio, in nats, between the true series and another one."""
    reidentification: float
    """How often the likeliest candidate is the true series, of up to `n_series` candidates."""


def measure_leakage(
    trained: TrainedSoftShape,
    X: Floats,
    *,
    epsilon: float,
    source: NoiseSource = SYSTEM_NOISE,
    n_series: int = 100,
) -> Leakage:
    """Release each of the first `n_series` series once at `epsilon` and attack the releases."""
    check_epsilon(epsilon)
    check_at_least(n_series, 2, name="n_series")
    series = X[:n_series]
    if len(series) < 2:
        raise TacitError(f"measuring leakage needs at least 2 series, got {len(series)}.")
    centres, scales = release_law(trained, series, epsilon=epsilon)
    likelihoods = _log_likelihoods(centres, scales, source)
    own = np.diag(likelihoods)
    others = ~np.eye(len(series), dtype=bool)
    best_other = np.where(others, likelihoods, -np.inf).max(axis=1)
    return Leakage(
        claimed_total=float(np.median(claimed_totals(trained, series, epsilon=epsilon))),
        empirical_sensitivity=_largest_distance(centres),
        realised_loss_median=float(np.median((own[:, None] - likelihoods)[others])),
        reidentification=float(np.mean(own > best_other)),
    )


def release_law(trained: TrainedSoftShape, X: Floats, *, epsilon: float) -> tuple[Floats, Floats]:
    """The first block's release given each series: centres (n, P, D) and scales (n, P)."""
    network = trained.network
    with torch.inference_mode():
        embeddings = network.embed(trained.prepare(X))
        alpha = network.attention(embeddings)
        scale = network.noise_scale(embeddings, alpha, epsilon=epsilon).double()
    return embeddings.double().numpy(), scale.clamp_min(SMALLEST_SCALE).numpy()


def claimed_totals(trained: TrainedSoftShape, X: Floats, *, epsilon: float) -> Floats:
    """Per series, the total that the paper claims: its per-patch budgets, summed over blocks.

    A block that sees fewer tokens (rho < 1) spends fewer budgets. Later blocks' scores depend
    on the earlier noise; they are taken at zero noise here.
    """
    network = trained.network
    total = np.zeros(len(X))
    with torch.inference_mode():
        tokens = network.embed(trained.prepare(X))
        for block in range(trained.settings.n_blocks):
            alpha = network.attention(tokens)
            scale = network.noise_scale(tokens, alpha, epsilon=epsilon).double()
            sensitivity = 1.0 if trained.settings.clip is None else trained.settings.clip
            total += (sensitivity / scale.clamp_min(SMALLEST_SCALE)).sum(1).numpy()
            tokens = network.body(tokens, alpha, block=block)
    return total


def initialisation_trick(
    X: Floats,
    y_codes: NDArray[np.integer[Any]],
    X_test: Floats,
    y_test_codes: NDArray[np.integer[Any]],
    *,
    n_classes: int,
    epsilon: float = 0.01,
    attention_bias: float = 6.0,
    settings: SoftShapeSettings | None = None,
    seed: int = 0,
    source: NoiseSource = SYSTEM_NOISE,
    progress: Progress | None = None,
) -> dict[str, float]:
    """Train twice at one nominal epsilon: as usual, and with scores that start close to 1.

    A large attention bias makes 1 - alpha, and with it the noise of Eq. 4, almost vanish before
    training begins: the nominal epsilon can be made as small as one likes at no cost.
    """
    chosen = settings or SoftShapeSettings()
    accuracy = {}
    for name, bias in (("plain", chosen.attention_bias), ("tricked", attention_bias)):
        trained = train_published(
            X,
            y_codes,
            n_classes,
            epsilon=epsilon,
            settings=replace(chosen, attention_bias=bias),
            seed=seed,
            progress=progress,
        )
        guesses = trained.predict_scores(X_test, source).argmax(1)
        accuracy[name] = float(np.mean(guesses == y_test_codes))
    return {
        "nominal_epsilon": epsilon,
        "attention_bias": attention_bias,
        "plain_accuracy": accuracy["plain"],
        "tricked_accuracy": accuracy["tricked"],
    }


def _log_likelihoods(centres: Floats, scales: Floats, source: NoiseSource) -> Floats:
    """Entry (i, j): log density of a release of series i, were it one of series j."""
    spread = np.broadcast_to(scales[..., None], centres.shape)
    released = centres + float_laplace(centres.shape, scale=spread, source=source)
    gaps = _distances(released, centres)
    constant = centres.shape[2] * np.log(2.0 * scales).sum(axis=1)
    return np.asarray(-np.einsum("pij,jp->ij", gaps, 1.0 / scales) - constant)


def _distances(left: Floats, right: Floats) -> Floats:
    """L1 distances (P, i, j) between patch p of series i and patch p of series j."""
    one, two = (torch.from_numpy(side).transpose(0, 1).contiguous() for side in (left, right))
    return np.asarray(torch.cdist(one, two, p=1.0).numpy())


def _largest_distance(centres: Floats) -> float:
    """The largest L1 distance of one patch's embedding between any two series."""
    return float(_distances(centres, centres).max())
