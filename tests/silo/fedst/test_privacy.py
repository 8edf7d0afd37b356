"""The privacy of the noisy order of shapelets: its sensitivity, its noise, and an audit of both."""

from __future__ import annotations

import itertools
import math
from functools import partial
from typing import Any

import jax
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from tacit.errors import TacitError
from tacit.noise import SYSTEM_NOISE, discrete_laplace
from tacit.silo.fedst.privacy import LARGEST_SCALE, add_noise, gain_sensitivity, selection_scale
from tacit.silo.fedst.quality import GAIN_BITS, GAIN_ERROR, gain_in_order
from tacit.silo.fedst.settings import Settings
from tacit.silo.fedst.top_k import top_indices
from tacit.silo.secure.jax_x64 import enable_x64
from tacit.silo.secure.plain_session import PlainSession, run_plain
from tacit.silo.secure.session import ProgramResult

FALSE_ALARM = 1e-7


def information(table: tuple[int, ...]) -> float:
    """Mutual information, in bits, of side and class, from the four counts."""
    cells = np.array(table, dtype=float).reshape(2, 2) / sum(table)
    product = cells.sum(axis=1, keepdims=True) * cells.sum(axis=0, keepdims=True)
    held = cells > 0
    return float(np.sum(cells[held] * np.log2(cells[held] / product[held])))


def exact_sensitivity(n: int) -> float:
    return (n * math.log2(n) - (n - 1) * math.log2(n - 1)) / n


@pytest.mark.seconds
@pytest.mark.parametrize("n", [2, 3, 4, 5, 8, 13, 20])
def test_no_move_of_one_series_between_cells_changes_the_gain_by_more_and_one_by_as_much(
    n: int,
) -> None:
    worst = 0.0
    for table in itertools.product(range(n + 1), repeat=3):
        if sum(table) > n:
            continue
        cells = (*table, n - sum(table))
        for a, b in itertools.permutations(range(4), 2):
            if cells[a]:
                moved = list(cells)
                moved[a], moved[b] = moved[a] - 1, moved[b] + 1
                worst = max(worst, abs(information(cells) - information(tuple(moved))))
    assert worst == pytest.approx(exact_sensitivity(n), abs=1e-12)


@pytest.mark.parametrize("n", [2, 3, 5, 7])
def test_no_replaced_series_changes_a_rounded_gain_by_more(n: int) -> None:
    """All orders of class bits, and every way to take one series out and put another in."""
    orders = np.array(list(itertools.product((0, 1), repeat=n)))
    with enable_x64():
        found = np.asarray(jax.jit(gain_in_order)(orders, orders.sum(axis=1)))
    gains = {tuple(order): int(gain) for order, gain in zip(orders.tolist(), found, strict=True)}
    worst = max(
        abs(gains[order] - gains[(*rest[:place], bit, *rest[place:])])
        for order in gains
        for taken in range(n)
        for rest in [(*order[:taken], *order[taken + 1 :])]
        for place in range(n)
        for bit in (0, 1)
    )
    assert worst <= gain_sensitivity(n)
    assert worst >= 2**GAIN_BITS * exact_sensitivity(n) - 1  # not larger than need be


@pytest.mark.slow
@pytest.mark.parametrize(("protocol", "n_parties"), [("ABY3", 3), ("CHEETAH", 2)])
def test_the_engines_gains_are_as_exact_as_assumed(protocol: str, n_parties: int) -> None:
    """Every term of a gain at every count: two sums of them, each weighted by at most 1."""
    from spu import libspu
    from spu.utils import simulation

    from tacit.silo.fedst.quality import _x_log_x

    config = libspu.RuntimeConfig(
        protocol=getattr(libspu.ProtocolKind, protocol),
        field=libspu.FieldType.FM64,
        fxp_fraction_bits=18,
    )
    counts = np.arange(1, 4097)
    with enable_x64():
        simulator = simulation.Simulator(n_parties, config)
        found = simulation.sim_jax(simulator, _x_log_x)(counts)
    error = np.abs(found - counts * np.log2(counts)) / counts
    assert 2 * error.max() < 0.75 * GAIN_ERROR  # what is left is for the last digits


def chosen(qualities: NDArray[Any], *, k: int, scale: float, n: int) -> NDArray[Any]:
    """`n` runs of the noisy order (n, k), with the package's noise and its network."""
    noise = discrete_laplace((n, len(qualities)), scale=scale, source=SYSTEM_NOISE)
    with enable_x64():
        run = jax.jit(jax.vmap(partial(top_indices, k=k, noised=True)))
        return np.asarray(run(qualities + np.asarray(noise, dtype=np.int64)))


