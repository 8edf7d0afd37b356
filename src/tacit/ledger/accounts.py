"""Which entry is the last of each subject: a hashed summary that a removed entry contradicts.

A debit must know what its subject has spent so far. If somebody deleted or renamed the subject's
entries, looking for them would find none and grant the budget anew. So the ledger also keeps an
account per subject that names its last entry; accounts lie in buckets, the buckets are the leaves
of a hash tree, and the tree's root is sealed together with the head of the chain. A debit checks
the path of its own subject, which takes a dozen hashes however many subjects there are; `verify`
rebuilds all of it from the entries.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterable
from dataclasses import astuple, dataclass, field

from tacit.errors import LedgerError
from tacit.ledger.chain import Entry
from tacit.ledger.subjects import account_of

_DEPTH = 12
_LEAVES: int = 2**_DEPTH  # buckets: a few accounts in each up to many thousands of subjects
TABLES = (
    "CREATE TABLE accounts (account TEXT PRIMARY KEY, name TEXT NOT NULL, "
    "bucket INTEGER NOT NULL, last INTEGER NOT NULL, hash TEXT NOT NULL) WITHOUT ROWID",
    "CREATE INDEX accounts_by_bucket ON accounts (bucket)",
    "CREATE TABLE nodes (place INTEGER PRIMARY KEY, hash TEXT NOT NULL)",
    "CREATE TABLE seal (one INTEGER PRIMARY KEY CHECK (one = 1), root TEXT, hash TEXT)",
)


@dataclass(frozen=True, slots=True)
class Account:
    """A subject under the name it was first given, and its last entry."""

    account: str
    name: str
    last: int
    hash: str


def _hashed(text: str) -> str:
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def _leaf(accounts: Iterable[Account]) -> str:
    rows = sorted(astuple(account) for account in accounts)
    return _hashed(json.dumps(rows, ensure_ascii=True, separators=(",", ":")))


def _bucket(account: str) -> int:
    """The place of its leaf: the root is 1, and the children of n are 2 n and 2 n + 1."""
    digest = hashlib.sha256(account.encode("utf-8", "surrogatepass")).digest()
    return _LEAVES + (int.from_bytes(digest[:4], "big") >> (32 - _DEPTH))


def _empty_nodes() -> list[str]:
    """The hash of a node under which there is no account, by the bit length of its place."""
    nodes = [_leaf([])]
    for _ in range(_DEPTH):
        nodes.append(_hashed(nodes[-1] * 2))
    return ["", *reversed(nodes)]


_EMPTY = _empty_nodes()
_ROOT = 1


@dataclass(slots=True)
class Accounts:
    """The accounts inside one transaction: read with proof, changed, written with `save`."""

    connection: sqlite3.Connection
    root: str
    _nodes: dict[int, str] = field(default_factory=dict)
    _buckets: dict[int, dict[str, Account]] = field(default_factory=dict)
    _proven: set[int] = field(default_factory=set)
    _changed: set[int] = field(default_factory=set)

    @classmethod
    def empty(cls, connection: sqlite3.Connection) -> Accounts:
        """Of a ledger without entries."""
        return cls(connection, _EMPTY[_ROOT])

    @classmethod
    def sealed(cls, connection: sqlite3.Connection, head: tuple[int, str]) -> Accounts:
        """As they were sealed with this head, or a refusal."""
        row = connection.execute("SELECT root, hash FROM seal WHERE one = 1").fetchone()
        if row is None or str(row[1]) != _seal(str(row[0]), head):
            raise LedgerError(
                "the accounts of the ledger do not belong to its last entry; nothing was "
                "released, run 'tacit ledger verify'."
            )
        return cls(connection, str(row[0]))

    def find(self, subject: str) -> Account | None:
        """The account of this subject, proven; None if it is proven that there is none."""
        name = account_of(subject)
        return self._proven_bucket(_bucket(name)).get(name)

    def note(self, entry: Entry) -> None:
        """Make this entry the last of its subject."""
        name = account_of(entry.subject)
        bucket = self._proven_bucket(_bucket(name))
        before = bucket.get(name)
        shown = entry.subject if before is None else before.name
        bucket[name] = Account(name, shown, entry.id, entry.hash)
        self._changed.add(_bucket(name))

    def save(self, head: tuple[int, str]) -> None:
        """Write what was noted, the nodes above it and the seal."""
        for place in self._changed:
            self.connection.executemany(
                "INSERT OR REPLACE INTO accounts VALUES (?, ?, ?, ?, ?)",
                [(a.account, a.name, place, a.last, a.hash) for a in self._buckets[place].values()],
            )
        places = self._changed
        self._nodes |= {place: _leaf(self._buckets[place].values()) for place in places}
        while True:
            self.connection.executemany(
                "INSERT OR REPLACE INTO nodes VALUES (?, ?)",
                [(place, self._nodes[place]) for place in places],
            )
            if _ROOT in places or not places:
                break
            places = {place // 2 for place in places}
            self._nodes |= {place: self._joined(place) for place in places}
        self.root = self._node(_ROOT)
        self._changed.clear()
        self.connection.execute(
            "INSERT OR REPLACE INTO seal VALUES (1, ?, ?)", (self.root, _seal(self.root, head))
        )

    def _proven_bucket(self, place: int) -> dict[str, Account]:
        if place not in self._buckets:
            rows = self.connection.execute(
                "SELECT account, name, last, hash FROM accounts WHERE bucket = ?", (place,)
            )
            found = {row[0]: Account(*row) for row in rows}
            self._load_path(place)
            if _leaf(found.values()) != self._node(place):
                raise _altered()
            self._prove(place)
            self._buckets[place] = found
        return self._buckets[place]

    def _prove(self, place: int) -> None:
        """Follow the leaf to the root; what a path before this one proved need not be again."""
        while place > _ROOT and place not in self._proven:
            self._proven |= {place, place ^ 1}
            place //= 2
            if self._joined(place) != self._node(place):
                raise _altered()
        if self._node(_ROOT) != self.root:
            raise _altered()

    def _load_path(self, place: int) -> None:
        """The nodes from a leaf to the root and their siblings, in one query."""
        path = [place >> n for n in range(_DEPTH)]
        around = (_ROOT, *path, *(at ^ 1 for at in path))
        wanted = [at for at in around if at not in self._nodes]
        rows = self.connection.execute(
            f"SELECT place, hash FROM nodes WHERE place IN ({', '.join('?' * len(wanted))})",
            wanted,
        )
        self._nodes |= {at: _EMPTY[at.bit_length()] for at in wanted}
        self._nodes |= {int(at): str(found) for at, found in rows}

    def _joined(self, parent: int) -> str:
        return _hashed(self._node(2 * parent) + self._node(2 * parent + 1))

    def _node(self, place: int) -> str:
        return self._nodes.get(place, _EMPTY[place.bit_length()])


def rebuilt(connection: sqlite3.Connection, entries: Iterable[Entry]) -> Accounts:
    """The accounts that these entries make, for a database without any; not saved."""
    accounts = Accounts.empty(connection)
    accounts._buckets = {place: {} for place in range(_LEAVES, 2 * _LEAVES)}
    for entry in entries:
        accounts.note(entry)
    return accounts


def problem_with(
    connection: sqlite3.Connection, entries: Iterable[Entry], *, head: tuple[int, str]
) -> str | None:
    """What in the stored accounts does not follow from the entries; None if all does."""
    made: dict[str, Account] = {}
    for entry in entries:
        name = account_of(entry.subject)
        shown = made[name].name if name in made else entry.subject
        made[name] = Account(name, shown, entry.id, entry.hash)
    rows = connection.execute("SELECT account, name, last, hash, bucket FROM accounts")
    stored = {row[0]: (Account(*row[:4]), row[4]) for row in rows}
    for name in made.keys() | stored.keys():
        if stored.get(name) != (made.get(name), _bucket(name)):
            return f"the account of {name!r} does not name its last entry"
    try:
        accounts = Accounts.sealed(connection, head)
        for name in made:
            accounts.find(name)
    except LedgerError:
        return "the hash tree of the accounts was altered"
    return None


def _seal(root: str, head: tuple[int, str]) -> str:
    return _hashed(f"{head[0]}:{head[1]}:{root}")


def _altered() -> LedgerError:
    return LedgerError(
        "the accounts of the ledger were altered; nothing was released, run 'tacit ledger verify'."
    )
