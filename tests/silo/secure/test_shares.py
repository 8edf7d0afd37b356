"""Shares on the wire: they read back, and nothing of another form reaches the engine."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from replicated_parties import with_altered_byte
from tacit.errors import TacitError
from tacit.silo.secure.faults import PeerFault
from tacit.silo.secure.shares import check_copies, frame_of, share_from, words_of


def shares(shape: tuple[int, ...], dtype: str = "int64", value: int = 0) -> Any:
    import spu
    from spu import libspu

    config = libspu.RuntimeConfig(
        protocol=libspu.ProtocolKind.ABY3, field=libspu.FieldType.FM64, fxp_fraction_bits=18
    )
    values = np.full(shape, value, dtype=dtype)
    return spu.Io(3, config).make_shares(values, libspu.Visibility.VIS_SECRET)


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


@pytest.mark.parametrize("dtype", ["int64", "float64", "bool"])
def test_copies_of_an_honest_opening_agree(dtype: str) -> None:
    for own in (None, 0, 1, 2):
        check_copies(shares((3, 4), dtype), n_values=12, own=own)
    check_copies(shares((), dtype), n_values=1, own=0)


@pytest.mark.parametrize("dtype", ["int64", "bool"])
@pytest.mark.parametrize("cheat", [1, 2])
def test_one_altered_word_is_noticed_wherever_it_lies(dtype: str, cheat: int) -> None:
    """What the engine itself does not notice: it opened 105 instead of 5."""
    honest = shares((2, 2), dtype)
    size = len(frame_of(honest[0])[1])
    width = 8 if dtype == "int64" else 1
    assert size > 2 * 4 * width
    for place in range(0, 2 * 4 * width, width):
        sent = [with_altered_byte(s, place) if r == cheat else s for r, s in enumerate(honest)]
        with pytest.raises(PeerFault, match="an opening whose words differ") as fault:
            check_copies(sent, n_values=4, own=0)
        assert fault.value.rank != 0


def test_the_engine_alone_would_open_the_altered_value() -> None:
    import spu
    from spu import libspu

    config = libspu.RuntimeConfig(
        protocol=libspu.ProtocolKind.ABY3, field=libspu.FieldType.FM64, fxp_fraction_bits=18
    )
    io = spu.Io(3, config)
    honest = io.make_shares(np.array([4]), libspu.Visibility.VIS_SECRET)
    opened = {
        int(io.reconstruct([honest[0], with_altered_byte(honest[1], place), honest[2]])[0])
        for place in (0, 8)
    }
    assert opened - {4}, "the check would have nothing to notice"


def test_shares_that_are_not_replicated_are_not_compared() -> None:
    import spu
    from spu import libspu

    config = libspu.RuntimeConfig(
        protocol=libspu.ProtocolKind.CHEETAH, field=libspu.FieldType.FM64, fxp_fraction_bits=18
    )
    pair = spu.Io(2, config).make_shares(np.array([4]), libspu.Visibility.VIS_SECRET)
    with pytest.raises(TacitError, match="cannot be compared"):
        check_copies(pair, n_values=1, own=0)


@pytest.mark.parametrize("pair", [(0, 1), (0, 2), (1, 2)])
def test_any_two_computing_parties_read_every_value(pair: tuple[int, int]) -> None:
    """The attack that no setting prevents: whose words are put together open all that is shared."""
    held = [words_of(share, (3,)) for share in shares((3,), value=123)]
    words = {(rank + i) % 3: held[rank][i] for rank in pair for i in (0, 1)}
    assert len(words) == 3
    assert (words[0] + words[1] + words[2]).tolist() == [123] * 3


@pytest.mark.parametrize("rank", [0, 1, 2])
def test_the_words_of_one_party_are_uniform_whatever_the_value(rank: int) -> None:
    """Bits of two words out of three, over 2000 values; uneven by chance once in 10^9 tests."""
    for value in (0, -1):
        own = np.concatenate(words_of(shares((2000,), value=value)[rank], (2000,)))
        ones = int(np.unpackbits(own.view(np.uint8)).sum())
        assert stats.binomtest(ones, 64 * own.size).pvalue > 1e-9
