"""Noise shares and a secure sum: the norm bound, the sum, the theorem and the shares."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray
from scipy import stats

from seeded import SeededNoise
from tacit.accounting import compose_discrete, compose_gaussian
from tacit.errors import TacitError
from tacit.fleet.deployment.seal import sealed_size
from tacit.fleet.plan import FleetPlan
from tacit.fleet.reports import distributed, shares
from tacit.fleet.reports.calibration import make_plan
from tacit.fleet.reports.distributed import DistributedReport
from tacit.guarantee import DpGuarantee, round_up
from tacit.noise import SYSTEM_NOISE

N = 24


@lru_cache
def plan(n_rounds: int = 4) -> FleetPlan:
    return make_plan(
        classes=("a", "b", "c"),
        n_channels=1,
        length=24,
        mechanism="distributed",
        n_clients=N,
        n_rounds=n_rounds,
        n_kernels=20,
    )


def report() -> DistributedReport:
    return DistributedReport(plan())


def directions(n: int, seed: int = 0) -> NDArray[Any]:
    rows = np.random.default_rng(seed).standard_normal((n, plan().dimension))
    unit: NDArray[Any] = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return unit


def test_the_integer_norm_never_passes_the_bound() -> None:
    units = report().settings.clip_units
    one_axis = np.eye(plan().dimension)[:5] * 7.0  # far too long: must be clipped
    rows = np.concatenate([directions(500), one_axis, np.zeros((1, plan().dimension))])
    whole = report().quantise(rows, source=SYSTEM_NOISE)
    assert np.einsum("ij,ij->i", whole, whole).max() <= units**2
    assert np.linalg.norm(whole[:500], axis=1).min() > 0.9 * units


def test_rounding_is_unbiased() -> None:
    # A mean of 4000 roundings has standard error at most 0.5/sqrt(4000); 7 of them over 90
    # coordinates is passed with probability below 1e-9.
    row = directions(1)
    many = report().quantise(np.repeat(row, 4000, axis=0), source=SYSTEM_NOISE)
    error = many.mean(axis=0) - row[0] * report().direction_scale
    assert np.abs(error).max() < 7 * 0.5 / math.sqrt(4000)


def test_the_share_path_equals_the_plain_sum_modulo_the_ring() -> None:
    source = SeededNoise(3)
    reports = report().randomize(directions(N), source=source)
    assert reports.min() >= 0
    assert reports.max() < shares.MODULUS
    sent = [report().encode(one, source=source) for one in reports]
    dimension = plan().dimension
    vectors, n = shares.sum_vectors((parts.analyser for parts in sent), dimension=dimension)
    masks = report().sum_helper_parts(parts.helper for parts in sent)
    total = shares.unmask(vectors, masks, dimension=dimension)
    assert n == N
    np.testing.assert_array_equal(total, reports.sum(axis=0) % shares.MODULUS)
    assert len({parts.helper for parts in sent}) == N, "a seed of its own for every report"


def test_a_mask_is_aes_in_counter_mode() -> None:
    """Two routes: the stream, and the counter's blocks enciphered one by one."""
    seed = bytes(range(32))
    blocks = b"".join(number.to_bytes(16, "big") for number in range(2))
    expected = Cipher(algorithms.AES256(seed), modes.ECB()).encryptor().update(blocks)
    assert shares.sum_masks([seed], dimension=8) == expected


def test_a_device_sends_less_than_ten_kilobytes() -> None:
    wide = make_plan(
        classes=tuple("abcdef"),
        n_channels=9,
        length=128,
        mechanism="distributed",
        n_clients=100,
        n_rounds=80,
    )
    mechanism = DistributedReport(wide)
    up = sealed_size(mechanism.message_bytes) + sealed_size(mechanism.helper_bytes)
    assert 4 * wide.dimension < up < 10_000


