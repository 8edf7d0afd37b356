"""Frames on the wire: a JSON header and raw bytes, both with their length in front; no pickle.

The same frames travel between parties (over mutual TLS) and between a party and its own engine
process (over a socket pair).
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from collections.abc import Callable
from typing import Any

from tacit.errors import TacitError

_LENGTHS = struct.Struct(">IQ")
LARGEST_HEADER = 1 << 24
_PIECE = 1 << 18  # bytes read at once
LARGEST_PAYLOAD = 1 << 32

Header = dict[str, Any]


class FrameError(TacitError):
    """A frame that is cut short, too long or not a frame at all."""


def encode(header: Header, payload: bytes | memoryview = b"") -> bytes:
    """One frame as bytes."""
    text = json.dumps(header, separators=(",", ":"), allow_nan=False).encode()
    return _LENGTHS.pack(len(text), len(payload)) + text + bytes(payload)


def _checked_lengths(raw: bytes) -> tuple[int, int]:
    header, payload = _LENGTHS.unpack(raw)
    if header > LARGEST_HEADER or payload > LARGEST_PAYLOAD:
        raise FrameError(f"refused a frame of {header} + {payload} bytes.")
    return header, payload


def _decode_header(text: bytes) -> Header:
    try:
        header = json.loads(text)
    except ValueError as error:
        raise FrameError(f"a frame's header is not JSON: {error}.") from error
    if not isinstance(header, dict) or not isinstance(header.get("t"), str):
        raise FrameError("a frame's header must be an object with a type 't'.")
    return header


async def read_frame(
    reader: asyncio.StreamReader, *, heard: Callable[[], None] = lambda: None
) -> tuple[Header, bytes]:
    """Read one frame; raises `asyncio.IncompleteReadError` at the end of the stream.

    `heard` is called whenever something has arrived: a large frame on a slow line is not silence.
    """
    header_size, payload_size = _checked_lengths(await reader.readexactly(_LENGTHS.size))
    header = _decode_header(await reader.readexactly(header_size))
    heard()
    payload = bytearray()
    while len(payload) < payload_size:
        part = await reader.read(min(_PIECE, payload_size - len(payload)))
        if not part:
            raise asyncio.IncompleteReadError(bytes(payload), payload_size)
        payload += part
        heard()
    return header, bytes(payload)


class FrameSocket:
    """Blocking frames over a connected socket: the engine's side of the socket pair."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._stream = connection.makefile("rb", buffering=1 << 20)

    def send(self, header: Header, payload: bytes | memoryview = b"") -> int:
        """Send one frame; returns its size in bytes."""
        frame = encode(header, payload)
        self._socket.sendall(frame)
        return len(frame)

    def recv(self) -> tuple[Header, bytes]:
        """Receive one frame; raises EOFError when the other side is gone."""
        header_size, payload_size = _checked_lengths(self._exactly(_LENGTHS.size))
        header = _decode_header(self._exactly(header_size))
        return header, self._exactly(payload_size)

    def _exactly(self, size: int) -> bytes:
        data: bytes = self._stream.read(size)
        if len(data) != size:
            raise EOFError
        return data
