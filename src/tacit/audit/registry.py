"""Every mechanism of the package by name, ready to be audited with the law that it states.

An entry builds the mechanism at `epsilon` and pairs it with the claim to be tested, which is the
same epsilon unless the caller wants to see an audit refute a wrong one.
"""

from __future__ import annotations

import difflib
import math
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
from tacit.audit.finite_laws import channel_law
from tacit.audit.laws import NoiseLaw, PrivUnitLaw, vector_law
from tacit.audit.pairs import ball_pairs, scalar_pairs, symbol_pairs
from tacit.audit.setting import Setting
from tacit.audit.shuffled import fleet_distributed, fleet_privunit, shuffled_krr
from tacit.errors import TacitError, check_delta, check_epsilon
from tacit.noise import SYSTEM_NOISE, NoiseSource

Builder = Callable[[Setting], Audited]

_GRID = 256  # steps per unit of the Gaussian


def mechanism_names() -> list[str]:
    """The names of what releases are made of, which `build` knows."""
    return sorted(_BUILDERS)


def demonstration_names() -> list[str]:
    """Names that `build` knows too, of noise that no release uses: audits refute it."""
    return sorted(_DEMONSTRATIONS)


def build(
    name: str,
    *,
    epsilon: float = 1.0,
    delta: float = 1e-5,
    claim: float | None = None,
    source: NoiseSource = SYSTEM_NOISE,
) -> Audited:
    """The mechanism `name` run at `epsilon`, with the claim to be tested (default: the same)."""
    known = {**_BUILDERS, **_DEMONSTRATIONS}
    if name not in known:
        near = difflib.get_close_matches(name, _BUILDERS, n=1)
        hint = f"; did you mean '{near[0]}'?" if near else "."
        raise TacitError(
            f"no mechanism or bundle named {name!r}{hint} Known mechanisms: "
            f"{', '.join(mechanism_names())}."
        )
    check_epsilon(epsilon)
    tested = epsilon if claim is None else check_epsilon(claim, name="claim")
    setting = Setting(epsilon=epsilon, delta=check_delta(delta), claim=tested, source=source)
    return known[name](setting)


def _laplace(setting: Setting) -> Audited:
    """One number in [-1, 1] with the noise that releases of vectors use."""

    def run(x: float, count: int) -> Floats:
        rows = np.full((count, 1), x)
        return mechanisms.laplace_vectors(
            rows, clip_norm=1.0, epsilon=setting.epsilon, source=setting.source
        )

    claim = DpClaim(epsilon=setting.claim)
    pairs = [(2.0 * a - 1.0, 2.0 * b - 1.0) for a, b in scalar_pairs()]
    return Audited("laplace", claim, run, pairs, law=vector_law([setting.epsilon]))


def _float_laplace(setting: Setting) -> Audited:
    """A number in [0, 1] plus Laplace noise in float64: its last bits give the number away."""

    def run(x: float, count: int) -> Floats:
        scale = 1.0 / setting.epsilon
        return x + noise.float_laplace((count,), scale=scale, source=setting.source)

    return Audited("float-laplace", DpClaim(epsilon=setting.claim), run, scalar_pairs())


def _float_gaussian(setting: Setting) -> Audited:
    """A number in [0, 1] plus normal noise in float64: its last bits give the number away."""
    sigma = calibrate_gaussian_sigma(setting.epsilon, setting.delta)

    def run(x: float, count: int) -> Floats:
        return x + noise.float_gaussian((count,), sigma=sigma, source=setting.source)

    claim = GaussianClaim(epsilon=setting.claim, delta=setting.delta)
    return Audited("float-gaussian", claim, run, scalar_pairs())


def _discrete_laplace(setting: Setting) -> Audited:
    scale = noise.scale_above(1.0 / setting.epsilon)

    def run(x: int, count: int) -> NDArray[np.int64]:
        return x + noise.discrete_laplace((count,), scale=scale, source=setting.source)

    law = NoiseLaw(lambda x: np.array([x]), 1.0, scales=(scale,))
    return Audited("discrete-laplace", DpClaim(epsilon=setting.claim), run, [(0, 1)], law=law)


