"""Two additive shares modulo 2**32: how a `distributed` report reaches the two servers.

A report becomes a masked vector, for the analyser, and the 32-byte seed of its mask, for the share
helper, who expands it by AES-256 in counter mode. Either one alone is (pseudo)random whatever the
report is. Sums of masked vectors and of masks over the same reports differ by the sum of the
reports, and by nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from tacit.arrays import Integers
from tacit.errors import TacitError
from tacit.noise import NoiseSource

MODULUS = 2**32
SEED_BYTES = 32
_WORD = np.dtype("<u4")
_START = bytes(16)  # a seed masks one report only, so every count may begin at 0


def vector_bytes(dimension: int) -> int:
    """Four bytes for each coordinate of a masked vector or of a sum."""
    return _WORD.itemsize * dimension


def split(report: Integers, *, source: NoiseSource) -> tuple[bytes, bytes]:
    """The masked vector and the seed of its mask.

    Guarantee: the seed is independent of the report, and the masked vector is as hard to tell from
    uniform bytes as AES-256 in counter mode is, for whoever lacks the seed.
    Assumes: `source` is uniform, independent and secret.
    """
    seed = source.words(SEED_BYTES // 8).astype("<u8").tobytes()
    masked = (report % MODULUS).astype(np.uint32) + _mask(seed, len(report))
    return masked.astype(_WORD).tobytes(), seed


def sum_vectors(vectors: Iterable[bytes], *, dimension: int) -> tuple[bytes, int]:
    """The sum of masked vectors, and of how many."""
    total, n = np.zeros(dimension, dtype=np.uint32), 0
    for vector in vectors:
        total += read_vector(vector, dimension=dimension)
        n += 1
    return total.astype(_WORD).tobytes(), n


def sum_masks(seeds: Iterable[bytes], *, dimension: int) -> bytes:
    """The sum of the masks that belong to these seeds."""
    total = np.zeros(dimension, dtype=np.uint32)
    for seed in seeds:
        total += _mask(seed, dimension)
    return total.astype(_WORD).tobytes()


def unmask(vectors: bytes, masks: bytes, *, dimension: int) -> Integers:
    """The sum of the reports modulo 2**32, from the two servers' sums over the same reports."""
    total = read_vector(vectors, dimension=dimension) - read_vector(masks, dimension=dimension)
    return total.astype(np.int64)


def read_vector(content: bytes, *, dimension: int) -> NDArray[np.uint32]:
    """The words of a masked vector or of a sum; refuses another size."""
    if len(content) != vector_bytes(dimension):
        raise TacitError(
            f"a share has {vector_bytes(dimension)} bytes here, got {len(content)}; it is not used."
        )
    return np.frombuffer(content, dtype=_WORD).astype(np.uint32)


def _mask(seed: bytes, dimension: int) -> NDArray[np.uint32]:
    if len(seed) != SEED_BYTES:
        raise TacitError(f"a seed has {SEED_BYTES} bytes, got {len(seed)}; it is not used.")
    stream = Cipher(algorithms.AES256(seed), modes.CTR(_START)).encryptor()
    return np.frombuffer(stream.update(bytes(vector_bytes(dimension))), dtype=_WORD)
