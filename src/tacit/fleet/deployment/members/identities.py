"""The identities by which Flower's server knows nodes: admitting, renewing and striking them off.

The server's folder holds one public key for each node; a running server makes Flower know exactly
these. A node makes its next identity beside the present one, the server's operator enters the new
public half, and the node puts it in use. Signing keys, which reports need, are other keys.
"""

from __future__ import annotations

from pathlib import Path

from tacit.errors import TacitError
from tacit.fleet.deployment.config import NodeConfig, read_config
from tacit.fleet.deployment.keys import node_identity
from tacit.fleet.deployment.members.lists import check_name
from tacit.system.files import move_synced, write_atomic, write_secret
from tacit.system.toml import read_toml

_REVOKED_FILE = "struck-off.txt"


def admit_to_server(folder: Path, name: str, identity: str, *, renewed: bool = False) -> int:
    """Let the server know a node's identity; a running one registers it within seconds.

    With `renewed` it takes the place of the one that the server knows. Returns how many it knows.
    """
    check_name(name)
    key = _key_in(identity)
    keys = _keys_of(folder)
    path, gone = keys / f"{name}.pub", _revoked_keys(keys)
    if key in gone:
        raise TacitError(
            "this identity was revoked, and Flower takes none twice; the node makes another "
            "with 'tacit fleet renew NODE --identity'."
        )
    if renewed and not path.exists():
        raise TacitError(f"{keys} knows no node {name!r}; leave out --renewed, or see its names.")
    if path.exists() and not renewed:
        raise TacitError(
            f"{keys} already knows a node {name!r}; choose another name, or add --renewed if this "
            "is its new identity."
        )
    if any(_key_in(one.read_text()) == key for one in keys.glob("*.pub")):
        raise TacitError(f"{keys} knows this identity already; copy the node's new one.")
    if path.exists():
        _strike_off(keys, path)
    write_atomic(path, identity.encode())
    return len(list(keys.glob("*.pub")))


def revoke_at_server(folder: Path, name: str) -> int:
    """Let the server know a node no longer; a running one unregisters it within seconds.

    Returns how many it still knows.
    """
    check_name(name)
    keys = _keys_of(folder)
    path = keys / f"{name}.pub"
    if not path.exists():
        raise TacitError(f"{keys} knows no node {name!r}; see its names there.")
    _strike_off(keys, path)
    path.unlink()
    return len(list(keys.glob("*.pub")))


def prepare_identity(folder: Path) -> str:
    """Make a node's next identity beside the present one; returns its public half."""
    present = _present(folder)
    public = present.with_name("identity-next.pub")
    if not public.exists():  # asked twice: the one that was handed over stays
        private, known = node_identity()
        write_secret(present.with_name("identity-next"), private)
        write_atomic(public, known)
    return public.read_text()


def switch_identity(folder: Path) -> Path:
    """Put the prepared identity in use, from the node's next start on; returns its path."""
    present = _present(folder)
    following, public = (present.with_name(f"identity-next{end}") for end in ("", ".pub"))
    if not public.exists():
        raise TacitError(
            f"{folder} holds no next identity; run 'tacit fleet renew NODE --identity' first."
        )
    if following.exists():  # otherwise a crash came between these two lines
        move_synced(following, present)
    move_synced(public, present.with_name("identity.pub"))
    return present


def _present(folder: Path) -> Path:
    identity = read_config(folder / "node.toml", NodeConfig).identity
    if identity is None:
        raise TacitError(
            f"{folder} is a node without Flower, which has no identity; its signing key is renewed "
            "without --identity."
        )
    return identity


def _key_in(identity: str) -> str:
    """The key itself: the same one may come with another comment behind it."""
    words = identity.split()
    if len(words) < 2 or not words[0].startswith("ecdsa-"):
        raise TacitError(
            f"an identity is a line of identity.pub, got {identity[:40]!r}; copy it from the node."
        )
    return words[1]


def _keys_of(folder: Path) -> Path:
    return folder / str(read_toml(folder / "server.toml")["node_keys"])


def _revoked_keys(keys: Path) -> list[str]:
    path = keys / _REVOKED_FILE
    return path.read_text().split() if path.exists() else []


def _strike_off(keys: Path, path: Path) -> None:
    gone = [*_revoked_keys(keys), _key_in(path.read_text())]
    write_atomic(keys / _REVOKED_FILE, "".join(f"{key}\n" for key in gone).encode())
