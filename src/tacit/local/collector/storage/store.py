"""The store of a collector: which model, which devices, which releases, and counts of them.

One store belongs to one model. `Store.open` makes it or refuses; reading and writing use
connections of their own, and every write runs through `Store.write` or a `Writer` (group commits).
"""

from __future__ import annotations

import secrets
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from tacit.local.collector.storage.clock import LONGEST_GAP, SLACK_SECONDS, Clock, time_of
from tacit.local.collector.storage.database import POSTGRES, Database, Row, StoreError, shown

if TYPE_CHECKING:
    from tacit.local.model import LocalModel

SCHEMA = "1"
ADD_COUNTS = (
    "INSERT INTO collector_counts (day, grp, symbol, n) VALUES (?, ?, ?, ?) "
    "ON CONFLICT (day, grp, symbol) DO UPDATE SET n = collector_counts.n + excluded.n"
)
_SEEN = (
    "UPDATE collector_meta SET value = ? WHERE name = 'last_seen' "
    "AND CAST(value AS BIGINT) < ? AND CAST(value AS BIGINT) >= ?"
)
_LAST_SEEN = "SELECT value FROM collector_meta WHERE name = 'last_seen'"
_FEW = 500  # values in one statement
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    """The releases of one request, checked: windows are digests, one per release."""

    device: int
    group: str
    windows: Sequence[bytes]
    symbols: Sequence[int]
    vectors: Sequence[bytes] | None = None

    def rows(self, day: int) -> list[Row]:
        """What is stored if nothing stands against it."""
        vectors: Sequence[bytes | None] = self.vectors or [None] * len(self.windows)
        values = zip(self.windows, self.symbols, vectors, strict=True)
        return [Row(self.device, window, day, symbol, vector) for window, symbol, vector in values]


@dataclass(frozen=True, slots=True)
class Stored:
    """What became of an upload: all of it is on disk, or `conflicts` says why nothing is."""

    new: int
    repeated: int
    conflicts: tuple[int, ...] = ()  # positions of windows that hold another release
    revoked: bool = False  # the operator revoked the device in the meantime


