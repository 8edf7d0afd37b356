"""Frames: what is sent reads back, and what is no frame is refused."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.silo.party.links.frames import FrameError, FrameSocket, encode, read_frame


@settings(deadline=None)  # the machine may be busy
@given(st.dictionaries(st.text(), st.integers() | st.text()), st.binary(max_size=2000))
def test_frames_survive_the_wire(fields: dict[str, Any], payload: bytes) -> None:
    left, right = socket.socketpair()
    with left, right:
        sent = FrameSocket(left).send({"t": "x", "fields": fields}, payload)
        header, received = FrameSocket(right).recv()
    assert (header["fields"], received) == (fields, payload)
    assert sent == len(encode({"t": "x", "fields": fields}, payload))


@pytest.mark.parametrize(
    "raw",
    [
        b"\xff" * 12,  # absurd lengths
        b"\x00\x00\x00\x02" + b"\x00" * 8 + b"[]",  # not an object
        b"\x00\x00\x00\x02" + b"\x00" * 8 + b"{}",  # no type
        b"\x00\x00\x00\x03" + b"\x00" * 8 + b"\x80\x04N",  # a pickle
    ],
)
def test_what_is_no_frame_is_refused(raw: bytes) -> None:
    left, right = socket.socketpair()
    with left, right:
        left.sendall(raw)
        left.close()
        with pytest.raises(FrameError):
            FrameSocket(right).recv()

    async def read() -> None:
        reader = asyncio.StreamReader()
        reader.feed_data(raw)
        reader.feed_eof()
        await read_frame(reader)

    with pytest.raises(FrameError):
        asyncio.run(read())


def test_a_cut_stream_is_the_end() -> None:
    left, right = socket.socketpair()
    with left, right:
        left.sendall(encode({"t": "x"}, b"12345678")[:-1])
        left.close()
        with pytest.raises(EOFError):
            FrameSocket(right).recv()


def test_every_part_of_a_large_frame_is_a_sign_of_life() -> None:
    async def story() -> int:
        reader, signs = asyncio.StreamReader(), []
        frame = encode({"t": "mail"}, bytes(10**6))
        reading = asyncio.create_task(read_frame(reader, heard=lambda: signs.append(1)))
        for start in range(0, len(frame), 10**5):
            reader.feed_data(frame[start : start + 10**5])
            await asyncio.sleep(0.001)
        _, payload = await reading
        assert payload == bytes(10**6)
        return len(signs)

    assert asyncio.run(story()) >= 10
