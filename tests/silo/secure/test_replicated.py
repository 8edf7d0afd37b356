"""Comparison, minimum and sorting over replicated shares: exact, and every message looks random."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from replicated_parties import (
    FALSE_ALARM,
    Wire,
    assert_uniform,
    shares_of,
    together,
    uniform_bytes,
)
from tacit.errors import TacitError
from tacit.silo.fedst.distances import distances_dot
from tacit.silo.fedst.secure_distances import replicated_distances
from tacit.silo.secure.bit_slices import bits_of, to_slice, to_slices
from tacit.silo.secure.faults import PeerFault
from tacit.silo.secure.jax_x64 import enable_x64
from tacit.silo.secure.replicated import Pair, Replicated
from tacit.silo.secure.replicated_sorting import lowest_bit, sorted_low_bits, sorted_rows


@pytest.mark.parametrize("n", [1, 63, 64, 65, 200])
@pytest.mark.parametrize("dtype", [np.uint32, np.uint64])
def test_slices_hold_every_bit(n: int, dtype: Any) -> None:
    words = np.random.default_rng(n).integers(0, np.iinfo(dtype).max, n, dtype=dtype)
    slices = to_slices(words)
    for k in range(8 * words.itemsize):
        bit = (words >> dtype(k)) & dtype(1)
        assert np.array_equal(bits_of(slices[k], n), bit)
        assert np.array_equal(to_slice(bit), slices[k])


@pytest.mark.parametrize(("dtype", "bits"), [(np.uint32, 31), (np.uint64, 63)])
def test_the_minimum_is_exact_to_the_edge_of_its_range(dtype: Any, bits: int) -> None:
    rng = np.random.default_rng(0)
    edge = np.array([0, 1, 2**bits - 1, 2**bits - 2, 2 ** (bits - 1), 2 ** (bits - 1) - 1])
    a = np.concatenate([np.repeat(edge, 6), rng.integers(0, 2**bits - 1, 3000)])
    b = np.concatenate([np.tile(edge, 6), rng.integers(0, 2**bits - 1, 3000)])
    b[36:60] = a[36:60] + rng.integers(-1, 2, 24)
    found, _, _ = together(
        lambda party, x, y: party.minimum(x, y), shares_of(a, dtype, rng), shares_of(b, dtype, rng)
    )
    assert np.array_equal(found.astype(np.int64), np.minimum(a, b))


@pytest.mark.parametrize("n", [1, 2, 3, 7, 41])
def test_the_smallest_along_an_axis(n: int) -> None:
    rng = np.random.default_rng(n)
    x = rng.integers(0, 2**31, (n, 3, 5))
    found, _, _ = together(lambda party, s: party.smallest(s)[0], shares_of(x, np.uint32, rng))
    assert np.array_equal(found, x.min(axis=0))


@pytest.mark.parametrize("shift", [0, 1, 2, 11, 20, 31])
def test_shifts_are_exact_and_lifted_to_the_larger_ring(shift: int) -> None:
    rng = np.random.default_rng(shift)
    x = np.concatenate([[0, 1, 2**31 - 1, 2**shift - 1, 2**31 - 2], rng.integers(0, 2**31, 3000)])
    found, _, _ = together(
        lambda party, s: party.shifted(s, shift=shift), shares_of(x, np.uint32, rng)
    )
    assert found.dtype == np.uint64
    assert np.array_equal(found, x >> shift)


@pytest.mark.parametrize("shift", [0, 1, 30, 61])
def test_signed_words_of_64_bits_are_shifted_exactly(shift: int) -> None:
    rng = np.random.default_rng(shift)
    edges = [0, -1, 1, 2**62 - 1, -(2**62), 2**shift, -(2**shift), -(2**shift) - 1]
    x = np.concatenate([edges, rng.integers(-(2**62), 2**62, 3000)])
    found, _, _ = together(
        lambda party, s: party.shifted_signed(s, shift=shift), shares_of(x, np.uint64, rng)
    )
    assert np.array_equal(found.astype(np.int64), x >> shift)


def test_matrix_products_wrap_around() -> None:
    rng = np.random.default_rng(8)
    x, y = rng.integers(-(2**63), 2**63, (5, 7)), rng.integers(-(2**63), 2**63, (7, 3))
    shared = (shares_of(x, np.uint64, rng), shares_of(y, np.uint64, rng))
    found, _, _ = together(lambda party, a, b: party.product(a, b), *shared)
    assert np.array_equal(found, x.astype(np.uint64) @ y.astype(np.uint64))


@pytest.mark.parametrize("n_bits", [3, 24])
def test_signs_of_words_with_few_bits(n_bits: int) -> None:
    rng = np.random.default_rng(n_bits)
    half = 2 ** (n_bits - 1)
    x = np.concatenate([[-half, half - 1, 0, -1], rng.integers(-half, half, 500)])
    found, _, _ = together(
        lambda party, s: party.below_zero(s, dtype=np.uint64, n_bits=n_bits),
        shares_of(x, np.uint32, rng),
    )
    assert np.array_equal(found, x < 0)


def test_the_dealer_sends_no_more_than_the_others() -> None:
    """The search spends its bytes on minima: party 1 deals 4 bits more there and sends no more."""
    shared = shares_of(np.zeros((64, 500)), np.uint32, np.random.default_rng(0))
    _, _, sides = together(lambda party, s: party.smallest(s)[0], shared)
    sent = [side.traffic[0] for side in sides]
    assert sent[1] < 1.02 * max(sent[0], sent[2])
    assert {side.rounds for side in sides} == {1 + 6 * 10}


@pytest.mark.parametrize(("dtype", "bits"), [(np.uint32, 31), (np.uint64, 40)])
def test_rows_are_sorted_and_their_lowest_bits_read(dtype: Any, bits: int) -> None:
    rng = np.random.default_rng(3)
    keys = rng.integers(0, 2**bits, (5, 32))
    keys[1] = 7  # ties
    shared = shares_of(keys, dtype, rng)
    found, _, _ = together(sorted_rows, shared)
    assert np.array_equal(found, np.sort(keys, axis=1))
    found, _, _ = together(lowest_bit, shared)
    assert np.array_equal(found, keys & 1)


@pytest.mark.parametrize("n_bits", [1, 31, 32, 63])
@pytest.mark.parametrize("n", [1, 6, 8])
def test_low_bits_come_in_the_order_of_the_keys(n_bits: int, n: int) -> None:
    rng = np.random.default_rng(n_bits)
    keys = rng.integers(0, 2**n_bits - 1, (40, n), endpoint=True)
    keys[0], keys[1, 0] = 2**n_bits - 1, 0
    found, _, _ = together(
        lambda party, s: sorted_low_bits(party, s, n_bits=n_bits), shares_of(keys, np.uint64, rng)
    )
    assert np.array_equal(found, np.sort(keys, axis=1) & 1)


@pytest.mark.parametrize(("length", "cap"), [(1, 0), (7, 0), (7, 3000), (30, 0)])
def test_distances_are_those_of_the_engines_route(length: int, cap: int) -> None:
    rng = np.random.default_rng(length)
    cube = rng.integers(-(2**11), 2**11, (13, 3, 30))
    series, other = cube[:, 2], cube[:, 0]
    cut = np.concatenate([series[:2, :length], rng.integers(-(2**11), 2**11, (3, length))])
    with enable_x64():
        run = jax.jit(distances_dot, static_argnames=("cap", "shift"))
        wanted = np.array(run(series, series**2, cut, cap=cap, shift=5))
    groups: dict[str, Any] = {
        "counts": (2, 3),
        "lengths": (length, length),
        "channels": (2, 0),
        "caps": (cap, cap),
        "shifts": (5, 4),
    }
    found, _, _ = together(
        lambda party, *x: replicated_distances(party, *x, **groups),
        *(shares_of(x, np.uint64, rng) for x in (cube, cube**2, cut.reshape(-1))),
    )
    with enable_x64():
        wanted[2:] = np.asarray(run(other, other**2, cut[2:], cap=cap, shift=4))
    assert np.array_equal(found.astype(np.int64), wanted)
    assert wanted[0, 0] == 0
    assert not cap or (wanted[2:] == cap >> 4).any()


@pytest.mark.parametrize(
    ("cap", "shift", "length"),
    [(2**31, 0, 2), (-1, 0, 2), (0, 32, 2), (0, -1, 2), (0, 0, 2**20 + 1)],
)
def test_public_numbers_beyond_the_ring_are_refused(cap: int, shift: int, length: int) -> None:
    words = np.zeros((1, length), dtype=np.uint64)
    with pytest.raises(TacitError, match="fit distances below"):
        replicated_distances(
            None,  # type: ignore[arg-type]
            *[(words, words)] * 3,
            counts=(1,),
            lengths=(length,),
            channels=(0,),
            caps=(cap,),
            shifts=(shift,),
        )


@pytest.mark.parametrize("n_bits", [0, 64])
def test_keys_beyond_the_ring_are_refused(n_bits: int) -> None:
    wire = Wire()
    wire.boxes[1, 0].put(bytes(32))
    words = np.zeros((1, 2), dtype=np.uint64)
    with pytest.raises(TacitError, match="1 to 63 bits"):
        sorted_low_bits(Replicated(wire.of(0), 0), (words, words), n_bits=n_bits)


def test_every_message_is_uniform_whatever_the_secret() -> None:
    """Constant secrets: any share sent without a mask, or masked twice by one stream, stands out.

    A sound run is called uneven about once in 10^8 runs.
    """
    for secret in (0, 2**30):
        x = np.full((8, 512), secret)

        def kernel(party: Replicated, s: Pair) -> Pair:
            return party.shifted(party.smallest(s)[0], shift=9)

        # All shares of the input but one are zero: what is sent is then masked by streams alone.
        plain = [np.zeros_like(x, dtype=np.uint32)] * 2 + [x.astype(np.uint32)]
        inputs = [(plain[i], plain[(i + 1) % 3]) for i in range(3)]
        _, wire, _ = together(kernel, inputs)
        assert_uniform(wire)
    # The twin: a slight unevenness of as many bytes is noticed.
    rng = np.random.default_rng(5)
    assert uniform_bytes([rng.integers(0, 250, 10**5, dtype=np.uint8).tobytes()]) < FALSE_ALARM


def test_what_one_party_sees_does_not_tell_two_secrets_apart() -> None:
    """The bits that each receiver gets, with the same own shares and another secret.

    Party i's input shares are the same in both cases; only the share it does not hold differs.
    The number of ones in what it receives is binomial with p = 1/2 in both, tested at 1e-9.
    """
    for rank in range(3):
        hidden = (rank + 2) % 3
        for value in (0, 2**31 - 1):
            parts = [np.zeros(4096, dtype=np.uint32) for _ in range(3)]
            parts[hidden][:] = value
            inputs = [(parts[i], parts[(i + 1) % 3]) for i in range(3)]
            _, wire, _ = together(lambda party, s: party.minimum(s, s), inputs)
            received = np.frombuffer(b"".join(wire.seen[rank][1:]), dtype=np.uint8)
            ones = int(np.unpackbits(received).sum())
            assert stats.binomtest(ones, 8 * received.size).pvalue > FALSE_ALARM


def test_keys_are_drawn_anew_for_every_pair_and_every_run() -> None:
    zeros = [(np.zeros(4, dtype=np.uint32),) * 2] * 3
    keys = []
    for _ in range(2):
        _, wire, _ = together(lambda party, s: party.multiply(s, s), zeros)
        keys += [messages[0] for messages in wire.seen.values()]
    assert {len(key) for key in keys} == {32}
    assert len(set(keys)) == 6  # by luck with probability 2^-252
    # A party receives one key, that of the party after it, and makes one: it lacks the third.
    assert [len(m) for m in wire.seen[0]].count(32) == 1


def test_sizes_and_counts_follow_from_the_shapes_alone() -> None:
    def traffic(x: NDArray[Any]) -> list[tuple[int, ...]]:
        rng = np.random.default_rng(0)
        shared = shares_of(x, np.uint32, rng)
        _, _, sides = together(
            lambda party, s: party.shifted(party.smallest(s)[0], shift=3), shared
        )
        return [side.traffic for side in sides]

    rng = np.random.default_rng(1)
    first = traffic(rng.integers(0, 2**31, (9, 100)))
    assert traffic(np.zeros((9, 100))) == first
    assert traffic(np.zeros((10, 100))) != first
    sent, received = (sum(side[k] for side in first) for k in (0, 1))
    assert sent == received


def test_a_message_of_another_size_is_refused() -> None:
    wire = Wire()
    for sender, receiver in ((0, 2), (1, 0), (2, 1)):
        wire.boxes[sender, receiver].put(b"short")
    with pytest.raises(PeerFault, match="sent 5 bytes instead of 32") as fault:
        Replicated(wire.of(0), 0)
    assert fault.value.rank == 1  # who sent it, not who received it


def test_a_shift_deals_only_the_bits_that_it_drops() -> None:
    def bytes_sent(shift: int) -> int:
        shared = shares_of(np.zeros(800), np.uint32, np.random.default_rng(0))
        _, _, sides = together(lambda party, s: party.shifted(s, shift=shift), shared)
        return sides[1].traffic[0]  # the dealer

    # One bit of 800 words: a slice of 104 bytes and the carry as a number of 64 bits are dealt; the
    # two products are between the others.
    assert bytes_sent(1) - bytes_sent(0) == 104 + 800 * 8
