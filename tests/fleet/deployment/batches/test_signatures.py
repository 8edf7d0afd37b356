"""Signatures: tied to run, round, node and both parts, so that no server can move one."""

from __future__ import annotations

from typing import Any

import pytest

from tacit.errors import TacitError
from tacit.fleet.deployment.batches.signatures import is_signed, new_signing_key, public_half, sign

PRIVATE, PUBLIC = new_signing_key()
REPORT: dict[str, Any] = {
    "run": "r",
    "round_number": 1,
    "node": "a",
    "analyser": b"1" * 32,
    "helper": b"2" * 32,
}
SIGNATURE = sign(PRIVATE, **REPORT)


def test_a_signature_fits_the_report_it_was_made_for() -> None:
    assert is_signed(PUBLIC, SIGNATURE, **REPORT)
    assert public_half(PRIVATE) == PUBLIC


@pytest.mark.parametrize(
    "other",
    [
        {"run": "s"},
        {"round_number": 2},
        {"node": "b"},
        {"analyser": b"3" * 32},
        {"helper": b"3" * 32},
        {"analyser": b"2" * 32, "helper": b"1" * 32},
        {"run": "r1", "round_number": 11},
    ],
)
def test_a_signature_fits_nothing_else(other: dict[str, Any]) -> None:
    assert not is_signed(PUBLIC, SIGNATURE, **(REPORT | other))


def test_nor_under_another_key_or_altered() -> None:
    assert not is_signed(new_signing_key()[1], SIGNATURE, **REPORT)
    assert not is_signed(b"", SIGNATURE, **REPORT)
    for broken in (b"", SIGNATURE[:-1], bytes([SIGNATURE[0] ^ 1]) + SIGNATURE[1:]):
        assert not is_signed(PUBLIC, broken, **REPORT)


def test_no_two_reports_are_one_text() -> None:
    one = sign(PRIVATE, **(REPORT | {"run": "r1", "round_number": 1}))
    assert not is_signed(PUBLIC, one, **(REPORT | {"run": "r", "round_number": 11}))


def test_a_key_of_another_size_is_refused() -> None:
    with pytest.raises(TacitError, match=r"signing\.key"):
        sign(b"short", **REPORT)
