"""What may enter an engine from a peer: its pushes, each under the peer's own rank.

The engines speak brpc's own protocol, and every push says which rank sent it. TLS tells which party
a connection belongs to; this reads along and refuses everything else: another rank, another method,
another protocol (brpc answers HTTP on the same socket), compressed or attached content.
"""

from __future__ import annotations

import struct
from collections.abc import Generator

from tacit.errors import TacitError

_HEAD = struct.Struct(">4sII")
_MAGIC = b"PRPC"
_LARGEST_META = 1 << 12
_SERVICE, _METHOD = b"org.interconnection.link.ReceiverService", b"Push"
# Fields of brpc's meta data: the request, and the number that its answer bears.
_REQUEST, _CORRELATION = 1, 4
# Compression, kind of content, kind of checksum and checksum: newer engines write the defaults out,
# and anything but a default is refused.
_DEFAULTS = (3, 10, 11, 12)
# Fields of a push, as their tags: sender, key, value, kind of transfer, and part of a whole.
_SENDER_RANK, _PUSH_TAGS = 0x08, frozenset((0x08, 0x12, 0x1A, 0x20, 0x2A))
_VARINT, _BYTES = 0, 2

# Yields n to be given the next n bytes, -n to have n bytes passed over.
_Reader = Generator[int, bytes, None]
_Number = Generator[int, bytes, tuple[int, int]]


class ForgedPush(TacitError):
    """A peer sent something that is not a push of its own."""


class PushCheck:
    """Follows one connection from the peer `rank`, in pieces of any size.

    Guarantee: no message is complete for the engine before it passed; a piece that raises must not
    be forwarded.
    """

    def __init__(self, rank: int) -> None:
        self._reader = _pushes(rank)
        self._wanted = next(self._reader)
        self._held = bytearray()

    def feed(self, piece: bytes) -> None:
        """Read the next piece; raises `ForgedPush` if it may not pass."""
        place = 0
        while place < len(piece):
            if self._wanted < 0:
                step = min(-self._wanted, len(piece) - place)
                self._wanted += step
                place += step
                if self._wanted == 0:
                    self._wanted = self._reader.send(b"")
                continue
            step = min(self._wanted - len(self._held), len(piece) - place)
            self._held += piece[place : place + step]
            place += step
            if len(self._held) == self._wanted:
                taken = bytes(self._held)
                self._held.clear()
                self._wanted = self._reader.send(taken)


def _pushes(rank: int) -> _Reader:
    while True:
        magic, body, meta = _HEAD.unpack((yield _HEAD.size))
        if magic != _MAGIC or meta > min(body, _LARGEST_META):
            raise ForgedPush("not a message of an engine")
        _check_meta((yield meta) if meta else b"")
        sender = yield from _sender_of(body - meta)
        if sender != rank:
            raise ForgedPush(f"a message in the name of rank {sender}")


def _check_meta(meta: bytes) -> None:
    """Only plain requests for the one method that engines call on each other."""
    fields = _fields(meta)
    request = fields.pop(_REQUEST, None)
    fields.pop(_CORRELATION, None)
    if any(fields.pop(number, 0) for number in _DEFAULTS) or fields:
        raise ForgedPush("a message with content that engines do not send")
    if not isinstance(request, bytes):
        raise ForgedPush("a message with content that engines do not send")
    called = _fields(request)
    if (called.get(1), called.get(2)) != (_SERVICE, _METHOD):
        raise ForgedPush("a call that engines do not make")


def _fields(message: bytes) -> dict[int, int | bytes]:
    """The fields of a small protobuf message: numbers and bytes only, each at most once."""
    found: dict[int, int | bytes] = {}
    place = 0
    while place < len(message):
        tag, place = _varint(message, place)
        value, place = _varint(message, place)
        if tag & 7 == _BYTES:
            content: int | bytes = message[place : place + value]
            place += value
        else:
            content = value
        if tag >> 3 in found or tag > 0x7F or tag & 7 not in (_VARINT, _BYTES):
            raise ForgedPush("a message with content that engines do not send")
        found[tag >> 3] = content
    return found


def _varint(message: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if place >= len(message) or shift > 63:
            raise ForgedPush("a message that is cut short")
        byte = message[place]
        value |= (byte & 0x7F) << shift
        place, shift = place + 1, shift + 7
        if byte < 0x80:
            return value, place


def _sender_of(size: int) -> Generator[int, bytes, int]:
    """The rank in a push of `size` bytes; the last one counts, as in every protobuf reader."""
    sender = 0
    while size > 0:
        (tag,) = yield 1
        if tag not in _PUSH_TAGS:
            raise ForgedPush("a message with content that engines do not send")
        value, used = yield from _next_varint(size - 1)
        size -= 1 + used
        if tag & 7 == _BYTES:
            if value > size:
                raise ForgedPush("a message that is cut short")
            if value:
                yield -value
            size -= value
        elif tag == _SENDER_RANK:
            sender = value
    return sender


def _next_varint(left: int) -> _Number:
    value = shift = used = 0
    while True:
        if used == left or shift > 63:
            raise ForgedPush("a message that is cut short")
        (byte,) = yield 1
        value |= (byte & 0x7F) << shift
        used, shift = used + 1, shift + 7
        if byte < 0x80:
            return value, used
