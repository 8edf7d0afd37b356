"""Products, comparisons and minima over replicated shares of three parties, in bulk.

The engine holds a value x of the ring of 2^64 as x_0 + x_1 + x_2, and party i knows x_i and
x_{i+1}. This module computes on the same shares, in the rings of 2^32 and 2^64, what the search
needs most often, many times faster than the engine's own element by element comparison.

Parties: three; one of them may be corrupted, passively; nobody deals randomness. Each pair of
parties holds one key that the third does not know, drawn by the operating system.
Opens: nothing. Every message that a party receives is masked by the stream of the key which this
party does not hold, used once, so that it is uniform whatever the secrets are (while AES-CTR is a
pseudorandom function). How many messages there are, and their sizes, follow from the shapes.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Iterable
from typing import Any, Protocol

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from tacit.silo.secure.bit_slices import bits_of, to_slices
from tacit.silo.secure.faults import PeerFault
from tacit.silo.secure.wrapping import wrapping_matmul

Words = NDArray[Any]  # uint32 or uint64: all arithmetic wraps
Pair = tuple[Words, Words]  # x_i and x_{i+1} at party i

N_PARTIES = 3
_KEY_BYTES = 32
# Blocks that stay in the processor's cache: several times faster than one long call.
_STREAM_BLOCK = 1 << 18
_ZEROS = memoryview(bytes(_STREAM_BLOCK))
# The party that adds its two shares where a sum of two is needed; not P0, who has most to send.
_DEALER = 1


class PeerChannel(Protocol):
    """Point to point messages between the three parties, in order for each pair."""

    def send_async(self, to: int, data: bytes) -> None:
        """Send without waiting."""
        ...

    def recv(self, sender: int) -> bytes:
        """Wait for the next message of one party."""
        ...


class KeyStream:
    """The keystream of one key; no part of it is used twice."""

    def __init__(self, key: bytes) -> None:
        self._cipher = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor()

    def take(self, shape: tuple[int, ...], dtype: Any) -> Words:
        """The next uniform words."""
        words = np.empty(math.prod(shape), dtype=dtype)
        # The cipher wants room for one block more than it fills.
        room = memoryview(bytearray(_STREAM_BLOCK + 15))
        stream = words.view(np.uint8)
        for start in range(0, stream.size, _STREAM_BLOCK):
            n = min(_STREAM_BLOCK, stream.size - start)
            filled = self._cipher.update_into(_ZEROS[:n], room)
            stream[start : start + n] = np.frombuffer(room, dtype=np.uint8, count=filled)
        return words.reshape(shape)


class Replicated:
    """One party's side of the protocols; all parties make the same calls in the same order."""

    def __init__(self, channel: PeerChannel, rank: int) -> None:
        self._channel = channel
        self._next, self._previous = (rank + 1) % N_PARTIES, (rank - 1) % N_PARTIES
        self.rank = rank
        self._traffic = [0, 0, 0, 0]
        self.rounds = 1  # the longest chain of messages over all parties, so far
        mine = secrets.token_bytes(_KEY_BYTES)
        self._send(self._previous, mine)
        # The key of party i is known to i and i - 1.
        self._mine, self._theirs = KeyStream(mine), KeyStream(self._receive(self._next, _KEY_BYTES))

    def _send(self, to: int, data: bytes) -> None:
        self._traffic[0] += len(data)
        self._traffic[2] += 1
        self._channel.send_async(to, data)

    def _receive(self, sender: int, n_bytes: int) -> bytes:
        data = self._channel.recv(sender)
        if len(data) != n_bytes:
            raise PeerFault(sender, f"sent {len(data)} bytes instead of {n_bytes}")
        self._traffic[1] += n_bytes
        self._traffic[3] += 1
        return data

    @property
    def traffic(self) -> tuple[int, int, int, int]:
        """Bytes sent and received, messages sent and received, so far."""
        sent, received, sends, receives = self._traffic
        return sent, received, sends, receives

    def _reshared(self, z: Words) -> Pair:
        """Give the masked z_i to the party before, which holds (z_{i-1}, z_i)."""
        self.rounds += 1
        self._send(self._previous, z.tobytes())
        other = np.frombuffer(self._receive(self._next, z.nbytes), dtype=z.dtype)
        return z, other.reshape(z.shape)

    def multiply(self, x: Pair, y: Pair) -> Pair:
        """Products in the ring."""
        return self.mask_sum(x[0] * (y[0] + y[1]) + x[1] * y[0])

    def mask_sum(self, z: Words) -> Pair:
        """Shares of the sum of what the three parties computed alone."""
        mine, theirs = (s.take(z.shape, z.dtype) for s in (self._mine, self._theirs))
        return self._reshared(z + mine - theirs)

    def boolean_and(self, x: Pair, y: Pair) -> Pair:
        """Boolean products (AND) of shares by exclusive or."""
        z = (x[0] & (y[0] ^ y[1])) ^ (x[1] & y[0])
        mine, theirs = (s.take(z.shape, z.dtype) for s in (self._mine, self._theirs))
        return self._reshared(z ^ mine ^ theirs)

    def deal(self, value: Words | None, shape: tuple[int, ...], dtype: Any, *, xor: bool) -> Pair:
        """Share a value that the dealer alone knows: one stream masks it, one share is zero."""
        self.rounds += 1
        nothing = np.zeros(shape, dtype=dtype)
        if self.rank == _DEALER:
            assert value is not None
            mask = self._mine.take(shape, dtype)
            hidden = value ^ mask if xor else value - mask
            self._send(self._next, hidden.tobytes())
            return mask, hidden
        if self._next == _DEALER:
            return nothing, self._theirs.take(shape, dtype)
        n_bytes = nothing.nbytes
        received = np.frombuffer(self._receive(self._previous, n_bytes), dtype=dtype)
        return received.reshape(shape), nothing

    def known_to_others(self, x: Words | None, shape: tuple[int, ...], dtype: Any) -> Pair:
        """A value that the two others than the dealer know, as shares; nothing is sent."""
        nothing = np.zeros(shape, dtype=dtype)
        if self.rank == _DEALER:
            return nothing, nothing
        assert x is not None
        return (nothing, x) if self._previous == _DEALER else (x, nothing)

    def half_product(self, dealt: Pair, known: Pair, *, xor: bool) -> Pair:
        """The product of a dealt value with one that both others know; the dealer sends nothing.

        Only w_0 of `known`, and e_1 and e_2 of `dealt`, are not zero. The dealer holds the shares
        z_1 and z_2 of the product, two streams; P0 sends e_1 w_0 - z_1 and P2 sends e_2 w_0 - z_2
        to each other, masked by a stream that the receiver lacks, and both add them to z_0.
        """
        self.rounds += 1
        shape, dtype = dealt[0].shape, dealt[0].dtype
        if self.rank == _DEALER:
            return self._mine.take(shape, dtype), self._theirs.take(shape, dtype)
        first = self._next == _DEALER
        other = self._previous if first else self._next
        stream = self._theirs if first else self._mine
        factor, value = (known[0], dealt[1]) if first else (known[1], dealt[0])
        mask = stream.take(shape, dtype)
        part = (factor & value) ^ mask if xor else factor * value - mask
        self._send(other, part.tobytes())
        theirs = np.frombuffer(self._receive(other, part.nbytes), dtype=dtype).reshape(shape)
        together = part ^ theirs if xor else part + theirs
        return (together, mask) if first else (mask, together)

    def halves(self, x: Pair, *, xor: bool = False) -> Words:
        """x as the sum of two parts: the dealer's, and the one that both others know."""
        if self.rank == _DEALER:
            return x[0] ^ x[1] if xor else x[0] + x[1]
        return x[1] if self._previous == _DEALER else x[0]

    def constant(self, value: int, shape: tuple[int, ...], dtype: Any) -> Pair:
        """Shares of a public number."""
        filled, nothing = np.full(shape, value, dtype=dtype), np.zeros(shape, dtype=dtype)
        return (filled if self.rank == 0 else nothing, filled if self._next == 0 else nothing)

    def _sliced_halves(self, part: Words, *, n_bits: int | None = None) -> tuple[Pair, Pair]:
        """The lowest slices of both parts of x, by default all of them, as boolean shares."""
        slices = to_slices(part)[:n_bits]
        shape, dealing = slices.shape, self.rank == _DEALER
        dealt = self.deal(slices if dealing else None, shape, np.uint8, xor=True)
        return dealt, self.known_to_others(None if dealing else slices, shape, np.uint8)

    def _carry(self, u: Pair, w: Pair) -> Pair:
        """The carry out of the highest slice of u + w, by a tree over its slices.

        u is dealt and w is known to both others.
        """
        propagate, generate = _xor(u, w), self.half_product(u, w, xor=True)
        while (n := len(generate[0])) > 1:
            # Groups pair up from the top; an odd one is left over at the bottom.
            odd, pairs = n % 2, n // 2
            g_low, g_high = _take(generate, odd, 2), _take(generate, odd + 1, 2)
            p_low, p_high = _take(propagate, odd, 2), _take(propagate, odd + 1, 2)
            # The lowest group's `propagate` is never used, so it need not be computed.
            first = 1 - odd
            left = joined(p_high, _take(p_high, first, 1))
            right = joined(g_low, _take(p_low, first, 1))
            product = self.boolean_and(left, right)
            merged = _xor(g_high, _take(product, 0, 1, pairs))
            generate = joined(_take(generate, 0, 1, odd), merged)
            propagate = joined(_take(propagate, 0, 1, 1), _take(product, pairs, 1))
        return generate[0][0], generate[1][0]

    def negative(self, x: Pair, *, n_bits: int | None = None) -> Pair:
        """Whether -2^(n_bits-1) <= x < 2^(n_bits-1) is below zero, as one boolean slice.

        By default the words have as many bits as their ring; fewer bits are fewer bytes.
        """
        u, w = self._sliced_halves(self.halves(x), n_bits=n_bits)
        carry = self._carry(_take(u, 0, 1, -1), _take(w, 0, 1, -1))
        return _xor(carry, _xor((u[0][-1], u[1][-1]), (w[0][-1], w[1][-1])))

    def arithmetic(self, bit: Pair, shape: tuple[int, ...], dtype: Any) -> Pair:
        """Boolean shares of bits as shares in the ring: b = e + w - 2 e w."""
        n_words = int(np.prod(shape))
        part = bits_of(self.halves(bit, xor=True), n_words).astype(dtype).reshape(shape)
        dealing = self.rank == _DEALER
        e = self.deal(part if dealing else None, shape, dtype, xor=False)
        w = self.known_to_others(None if dealing else part, shape, dtype)
        product = self.half_product(e, w, xor=False)
        two = np.dtype(dtype).type(2)
        return e[0] + w[0] - two * product[0], e[1] + w[1] - two * product[1]

    def minimum(self, a: Pair, b: Pair) -> Pair:
        """The smaller of each two; they must differ by less than half the ring."""
        difference = (a[0] - b[0], a[1] - b[1])
        less = self.below_zero(difference, dtype=a[0].dtype)
        chosen = self.multiply(less, difference)
        return chosen[0] + b[0], chosen[1] + b[1]

    def smallest(self, *blocks: Pair) -> list[Pair]:
        """The smallest of each block along its first axis, by tournaments that run in step."""
        left = list(blocks)
        while max(len(x[0]) for x in left) > 1:
            halves = [len(x[0]) // 2 for x in left]
            low = flattened(_take(x, 0, 1, half) for x, half in zip(left, halves, strict=True))
            high = flattened(
                _take(x, half, 1, 2 * half) for x, half in zip(left, halves, strict=True)
            )
            winners = self.minimum(low, high)
            start = 0
            for i, half in enumerate(halves):
                shape = (half, *left[i][0].shape[1:])
                stop = start + math.prod(shape)
                won = (winners[0][start:stop].reshape(shape), winners[1][start:stop].reshape(shape))
                left[i], start = joined(won, _take(left[i], 2 * half, 1)), stop
        return [(x[0][0], x[1][0]) for x in left]

    def shifted(self, x: Pair, *, shift: int) -> Pair:
        """floor(x / 2^shift) in the ring of 2^64, exactly, for words below half of their ring.

        In the ring of 2^n with x + c 2^n = u + w: the dealer knows u, the others w. As x < 2^(n-1),
        the carry c is 1 exactly when u or w has its highest bit set; the carry out of the dropped
        bits is computed.
        """
        shape, dealing = x[0].shape, self.rank == _DEALER
        part, n_bits = self.halves(x), 8 * x[0].itemsize
        top = (part >> part.dtype.type(n_bits - 1)).astype(np.uint64)
        weight = np.uint64(2 ** (n_bits - shift) % 2**64)
        kept = (part >> part.dtype.type(shift)).astype(np.uint64) - weight * top
        known = np.stack([kept, top])
        u = self.deal(known if dealing else None, known.shape, np.uint64, xor=False)
        w = self.known_to_others(None if dealing else known, known.shape, np.uint64)
        tops = self.half_product((u[0][1], u[1][1]), (w[0][1], w[1][1]), xor=False)
        total = [a[0] + b[0] + weight * c for a, b, c in zip(u, w, tops, strict=True)]
        if shift:
            carry = self._carry(*self._sliced_halves(part, n_bits=shift))
            extra = self.arithmetic(carry, shape, np.uint64)
            total = [t + e for t, e in zip(total, extra, strict=True)]
        return total[0], total[1]

    def shifted_signed(self, x: Pair, *, shift: int) -> Pair:
        """floor(x / 2^shift) in the ring of 2^64, exactly, for -2^62 <= x < 2^62."""
        raised = self.plus(x, 2**62)
        return self.plus(self.shifted(raised, shift=shift), -(2 ** (62 - shift)))

    def plus(self, x: Pair, value: int | NDArray[np.int64]) -> Pair:
        """Add public numbers; nothing is sent."""
        added = np.asarray(value, dtype=np.int64).astype(x[0].dtype)
        return (
            x[0] + added if self.rank == 0 else x[0],
            x[1] + added if self._next == 0 else x[1],
        )

    def product(self, x: Pair, y: Pair) -> Pair:
        """Matrix products of shares (n, m) and (m, k) in the ring of 2^64."""
        return self.mask_sum(wrapping_matmul(x[0], y[0] + y[1]) + wrapping_matmul(x[1], y[0]))

    def below_zero(self, x: Pair, *, dtype: Any, n_bits: int | None = None) -> Pair:
        """1 where x < 0, else 0, in the ring of `dtype`; `n_bits` as in `negative`."""
        return self.arithmetic(self.negative(x, n_bits=n_bits), x[0].shape, dtype)


def flattened(blocks: Iterable[Pair]) -> Pair:
    """All words of several blocks in one row, so that they share one message."""
    rows = [(x[0].reshape(-1), x[1].reshape(-1)) for x in blocks]
    return np.concatenate([r[0] for r in rows]), np.concatenate([r[1] for r in rows])


def _take(x: Pair, start: int, step: int, stop: int | None = None) -> Pair:
    return x[0][start:stop:step], x[1][start:stop:step]


def _xor(x: Pair, y: Pair) -> Pair:
    return x[0] ^ y[0], x[1] ^ y[1]


def joined(x: Pair, y: Pair) -> Pair:
    """The words of both, one after the other, without a message."""
    return np.concatenate([x[0], y[0]]), np.concatenate([x[1], y[1]])
