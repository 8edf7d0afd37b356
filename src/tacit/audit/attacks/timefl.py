"""DP-TimeFL as published: a round's shuffled reports are joined again to their clients.

The attacker is the server. It knows about what each client's update looks like and assigns the
shuffled reports to clients so that they fit best. With noise of scale k/epsilon on each of
thousands of coordinates, the reports hardly hide anything.

Against the sound reports the same attacker, who is given every client's exact update, is held to
e**(2 eps0) / (e**(2 eps0) + n - 1) for a local epsilon eps0. Proof: given the shuffled reports, let
j and k be two places where client i's report may be. Exchanging what lies at j and k turns the
orders with i at j into those with i at k, one to one, and changes the likelihood of each by
[R_i(y_j)/R_m(y_j)] [R_m(y_k)/R_i(y_k)] <= e**(2 eps0), where m is the client moved from k to j. So
the posterior of any two places differs by at most that factor, whatever the attacker knows.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np

from tacit.arrays import Floats, Integers
from tacit.audit.attacks.result import AttackResult, SoundCheck, best_guess_rate
from tacit.data import load_dataset, split_clients
from tacit.errors import check_at_least, check_delta, check_epsilon
from tacit.guarantee import rounded_up
from tacit.noise import SYSTEM_NOISE, NoiseSource, permutation
from tacit.system.progress import Progress, silent

if TYPE_CHECKING:
    from tacit.fleet.published.training import PublishedRun


_SOUND_ROUNDS = 400  # one client is scored in each, so that the counts are independent


def attack_timefl(
    *,
    data: str = "BasicMotions",
    n_clients: int = 40,
    epsilon: float = 8.0,
    delta: float = 1e-5,
    n_rounds: int = 3,
    seed: int = 0,
    source: NoiseSource = SYSTEM_NOISE,
    progress: Progress = silent,
) -> AttackResult:
    """Train as published with these clients, link every round, then link sound reports."""
    check_at_least(n_clients, 2, name="n_clients")
    check_at_least(n_rounds, 1, name="n_rounds")
    check_epsilon(epsilon)
    check_delta(delta)
    started = time.perf_counter()
    dataset = load_dataset(data)
    X = np.concatenate([dataset.X_train, dataset.X_test])
    classes, y = np.unique(np.concatenate([dataset.y_train, dataset.y_test]), return_inverse=True)
    rng = np.random.default_rng(seed)
    client = split_clients(y, n_clients=n_clients, how="iid", rng=rng)
    published = _train_published(
        X, y, client, n_clients=n_clients, epsilon=epsilon, n_rounds=n_rounds, seed=seed,
        source=source, progress=progress,
    )  # fmt: skip
    rate = published.reidentification or 0.0
    sound, local_epsilon = attack_sound_reports(
        X, y, client, n_clients=n_clients, epsilon=epsilon, delta=delta, source=source
    )
    return AttackResult(
        attack="timefl",
        succeeded=rate > 0.5,
        rate=rate,
        chance=1.0 / n_clients,
        seconds=time.perf_counter() - started,
        guarantee=published.guarantee,
        sound=sound,
        details={
            "data": data,
            "clients": n_clients,
            "nominal_epsilon": epsilon,
            "linked_per_round": [r.reidentification for r in published.history],
            "classes": len(classes),
            "sound_local_epsilon": local_epsilon,
        },
    )


def _train_published(
    X: Floats,
    y: Integers,
    client: Integers,
    *,
    n_clients: int,
    epsilon: float,
    n_rounds: int,
    seed: int,
    source: NoiseSource,
    progress: Progress,
) -> PublishedRun:
    from tacit.fleet.published.clients import client_data
    from tacit.fleet.published.settings import PublishedConfig
    from tacit.fleet.published.training import run_published

    config = PublishedConfig(
        n_rounds=n_rounds,
        clients_per_round=n_clients,
        local_epochs=2,
        network="light",
        epsilon_0=epsilon,
        noise_multiplier=1e3,  # only the paper's accountant reads it: it must not end the run
    )
    return run_published(
        client_data(X, y, client, n_clients=n_clients),
        config,
        n_classes=int(y.max()) + 1,
        seed=seed,
        source=source,
        progress=progress,
    )


def attack_sound_reports(
    X: Floats,
    y: Integers,
    client: Integers,
    *,
    n_clients: int,
    epsilon: float,
    delta: float,
    source: NoiseSource = SYSTEM_NOISE,
) -> tuple[SoundCheck, float]:
    """Link sound reports of one round of a run with this total; also the local epsilon.

    The attacker knows every client's direction exactly. In each repetition one client is scored.
    """
    from tacit.fleet.learning.head import feature_map, initial_model
    from tacit.fleet.reports.calibration import make_plan
    from tacit.fleet.reports.linking import link_reports
    from tacit.fleet.reports.privunit import PrivUnitReport
    from tacit.fleet.simulation.fleet import make_fleet

    names = tuple(str(code) for code in range(int(y.max()) + 1))
    plan = make_plan(
        classes=names, n_channels=X.shape[1], length=X.shape[2], mechanism="privunit",
        n_clients=n_clients, epsilon=epsilon, delta=delta, n_rounds=10, n_kernels=64,
    )  # fmt: skip
    report = PrivUnitReport(plan)
    rows = feature_map(plan).transform(X)
    fleet = make_fleet(rows, y, client, n_clients=n_clients, n_classes=len(names))
    directions = fleet.directions(np.arange(n_clients), initial_model(plan).weights, plan.training)
    hits = 0
    for number in range(_SOUND_ROUNDS):
        order = permutation(n_clients, source=source)
        reports = report.randomize(directions, source=source)[order]
        guessed = link_reports(reports, directions)
        place = int(np.flatnonzero(order == number % n_clients)[0])
        hits += int(guessed[place] == number % n_clients)
    promised = report.guarantee([n_clients] * plan.n_rounds)
    assert promised is not None
    check = SoundCheck.of(
        hits=hits,
        runs=_SOUND_ROUNDS,
        bound=best_guess_rate(2.0 * report.local_epsilon, n_clients),
        what=f"PrivUnitG reports, local epsilon {rounded_up(report.local_epsilon)}",
        guarantee=promised,
    )
    return check, report.local_epsilon
