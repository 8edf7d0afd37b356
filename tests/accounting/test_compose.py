"""Composition, groups, units and sampling."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from scipy.stats import binom

from shuffle_enumeration import divergence
from tacit.accounting import (
    change_unit,
    compose_pure,
    compose_shuffled,
    group_privacy,
    shuffle_epsilon,
    subsample_without_replacement,
    timefl_table_1,
    timefl_theorem_1,
)
from tacit.accounting.batch import Batch
from tacit.accounting.clones import clones_delta, clones_delta_given
from tacit.accounting.compose import loss_distribution
from tacit.errors import TacitError


def test_no_rounds_cost_nothing_and_one_round_is_the_single_bound() -> None:
    assert compose_shuffled([], delta=1e-6) == 0.0
    one = shuffle_epsilon(local_epsilon=1.0, n=1000, delta=1e-6).central_epsilon
    assert compose_shuffled([(1.0, 1000)], delta=1e-6) <= one


def test_rounds_with_fewer_reports_cost_more_and_order_does_not_matter() -> None:
    full = compose_shuffled([(1.0, 1000)] * 4, delta=1e-6)
    mixed = [(1.0, 1000), (1.0, 400), (1.0, 1000), (1.0, 1000)]
    fewer = compose_shuffled(mixed, delta=1e-6)
    assert full < fewer < compose_shuffled([(1.0, 400)] * 4, delta=1e-6)
    assert fewer == pytest.approx(compose_shuffled(mixed[::-1], delta=1e-6), rel=1e-9)


def test_many_rounds_cost_less_than_their_sum_and_never_more_than_the_local_sum() -> None:
    many = compose_shuffled([(0.5, 2000)] * 400, delta=1e-6)
    single = shuffle_epsilon(local_epsilon=0.5, n=2000, delta=1e-6 / 400).central_epsilon
    assert many < 0.2 * 400 * single
    assert compose_shuffled([(3.0, 2)] * 5, delta=1e-9) <= 15.0 + 1e-9


def test_tiny_deltas_fall_back_to_sums_that_need_no_convolution() -> None:
    epsilon = compose_shuffled([(0.5, 2000)] * 10, delta=1e-20)
    single = shuffle_epsilon(local_epsilon=0.5, n=2000, delta=1e-21).central_epsilon
    assert epsilon == pytest.approx(10 * single, rel=1e-6)


def test_rounds_of_very_different_size_compose() -> None:
    epsilon = compose_shuffled([(2.0, 10**6), (0.5, 50), (1.0, 10**4)], delta=1e-7)
    alone = compose_shuffled([(0.5, 50)], delta=1e-7)
    assert alone < epsilon < alone + 0.2


@pytest.mark.parametrize(("local_epsilon", "n"), [(1.0, 20), (2.0, 1000), (4.0, 10**6)])
def test_the_loss_distribution_dominates_the_bound_that_it_stands_for(
    local_epsilon: float, n: int
) -> None:
    reach = shuffle_epsilon(local_epsilon=local_epsilon, n=n, delta=1e-12).central_epsilon
    one = Batch(local_epsilon=local_epsilon, n=n)
    pld = loss_distribution(one, reach=reach, step=reach / 300, tail=1e-12)
    epsilons = np.linspace(0.0, reach, 57)
    tight = clones_delta(
        epsilons=epsilons, local_epsilon=local_epsilon, n=n, target_delta=1e-9, groups=20_000
    )
    theirs = np.array([pld.get_delta_for_epsilon(epsilon) for epsilon in epsilons])
    assert (theirs >= tight * (1.0 - 1e-8) - 1e-14).all()
    assert theirs[20] == pytest.approx(tight[20], rel=0.05)


def test_pure_composition_rounds_up() -> None:
    assert compose_pure([]) == 0.0
    assert 1.0 <= compose_pure([0.1] * 10) < 1.0 + 1e-15
    with pytest.raises(TacitError):
        compose_pure([1.0, math.nan])


def test_group_privacy_covers_randomized_response_exactly() -> None:
    """Two clients through binary randomized response: the group of two is 2 epsilon, no less."""
    epsilon, delta = group_privacy(epsilon=0.7, size=2)
    keep = math.exp(0.7) / (1.0 + math.exp(0.7))
    p = np.outer([keep, 1 - keep], [keep, 1 - keep]).ravel()
    q = np.outer([1 - keep, keep], [1 - keep, keep]).ravel()
    assert delta == 0.0
    assert divergence(p, q, epsilon) < 1e-15
    assert divergence(p, q, epsilon - 0.01) > 0.0


def test_group_delta_grows_as_stated_and_refuses_to_promise_nothing() -> None:
    epsilon, delta = group_privacy(epsilon=0.5, delta=1e-6, size=4)
    assert epsilon == pytest.approx(2.0)
    assert delta == pytest.approx(1e-6 * sum(math.exp(0.5 * i) for i in range(4)), rel=1e-6)
    assert group_privacy(epsilon=0.5, delta=1e-6, size=1) == (0.5, 1e-6)
    assert change_unit(epsilon=0.5, delta=1e-6, series_per_person=4) == (epsilon, delta)
    with pytest.raises(TacitError, match="delta >= 1"):
        group_privacy(epsilon=5.0, delta=1e-6, size=10)
    with pytest.raises(TacitError, match="size"):
        group_privacy(epsilon=1.0, size=0)


def test_sampling_without_replacement_against_enumeration() -> None:
    """One of N clients is drawn and releases a randomized bit: replacing a client, exactly."""
    n_total, epsilon = 5, 1.5
    keep = math.exp(epsilon) / (1.0 + math.exp(epsilon))
    p = np.array([1 - keep, keep])  # every client holds 0
    q = ((n_total - 1) * p + p[::-1]) / n_total  # one client holds 1 instead
    bound, delta = subsample_without_replacement(
        epsilon=epsilon, delta=0.0, n_sampled=1, n_total=n_total
    )
    assert delta == 0.0
    assert max(divergence(p, q, bound), divergence(q, p, bound)) <= 1e-15
    assert subsample_without_replacement(epsilon=2.0, delta=0.1, n_sampled=3, n_total=3) == (2, 0.1)
    large, _ = subsample_without_replacement(epsilon=900.0, delta=0.0, n_sampled=1, n_total=10)
    assert large == pytest.approx(900.0 - math.log(10.0))


@pytest.mark.parametrize("epsilon", [1e-6, 0.5, 1.0, 1.3, 5.0, 40.0, 699.0, 701.0, 900.0])
@pytest.mark.parametrize("n_total", [2, 10**3, 10**10, 10**15])
def test_sampling_few_of_many_loses_no_digits(epsilon: float, n_total: int) -> None:
    """Against the same formula in 60 digits: never below it, and above by next to nothing."""
    with localcontext(prec=60):
        exact = (1 + (Decimal(epsilon).exp() - 1) / n_total).ln()
        bound, _ = subsample_without_replacement(
            epsilon=epsilon, delta=0.0, n_sampled=1, n_total=n_total
        )
        assert exact <= Decimal(bound) <= exact * (1 + Decimal("1e-11"))


@pytest.mark.seconds
def test_the_papers_theorem_is_labelled_and_its_table_reproduced() -> None:
    assert sum(cell.reproduced for cell in timefl_table_1()) == 25
    claim = timefl_theorem_1(local_epsilon=8.0, n=100, delta=1e-3)
    assert not claim.condition_holds
    assert claim.central_epsilon > 8.0  # worse than no shuffler at all, and still no guarantee
    assert timefl_theorem_1(local_epsilon=1.0, n=100, delta=1e-3).condition_limit == pytest.approx(
        1.336, abs=1e-3
    )


@pytest.mark.parametrize("target_delta", [0.5, 1e-4, 1e-30])
@pytest.mark.parametrize("epsilon", [0.05, 0.3, 0.9])
def test_the_bound_holds_wherever_its_window_lies(target_delta: float, epsilon: float) -> None:
    """Outside of the window mass is moved, never dropped; at 0.9 most of delta lies below it."""
    n, local_epsilon = 1000, 1.0
    counts = np.arange(n)
    given = clones_delta_given(counts, epsilons=np.array([epsilon]), local_epsilon=local_epsilon)
    full = math.fsum((binom.pmf(counts, n - 1, math.exp(-local_epsilon)) * given[0]).tolist())
    bound = clones_delta(
        epsilons=np.array([epsilon]),
        local_epsilon=local_epsilon,
        n=n,
        target_delta=target_delta,
        groups=1000,
    )
    assert bound[0] >= full * (1.0 - 1e-9)
