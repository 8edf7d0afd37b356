"""What a peer may say to an engine: pushes under its own rank, in pieces of any size."""

from __future__ import annotations

import pytest

from silo_pushes import SERVICE, field, message, meta, push, varint
from tacit.silo.party.links.pushes import ForgedPush, PushCheck


def feed(check: PushCheck, stream: bytes, *, size: int) -> None:
    for start in range(0, len(stream), size):
        check.feed(stream[start : start + size])


@pytest.mark.parametrize("rank", [0, 1, 2, 300])
@pytest.mark.parametrize("size", [1, 7, 100_000])
def test_pushes_of_the_peer_itself_pass_in_pieces(rank: int, size: int) -> None:
    stream = push(rank) + push(rank, b"") + push(rank, b"PRPC" * 9000)
    check = PushCheck(rank)
    feed(check, stream, size=size)
    with pytest.raises(ForgedPush, match=f"name of rank {rank + 1}"):
        check.feed(push(rank + 1))


def test_defaults_that_a_newer_engine_writes_out_pass() -> None:
    written = field(10, 0) + field(11, 0) + field(12, b"")
    PushCheck(1).feed(message(field(1, 1) + field(2, b"k") + field(3, b"v"), meta(more=written)))


@pytest.mark.parametrize(
    "forged",
    [
        push(2),
        push(0),
        # The last field of a kind counts, wherever it stands.
        message(field(1, 1) + field(2, b"k") + field(3, b"v") + field(1, 2)),
        # A tag that a careless reader cuts down to the sender's.
        message(field(1, 1) + varint(0x08 | 1 << 32) + varint(2)),
        message(field(1, 1) + field(9, 2)),
        message(field(1, 1) + field(3, b"v")[:-1] + b""),
        message(field(1, 1) + varint(3 << 3 | 2) + varint(10**6) + b"v"),
        message(field(1, 1), meta(service=b"flags")),
        message(field(1, 1), meta(method=b"Pull")),
        message(field(1, 1), meta(more=field(5, 3))),  # an attachment
        message(field(1, 1), meta(more=field(10, 1))),  # content that is no protobuf
        message(field(1, 1), meta(more=field(11, 1) + field(12, b"abcd"))),  # a checksum
        message(field(1, 1), meta(more=field(1, field(1, b"flags")))),
        message(field(1, 1), field(1, field(1, SERVICE) + field(2, b"Push")) + field(3, 1)),
        message(field(1, 1), b""),
        message(field(1, 1), meta(more=b"x" * 5000)),
        b"GET /flags HTTP/1.1\r\nHost: x\r\n\r\n",
        b"\x00" * 12,
    ],
    ids=range(18),
)
def test_everything_else_is_refused(forged: bytes) -> None:
    for size in (1, len(forged)):
        check = PushCheck(1)
        check.feed(push(1))
        with pytest.raises(ForgedPush):
            feed(check, forged, size=size)
