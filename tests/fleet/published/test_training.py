"""The paper as written: its equations, its accountant, its shuffler, and its leak."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from contract import toy_problem
from seeded import SeededNoise
from tacit.accounting import compose_gaussian
from tacit.errors import TacitError
from tacit.fleet.published import central, clients, perturbation, settings, training
from tacit.guarantee import Unprotected
from tacit.noise import SYSTEM_NOISE

PARTS = (perturbation.Part(0, 30), perturbation.Part(30, 40))


def test_scaling_is_min_max_and_can_be_undone() -> None:
    rows = np.random.default_rng(0).standard_normal((5, 9))
    scaled, low, span = perturbation.scale_rows(rows)
    assert scaled.min() == 0.0
    assert scaled.max() == 1.0
    np.testing.assert_allclose(scaled * span + low, rows)
    flat, _, _ = perturbation.scale_rows(np.ones((1, 4)))
    assert np.all(np.isfinite(flat))


@pytest.mark.parametrize("k", [0.2, 0.5, 0.9])
def test_noise_has_the_scales_of_equations_one_and_two(k: float) -> None:
    """Kolmogorov-Smirnov per part; false alarm 1e-6, and a twin that notices 10 %."""
    rows = np.random.default_rng(0).standard_normal((12_000, 40))
    noisy, undone = perturbation.perturb(
        rows, PARTS, k=np.full(12_000, k), epsilon=8.0, source=SYSTEM_NOISE
    )
    for part, share in zip(PARTS, (k, 1.0 - k), strict=True):
        columns = slice(part.start, part.stop)
        scaled, low, span = perturbation.scale_rows(rows[:, columns])
        noise = (noisy[:, columns] - scaled).ravel()
        assert stats.kstest(noise, stats.laplace(scale=share / 8.0).cdf).pvalue > 1e-6
        assert stats.kstest(1.1 * noise, stats.laplace(scale=share / 8.0).cdf).pvalue < 1e-6
        np.testing.assert_allclose(undone[:, columns], noisy[:, columns] * span + low)


def test_every_client_has_its_own_k() -> None:
    rows = np.zeros((2, 4000))
    rows[:, 0] = 1.0
    parts = (perturbation.Part(0, 2000), perturbation.Part(2000, 4000))
    k = np.array([0.1, 0.9])
    noisy, _ = perturbation.perturb(rows, parts, k=k, epsilon=1.0, source=SYSTEM_NOISE)
    extractor = np.abs(noisy[:, 1000:2000]).mean(axis=1)
    np.testing.assert_allclose(extractor, k, rtol=0.25)  # 7 standard errors


def test_the_accountant_grows_with_rounds_and_falls_with_epsilon_and_clients() -> None:
    def delta(rounds: int, rate: float, epsilon: float) -> float:
        return perturbation.moments_delta(
            rounds=rounds, rate=rate, noise_multiplier=1.0, epsilon=epsilon
        )

    assert delta(1, 0.4, 8.0) < delta(5, 0.4, 8.0) < delta(20, 0.4, 8.0) <= 1.0
    assert delta(5, 0.1, 8.0) < delta(5, 0.4, 8.0)
    assert delta(20, 0.4, 100.0) < delta(20, 0.4, 8.0)
    # By hand for one round, rate 0.5 and order 7: 7 * 8 * 0.25 / 0.5 - 7 * 8 = -28.
    assert delta(1, 0.5, 8.0) == pytest.approx(
        np.exp(min(0.5 * a * (a + 1) - 8 * a for a in range(1, 99)))
    )


def test_epsilon_shrinks_with_what_is_used_up() -> None:
    assert perturbation.dynamic_epsilon(8.0, 0.0, 0.1) == 8.0
    assert perturbation.dynamic_epsilon(8.0, 0.025, 0.1) == pytest.approx(6.0)
    assert perturbation.dynamic_epsilon(8.0, 0.1, 0.1) == 4.0


def test_delays_are_uniform_up_to_the_median_proposal() -> None:
    times = perturbation.delays(20_000, np.array([1.0, 3.0, 100.0]), source=SYSTEM_NOISE)
    assert stats.kstest(times / 3.0, "uniform").pvalue > 1e-6
    assert stats.kstest(times / 3.2, "uniform").pvalue < 1e-6
    with pytest.raises(TacitError, match="delays"):
        perturbation.delays(2, np.array([0.0]), source=SYSTEM_NOISE)


def small_fleet(n_clients: int = 8) -> clients.ClientData:
    X, y = toy_problem(n_series=64, length=32)
    labels = (y == "b").astype(np.int64)
    return clients.client_data(X, labels, np.arange(64) % n_clients, n_clients=n_clients)


def small_config(**changes: object) -> settings.PublishedConfig:
    values: dict[str, object] = {
        "n_rounds": 6,
        "clients_per_round": 4,
        "local_epochs": 2,
        "batch_size": 8,
        "epsilon_0": 100.0,
        "network": "light",
    }
    return settings.PublishedConfig(**{**values, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize("method", ["dptimefl", "fedavg", "cdpfl"])
def test_all_three_methods_learn_and_promise_nothing(method: str) -> None:
    data = small_fleet()
    asked = 8 if method == "cdpfl" else 4  # an account of all clients is quick
    config = small_config(method=method, n_rounds=12, clients_per_round=asked, delta_limit=0.9)
    run = training.run_published(data, config, n_classes=2, seed=0, source=SeededNoise(1))
    assert isinstance(run.guarantee, Unprotected)
    accuracy = np.mean(run.scores(data.X.double().numpy()).argmax(axis=1) == data.labels.numpy())
    assert accuracy > (0.8 if method != "cdpfl" else 0.4)
    assert (run.reidentification is not None) == (method == "dptimefl")


def test_the_run_stops_before_delta_passes_its_limit() -> None:
    config = small_config(epsilon_0=1.0, n_rounds=50, delta_limit=0.4, noise_multiplier=2.0)
    run = training.run_published(small_fleet(), config, n_classes=2, seed=0)
    assert 0 < len(run.history) < 50
    assert run.history[-1].delta <= 0.4
    assert (run.ended_by, "limit" in run.stopped) == ("delta", True)


@pytest.mark.parametrize(
    ("n_clients", "epsilon", "last"),
    [(100, 8.0, 10), (100, 10.0, 14), (1000, 8.0, 136), (1000, 10.0, 196)],
)
def test_the_accountant_ends_the_papers_settings_after_these_rounds(
    n_clients: int, epsilon: float, last: int
) -> None:
    config = settings.table_two(n_clients=n_clients, epsilon_0=epsilon)
    rate = config.clients_per_round / n_clients
    within = [
        perturbation.moments_delta(rounds=n, rate=rate, noise_multiplier=1.0, epsilon=epsilon)
        <= config.delta_limit
        for n in (last, last + 1)
    ]
    assert within == [True, False]


def test_eight_is_ended_by_delta_and_fedavg_by_convergence() -> None:
    data = small_fleet()
    small = {"local_epochs": 1, "n_rounds": 60, "window": 8, "rate": 0.3}
    runs = {
        method: training.run_published(
            data, small_config(method=method, epsilon_0=2.0, **small), n_classes=2, seed=0
        )
        for method in ("dptimefl", "fedavg")
    }
    assert runs["dptimefl"].ended_by == "delta"
    assert runs["fedavg"].ended_by == "convergence"
    assert len(runs["dptimefl"].history) < len(runs["fedavg"].history) < 60


def test_convergence_compares_two_windows_of_rounds() -> None:
    rising = list(np.linspace(0.1, 0.9, 20))
    assert not training.converged(rising, window=5, least_gain=0.005)
    assert training.converged([*rising, *[0.9] * 10], window=5, least_gain=0.005)
    assert not training.converged([0.9] * 9, window=5, least_gain=0.005)


@pytest.mark.seconds
def test_the_central_rival_is_calibrated_to_the_nominal_pair() -> None:
    """Less noise for more epsilon; the account of the noise that is used gives it back."""
    found = {}
    for epsilon in (2.0, 8.0):
        config = settings.table_two(n_clients=100, method="cdpfl", epsilon_0=epsilon, n_rounds=4)
        found[epsilon] = training.central_noise(config, rate=0.4)
        spent = compose_gaussian(
            noise_multiplier=found[epsilon],
            rounds=config.n_rounds,
            delta=0.1,
            neighbours="add-remove",
            noise="continuous",
            sampling_rate=0.4,
        )
        assert 0.98 * epsilon < spent <= epsilon
    assert found[8.0] < 0.6 * found[2.0]


def test_the_clip_norm_of_the_central_rival_is_chosen_on_held_out_training_series(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All but one candidate stand still: the one that learns must be found."""
    monkeypatch.setattr(central, "CLIP_NORMS", (1e-6, 1.0, 2e-6))
    config = small_config(method="cdpfl", epsilon_0=1e4, n_rounds=8, clients_per_round=8)
    chosen = central.choose_clip_norm(
        small_fleet(), config, n_classes=2, seed=0, source=SeededNoise(1)
    )
    assert chosen.clip_norm == 1.0
    with pytest.raises(TacitError, match="CDP-FL alone"):
        central.choose_clip_norm(small_fleet(), small_config(), n_classes=2, seed=0)
    with pytest.raises(TacitError, match="no client holds 5 series"):
        central.choose_clip_norm(small_fleet(32), config, n_classes=2, seed=0)


