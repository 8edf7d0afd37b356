"""Random views of training series: shifted, warped in time, scaled and jittered copies."""

from __future__ import annotations

import numpy as np

from tacit.arrays import Floats, Floats32
from tacit.local.softshape.settings import SoftShapeSettings

_MOST_SERIES = 4000  # views stop here, so that large data sets do not grow in memory


def augmented_views(
    X: Floats32, *, settings: SoftShapeSettings, rng: np.random.Generator
) -> Floats32:
    """The series themselves, then views of all of them: shape (1 + views, n, channels, T)."""
    views = min(settings.views, _MOST_SERIES // len(X))
    return np.stack([X, *(one_view(X, settings=settings, rng=rng) for _ in range(views))])


def one_view(X: Floats32, *, settings: SoftShapeSettings, rng: np.random.Generator) -> Floats32:
    """One random view of every series (n, channels, T); all channels share the time warp."""
    n, _, length = X.shape
    where = _warped_clock(n, length, settings=settings, rng=rng)
    before = np.minimum(where.astype(np.intp), max(0, length - 2))
    after = np.minimum(before + 1, length - 1)
    share = (where - before).astype(np.float32)[:, None]
    left = np.take_along_axis(X, before[:, None], axis=2)
    right = np.take_along_axis(X, after[:, None], axis=2)
    view = left + share * (right - left)
    view *= 1.0 + settings.view_scale * rng.standard_normal((n, 1, 1), dtype=np.float32)
    jitter = np.float32(settings.view_jitter) * rng.standard_normal(X.shape, dtype=np.float32)
    return np.asarray(view + jitter, dtype=np.float32)


def _warped_clock(
    n: int, length: int, *, settings: SoftShapeSettings, rng: np.random.Generator
) -> Floats:
    """Where each step of a view reads its series: identity plus a shift plus three sine waves."""
    clock = np.linspace(0.0, 1.0, length)
    order = np.arange(1, 4)
    waves = np.sin(np.pi * order[:, None] * clock) / np.pi
    bend = settings.view_warp * rng.standard_normal((n, 3)) / order
    shift = settings.view_shift * rng.uniform(-1.0, 1.0, size=(n, 1))
    return np.asarray(np.clip(clock + bend @ waves + shift, 0.0, 1.0) * (length - 1))
