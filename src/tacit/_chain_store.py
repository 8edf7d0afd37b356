"""One SQLite file, for any number of threads and processes: transactions that hold or refuse."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tacit.errors import LedgerError

_PAUSE_SECONDS = 0.005
# SQLite forbids using or closing a connection in a forked child: closing could drop the parent's
# write-ahead log. The child opens its own and keeps the inherited object alive here.
_INHERITED: list[sqlite3.Connection] = []


class Store:
    """A connection per process, opened when needed, with the write-ahead log synced in full."""

    def __init__(self, path: Path, *, timeout_seconds: float) -> None:
        self.path = path
        self._timeout_seconds = timeout_seconds
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._process = os.getpid()

    @contextmanager
    def transaction(self, kind: str) -> Iterator[sqlite3.Connection]:
        """One transaction: commit at the end, roll back on any error, speak in LedgerErrors."""
        with self._lock:
            try:
                connection = self._patiently(lambda: self._begun(kind))
                try:
                    yield connection
                    connection.execute("COMMIT")
                finally:
                    if connection.in_transaction:
                        with suppress(sqlite3.Error):
                            connection.execute("ROLLBACK")
            except sqlite3.Error as error:
                raise LedgerError(self._sentence(error)) from error

    def _patiently(self, attempt: Callable[[], sqlite3.Connection]) -> sqlite3.Connection:
        """Try until the deadline: SQLite reports some locks at once, without waiting for them."""
        deadline = time.monotonic() + self._timeout_seconds
        while True:
            try:
                return attempt()
            except sqlite3.OperationalError as error:
                if not _is_lock(error) or time.monotonic() >= deadline:
                    raise
            time.sleep(_PAUSE_SECONDS)

    def _begun(self, kind: str) -> sqlite3.Connection:
        connection = self._connected()
        connection.execute(f"BEGIN {kind}")
        try:
            # A deferred transaction starts with its first read; let locks show here.
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        except sqlite3.Error:
            connection.execute("ROLLBACK")
            raise
        return connection

    def _connected(self) -> sqlite3.Connection:
        if self._connection is not None and self._process != os.getpid():
            _INHERITED.append(self._connection)
            self._connection = None
        if self._connection is None:
            self._process = os.getpid()
            self._connection = self._connect()
        return self._connection

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            f"{self.path.absolute().as_uri()}?mode=rw",
            uri=True,
            timeout=min(self._timeout_seconds, 1.0),
            isolation_level=None,
            check_same_thread=False,
        )
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
        except sqlite3.Error:
            connection.close()
            raise
        return connection

    def _sentence(self, error: sqlite3.Error) -> str:
        if _is_lock(error):
            return (
                f"the ledger {self.path} was locked by another process for more than "
                f"{self._timeout_seconds:g} s; nothing was released, try again."
            )
        if _code(error) == sqlite3.SQLITE_FULL:
            return f"no room to write the ledger {self.path}; nothing was released, free some disk."
        return (
            f"the ledger {self.path} cannot be used ({error}); nothing was released, "
            "check the path, its permissions and 'tacit ledger verify'."
        )

    def close(self) -> None:
        """Close this process's connection; the next transaction opens another."""
        with self._lock:
            if self._connection is not None and self._process == os.getpid():
                self._connection.close()
                self._connection = None


def touch(path: Path, *, create: bool) -> None:
    """Create the file for its owner alone, since subjects are nobody else's business."""
    if path.exists():
        return
    if not create:
        raise LedgerError(f"there is no ledger at {path}; give the path of an existing one.")
    try:
        # Never O_EXCL: of many processes that create the ledger at once, all go on.
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        folder = os.open(path.parent, os.O_RDONLY)
        os.fsync(folder)
        os.close(folder)
    except OSError as error:
        raise LedgerError(f"cannot create the ledger {path}: {error.strerror}.") from error


def _code(error: sqlite3.Error) -> int:
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


def _is_lock(error: sqlite3.Error) -> bool:
    return _code(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