class Store:
    """An open store. Threads may share it."""

    def __init__(self, address: str, database: Database, clock: Clock) -> None:
        self.address, self.clock = address, clock
        self._database, self._lock = database, threading.Lock()
        self.meta: dict[str, str] = {}

    @classmethod
    def open(
        cls,
        address: str,
        *,
        model: LocalModel | None = None,
        clock: Clock | None = None,
        any_clock: bool = False,
    ) -> Store:
        """Open a store, for a model if one is given; only then a new one is made.

        With `any_clock`, also where the clock is behind the store's last use.
        """
        database = connect(address, create=model is not None)
        store = cls(address, database, clock or Clock())
        try:
            store._prepare(model, any_clock=any_clock)
        except BaseException:
            database.close()
            raise
        return store

    def _prepare(self, model: LocalModel | None, *, any_clock: bool) -> None:
        if model is not None:
            with self._database.transaction():
                self._database.create_tables()
                self._first_entries(model)
        elif not self._database.has_tables():
            raise StoreError(
                f"{shown(self.address)} holds no store; start 'tacit serve BUNDLE --store …' first."
            )
        self.meta = dict(self._database.query("SELECT name, value FROM collector_meta"))
        self._check(model)
        if not any_clock:
            self._check_clock()

    def _first_entries(self, model: LocalModel) -> None:
        entries = {
            "schema": SCHEMA,
            "collector": secrets.token_hex(16),
            "model": model.identity,
            "kind": model.head.kind,
            "last_seen": str(int(self.clock.now())),
        }
        self._database.run_many(
            "INSERT INTO collector_meta (name, value) VALUES (?, ?) ON CONFLICT DO NOTHING",
            list(entries.items()),
        )

    def _check(self, model: LocalModel | None) -> None:
        if self.meta.get("schema") != SCHEMA:
            raise StoreError(
                f"{shown(self.address)} was made by another version (schema "
                f"{self.meta.get('schema')}, this one reads {SCHEMA}); use that version."
            )
        if model is not None:
            self.check_model(model)

    def _check_clock(self) -> None:
        seen, now = int(self.meta["last_seen"]), self.clock.now()
        if now < seen - SLACK_SECONDS:
            raise StoreError(
                f"the clock says {time_of(now)}, but this store was in use at {time_of(seen)}; set "
                "the clock right, or if it was ahead then and is right now, stop every collector "
                "of this store and run 'tacit collector clock STORE --confirm'."
            )

    def last_seen(self) -> int:
        """When the store was in use last, by a clock that could be believed."""
        return int(self.read(_LAST_SEEN)[0][0])

    def clock_doubt(self) -> str | None:
        """Why this clock may be ahead, so that nothing must be erased by it; None if it is not."""
        seen, now = self.last_seen(), self.clock.now()
        if now <= seen + LONGEST_GAP:
            return None
        return (
            f"the clock says {time_of(now)}, and this store was last in use at {time_of(seen)}; "
            "nothing is erased until somebody has looked at the clock and run 'tacit collector "
            "clock STORE --confirm'"
        )

    def check_model(self, model: LocalModel) -> None:
        """Refuse a model whose releases these are not."""
        if self.meta["model"] != model.identity:
            raise StoreError(
                f"{shown(self.address)} holds releases of model {self.meta['model']}, this is "
                f"model {model.identity}; give every model a store of its own."
            )

    @property
    def collector(self) -> str:
        """The random name of this store, which devices sign for."""
        return self.meta["collector"]

    def read(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """The rows of one query."""
        with self._lock:
            return self._database.query(sql, values)

    def write(self, action: Callable[[Database], T]) -> T:
        """Run one action in a transaction of its own."""
        with self._lock, self._database.transaction():
            done = action(self._database)
            note_time(self._database, self.clock)
            return done

    def another_connection(self) -> Database:
        """For a thread of its own."""
        return connect(self.address)

    def close(self) -> None:
        """Let go of the database."""
        with self._lock:
            self._database.close()


def connect(address: str, *, create: bool = False) -> Database:
    """A connection to a SQLite file or a PostgreSQL server."""
    if address.startswith(POSTGRES):
        from tacit.local.collector.storage.postgres import Postgres

        return Postgres(address)
    if "://" in address:
        scheme = address.split("://", 1)[0]
        raise StoreError(
            f"a store is a file or a postgresql:// address, got {scheme}://…; give one of these."
        )
    from tacit.local.collector.storage.sqlite import Sqlite

    return Sqlite(address, create=create)


def note_time(database: Database, clock: Clock) -> None:
    """Remember how late it is, so that a clock that was set back is noticed.

    A clock that is days ahead of the last use is not believed before somebody confirms it.
    """
    now = int(clock.now())
    database.query(_SEEN, (str(now), now, now - LONGEST_GAP))


def store_uploads(database: Database, uploads: Sequence[Upload], *, day: int) -> list[Stored]:
    """Store uploads of different devices, each whole or not at all, inside a transaction.

    A release that is there already, the same, counts once; one that differs from what is stored
    under its window refuses its whole upload. Of a device that is revoked nothing is stored,
    whatever was known of it when its request began.
    """
    revoked = database.revoked_among(sorted({upload.device for upload in uploads}))
    rows = [[] if upload.device in revoked else upload.rows(day) for upload in uploads]
    new = database.insert_releases([row for mine in rows for row in mine])
    added: Counter[tuple[int, str, int]] = Counter()
    outcomes = []
    for upload, mine in zip(uploads, rows, strict=True):
        if upload.device in revoked:
            outcomes.append(Stored(0, 0, revoked=True))
            continue
        fresh = [row for row in mine if (row.device, row.window) in new]
        conflicts = () if len(fresh) == len(mine) else _conflicts(database, upload.device, mine)
        if conflicts:
            _take_back(database, fresh)
            outcomes.append(Stored(0, 0, conflicts))
            continue
        added.update((day, upload.group, row.symbol) for row in fresh)
        outcomes.append(Stored(len(fresh), len(mine) - len(fresh)))
    if added:
        # In one order everywhere, so that two collectors never wait for each other.
        database.run_many(ADD_COUNTS, [(*key, n) for key, n in sorted(added.items())])
    return outcomes


def _conflicts(database: Database, device: int, rows: Sequence[Row]) -> tuple[int, ...]:
    """Positions whose window holds another release."""
    stored: dict[bytes, tuple[int, bytes | None]] = {}
    for start in range(0, len(rows), _FEW):
        windows = [row.window for row in rows[start : start + _FEW]]
        places = ", ".join("?" * len(windows))
        found = database.query(
            "SELECT window_digest, symbol, vector FROM collector_releases "
            f"WHERE device = ? AND window_digest IN ({places})",
            (device, *windows),
        )
        stored.update((bytes(window), (symbol, vector)) for window, symbol, vector in found)
    return tuple(
        place for place, row in enumerate(rows) if stored[row.window] != (row.symbol, row.vector)
    )


def _take_back(database: Database, rows: Sequence[Row]) -> None:
    database.run_many(
        "DELETE FROM collector_releases WHERE device = ? AND window_digest = ?",
        [(row.device, row.window) for row in rows],
    )
