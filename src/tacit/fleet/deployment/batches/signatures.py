"""Signed reports: proof to both servers that a registered node sent exactly this in this round.

Every node has an Ed25519 key of its own making or of the set-up's; the servers know the public
half. A report's signature covers run, round, the node's name and the digests of both of its parts,
so that it cannot be moved to another round, node or report, and so that a server which sees one
part can check that the other server got the part that belongs to it.

Under `privunit` signatures and names end at the shuffler; the analyser never sees them. Under
`distributed` both servers check them, so neither can invent a client.
"""

from __future__ import annotations

import hashlib

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from tacit.errors import TacitError

KEY_BYTES = 32
DIGEST_BYTES = 32
SIGNATURE_BYTES = 64


def new_signing_key() -> tuple[bytes, bytes]:
    """A fresh (private, public) pair; the private one stays with its node."""
    private = Ed25519PrivateKey.generate()
    return private.private_bytes_raw(), private.public_key().public_bytes_raw()


def public_half(private_key: bytes) -> bytes:
    """The public key that belongs to a private one."""
    return _private(private_key).public_key().public_bytes_raw()


def digest_of(part: bytes) -> bytes:
    """What a signature covers of one sealed part."""
    return hashlib.sha256(part).digest()


def sign(
    private_key: bytes, *, run: str, round_number: int, node: str, analyser: bytes, helper: bytes
) -> bytes:
    """The node's signature under its report; `analyser` and `helper` are the parts' digests."""
    return _private(private_key).sign(_statement(run, round_number, node, analyser, helper))


def is_signed(
    public_key: bytes,
    signature: bytes,
    *,
    run: str,
    round_number: int,
    node: str,
    analyser: bytes,
    helper: bytes,
) -> bool:
    """Whether the holder of the key signed exactly this report for this round."""
    try:
        known = Ed25519PublicKey.from_public_bytes(public_key)
        known.verify(signature, _statement(run, round_number, node, analyser, helper))
    except (InvalidSignature, ValueError):
        return False
    return True


def _statement(run: str, round_number: int, node: str, analyser: bytes, helper: bytes) -> bytes:
    # Lengths before parts, so that no two lists of parts give the same text.
    parts = (b"tacit/fleet/report/2", run.encode(), str(round_number).encode(), node.encode())
    return b"".join(len(raw).to_bytes(4, "big") + raw for raw in (*parts, analyser, helper))


def _private(key: bytes) -> Ed25519PrivateKey:
    if len(key) != KEY_BYTES:
        raise TacitError(
            f"a signing key has {KEY_BYTES} bytes, got {len(key)}; use the node's signing.key."
        )
    return Ed25519PrivateKey.from_private_bytes(key)
