"""Additive shares modulo 2**k: how a `distributed` report travels through the shuffler.

A report is cut into blocks of coordinates; each block becomes `n_shares` messages, all but the
last uniformly random, that add up to it. The shuffler mixes the messages of all clients; within
a block they cannot be joined again to clients (split-and-mix), yet their sum is the sum of all.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Integers
from tacit.errors import TacitError
from tacit.fleet.plan import DistributedSettings
from tacit.noise import NoiseSource

_BLOCK = np.dtype("<u4")


@dataclass(frozen=True, slots=True)
class MixedSum:
    """The sum modulo 2**k over `n` clients, recovered from mixed messages."""

    total: Integers
    n: int


def n_blocks(dimension: int, settings: DistributedSettings) -> int:
    """How many blocks one report is cut into; the last is padded with zeros."""
    return math.ceil(dimension / settings.block_length)


def message_bytes(settings: DistributedSettings) -> int:
    """Four bytes for the block number and four for each coordinate of the block."""
    return 4 * (1 + settings.block_length)


def split(
    report: Integers, settings: DistributedSettings, *, source: NoiseSource
) -> NDArray[np.uint32]:
    """All messages of one report as rows: block number, then the block's share.

    Guarantee: any n_shares - 1 messages of a block are uniform and independent of the report;
    after mixing among n_min honest clients only the sum is left, to `security_bits` bits.
    """
    count = n_blocks(len(report), settings)
    mask = np.uint64(2**settings.modulus_bits - 1)
    blocks = np.zeros(count * settings.block_length, dtype=np.uint64)
    blocks[: len(report)] = report.astype(np.uint64) & mask
    blocks = blocks.reshape(count, settings.block_length)
    shape = (count, settings.n_shares - 1, settings.block_length)
    # The low bits of uniform 64-bit words are uniform; unsigned sums wrap modulo 2**64, which
    # 2**modulus_bits divides.
    random = source.words(math.prod(shape)).reshape(shape) & mask
    last = (blocks - random.sum(axis=1, dtype=np.uint64)) & mask
    shares = np.concatenate([random, last[:, None, :]], axis=1)
    numbers = np.broadcast_to(np.arange(count)[:, None, None], (*shares.shape[:2], 1))
    rows = np.concatenate([numbers.astype(np.uint64), shares], axis=2)
    messages: NDArray[np.uint32] = rows.reshape(-1, 1 + settings.block_length).astype(np.uint32)
    return messages


def encode(rows: NDArray[np.uint32]) -> list[bytes]:
    """The messages as bytes, one per row of `split`."""
    return [row.astype(_BLOCK).tobytes() for row in rows]


def combine(
    messages: Iterable[bytes], settings: DistributedSettings, *, dimension: int
) -> MixedSum:
    """The sum from all clients' messages in any order; refuses a batch that does not add up.

    Shares are uniform, so a bad one cannot be told from a good one: size, block number, range and
    count per block are all that can be checked, and one failure spoils the round.
    """
    size = message_bytes(settings)
    pool = list(messages)
    if any(len(message) != size for message in pool):
        raise TacitError(f"a share message has {size} bytes here; the round is not used.")
    rows = np.frombuffer(b"".join(pool), dtype=_BLOCK).reshape(-1, 1 + settings.block_length)
    numbers, values = rows[:, 0].astype(np.int64), rows[:, 1:].astype(np.uint64)
    count = n_blocks(dimension, settings)
    if rows.size and (numbers.max() >= count or int(values.max()) >= 2**settings.modulus_bits):
        raise TacitError("a share message is outside its range; the round is not used.")
    per_block = np.bincount(numbers, minlength=count)
    n, rest = divmod(int(per_block[0]) if len(per_block) else 0, settings.n_shares)
    if rest or np.any(per_block != per_block[0]):
        raise TacitError(
            f"the {len(rows)} share messages are not whole reports of {count} blocks times "
            f"{settings.n_shares} shares; the round is not used."
        )
    totals = np.zeros((count, settings.block_length), dtype=np.uint64)
    np.add.at(totals, numbers, values)
    total = (totals & np.uint64(2**settings.modulus_bits - 1)).reshape(-1)[:dimension]
    return MixedSum(total.astype(np.int64), n)
