"""Comparisons, minima and sorting over replicated shares of three parties, in bulk.

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

import secrets
from typing import Any, Protocol

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from tacit.errors import TacitError
from tacit.silo.secure.bit_slices import bits_of, to_slice, to_slices
from tacit.silo.secure.faults import PeerFault
from tacit.silo.secure.sorting_network import next_power_of_two

Words = NDArray[Any]  # uint32 or uint64: all arithmetic wraps
Pair = tuple[Words, Words]  # x_i and x_{i+1} at party i

N_PARTIES = 3
_KEY_BYTES = 32
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
        n_bytes = int(np.prod(shape)) * np.dtype(dtype).itemsize
        return np.frombuffer(self._cipher.update(bytes(n_bytes)), dtype=dtype).reshape(shape)


class Replicated:
    """One party's side of the protocols; all parties make the same calls in the same order."""

    def __init__(self, channel: PeerChannel, rank: int) -> None:
        self._channel = channel
        self._next, self._previous = (rank + 1) % N_PARTIES, (rank - 1) % N_PARTIES
        self.rank = rank
        self._traffic = [0, 0, 0, 0]
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
        """The carry out of the highest slice of u + w, by a tree over its slices."""
        propagate, generate = _xor(u, w), self.boolean_and(u, w)
        while (n := len(generate[0])) > 1:
            # Groups pair up from the top; an odd one is left over at the bottom.
            odd, pairs = n % 2, n // 2
            g_low, g_high = _take(generate, odd, 2), _take(generate, odd + 1, 2)
            p_low, p_high = _take(propagate, odd, 2), _take(propagate, odd + 1, 2)
            # The lowest group's `propagate` is never used, so it need not be computed.
            first = 1 - odd
            left = _joined(p_high, _take(p_high, first, 1))
            right = _joined(g_low, _take(p_low, first, 1))
            product = self.boolean_and(left, right)
            merged = _xor(g_high, _take(product, 0, 1, pairs))
            generate = _joined(_take(generate, 0, 1, odd), merged)
            propagate = _joined(_take(propagate, 0, 1, 1), _take(product, pairs, 1))
        return generate[0][0], generate[1][0]

    def negative(self, x: Pair) -> Pair:
        """The highest bit of every word, as one boolean slice."""
        u, w = self._sliced_halves(self.halves(x))
        carry = self._carry(_take(u, 0, 1, -1), _take(w, 0, 1, -1))
        return _xor(carry, _xor((u[0][-1], u[1][-1]), (w[0][-1], w[1][-1])))

    def arithmetic(self, bit: Pair, shape: tuple[int, ...], dtype: Any) -> Pair:
        """Boolean shares of bits as shares in the ring: b = e + w - 2 e w."""
        n_words = int(np.prod(shape))
        part = bits_of(self.halves(bit, xor=True), n_words).astype(dtype).reshape(shape)
        dealing = self.rank == _DEALER
        e = self.deal(part if dealing else None, shape, dtype, xor=False)
        w = self.known_to_others(None if dealing else part, shape, dtype)
        product = self.multiply(e, w)
        two = np.dtype(dtype).type(2)
        return e[0] + w[0] - two * product[0], e[1] + w[1] - two * product[1]

    def minimum(self, a: Pair, b: Pair) -> Pair:
        """The smaller of each two; they must differ by less than half the ring."""
        difference = (a[0] - b[0], a[1] - b[1])
        less = self.arithmetic(self.negative(difference), a[0].shape, a[0].dtype)
        chosen = self.multiply(less, difference)
        return chosen[0] + b[0], chosen[1] + b[1]

    def smallest(self, x: Pair) -> Pair:
        """The smallest along the first axis, by a tournament."""
        while len(x[0]) > 1:
            half = len(x[0]) // 2
            low, high = _take(x, 0, 1, half), _take(x, half, 1, 2 * half)
            x = _joined(self.minimum(low, high), _take(x, 2 * half, 1))
        return x[0][0], x[1][0]

    def shifted(self, x: Pair, *, shift: int) -> Pair:
        """floor(x / 2^shift) in the ring of 2^64, exactly, for words of 32 bits below 2^31.

        With x + c 2^32 = u + w: the dealer knows u, the others w. As x < 2^31, the carry c is 1
        exactly when u or w has its highest bit set; the carry out of the dropped bits is computed.
        """
        shape, dealing = x[0].shape, self.rank == _DEALER
        part = self.halves(x)
        top = (part >> np.uint32(31)).astype(np.uint64)
        weight = np.uint64(2 ** (32 - shift))
        kept = (part >> np.uint32(shift)).astype(np.uint64) - weight * top
        known = np.stack([kept, top])
        u = self.deal(known if dealing else None, known.shape, np.uint64, xor=False)
        w = self.known_to_others(None if dealing else known, known.shape, np.uint64)
        tops = self.multiply((u[0][1], u[1][1]), (w[0][1], w[1][1]))
        total = [a[0] + b[0] + weight * c for a, b, c in zip(u, w, tops, strict=True)]
        if shift:
            carry = self._carry(*self._sliced_halves(part, n_bits=shift))
            extra = self.arithmetic(carry, shape, np.uint64)
            total = [t + e for t, e in zip(total, extra, strict=True)]
        return total[0], total[1]

    def lowest_bit(self, x: Pair) -> Pair:
        """The lowest bit of every word in the ring of 2^64: no carry enters it."""
        bits = (to_slice(x[0] & x[0].dtype.type(1)), to_slice(x[1] & x[1].dtype.type(1)))
        return self.arithmetic(bits, x[0].shape, np.uint64)

    def sorted_low_bits(self, keys: Pair, *, n_bits: int) -> Pair:
        """The lowest bit of every key after each row (b, n) was sorted upwards.

        Keys of up to 31 bits are sorted in the ring of 2^32, others, up to 63, in that of 2^64.
        """
        if not 1 <= n_bits <= 63:
            raise TacitError(f"keys to sort have 1 to 63 bits, got {n_bits}.")
        ring = np.uint32 if n_bits <= 31 else np.uint64
        rows, n = keys[0].shape
        largest = np.iinfo(ring).max // 2
        filler = self.constant(largest, (rows, next_power_of_two(n) - n), ring)
        first, second = (
            np.concatenate([k.astype(ring), f], axis=1) for k, f in zip(keys, filler, strict=True)
        )
        ordered = self.sorted_rows((first, second))
        return self.lowest_bit((ordered[0][:, :n], ordered[1][:, :n]))

    def sorted_rows(self, x: Pair) -> Pair:
        """Each row (b, n) upwards by a bitonic network; n must be a power of two."""
        n, block = x[0].shape[1], 2
        while block <= n:
            x = self._step(x, block // 2, mirrored=True)
            half = block // 4
            while half >= 1:
                x = self._step(x, half, mirrored=False)
                half //= 2
            block *= 2
        return x

    def _step(self, x: Pair, half: int, *, mirrored: bool) -> Pair:
        """One step of the network: places j and j + half, or mirrored places, of each block."""
        rows, n = x[0].shape
        turn = slice(None, None, -1) if mirrored else slice(None)
        parts = [v.reshape(rows, n // (2 * half), 2, half) for v in x]
        a = (parts[0][:, :, 0], parts[1][:, :, 0])
        b = (parts[0][:, :, 1, turn], parts[1][:, :, 1, turn])
        low = self.minimum(a, b)
        out = [
            np.stack([lo, (p + q - lo)[:, :, turn]], axis=2).reshape(rows, n)
            for lo, p, q in zip(low, a, b, strict=True)
        ]
        return out[0], out[1]


def _take(x: Pair, start: int, step: int, stop: int | None = None) -> Pair:
    return x[0][start:stop:step], x[1][start:stop:step]


def _xor(x: Pair, y: Pair) -> Pair:
    return x[0] ^ y[0], x[1] ^ y[1]


def _joined(x: Pair, y: Pair) -> Pair:
    return np.concatenate([x[0], y[0]]), np.concatenate([x[1], y[1]])