def test_the_simulators_sum_has_the_law_of_the_clients_sum() -> None:
    """Spread and shape of both kinds of noise; false alarm 1e-6; twins notice 15 % and 50 %."""
    zero = np.zeros((N, plan().dimension))
    one = report().settings
    modulus = shares.MODULUS

    def signed(total: NDArray[Any]) -> NDArray[Any]:
        centred: NDArray[Any] = (total + modulus // 2) % modulus - modulus // 2
        return centred

    shortcut, clients = [], []
    for _ in range(60):
        nothing = report().block_total(zero, source=SYSTEM_NOISE)
        shortcut.append(signed(report().noised_total(nothing, N, source=SYSTEM_NOISE)))
        apart = report().randomize(zero, source=SYSTEM_NOISE)
        clients.append(signed(apart.sum(axis=0) % modulus))
    a, b = np.concatenate(shortcut), np.concatenate(clients)
    spread = one.local_sigma * math.sqrt(N)
    # 6.5 sigmas of a sample standard deviation over `a.size` draws: false alarm below 1e-9.
    allowed = 6.5 / math.sqrt(2 * a.size)
    assert abs(a.std() / spread - 1.0) < allowed
    assert abs(b.std() / spread - 1.0) < allowed
    assert stats.ks_2samp(a, b).pvalue > 1e-6
    assert abs(1.15 * a.std() / spread - 1.0) > allowed
    assert stats.ks_2samp(2.0 * a, b).pvalue < 1e-6


def test_the_plan_is_the_exact_gaussian_curve_but_for_the_grid() -> None:
    """Two routes: the discrete sums here, continuous noise in the shared accountant."""
    one = report().settings
    spent = report().guarantee([N] * 4)
    assert spent is not None
    multiplier = one.local_sigma * math.sqrt(N) / one.clip_units
    delta = plan().delta
    exact = compose_gaussian(noise_multiplier=multiplier, rounds=4, delta=delta, noise="continuous")
    assert exact <= spent.epsilon <= exact * (1.0 + 1e-5)
    assert 0.99 * plan().epsilon < spent.epsilon <= plan().epsilon
    concentrated = compose_gaussian(noise_multiplier=multiplier, rounds=4, delta=delta)
    assert spent.epsilon < 0.95 * concentrated


@pytest.mark.parametrize("n_min", [2, 60])
@pytest.mark.parametrize("epsilon", [0.5, 8.0, 60.0])
@pytest.mark.parametrize("rounds", [1, 30])
def test_every_plan_keeps_its_total_and_its_sums_can_be_drawn(
    n_min: int, epsilon: float, rounds: int
) -> None:
    wide = make_plan(
        classes=("a", "b"),
        n_channels=1,
        length=24,
        mechanism="distributed",
        n_clients=60,
        n_min=n_min,
        epsilon=epsilon,
        n_rounds=rounds,
        n_kernels=8,
    )
    spent = DistributedReport(wide).guarantee([n_min] * rounds)
    assert spent is not None
    assert spent.epsilon <= epsilon
    nothing = np.zeros(wide.dimension, dtype=np.int64)
    total = DistributedReport(wide).noised_total(nothing, 60, source=SYSTEM_NOISE)
    DistributedReport(wide).mean_direction(total, 60)


def test_the_gap_is_charged_when_clients_add_little_noise() -> None:
    arguments: dict[str, Any] = {"clip_units": 10, "dimension": 1000, "delta": 1e-5}
    little = distributed.sum_epsilon([50], local_sigma=0.7, **arguments)
    plain = compose_discrete([0.7 * math.sqrt(50)], **arguments)
    assert little > 1.5 * plain
    enough = distributed.sum_epsilon([50], local_sigma=3.0, **arguments)
    assert enough == pytest.approx(compose_discrete([3.0 * math.sqrt(50)], **arguments), rel=1e-9)


def test_fewer_reports_cost_more_and_more_cost_less() -> None:
    spent = [report().guarantee([n] * 4) for n in (12, 23, N, 48)]
    epsilons = [guarantee.epsilon for guarantee in spent if guarantee is not None]
    assert epsilons == sorted(epsilons, reverse=True)
    assert len(set(epsilons)) == 4


@lru_cache
def loose() -> FleetPlan:
    """A plan whose n_min lies well below the number of clients."""
    return make_plan(
        classes=("a", "b"),
        n_channels=1,
        length=24,
        mechanism="distributed",
        n_clients=200,
        n_min=50,
        n_rounds=10,
        n_kernels=8,
    )


def guarantee(received: list[int]) -> DpGuarantee:
    found = DistributedReport(loose()).guarantee(received)
    assert found is not None
    return found


@pytest.mark.parametrize("n", [50, 51, 200])
def test_the_planned_number_and_more_keep_the_planned_delta(n: int) -> None:
    found = guarantee([n] * 10)
    assert found.delta == loose().delta
    assert found.model == "distributed"
    assert found.assumptions[0] == (
        "every counted report comes from a different client that follows the protocol"
    ), "the noise of all of them is counted, so all of them must make it"
    assert found.epsilon <= loose().epsilon
    said = "against a share helper or an analyser that leaves reports out, (8, 1e-05) holds"
    assert any(said in part for part in found.assumptions)


def test_dishonest_clients_are_to_be_subtracted_and_the_guarantee_says_so() -> None:
    assert any("n - k reports" in part for part in guarantee([200] * 10).not_covered)


def test_what_is_left_against_both_servers_is_stated() -> None:
    """Two routes: every client's own noise over ten rounds, composed by the shared accountant."""
    settings = DistributedReport(loose()).settings
    alone = compose_discrete(
        [settings.local_sigma] * 10,
        clip_units=settings.clip_units,
        dimension=loose().dimension,
        delta=loose().delta,
    )
    assert alone > 5 * loose().epsilon
    (said,) = [part for part in guarantee([50] * 10).not_covered if "in collusion" in part]
    assert f"epsilon {round_up(alone)}" in said


def test_a_sum_that_no_honest_fleet_can_reach_is_refused() -> None:
    modulus = shares.MODULUS
    total = np.zeros(plan().dimension, dtype=np.int64)
    total[0] = modulus // 2
    with pytest.raises(TacitError, match="honest"):
        report().mean_direction(total, N)


def test_too_many_rounds_or_clients_are_refused() -> None:
    with pytest.raises(TacitError, match=r"pass 2\*\*31; ask fewer clients"):
        DistributedReport.calibrate(replace(plan(), n_min=10**9), n_most=10**9)
    with pytest.raises(TacitError, match="fewer rounds"):
        DistributedReport.calibrate(
            replace(plan(), n_rounds=10**6, client_rounds=10**6, epsilon=0.1), n_most=N
        )