def privacy_lower_bound(scale: float) -> float:
    """What an observer can show of the loss on a pair of data sets, by Clopper and Pearson."""
    n, step = 400_000, gain_sensitivity(100)
    # The second and third candidate are far ahead; the first one gains and they lose.
    before = np.array([0, 3 * step, 3 * step, -9 * step])
    after = before + np.array([step, -step, -step, 0])
    hits = [
        int(np.sum(np.all(chosen(q, k=2, scale=scale, n=n) == [0, 1], axis=1)))
        for q in (before, after)
    ]
    low = stats.beta.ppf(FALSE_ALARM, hits[1], n - hits[1] + 1)
    high = stats.beta.ppf(1 - FALSE_ALARM, hits[0] + 1, n - hits[0])
    return math.log(low / high)


@pytest.mark.seconds
def test_the_noisy_order_keeps_its_epsilon() -> None:
    epsilon = 2.0
    assert privacy_lower_bound(selection_scale(n_series=100, n_chosen=2, epsilon=epsilon)) < epsilon


@pytest.mark.seconds
def test_the_audit_refutes_noise_that_forgets_how_many_are_chosen_and_from_how_far() -> None:
    """Noise for one choice, and for gains that only rise or only fall: a fourth of the scale."""
    epsilon = 2.0
    scale = selection_scale(n_series=100, n_chosen=2, epsilon=epsilon)
    assert privacy_lower_bound(scale / 4) > epsilon


def test_every_owner_but_the_first_adds_noise() -> None:
    seen: dict[int, list[NDArray[Any]]] = {2: [], 3: []}

    def program(session: PlainSession, _inputs: object, _plan: object) -> ProgramResult:
        zeros = np.zeros(4000, dtype=np.int64) if session.rank == 0 else None
        value = session.share("x", zeros, owner=0, shape=(4000,))
        noised = session.reveal(add_noise(session, value, scale=5.0), what="noise alone")
        return ProgramResult(arrays={} if noised is None else {"noise": noised})

    for owners in seen:
        results, sessions = run_plain(program, None, [None] * owners)  # type: ignore
        seen[owners].append(results[0].arrays["noise"])
        assert len(sessions[0].opened) == 1
    # Variance 2 * scale^2 for each owner; ten standard errors of either variance lie between.
    variances = {owners: float(np.var(noise[0])) for owners, noise in seen.items()}
    assert 35.0 < variances[2] < 65.0
    assert 75.0 < variances[3] < 125.0


def test_noise_beyond_the_arithmetic_is_refused() -> None:
    def program(session: PlainSession, _inputs: object, _plan: object) -> ProgramResult:
        zero = np.zeros(1, dtype=np.int64) if session.rank == 0 else None
        value = session.share("x", zero, owner=0, shape=(1,))
        add_noise(session, value, scale=2.0 * LARGEST_SCALE)
        return ProgramResult()

    with pytest.raises(TacitError, match="raise epsilon"):
        run_plain(program, None, [None] * 2)  # type: ignore


def test_the_largest_noise_fits_the_keys() -> None:
    """Sums of many owners' noise at the limit still sort, and keep their indices."""
    values = np.array([-(2**44), 2**44, 0, 2**44 - 1] + [-(2**44)] * 4092)
    with enable_x64():
        found = np.asarray(jax.jit(partial(top_indices, k=4, noised=True))(values))
    assert found.tolist() == [1, 3, 2, 0]


def test_epsilon_is_split_and_nothing_of_it_is_spent_twice() -> None:
    alone = Settings(scope="local-search", classifier="forest", epsilon=3.0)
    assert (alone.selection_epsilon, alone.leaf_epsilon) == (None, 3.0)
    both = Settings(quality="ig", classifier="forest", epsilon=3.0)
    assert (both.selection_epsilon, both.leaf_epsilon) == (1.5, 1.5)
    assert (Settings().selection_epsilon, Settings().leaf_epsilon) == (None, None)


@pytest.mark.seconds
def test_more_candidates_than_noised_keys_have_room_for_are_refused() -> None:
    private: dict[str, Any] = {"classifier": "forest", "quality": "ig", "epsilon": 1.0}
    Settings(n_candidates=2**14, **private)
    with pytest.raises(TacitError, match="candidates"):
        Settings(n_candidates=2**14 + 1, **private)
    with enable_x64():  # all far below zero
        run = jax.jit(partial(top_indices, k=3, noised=True))
        best = run(np.arange(-(2**14), 0) - 2**40)
    assert np.asarray(best).tolist() == [2**14 - 1, 2**14 - 2, 2**14 - 3]