def test_reports_are_linked_although_they_were_shuffled() -> None:
    run = training.run_published(small_fleet(), small_config(), n_classes=2, seed=0)
    assert run.reidentification is not None
    assert run.reidentification > 0.8  # chance is 0.25
    assert "LDP" in run.guarantee.reason


def test_table_two_and_refusals() -> None:
    paper = settings.table_two(n_clients=100)
    assert (paper.clients_per_round, paper.delta_limit) == (40, 0.1)
    assert (paper.local_epochs, paper.network) == (40, "paper")
    many = settings.table_two(n_clients=1000, preset="tuned", delta_limit=None)
    assert (many.clients_per_round, many.delta_limit) == (100, 0.001)
    assert (many.local_epochs, many.network) == (5, "light")
    assert settings.table_two(n_clients=1000, delta_limit=0.2).delta_limit == 0.2
    wrong: dict[str, Any] = {
        "method": "x",
        "network": "x",
        "epsilon_0": float("nan"),
        "preset": "x",
    }
    for name, value in wrong.items():
        with pytest.raises(TacitError, match=name):
            settings.table_two(n_clients=100, **{name: value})
    with pytest.raises(TacitError, match="k must"):
        training.run_published(small_fleet(), small_config(), n_classes=2, k=1.0, seed=0)
    for proposals in ([1.0, 2.0], [0.0], [float("nan")] * 8):
        with pytest.raises(TacitError, match="T_i"):
            training.run_published(
                small_fleet(), small_config(), n_classes=2, proposals=proposals, seed=0
            )
