"""Messages as engines send them to each other, and as somebody might forge them."""

from __future__ import annotations

import struct

SERVICE = b"org.interconnection.link.ReceiverService"


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def field(number: int, value: int | bytes) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def meta(*, service: bytes = SERVICE, method: bytes = b"Push", more: bytes = b"") -> bytes:
    request = field(1, service) + field(2, method)
    return field(1, request) + field(3, 0) + field(4, 12884901890) + more


def message(body: bytes, head: bytes = meta()) -> bytes:
    return struct.pack(">4sII", b"PRPC", len(head) + len(body), len(head)) + head + body


def push(rank: int, value: bytes = b"x" * 300) -> bytes:
    sender = field(1, rank) if rank else b""  # protobuf leaves zeros out
    return message(sender + field(2, b"root:0->1") + field(3, value) + field(5, b"\x08\x01"))
