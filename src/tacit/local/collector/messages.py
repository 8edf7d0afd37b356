"""What a device and a collector say to each other: names, codes, and what is signed.

A device has an Ed25519 key of its own; the collector holds only the public part, so that whoever
copies a store cannot speak for a device. A signature binds a request to its collector, its path
and every byte of its body. There is no time in it: a request that is sent again changes nothing.
"""

from __future__ import annotations

import base64
import hashlib
import re
import secrets
from typing import TYPE_CHECKING

from tacit.errors import TacitError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

SCHEME = "Tacit-Ed25519"
ENROL_PATH = "/api/devices"
RELEASES_PATH = "/api/releases"
KEY_BYTES = 32
MOST_RELEASES = 10_000  # in one request
MOST_BYTES = 4_000_000  # of one body
WINDOW = re.compile(r"[A-Za-z0-9._:-]{1,64}", re.ASCII)

_CODE_BYTES = 10  # 80 bits: nobody guesses one over a network
_CODE_LETTERS = 4
_HEADER = re.compile(rf"{SCHEME} ([0-9a-f]{{32}}):([A-Za-z0-9+/=]{{88}})", re.ASCII)


class Refused(TacitError):
    """A request that is refused for good, with the HTTP status that says so."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


def new_code() -> str:
    """A one-time code that people can type, such as `K3QF-7YTA-ZB2M-XXWD`."""
    letters = base64.b32encode(secrets.token_bytes(_CODE_BYTES)).decode()
    return "-".join(
        letters[at : at + _CODE_LETTERS] for at in range(0, len(letters), _CODE_LETTERS)
    )


def code_digest(code: str) -> bytes:
    """What a store keeps of a code; spaces, hyphens and small letters do not matter."""
    letters = re.sub(r"[\s-]", "", code).upper()
    return hashlib.sha256(b"tacit code\0" + letters.encode()).digest()


def device_name(public_key: bytes) -> str:
    """The name of a device: a digest of its public key."""
    return hashlib.sha256(b"tacit device\0" + public_key).hexdigest()[:32]


def window_digest(window: str, collector: str) -> bytes:
    """What a store keeps of a window's name, which may say when it was recorded."""
    return hashlib.blake2b(window.encode(), digest_size=16, key=bytes.fromhex(collector)).digest()


def signed_bytes(collector: str, path: str, body: bytes) -> bytes:
    """What a device signs for one request."""
    head = f"tacit request 1\n{collector}\n{path}\n".encode()
    return head + hashlib.sha256(body).digest()


def authorization(key: Ed25519PrivateKey, *, collector: str, path: str, body: bytes) -> str:
    """The header with which a device signs a request."""
    signature = key.sign(signed_bytes(collector, path, body))
    name = device_name(key.public_key().public_bytes_raw())
    return f"{SCHEME} {name}:{base64.b64encode(signature).decode()}"


def read_authorization(header: str | None) -> tuple[str, bytes]:
    """The device's name and its signature."""
    match = _HEADER.fullmatch(header or "")
    if match is None:
        raise Refused(
            401, f"the request needs a header 'Authorization: {SCHEME} DEVICE:SIGNATURE'."
        )
    return match[1], base64.b64decode(match[2])


def check_signature(public_key: bytes, signature: bytes, message: bytes) -> None:
    """Refuse what the holder of the key did not sign."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        Ed25519PublicKey.from_public_bytes(public_key).verify(signature, message)
    except (InvalidSignature, ValueError):
        raise Refused(
            401, "the signature does not fit the device's key, this collector and this body."
        ) from None
