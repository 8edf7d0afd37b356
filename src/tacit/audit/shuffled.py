"""The fleet's randomizers and a shuffled batch, ready to be audited; imported when asked for."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from tacit import mechanisms, noise
from tacit.arrays import Floats, Integers
from tacit.audit.bounds import DpClaim, GaussianClaim
from tacit.audit.engine import Audited
from tacit.audit.finite_laws import FiniteLaw
from tacit.audit.laws import PrivUnitLaw
from tacit.audit.pairs import ball_pairs, symbol_pairs
from tacit.audit.setting import Setting

_CLIENTS = 20


def fleet_privunit(setting: Setting) -> Audited:
    """One client's `privunit` report, as encoded for the shuffler: local_epsilon-LDP."""
    from tacit.fleet.plan import PrivUnitSettings
    from tacit.fleet.reports.calibration import make_plan
    from tacit.fleet.reports.privunit import PrivUnitReport

    plan = make_plan(
        classes=("a", "b"),
        n_channels=1,
        length=32,
        mechanism="privunit",
        n_clients=_CLIENTS,
        n_kernels=2,
        n_rounds=1,
    )
    plan = replace(plan, settings=PrivUnitSettings(local_epsilon=setting.epsilon))
    report = PrivUnitReport(plan)

    def run(x: Floats, count: int) -> Floats:
        rows = np.broadcast_to(x, (count, plan.dimension))
        return report.randomize(rows, source=setting.source)

    pairs = ball_pairs(plan.dimension, order=2, n_random=3)
    law = PrivUnitLaw(report.parameters, single=True)
    return Audited("fleet-privunit", DpClaim(epsilon=setting.claim), run, pairs, law=law)


def fleet_distributed(setting: Setting) -> Audited:
    """The sum of a round's `distributed` reports, one client of it replaced.

    The audited client runs the real randomizer; the others send zeros, and their noise together is
    one draw, rounded from floating point, since its last bits tell nothing about the audited client
    and an exact one would take most of the time. At the scale of a sum (hundreds) the curve of the
    discrete Gaussian is the Gaussian one to six digits, so the Gaussian claim is tested.
    """
    from tacit.fleet.reports import shares
    from tacit.fleet.reports.calibration import make_plan
    from tacit.fleet.reports.distributed import DistributedReport

    plan = make_plan(
        classes=("a", "b"),
        n_channels=1,
        length=32,
        mechanism="distributed",
        n_clients=_CLIENTS,
        epsilon=setting.epsilon,
        delta=setting.delta,
        n_rounds=1,
        n_kernels=2,
    )
    report = DistributedReport(plan)
    settings = report.settings
    others = settings.local_sigma * (_CLIENTS - 1) ** 0.5
    modulus = shares.MODULUS

    def run(x: Floats, count: int) -> Integers:
        rows = np.broadcast_to(x, (count, plan.dimension))
        mine = report.randomize(rows, source=setting.source)
        drawn = noise.float_gaussian(mine.shape, sigma=others, source=setting.source)
        rest = np.rint(drawn).astype(np.int64)
        total: Integers = (mine + rest + modulus // 2) % modulus - modulus // 2
        return total

    claim = GaussianClaim(epsilon=setting.claim, delta=setting.delta)
    pairs = ball_pairs(plan.dimension, order=2, n_random=1)
    return Audited("fleet-distributed", claim, run, pairs)


def shuffled_krr(setting: Setting) -> Audited:
    """A shuffled batch of k-RR reports with one client replaced: the accountant's central epsilon.

    `epsilon` is the local one. A shuffled batch shows only how often each symbol occurs. The claim
    is what `shuffle_epsilon` proves for k-RR at the claimed local epsilon: the privacy blanket.
    """
    from tacit.accounting import shuffle_epsilon

    n_symbols, delta = 3, 1e-3
    bound = shuffle_epsilon(
        local_epsilon=setting.claim, n=_CLIENTS, delta=delta, n_symbols=n_symbols
    )

    def run(x: int, count: int) -> Integers:
        symbols = np.full((count, _CLIENTS), n_symbols - 1)
        symbols[:, 0] = x
        released = mechanisms.randomize_symbols(
            symbols, n_symbols=n_symbols, epsilon=setting.epsilon, source=setting.source
        )
        counts = [np.count_nonzero(released == s, axis=1) for s in range(n_symbols)]
        return np.stack(counts, axis=1)

    claim = DpClaim(epsilon=bound.central_epsilon, delta=delta)
    law = _shuffled_law(mechanisms.krr_matrix(n_symbols, setting.epsilon))
    return Audited("shuffled-krr", claim, run, symbol_pairs(n_symbols), law=law)


def _shuffled_law(channel: Floats) -> FiniteLaw:
    """How often each of three symbols occurs among all reports, by first symbol of the first.

    Everybody else holds the last symbol: their counts are multinomial, and one more is added.
    """
    counts = [(a, b) for a in range(_CLIENTS + 1) for b in range(_CLIENTS + 1 - a)]
    place = {pair: i for i, pair in enumerate(counts)}
    others = stats.multinomial(_CLIENTS - 1, channel[-1] / channel[-1].sum())
    table = np.zeros((len(channel), len(counts)))
    for a, b in counts:
        if a + b < _CLIENTS:
            mass = others.pmf([a, b, _CLIENTS - 1 - a - b])
            for symbol, more in enumerate(((a + 1, b), (a, b + 1), (a, b))):
                table[:, place[more]] += mass * channel[:, symbol]

    numbers = np.full((_CLIENTS + 1, _CLIENTS + 1), -1)
    for (a, b), i in place.items():
        numbers[a, b] = i

    def columns(outputs: Floats) -> NDArray[np.intp]:
        whole = np.clip(outputs, 0, _CLIENTS).astype(np.intp)
        good = np.all(whole == outputs, axis=1) & (outputs.sum(axis=1) == _CLIENTS)
        return np.where(good, numbers[whole[:, 0], whole[:, 1]], -1)

    return FiniteLaw(table, columns)
