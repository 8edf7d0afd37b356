"""Sealed reports: what a node sends so that only the analyser can open it.

A report is sealed with HPKE (RFC 9180, base mode): a fresh X25519 key per report, HKDF-SHA256 and
ChaCha20-Poly1305, all from `cryptography`. The run and the round are bound into the key schedule,
so a report sealed for one round cannot be opened as a report of another. Every sealed report of a
run has one size, so the size says nothing.
"""

from __future__ import annotations

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite

from tacit.errors import TacitError, check_at_least

OVERHEAD = 48  # 32 bytes of fresh public key and 16 bytes of authentication tag
KEY_BYTES = 32
_SUITE = Suite(KEM.X25519, KDF.HKDF_SHA256, AEAD.CHACHA20_POLY1305)


def new_key() -> tuple[bytes, bytes]:
    """A fresh (private, public) pair of 32 bytes each; the private one stays with the analyser."""
    private = X25519PrivateKey.generate()
    return private.private_bytes_raw(), private.public_key().public_bytes_raw()


def sealed_size(report_bytes: int) -> int:
    """The size of every sealed report whose plain report has `report_bytes`."""
    return check_at_least(report_bytes, 1, name="report_bytes") + OVERHEAD


class Sealer:
    """Seals reports of one fixed size to the analyser's public key.

    Guarantee: whoever lacks the private key learns nothing of a report but its (constant) size,
    and cannot tell whether two sealed reports hold the same report.
    Assumes: X25519, HKDF-SHA256 and ChaCha20-Poly1305; the public key really is the analyser's.
    Not covered: who sends, from where and when: that is what the shuffler is for.
    """

    def __init__(self, public_key: bytes, *, run: str, report_bytes: int) -> None:
        self._key = X25519PublicKey.from_public_bytes(_check_key(public_key, "public"))
        self._run = run
        self._report_bytes = check_at_least(report_bytes, 1, name="report_bytes")

    def seal(self, report: bytes, *, round_number: int) -> bytes:
        """The sealed report, `report_bytes` + 48 bytes, for this run and round only."""
        if len(report) != self._report_bytes:
            raise TacitError(
                f"a report of this run has {self._report_bytes} bytes, got {len(report)}; "
                "encode it with the plan of this run."
            )
        return _SUITE.encrypt(report, self._key, info=_context(self._run, round_number))


class Opener:
    """Opens what a `Sealer` of the same run sealed; holds the private key."""

    def __init__(self, private_key: bytes, *, run: str) -> None:
        self._key = X25519PrivateKey.from_private_bytes(_check_key(private_key, "private"))
        self._run = run

    def open(self, sealed: bytes, *, round_number: int) -> bytes | None:
        """The report, or None if it was altered, sealed to another key, run or round."""
        try:
            return _SUITE.decrypt(sealed, self._key, info=_context(self._run, round_number))
        except InvalidTag:
            return None


def _context(run: str, round_number: int) -> bytes:
    return f"tacit/fleet/report/1|{run}|{round_number}".encode()


def _check_key(key: bytes, kind: str) -> bytes:
    if len(key) != KEY_BYTES:
        raise TacitError(
            f"the analyser's {kind} key has {KEY_BYTES} bytes, got {len(key)}; "
            "use the key file that 'tacit fleet init' wrote."
        )
    return key
