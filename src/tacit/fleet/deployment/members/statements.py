"""What a node says about itself under its signature: that it is there, leaves, or has another key.

Only the holder of the registered key can say it, and it names the service that it is said to: no
service can say it in a node's place to another one, nor hand on what it was told, for instance to a
list on which the node is again. Each service acts on its own list.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from tacit.errors import TacitError
from tacit.fleet.deployment.batches.registry import read_unchanging
from tacit.fleet.deployment.members import lists

Kind = Literal["member", "leave", "rekey"]
_REFUSED = "the statement is not signed by a node of this fleet; check its key and name."


def signed(
    private_key: bytes, kind: Kind, *, part: str, run: str, node: str, key: bytes = b""
) -> str:
    """A node's statement to one service, in hexadecimal; `key` is the one that it changes to."""
    signer = Ed25519PrivateKey.from_private_bytes(private_key)
    return signer.sign(_text(kind, part, run, node, key)).hex()


def apply(
    folder: Path, kind: Kind, *, node: str, signature: str, key: str = "", proof: str = ""
) -> None:
    """Act on a node's statement as far as this service's list is concerned; twice is once.

    A new key comes with the same statement under itself, as `proof` that the node holds it: nobody
    can take a place with a key that is another's.
    """
    part, run = lists.part_of(folder), lists.plan_of(folder).run
    known = read_unchanging(lists.list_of(folder)).key_of(node)
    if kind != "rekey":
        _check(known, signature, _text(kind, part, run, node, b""))
    if kind == "member":
        return  # nothing is asked but whether it is known
    if kind == "leave":
        lists.revoke(folder, node, whatever_is_left=True)
        return
    new = lists.read_public_key(key)
    if known == new:
        return  # the answer got lost
    _check(known, signature, _text(kind, part, run, node, new))
    _check(new, proof, _text(kind, part, run, node, new))
    lists.replace_key(folder, node, new)


def _check(known: bytes | None, signature: str, text: bytes) -> None:
    try:
        if known is None:
            raise ValueError("unknown node")
        Ed25519PublicKey.from_public_bytes(known).verify(bytes.fromhex(signature), text)
    except (InvalidSignature, ValueError) as error:
        raise TacitError(_REFUSED) from error


def _text(kind: Kind, part: str, run: str, node: str, key: bytes) -> bytes:
    # Lengths before parts, so that no two statements are one text.
    parts = (b"tacit/fleet/member/2", *(text.encode() for text in (kind, part, run, node)), key)
    return b"".join(len(part).to_bytes(4, "big") + part for part in parts)
