"""Who may report: the nodes' names and public keys, as one server knows them.

A text file with a name and a key in hexadecimal on every line. It is read again when it has
changed, so that a node can join or be struck off while the services run. Each server keeps its own
copy, and believes no other.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tacit.errors import TacitError
from tacit.fleet.deployment.wire.signatures import KEY_BYTES
from tacit.system.files import write_atomic


class Registry:
    """The registered nodes, by name and by key; every node has one key and every key one node."""

    def __init__(self, nodes: Mapping[str, bytes], *, path: Path | None = None) -> None:
        self._path = path
        self._stamp: tuple[int, int] | None = None
        self._take(nodes)

    @classmethod
    def read(cls, path: Path) -> Registry:
        """The registry in a file; `refresh` follows its changes."""
        registry = cls({}, path=path)
        registry.refresh()
        return registry

    def refresh(self) -> None:
        """Read the file again if it is another one than last time."""
        if self._path is None:
            return
        try:
            found = self._path.stat()
            stamp = (found.st_mtime_ns, found.st_ino)
            if stamp == self._stamp:
                return
            text = self._path.read_text(encoding="utf-8")
        except OSError as error:
            raise TacitError(f"cannot read {self._path}: {error.strerror}.") from error
        self._take(_parsed(text, self._path))
        self._stamp = stamp

    def __len__(self) -> int:
        return len(self._keys)

    def key_of(self, node: str) -> bytes | None:
        """The node's public key, or None for a stranger."""
        return self._keys.get(node)

    def name_of(self, key: bytes) -> str | None:
        """The node that holds this key, or None for a stranger's."""
        return self._names.get(key)

    def nodes(self) -> dict[str, bytes]:
        """Names and keys."""
        return dict(self._keys)

    def _take(self, nodes: Mapping[str, bytes]) -> None:
        self._keys = dict(nodes)
        self._names = {key: node for node, key in self._keys.items()}
        if len(self._names) != len(self._keys):
            raise TacitError("two nodes have one key; give every node a key of its own.")


def write_registry(path: Path, nodes: Mapping[str, bytes]) -> None:
    """Write the file that `Registry.read` reads, whole or not at all."""
    lines = "".join(f"{node} {key.hex()}\n" for node, key in nodes.items())
    write_atomic(path, lines.encode())


def _parsed(text: str, path: Path) -> dict[str, bytes]:
    nodes: dict[str, bytes] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            node, key = line.split()
            nodes[node] = bytes.fromhex(key)
        except ValueError:
            raise TacitError(f"{path}, line {number}: a node is a name and a key.") from None
        if len(nodes[node]) != KEY_BYTES:
            raise TacitError(f"{path}, line {number}: a key has {2 * KEY_BYTES} hex digits.")
    return nodes
