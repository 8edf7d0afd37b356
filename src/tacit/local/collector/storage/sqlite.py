"""A store in one SQLite file: a commit is on disk before it returns."""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tacit.local.collector.storage.database import Key, Row, StoreError, StoreUnavailable

_APPLICATION = 0x54434C31  # "TCL1", in the file's header
_WAIT_SECONDS = 30.0  # for another process that writes
_CHECKED_BYTES = 2**28  # larger files are not read through when they are opened

_TABLES = """
CREATE TABLE collector_meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE collector_codes (
  digest BLOB PRIMARY KEY, grp TEXT NOT NULL, expires INTEGER NOT NULL, device TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE collector_devices (
  number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, public_key BLOB NOT NULL,
  grp TEXT NOT NULL, enrolled INTEGER NOT NULL, revoked INTEGER NOT NULL
);
CREATE TABLE collector_releases (
  device INTEGER NOT NULL, window_digest BLOB NOT NULL, day INTEGER NOT NULL,
  symbol INTEGER NOT NULL, vector BLOB, PRIMARY KEY (device, window_digest)
) WITHOUT ROWID;
CREATE TABLE collector_counts (
  day INTEGER NOT NULL, grp TEXT NOT NULL, symbol INTEGER NOT NULL, n INTEGER NOT NULL,
  PRIMARY KEY (day, grp, symbol)
) WITHOUT ROWID;
"""
_INSERT = (
    "INSERT INTO collector_releases (device, window_digest, day, symbol, vector) "
    "VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
)


class Sqlite:
    """One connection to the file; WAL, so that readers and the writer do not wait."""

    def __init__(self, path: str, *, create: bool) -> None:
        self._path = Path(path)
        try:
            _check_place(self._path, create=create)
        except OSError as error:
            raise StoreError(
                f"cannot use the store {path}: {error.strerror or error}; choose another file, or "
                "make it with 'tacit serve BUNDLE --store FILE'."
            ) from error
        self._database = sqlite3.connect(
            self._path, isolation_level=None, check_same_thread=False, timeout=_WAIT_SECONDS
        )
        try:
            self._prepare()
        except sqlite3.Error as error:
            self._database.close()
            raise StoreError(
                f"the store {path} cannot be read ({error}); restore it from a copy, or choose "
                "another file."
            ) from error

    def _prepare(self) -> None:
        self._database.execute("PRAGMA journal_mode = WAL")
        self._database.execute("PRAGMA synchronous = FULL")
        self._database.execute("PRAGMA secure_delete = ON")  # what is erased is overwritten
        if self._path.stat().st_size <= _CHECKED_BYTES:
            (found,) = self._database.execute("PRAGMA quick_check(1)").fetchone()
            if found != "ok":
                raise sqlite3.DatabaseError(found)

    def has_tables(self) -> bool:
        """Whether this is a store, `StoreError` if it is something else."""
        (application,) = self._database.execute("PRAGMA application_id").fetchone()
        (tables,) = self._database.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if tables and application != _APPLICATION:
            raise StoreError(f"{self._path} is another program's database; choose another file.")
        return bool(tables)

    def create_tables(self) -> None:
        """Make the tables, inside a transaction, if there are none."""
        if self.has_tables():
            return
        self._database.execute(f"PRAGMA application_id = {_APPLICATION}")
        for statement in _TABLES.split(";\n"):
            if statement.strip():
                self._database.execute(statement)

    def query(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run one statement and return its rows, if it has any."""
        with _explained():
            return self._database.execute(sql, values).fetchall()

    def run_many(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        """Run one statement for every row."""
        with _explained():
            self._database.executemany(sql, rows)

    def insert_releases(self, rows: Sequence[Row]) -> set[Key]:
        """Insert what is not there yet; return the keys that were new."""
        execute = self._database.cursor().execute
        with _explained():
            return {(row.device, row.window) for row in rows if execute(_INSERT, row).rowcount == 1}

    def revoked_among(self, devices: Sequence[int]) -> set[int]:
        """Which of these devices are revoked; a transaction here lets no other write."""
        revoked = "SELECT revoked FROM collector_devices WHERE number = ? AND revoked = 1"
        with _explained():
            execute = self._database.cursor().execute
            return {device for device in devices if execute(revoked, (device,)).fetchone()}

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing, on disk when the block ends."""
        with _explained():
            self._database.execute("BEGIN IMMEDIATE")
        try:
            yield
            with _explained():
                self._database.execute("COMMIT")
        finally:
            if self._database.in_transaction:
                self._database.execute("ROLLBACK")

    def close(self) -> None:
        """Let go of the file."""
        self._database.close()


def _check_place(path: Path, *, create: bool) -> None:
    """Make the file if wanted, and say why it cannot be used, which SQLite would not.

    A file that exists is never opened here: closing it again would drop the locks of another
    connection of this process, and with them everything that protects its transactions.
    """
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not path.exists():
        if not create:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        # Others on this machine need not see which device sent what.
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    if not (os.access(path, os.R_OK | os.W_OK) and os.access(path.absolute().parent, os.W_OK)):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))


@contextmanager
def _explained() -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise StoreUnavailable(
            f"the store cannot be used now ({error}); nothing was counted, send it again later."
        ) from error