def _gaussian(setting: Setting) -> Audited:
    """A number in [0, 1] in steps of 1/256, with discrete Gaussian noise."""
    # The sampler takes whole sigmas here, and rounds them up.
    sigma = math.ceil(_GRID * calibrate_gaussian_sigma(setting.epsilon, setting.delta))

    def run(x: float, count: int) -> Floats:
        drawn = noise.discrete_gaussian((count,), sigma=sigma, source=setting.source)
        return np.asarray((round(x * _GRID) + drawn) / _GRID)

    claim = GaussianClaim(epsilon=setting.claim, delta=setting.delta)
    law = NoiseLaw(lambda x: np.array([round(x * _GRID)]), 1.0 / _GRID, sigma=float(sigma))
    return Audited("gaussian", claim, run, scalar_pairs(), law=law)


def _discrete_gaussian(setting: Setting) -> Audited:
    sigma = calibrate_discrete_gaussian_sigma(setting.epsilon, setting.delta)

    def run(x: int, count: int) -> NDArray[np.int64]:
        return x + noise.discrete_gaussian((count,), sigma=sigma, source=setting.source)

    claim = DiscreteGaussianClaim(epsilon=setting.claim, delta=setting.delta)
    law = NoiseLaw(lambda x: np.array([x]), 1.0, sigma=sigma)
    return Audited("discrete-gaussian", claim, run, [(0, 1)], law=law)


def _krr(setting: Setting) -> Audited:
    def run(x: int, count: int) -> NDArray[np.intp]:
        return mechanisms.randomize_symbols(
            np.full(count, x), n_symbols=4, epsilon=setting.epsilon, source=setting.source
        )

    law = channel_law(mechanisms.krr_matrix(4, setting.epsilon))
    return Audited("krr", DpClaim(epsilon=setting.claim), run, symbol_pairs(4), law=law)


def _channel(setting: Setting) -> Audited:
    rng = np.random.default_rng(0)
    rough = rng.dirichlet(np.full(5, 0.5), size=4)
    return _through(mechanisms.tighten_channel(rough, epsilon=setting.epsilon), "channel", setting)


def _lp_channel(setting: Setting) -> Audited:
    """The channel of the linear program for a classifier that confuses its classes unevenly."""
    from tacit.local.releases.channel import design_channel

    gain = np.array([[0.35, 0.05, 0.02, 0.0], [0.03, 0.2, 0.05, 0.01],
                     [0.02, 0.03, 0.12, 0.02], [0.0, 0.02, 0.01, 0.07]])  # fmt: skip
    return _through(design_channel(gain, epsilon=setting.epsilon), "lp-channel", setting)


def _through(channel: Floats, name: str, setting: Setting) -> Audited:
    def run(x: int, count: int) -> NDArray[np.intp]:
        return mechanisms.randomize_through_channel(
            np.full(count, x), channel=channel, source=setting.source
        )

    claim = DpClaim(epsilon=setting.claim)
    return Audited(name, claim, run, symbol_pairs(4), law=channel_law(channel))


def _privunit(setting: Setting) -> Audited:
    params = mechanisms.calibrate_privunit(epsilon=setting.epsilon, dimension=8)

    def run(x: Floats, count: int) -> Floats:
        rows = np.broadcast_to(x, (count, params.dimension))
        return mechanisms.randomize_directions(rows, params, source=setting.source)

    claim = DpClaim(epsilon=setting.claim)
    return Audited("privunit", claim, run, ball_pairs(8, order=2), law=PrivUnitLaw(params))


def _laplace_vector(setting: Setting) -> Audited:
    def run(x: Floats, count: int) -> Floats:
        rows = np.broadcast_to(x, (count, x.size))
        return mechanisms.laplace_vectors(
            rows, clip_norm=1.0, epsilon=setting.epsilon, source=setting.source
        )

    claim, law = DpClaim(epsilon=setting.claim), vector_law([setting.epsilon] * 4)
    return Audited("laplace-vector", claim, run, ball_pairs(4, order=1), law=law)


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
_DEMONSTRATIONS: dict[str, Builder] = {
    "float-laplace": _float_laplace,
    "float-gaussian": _float_gaussian,
}
