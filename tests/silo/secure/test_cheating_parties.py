"""What one party that cheats can do: attacks that succeed, which the tables of the guarantees name.

The engine is secure against passive parties only. These tests hold what that means to its word; if
one of them fails because the attack is noticed, the tables can promise more.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from replicated_parties import shares_of, together, with_altered_byte
from tacit.silo.secure.replicated import Pair, Replicated


def steered(cheat: int, *, error: int) -> int:
    """x y z as three parties open it if `cheat` adds `error` to what it sends of x y; x is 0."""
    rng = np.random.default_rng(cheat)
    x, y, z = (shares_of(np.full(4, value), np.uint64, rng) for value in (0, 7, 1234))

    def kernel(party: Replicated, x: Pair, y: Pair, z: Pair) -> Pair:
        added = np.uint64(error if party.rank == cheat else 0)
        first = party.mask_sum(x[0] * (y[0] + y[1]) + x[1] * y[0] + added)
        return party.multiply(first, z)

    opened, _, _ = together(kernel, x, y, z)  # checks that all copies agree
    assert len(set(opened.tolist())) == 1
    return int(opened[0])


@pytest.mark.parametrize("cheat", [0, 1, 2])
def test_a_party_that_adds_to_a_product_opens_another_value_and_all_copies_agree(
    cheat: int,
) -> None:
    """The product that was declared is 0 and says nothing; with the error it opens z itself."""
    assert steered(cheat, error=0) == 0
    assert steered(cheat, error=1) == 1234


def pair_of(value: int, n: int) -> tuple[Any, list[Any]]:
    import spu
    from spu import libspu

    config = libspu.RuntimeConfig(
        protocol=libspu.ProtocolKind.CHEETAH, field=libspu.FieldType.FM64, fxp_fraction_bits=18
    )
    io = spu.Io(2, config)
    return io, io.make_shares(np.full(n, value), libspu.Visibility.VIS_SECRET)


def content_of(share: Any) -> bytes:
    from spu import libspu

    chunk = libspu.ValueChunk()
    chunk.ParseFromString(share.share_chunks[0])
    return bytes(chunk.content)


@pytest.mark.parametrize("value", [0, -1])
@pytest.mark.parametrize("rank", [0, 1])
def test_one_of_two_shares_is_uniform_whatever_the_value(rank: int, value: int) -> None:
    """Its bits, over 2000 values; uneven by chance once in 10^9 tests."""
    held = np.frombuffer(content_of(pair_of(value, 2000)[1][rank]), dtype=np.uint8)
    assert held.size == 8 * 2000
    assert stats.binomtest(int(np.unpackbits(held).sum()), 8 * held.size).pvalue > 1e-9


def test_both_of_two_parties_read_every_value() -> None:
    first, second = (
        np.frombuffer(content_of(share), dtype=np.uint64) for share in pair_of(123, 3)[1]
    )
    assert (first + second).tolist() == [123] * 3


@pytest.mark.parametrize("cheat", [0, 1])
def test_one_of_two_parties_steers_an_opening_unnoticed(cheat: int) -> None:
    io, honest = pair_of(4, 1)
    sent = [with_altered_byte(s, 0) if r == cheat else s for r, s in enumerate(honest)]
    assert int(io.reconstruct(honest)[0]) == 4
    assert int(io.reconstruct(sent)[0]) in (3, 5)
