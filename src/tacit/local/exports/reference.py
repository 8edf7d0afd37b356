"""Features and labels in one stated order of float32 operations, for devices to agree with.

The NumPy runtime multiplies matrices, and a library may sum such products in any order. Here every
sum has a fixed order: over the nine taps of one channel after the other, each product rounded
before it is added; over time from the first step to the last. A browser and compiled C that do the
same steps in IEEE arithmetic get the same bits. Scores are sums in float64.
"""

from __future__ import annotations

import numpy as np

from tacit.arrays import Floats, Floats32
from tacit.features.counting import count_true
from tacit.local.encoding.random_kernels import (
    KERNEL_LENGTH,
    differences,
    minirocket_kernels,
    windows,
)
from tacit.local.exports.portable import PortableBody, PortableModel, PortablePool


def reference_features(body: PortableBody, series: Floats) -> Floats32:
    """All features of one series (channels, T)."""
    level = ((series - body.offset[:, None]) * body.scale[:, None]).astype(np.float32)
    levels = (level, differences(level))
    return np.concatenate([_pool_features(pool, levels[pool.order]) for pool in body.pools])


def reference_scores(body: PortableBody, features: Floats32) -> Floats:
    """The score of each class."""
    scores: Floats = features.astype(np.float64) @ body.weights.astype(np.float64) + body.intercept
    return scores


def reference_symbol(model: PortableModel, series: Floats, features: Floats32) -> int:
    """The device's own label, or pair of label and place, as one number; private."""
    label = int(reference_scores(model.body, features).argmax())
    if model.locator is None or model.fill is None:
        return label
    left = []
    for first, last in zip(model.edges[:-1], model.edges[1:], strict=True):
        hidden = series.copy()
        hidden[:, first:last] = model.fill[:, first:last]
        remaining = reference_features(model.locator, hidden)
        left.append(reference_scores(model.locator, remaining)[label])
    return label * model.n_places + int(np.argmin(left))


def _pool_features(pool: PortablePool, level: Floats32) -> Floats32:
    if pool.size:
        return _competition(pool, _responses(pool.values, level, pool.dilation))
    kernels = pool.channels[:, :, None] * minirocket_kernels()[:, None]
    responses = _responses(kernels.reshape(len(kernels), -1), level, pool.dilation)
    return _proportions(pool, responses)


def _responses(kernels: Floats32, level: Floats32, dilation: int) -> Floats32:
    shifts = windows(level[None], dilations=(dilation,))[0, 0]
    response = np.zeros((len(kernels), level.shape[1]), dtype=np.float32)
    for tap, shifted in enumerate(shifts):
        response += kernels[:, tap, None] * shifted
    return response


def _proportions(pool: PortablePool, responses: Floats32) -> Floats32:
    length = responses.shape[1]
    pad = pool.dilation * (KERNEL_LENGTH // 2)
    above = responses[:, None] > pool.values[:, :, None]
    steps = np.full((len(responses), 1), length, dtype=np.float32)
    if length > 2 * pad:
        above[pool.skip :: 2, :, :pad] = above[pool.skip :: 2, :, length - pad :] = False
        steps[pool.skip :: 2] = length - 2 * pad
    features: Floats32 = count_true(above) / steps
    return features.ravel()


def _competition(pool: PortablePool, responses: Floats32) -> Floats32:
    length = np.float32(responses.shape[1])
    groups = responses.reshape(pool.size, pool.count, -1).swapaxes(0, 1)
    wins = groups == groups.max(axis=1, keepdims=True)
    losses = groups == groups.min(axis=1, keepdims=True)
    # Running sums go from the first step to the last; a plain sum would go pairwise.
    strength = np.cumsum(np.where(wins, groups, np.float32(0.0)), axis=2, dtype=np.float32)[
        :, :, -1
    ]
    often = np.count_nonzero(losses, axis=2).astype(np.float32)
    both = np.stack([np.maximum(strength, np.float32(0.0)) / length, often / length])
    features: Floats32 = np.sqrt(both).ravel()
    return features
