"""The randomizers that families build releases from, each with its guarantee in its docstring.

NumPy and the standard library only, because devices carry this package. Every mechanism works in
whole numbers: its guarantee holds for what the code computes and assumes nothing about arithmetic.
Proofs: docs/guarantees/guarantees.md.
"""

from __future__ import annotations

from tacit.mechanisms.laplace import clip_l1, laplace_vectors
from tacit.mechanisms.privunit import (
    PrivUnitG,
    calibrate_privunit,
    randomize_directions,
    second_moment,
)
from tacit.mechanisms.symbols import (
    channel_epsilon,
    channel_thresholds,
    krr_matrix,
    randomize_symbols,
    randomize_through_channel,
    tighten_channel,
)

SECRET_NOISE = "the operating system's generator is uniform, independent and secret"

__all__ = [
    "SECRET_NOISE",
    "PrivUnitG",
    "calibrate_privunit",
    "channel_epsilon",
    "channel_thresholds",
    "clip_l1",
    "krr_matrix",
    "laplace_vectors",
    "randomize_directions",
    "randomize_symbols",
    "randomize_through_channel",
    "second_moment",
    "tighten_channel",
]
