"""Sealed reports: what a node sends so that only its reader, one of the servers, can open it.

A report is sealed with HPKE (RFC 9180, base mode): a fresh X25519 key per report, HKDF-SHA256 and
ChaCha20-Poly1305, all from `cryptography`. The run and the round are bound into the key schedule,
so a report sealed for one round cannot be opened as a report of another; so is the sender where the
reader knows it, so that nobody can pass another node's sealed report off as one of its own. Every
sealed report of a run has one size, so the size says nothing.
"""

from __future__ import annotations

from typing import Literal

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite

from tacit.errors import TacitError, check_at_least

Reader = Literal["analyser", "helper"]
OVERHEAD = 48  # 32 bytes of fresh public key and 16 bytes of authentication tag
KEY_BYTES = 32
_SUITE = Suite(KEM.X25519, KDF.HKDF_SHA256, AEAD.CHACHA20_POLY1305)


def new_key() -> tuple[bytes, bytes]:
    """A fresh (private, public) pair of 32 bytes each; the private one stays with its server."""
    private = X25519PrivateKey.generate()
    return private.private_bytes_raw(), private.public_key().public_bytes_raw()


def public_of(private_key: bytes) -> bytes:
    """The public key that belongs to a private one."""
    return X25519PrivateKey.from_private_bytes(private_key).public_key().public_bytes_raw()


def sealed_size(report_bytes: int) -> int:
    """The size of every sealed report whose plain report has `report_bytes`."""
    return check_at_least(report_bytes, 1, name="report_bytes") + OVERHEAD


class Sealer:
    """Seals reports of one fixed size to the public key of one reader.

    Guarantee: whoever lacks the private key learns nothing of a report but its (constant) size,
    and cannot tell whether two sealed reports hold the same report.
    Assumes: X25519, HKDF-SHA256 and ChaCha20-Poly1305; the public key really is the reader's.
    Not covered: who sends, from where and when: that is what the shuffler is for.
    """

    def __init__(
        self, public_key: bytes, *, run: str, report_bytes: int, reader: Reader = "analyser"
    ) -> None:
        self._key = X25519PublicKey.from_public_bytes(_check_key(public_key, "public"))
        self._run = run
        self._reader = reader
        self._report_bytes = check_at_least(report_bytes, 1, name="report_bytes")

    def seal(self, report: bytes, *, round_number: int, sender: bytes = b"") -> bytes:
        """The sealed report, `report_bytes` + 48 bytes, for this run, round and sender only."""
        if len(report) != self._report_bytes:
            raise TacitError(
                f"a report of this run has {self._report_bytes} bytes, got {len(report)}; "
                "encode it with the plan of this run."
            )
        info = _context(self._run, round_number, self._reader, sender)
        return _SUITE.encrypt(report, self._key, info=info)


class Opener:
    """Opens what a `Sealer` of the same run sealed; holds the private key."""

    def __init__(self, private_key: bytes, *, run: str, reader: Reader = "analyser") -> None:
        self._key = X25519PrivateKey.from_private_bytes(_check_key(private_key, "private"))
        self._run = run
        self._reader = reader

    def open(self, sealed: bytes, *, round_number: int, sender: bytes = b"") -> bytes | None:
        """The report, or None if it was altered, or sealed to or for anything else."""
        info = _context(self._run, round_number, self._reader, sender)
        try:
            return _SUITE.decrypt(sealed, self._key, info=info)
        except InvalidTag:
            return None


def _context(run: str, round_number: int, reader: Reader, sender: bytes) -> bytes:
    return f"tacit/fleet/report/2|{run}|{round_number}|{reader}|{sender.hex()}".encode()


def _check_key(key: bytes, kind: str) -> bytes:
    if len(key) != KEY_BYTES:
        raise TacitError(
            f"a server's {kind} key has {KEY_BYTES} bytes, got {len(key)}; "
            "use the key file that 'tacit fleet init' wrote."
        )
    return key
