"""CDP-FL (Geyer et al. 2017), the paper's rival: a trusted server adds noise to a clipped mean.

Its noise is calibrated by privacy loss distributions, which are tighter than its authors' moments
accountant: the planned rounds together end at the same nominal (epsilon, delta) as DP-TimeFL. Its
clip norm is chosen on a fifth of every client's training series; no test series takes part.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tacit.errors import TacitError
from tacit.fleet.published.clients import ClientData, accuracy_on
from tacit.fleet.published.settings import PublishedConfig
from tacit.fleet.published.training import run_published
from tacit.noise import SYSTEM_NOISE, NoiseSource

CLIP_NORMS = (0.3, 1.0, 3.0)
_HELD_OUT = 5  # one series in so many


def choose_clip_norm(
    data: ClientData,
    config: PublishedConfig,
    *,
    n_classes: int,
    seed: int,
    source: NoiseSource = SYSTEM_NOISE,
) -> PublishedConfig:
    """The configuration with the norm of `CLIP_NORMS` that is best on the held-out series."""
    if config.method != "cdpfl":
        raise TacitError("the clip norm is chosen for CDP-FL alone; DP-TimeFL's is an option.")
    kept, held = _hold_out(data, seed)
    everybody = np.arange(len(held.rows))

    def accuracy(clip_norm: float) -> float:
        tried = replace(config, clip_norm=clip_norm)
        run = run_published(kept, tried, n_classes=n_classes, seed=seed, source=source)
        return accuracy_on(run.network, run.weights, held, everybody)

    return replace(config, clip_norm=max(CLIP_NORMS, key=accuracy))


def _hold_out(data: ClientData, seed: int) -> tuple[ClientData, ClientData]:
    """Every client's series without a fifth of them, and that fifth of those who have enough."""
    rng = np.random.default_rng([seed, 5])
    kept, held = [], []
    for rows in data.rows:
        mixed = rng.permutation(rows)
        n_held = len(rows) // _HELD_OUT
        kept.append(mixed[n_held:])
        held.append(mixed[:n_held])
    if not any(len(rows) for rows in held):
        raise TacitError(
            f"no client holds {_HELD_OUT} series, so no clip norm can be chosen; give one."
        )
    return replace(data, rows=tuple(kept)), replace(data, rows=tuple(held))
