"""The identities of nodes, by which Flower's SuperLink knows them.

The certificates of the services come from `tacit.system.certificates`: every service has one of its
own making, and whoever talks to it holds a copy and trusts nothing else, so that what one
organisation runs cannot pose as what another runs.
"""

from __future__ import annotations

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec


def node_identity() -> tuple[bytes, bytes]:
    """A node's new (private, public) key in OpenSSH form."""
    key = ec.generate_private_key(ec.SECP384R1())
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.OpenSSH,
        serialization.NoEncryption(),
    )
    public = key.public_key().public_bytes(
        serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
    )
    return private, public
