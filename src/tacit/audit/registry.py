"""Every mechanism of the package by name, ready to be audited.

An entry builds the mechanism at `epsilon` and pairs it with the claim to be tested, which is the
same epsilon unless the caller wants to see an audit refute a wrong one.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from tacit import mechanisms, noise
from tacit.arrays import Floats
from tacit.audit.bounds import (
    DiscreteGaussianClaim,
    DpClaim,
    GaussianClaim,
    calibrate_discrete_gaussian_sigma,
    calibrate_gaussian_sigma,
)
from tacit.audit.bundles import local_release
from tacit.audit.engine import Audited
from tacit.audit.pairs import ball_pairs, scalar_pairs, symbol_pairs
from tacit.audit.setting import Setting
from tacit.audit.shuffled import fleet_distributed, fleet_privunit, shuffled_krr
from tacit.errors import TacitError, check_delta, check_epsilon
from tacit.noise import SYSTEM_NOISE, NoiseSource

Builder = Callable[[Setting], Audited]


def mechanism_names() -> list[str]:
    """The names that `build` knows."""
    return sorted(_BUILDERS)


def build(
    name: str,
    *,
    epsilon: float = 1.0,
    delta: float = 1e-5,
    claim: float | None = None,
    source: NoiseSource = SYSTEM_NOISE,
) -> Audited:
    """The mechanism `name` run at `epsilon`, with the claim to be tested (default: the same)."""
    if name not in _BUILDERS:
        near = difflib.get_close_matches(name, _BUILDERS, n=1)
        hint = f"; did you mean '{near[0]}'?" if near else ""
        raise TacitError(
            f"no mechanism or bundle named {name!r}{hint} Known mechanisms: "
            f"{', '.join(mechanism_names())}."
        )
    check_epsilon(epsilon)
    tested = epsilon if claim is None else check_epsilon(claim, name="claim")
    setting = Setting(epsilon=epsilon, delta=check_delta(delta), claim=tested, source=source)
    return _BUILDERS[name](setting)


def _laplace(setting: Setting) -> Audited:
    def run(x: float, count: int) -> Floats:
        scale = 1.0 / setting.epsilon
        return x + noise.laplace((count,), scale=scale, source=setting.source)

    return Audited("laplace", DpClaim(epsilon=setting.claim), run, scalar_pairs())


def _discrete_laplace(setting: Setting) -> Audited:
    def run(x: int, count: int) -> NDArray[np.int64]:
        scale = 1.0 / setting.epsilon
        return x + noise.discrete_laplace((count,), scale=scale, source=setting.source)

    return Audited("discrete-laplace", DpClaim(epsilon=setting.claim), run, [(0, 1)])


def _gaussian(setting: Setting) -> Audited:
    sigma = calibrate_gaussian_sigma(setting.epsilon, setting.delta)

    def run(x: float, count: int) -> Floats:
        return x + noise.gaussian((count,), sigma=sigma, source=setting.source)

    claim = GaussianClaim(epsilon=setting.claim, delta=setting.delta)
    return Audited("gaussian", claim, run, scalar_pairs())


def _discrete_gaussian(setting: Setting) -> Audited:
    sigma = calibrate_discrete_gaussian_sigma(setting.epsilon, setting.delta)

    def run(x: int, count: int) -> NDArray[np.int64]:
        return x + noise.discrete_gaussian((count,), sigma=sigma, source=setting.source)

    claim = DiscreteGaussianClaim(epsilon=setting.claim, delta=setting.delta)
    return Audited("discrete-gaussian", claim, run, [(0, 1)])


def _krr(setting: Setting) -> Audited:
    def run(x: int, count: int) -> NDArray[np.intp]:
        return mechanisms.randomize_symbols(
            np.full(count, x), n_symbols=4, epsilon=setting.epsilon, source=setting.source
        )

    return Audited("krr", DpClaim(epsilon=setting.claim), run, symbol_pairs(4))


def _channel(setting: Setting) -> Audited:
    rng = np.random.default_rng(0)
    rough = rng.dirichlet(np.full(5, 0.5), size=4)
    channel = mechanisms.tighten_channel(rough, epsilon=setting.epsilon)

    def run(x: int, count: int) -> NDArray[np.intp]:
        return mechanisms.randomize_through_channel(
            np.full(count, x), channel=channel, source=setting.source
        )

    return Audited("channel", DpClaim(epsilon=setting.claim), run, symbol_pairs(4))


def _lp_channel(setting: Setting) -> Audited:
    """The channel of the linear program for a classifier that confuses its classes unevenly."""
    from tacit.local.releases.channel import design_channel

    gain = np.array([[0.35, 0.05, 0.02, 0.0], [0.03, 0.2, 0.05, 0.01],
                     [0.02, 0.03, 0.12, 0.02], [0.0, 0.02, 0.01, 0.07]])  # fmt: skip
    channel = design_channel(gain, epsilon=setting.epsilon)

    def run(x: int, count: int) -> NDArray[np.intp]:
        return mechanisms.randomize_through_channel(
            np.full(count, x), channel=channel, source=setting.source
        )

    return Audited("lp-channel", DpClaim(epsilon=setting.claim), run, symbol_pairs(4))


def _privunit(setting: Setting) -> Audited:
    params = mechanisms.calibrate_privunit(epsilon=setting.epsilon, dimension=8)

    def run(x: Floats, count: int) -> Floats:
        rows = np.broadcast_to(x, (count, params.dimension))
        return mechanisms.randomize_directions(rows, params, source=setting.source)

    return Audited("privunit", DpClaim(epsilon=setting.claim), run, ball_pairs(8, order=2))


def _laplace_vector(setting: Setting) -> Audited:
    def run(x: Floats, count: int) -> Floats:
        rows = np.broadcast_to(x, (count, x.size))
        return mechanisms.laplace_vectors(
            rows, clip_norm=1.0, epsilon=setting.epsilon, source=setting.source
        )

    return Audited("laplace-vector", DpClaim(epsilon=setting.claim), run, ball_pairs(4, order=1))


_BUILDERS: dict[str, Builder] = {
    "laplace": _laplace,
    "discrete-laplace": _discrete_laplace,
    "gaussian": _gaussian,
    "discrete-gaussian": _discrete_gaussian,
    "krr": _krr,
    "channel": _channel,
    "privunit": _privunit,
    "laplace-vector": _laplace_vector,
    "lp-channel": _lp_channel,
    "local-label": partial(local_release, "label"),
    "local-place": partial(local_release, "place"),
    "local-vector": partial(local_release, "vector"),
    "local-shapes": partial(local_release, "shapes"),
    "shuffled-krr": shuffled_krr,
    "fleet-privunit": fleet_privunit,
    "fleet-distributed": fleet_distributed,
}
