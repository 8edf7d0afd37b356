"""Who may report: the nodes' names and public keys, as one server knows them.

A text file with a name and a key in hexadecimal on every line. It is read again when it has
changed, so that a node can join or be revoked while the services run. Each server keeps its own
copy, and believes no other.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from tacit.errors import TacitError
from tacit.fleet.deployment.batches.signatures import KEY_BYTES
from tacit.system.files import write_atomic

_Stamp = tuple[int, int, int]


class UnreadableList(TacitError):
    """The list of nodes cannot be used now; it is read again until it can."""


class Registry:
    """The registered nodes, by name and by key; every node has one key and every key one node."""

    def __init__(self, nodes: Mapping[str, bytes], *, path: Path | None = None) -> None:
        self._path = path
        self._stamp: _Stamp | None = None
        self._take(nodes)

    @classmethod
    def read(cls, path: Path) -> Registry:
        """The registry in a file; `refresh` follows its changes."""
        registry = cls({}, path=path)
        registry.refresh()
        return registry

    def refresh(self) -> None:
        """Read the file again if it is another one than last time.

        `UnreadableList` while it cannot be used, because it may say that a node was revoked.
        """
        if self._path is None:
            return
        try:
            stamp = _stamp_of(self._path)
            if stamp == self._stamp:
                return
            text = self._path.read_text(encoding="utf-8")
        except OSError as error:
            raise UnreadableList(f"cannot read {self._path}: {error.strerror}.") from error
        except UnicodeDecodeError as error:
            raise UnreadableList(f"{self._path} is not a text; restore it.") from error
        nodes = _parsed(text, self._path)
        if self._keys and not nodes:  # an editor that has only begun to save it
            raise UnreadableList(f"{self._path} holds no node any more.")
        self._take(nodes)
        self._stamp = stamp

    def trouble(self) -> str | None:
        """Why the list cannot be used, or None."""
        try:
            self.refresh()
        except UnreadableList as error:
            return f"the list of nodes cannot be used: {error}"
        return None

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
        keys = dict(nodes)
        names = {key: node for node, key in keys.items()}
        if len(names) != len(keys):
            raise UnreadableList("two nodes have one key; give every node a key of its own.")
        self._keys, self._names = keys, names


def read_unchanging(path: Path) -> Registry:
    """The registry in a file for a look at it; parsed once as long as the file stays as it is.

    For strangers' requests, which must not cost the reading of ten thousand keys each.
    """
    try:
        return _read_at(path, _stamp_of(path))
    except OSError as error:
        raise UnreadableList(f"cannot read {path}: {error.strerror}.") from error


@lru_cache(maxsize=4)
def _read_at(path: Path, _: _Stamp) -> Registry:
    return Registry.read(path)


def _stamp_of(path: Path) -> _Stamp:
    found = path.stat()
    return found.st_mtime_ns, found.st_size, found.st_ino


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
            raise UnreadableList(f"{path}, line {number}: a node is a name and a key.") from None
        if len(nodes[node]) != KEY_BYTES:
            raise UnreadableList(f"{path}, line {number}: a key has {2 * KEY_BYTES} hex digits.")
    return nodes
