"""Sealed reports: one size, one reader, one round; who lacks the key is blind."""

from __future__ import annotations

import os

import numpy as np
import pytest
from scipy import stats

from tacit.errors import TacitError
from tacit.fleet.deployment.seal import OVERHEAD, Opener, Sealer, new_key, sealed_size

FALSE_ALARM = 1e-6
SIZE = 64
RUN = "run-1"


@pytest.fixture
def keys() -> tuple[bytes, bytes]:
    return new_key()


def sealer(public: bytes, size: int = SIZE) -> Sealer:
    return Sealer(public, run=RUN, report_bytes=size)


def test_what_was_sealed_is_opened(keys: tuple[bytes, bytes]) -> None:
    report = os.urandom(SIZE)
    sealed = sealer(keys[1]).seal(report, round_number=3)
    assert len(sealed) == sealed_size(SIZE) == SIZE + OVERHEAD
    assert Opener(keys[0], run=RUN).open(sealed, round_number=3) == report


@pytest.mark.parametrize(("run", "round_number"), [(RUN, 2), (RUN, 4), ("run-2", 3)])
def test_another_run_or_round_cannot_be_opened(
    keys: tuple[bytes, bytes], run: str, round_number: int
) -> None:
    sealed = sealer(keys[1]).seal(bytes(SIZE), round_number=3)
    assert Opener(keys[0], run=run).open(sealed, round_number=round_number) is None


def test_another_key_cannot_open(keys: tuple[bytes, bytes]) -> None:
    sealed = sealer(keys[1]).seal(bytes(SIZE), round_number=0)
    assert Opener(new_key()[0], run=RUN).open(sealed, round_number=0) is None


def test_every_altered_byte_is_noticed(keys: tuple[bytes, bytes]) -> None:
    sealed = sealer(keys[1]).seal(bytes(SIZE), round_number=0)
    opener = Opener(keys[0], run=RUN)
    for position in range(len(sealed)):
        altered = bytearray(sealed)
        altered[position] ^= 1
        # Curve25519 ignores the top bit of a public key, which is not the bit flipped here.
        assert opener.open(bytes(altered), round_number=0) is None
    assert opener.open(sealed[:-1], round_number=0) is None
    assert opener.open(b"", round_number=0) is None


@pytest.mark.parametrize("size", [0, SIZE - 1, SIZE + 1])
def test_only_one_size_is_sealed(keys: tuple[bytes, bytes], size: int) -> None:
    with pytest.raises(TacitError, match=f"has {SIZE} bytes, got {size}"):
        sealer(keys[1]).seal(bytes(size), round_number=0)


@pytest.mark.parametrize("key", [b"", bytes(31), bytes(33)])
def test_a_key_of_the_wrong_size_is_refused(key: bytes) -> None:
    with pytest.raises(TacitError, match="32 bytes"):
        Opener(key, run=RUN)


def looks_uniform(sealed: bytes) -> bool:
    """A chi-square test of byte values; cries wolf with probability FALSE_ALARM."""
    counts = np.bincount(np.frombuffer(sealed, dtype=np.uint8), minlength=256)
    return bool(stats.chisquare(counts).pvalue > FALSE_ALARM)


def test_two_reports_as_different_as_can_be_look_alike_when_sealed(
    keys: tuple[bytes, bytes],
) -> None:
    size = 200_000
    for report in (bytes(size), b"\xff" * size):
        body = sealer(keys[1], size).seal(report, round_number=0)[32:]
        assert len(body) == size + 16
        assert looks_uniform(body)


def test_the_check_notices_a_slightly_readable_report(keys: tuple[bytes, bytes]) -> None:
    size = 200_000
    body = bytearray(sealer(keys[1], size).seal(bytes(size), round_number=0)[32:])
    body[: size // 50] = bytes(size // 50)  # two percent left in clear
    assert not looks_uniform(bytes(body))


def test_equal_reports_seal_to_unrelated_bytes(keys: tuple[bytes, bytes]) -> None:
    sealed = {sealer(keys[1]).seal(bytes(SIZE), round_number=0) for _ in range(100)}
    assert len(sealed) == 100
    assert len({s[:32] for s in sealed}) == 100, "a fresh key per report"
    # 100 fresh keys agree at one position by luck with probability 256**-99.
    columns = np.frombuffer(b"".join(sealed), dtype=np.uint8).reshape(100, -1)
    assert all(len(set(column.tolist())) > 1 for column in columns.T)
