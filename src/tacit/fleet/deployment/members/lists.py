"""Nodes that join, leave or are revoked after a fleet was set up.

A joining node makes its own keys and keeps the private halves; it shows its public key to the
operator of each service that checks signatures, and each admits it by itself. Neither operator can
admit a node for the other, so neither can invent one. The services follow their lists while they
run. The plan was calibrated for `most_nodes` nodes, so no more are admitted.
"""

from __future__ import annotations

import contextlib
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tacit.errors import TacitError
from tacit.fleet.deployment.batches.registry import Registry, write_registry
from tacit.fleet.deployment.batches.signatures import KEY_BYTES, new_signing_key
from tacit.fleet.deployment.config import NodeConfig, RunDescription, read_config, read_run
from tacit.fleet.deployment.keys import node_identity
from tacit.system.files import write_atomic, write_secret
from tacit.system.locks import locked
from tacit.system.toml import read_toml, write_toml

_NAME = re.compile("[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
SERVICES = ("shuffler", "analyser")
_COPIED = ("server.crt", "shuffler.crt", "analyser.crt", "plan.toml")
_LOCK_SECONDS = 20.0


def admit(folder: Path, name: str, key: str) -> int:
    """Enter a node into one service's list; returns how many nodes it now knows."""
    check_name(name)
    public = read_public_key(key)
    with changing(folder) as (registry, fleet):
        nodes = registry.nodes()
        if name in nodes or registry.name_of(public) is not None:
            raise TacitError(
                f"{folder} already knows the node {name!r} or its key; revoke it first."
            )
        if len(nodes) >= fleet.most_nodes:
            raise TacitError(
                f"the plan is calibrated for {fleet.most_nodes} nodes, and all of them have "
                "joined; revoke one, or begin a run with a larger --most-nodes."
            )
        write_registry(list_of(folder), {**nodes, name: public})
        return len(nodes) + 1


def revoke(folder: Path, name: str, *, whatever_is_left: bool = False) -> int:
    """Strike a node off one service's list; its next report is refused. Returns how many stay.

    A node that leaves by itself may always do so; an operator is told where too few would be left.
    """
    with changing(folder) as (registry, fleet):
        nodes = registry.nodes()
        if name not in nodes:
            raise TacitError(f"{folder} knows no node {name!r}; see its names in its nodes.txt.")
        del nodes[name]
        if len(nodes) < fleet.plan.n_min and not whatever_is_left:
            raise TacitError(
                f"without {name!r} only {len(nodes)} nodes are left and a round needs "
                f"{fleet.plan.n_min}; admit another one first."
            )
        write_registry(list_of(folder), nodes)
        return len(nodes)


def replace_key(folder: Path, name: str, public: bytes) -> None:
    """Give a known node another key, from its next report on."""
    with changing(folder) as (registry, _):
        nodes = registry.nodes()
        if name not in nodes or registry.name_of(public) not in (None, name):
            raise TacitError(
                f"{folder} knows no node {name!r}, or another has this key; see nodes.txt."
            )
        write_registry(list_of(folder), {**nodes, name: public})


def new_node(folder: Path, *, name: str, like: Path) -> tuple[bytes, bytes]:
    """Write a new node's folder after another node's; returns its signing and its Flower key.

    Nothing secret is copied: keys, series and ledger are the new node's own.
    """
    check_name(name)
    read_config(like / "node.toml", NodeConfig)
    if folder.exists() and any(folder.iterdir()):
        raise TacitError(f"{folder} is not empty; choose a new folder for the node.")
    plain = {**read_toml(like / "node.toml"), "name": name}
    private, public = new_signing_key()
    identity, known = node_identity()
    folder.mkdir(parents=True, exist_ok=True)
    for file in _COPIED:
        if (like / file).exists():
            shutil.copyfile(like / file, folder / file)
    write_secret(folder / "signing.key", private)
    write_secret(folder / "identity", identity)
    write_atomic(folder / "identity.pub", known)
    write_toml(folder / "node.toml", plain)
    return public, known


@contextlib.contextmanager
def changing(folder: Path) -> Iterator[tuple[Registry, RunDescription]]:
    """One service's list and plan, with nobody else changing the list meanwhile."""
    path = list_of(folder)
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(locked(folder / "nodes.lock", timeout_seconds=_LOCK_SECONDS))
        except (TimeoutError, OSError) as error:
            raise TacitError(
                f"the list of nodes in {folder} cannot be changed: {error}; try again."
            ) from error
        yield Registry.read(path), plan_of(folder)


def list_of(folder: Path) -> Path:
    """Where a service's folder keeps its list of nodes."""
    return folder / str(_settings(folder)["nodes"])


def plan_of(folder: Path) -> RunDescription:
    """The run that a service serves."""
    return read_run(folder / str(_settings(folder)["plan"]))


def part_of(folder: Path) -> str:
    """Which service's list the folder holds."""
    for part in SERVICES:
        if (folder / f"{part}.toml").exists():
            return part
    raise TacitError(f"{folder} is neither a shuffler's nor an analyser's folder; check the path.")


def _settings(folder: Path) -> dict[str, Any]:
    return read_toml(folder / f"{part_of(folder)}.toml")


def check_name(name: str) -> None:
    """Refuse what cannot be a node's name in a list and in a folder."""
    if not _NAME.fullmatch(name):
        raise TacitError(
            f"a node's name has letters, digits, '.', '_' and '-', got {name[:80]!r}; choose "
            "another."
        )


def read_public_key(text: str) -> bytes:
    """A signing key's public half from hexadecimal digits."""
    try:
        public = bytes.fromhex(text)
    except ValueError:
        public = b""
    if len(public) != KEY_BYTES:
        raise TacitError(
            f"a node's key has {2 * KEY_BYTES} hex digits, got {text[:80]!r}; copy it from the "
            "node."
        )
    return public
