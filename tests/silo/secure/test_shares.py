"""Shares on the wire: they read back, and nothing of another form reaches the engine."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tacit.silo.secure.faults import PeerFault
from tacit.silo.secure.shares import frame_of, share_from


def shares(shape: tuple[int, ...], dtype: str = "int64") -> Any:
    import spu
    from spu import libspu

    config = libspu.RuntimeConfig(
        protocol=libspu.ProtocolKind.ABY3, field=libspu.FieldType.FM64, fxp_fraction_bits=18
    )
    zeros = np.zeros(shape, dtype=dtype)
    return spu.Io(3, config).make_shares(zeros, libspu.Visibility.VIS_SECRET)


def test_a_share_reads_back() -> None:
    share = shares((3, 4))[0]
    read = share_from(*frame_of(share), like=shares((3, 4))[1], sender=2)
    assert frame_of(read) == frame_of(share)


def damaged_frames() -> list[tuple[dict[str, Any], bytes]]:
    header, payload = frame_of(shares((3, 4))[0])
    chunk = header["chunks"][0]
    return [
        frame_of(shares((4, 3))[0]),
        frame_of(shares((3, 5))[0]),
        frame_of(shares((3, 4), "float64")[0]),
        (header, payload[:-1]),
        (header, payload + b"x"),
        (header | {"chunks": [chunk - 1, 1]}, payload),
        (header | {"chunks": []}, b""),
        (header | {"chunks": ["many"]}, payload),
        (header | {"chunks": None}, payload),
        (header | {"meta": "zz"}, payload),
        ({"chunks": header["chunks"]}, payload),
        # The same length, but the chunk says that more would follow.
        (header, payload.replace(b"\x08\xc0\x01", b"\x08\xc0\x7f", 1)),
    ]


@pytest.mark.parametrize("number", range(len(damaged_frames())))
def test_a_share_of_another_form_is_refused_and_its_sender_named(number: int) -> None:
    like = shares((3, 4))[1]
    header, payload = damaged_frames()[number]
    assert (header, payload) != frame_of(shares((3, 4))[0])
    with pytest.raises(PeerFault, match="type or shape differs") as fault:
        share_from(header, payload, like=like, sender=2)
    assert fault.value.rank == 2
