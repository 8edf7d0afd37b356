"""Nodes that join, leave or are struck off after a fleet was set up.

A joining node makes its own keys and keeps the private halves; it shows its public key to the
operator of each service that checks signatures, and each admits it by itself. Neither operator can
admit a node for the other, so neither can invent one. The services follow their lists while they
run. The plan was calibrated for `most_nodes` nodes, so no more are admitted.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from tacit.errors import TacitError
from tacit.fleet.deployment.config import NodeConfig, RunDescription, read_config, read_run
from tacit.fleet.deployment.keys import node_identity
from tacit.fleet.deployment.wire.registry import Registry, write_registry
from tacit.fleet.deployment.wire.signatures import KEY_BYTES, new_signing_key
from tacit.system.files import write_atomic, write_secret
from tacit.system.toml import read_toml, write_toml

_NAME = re.compile("[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_COPIED = ("server.crt", "shuffler.crt", "plan.toml")


def admit(folder: Path, name: str, key: str) -> int:
    """Enter a node into one service's list; returns how many nodes it now knows."""
    registry, fleet, path = _list_of(folder)
    _check_name(name)
    nodes = registry.nodes()
    try:
        public = bytes.fromhex(key)
    except ValueError:
        public = b""
    if len(public) != KEY_BYTES:
        raise TacitError(f"a node's key has {2 * KEY_BYTES} hex digits, got {key[:80]!r}.")
    if name in nodes or registry.name_of(public) is not None:
        raise TacitError(f"{path} already knows the node {name!r} or its key; revoke it first.")
    if len(nodes) >= fleet.most_nodes:
        raise TacitError(
            f"the plan is calibrated for {fleet.most_nodes} nodes and has them; begin a run with "
            "a larger --most-nodes."
        )
    write_registry(path, {**nodes, name: public})
    return len(nodes) + 1


def revoke(folder: Path, name: str) -> int:
    """Strike a node off one service's list; its next report is refused. Returns how many stay."""
    registry, fleet, path = _list_of(folder)
    nodes = registry.nodes()
    if name not in nodes:
        raise TacitError(f"{path} knows no node {name!r}; see its names there.")
    del nodes[name]
    if len(nodes) < fleet.plan.n_min:
        raise TacitError(
            f"without {name!r} only {len(nodes)} nodes are left and a round needs "
            f"{fleet.plan.n_min}; admit another one first."
        )
    write_registry(path, nodes)
    return len(nodes)


def new_node(folder: Path, *, name: str, like: Path) -> tuple[bytes, bytes]:
    """Write a new node's folder after another node's; returns its signing and its Flower key.

    Nothing secret is copied: keys, series and ledger are the new node's own.
    """
    _check_name(name)
    read_config(like / "node.toml", NodeConfig)
    if folder.exists() and any(folder.iterdir()):
        raise TacitError(f"{folder} is not empty; choose a new folder for the node.")
    plain = {**read_toml(like / "node.toml"), "name": name}
    private, public = new_signing_key()
    identity, known = node_identity()
    folder.mkdir(parents=True, exist_ok=True)
    for file in _COPIED:
        shutil.copyfile(like / file, folder / file)
    write_secret(folder / "signing.key", private)
    write_secret(folder / "identity", identity)
    write_atomic(folder / "identity.pub", known)
    write_toml(folder / "node.toml", plain)
    return public, known


def _list_of(folder: Path) -> tuple[Registry, RunDescription, Path]:
    for part in ("shuffler", "analyser"):
        file = folder / f"{part}.toml"
        if file.exists():
            plain = read_toml(file)
            path = folder / str(plain["nodes"])
            return Registry.read(path), read_run(folder / str(plain["plan"])), path
    raise TacitError(f"{folder} is neither a shuffler's nor an analyser's folder; check the path.")


def _check_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise TacitError(f"a node's name has letters, digits, '.', '_' and '-', got {name[:80]!r}.")
