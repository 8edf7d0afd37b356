"""One SQLite file, for any number of threads and processes: transactions that hold or refuse.

Every transaction has a connection of its own. A lock on a file belongs to the process, and is gone
when the process closes any descriptor of that file, a copy of it included; a connection that stayed
open would lose its lock so, and another process would delete the write-ahead log under it.
"""

from __future__ import annotations

import os
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tacit.errors import LedgerError

_PAUSE_SECONDS = 0.005


class Store:
    """Transactions on one file, with the write-ahead log synced in full."""

    def __init__(self, path: Path, *, timeout_seconds: float) -> None:
        self.path = path
        self._timeout_seconds = timeout_seconds

    @contextmanager
    def transaction(self, kind: str) -> Iterator[sqlite3.Connection]:
        """One transaction: commit at the end, roll back on any error, speak in LedgerErrors."""
        try:
            connection = self._patiently(lambda: self._begun(kind))
            try:
                yield connection
                connection.execute("COMMIT")
            finally:
                if connection.in_transaction:
                    with suppress(sqlite3.Error):
                        connection.execute("ROLLBACK")
                connection.close()
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
        connection = sqlite3.connect(
            f"{self.path.as_uri()}?mode=rw",
            uri=True,
            timeout=min(self._timeout_seconds, 1.0),
            isolation_level=None,
        )
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute(f"BEGIN {kind}")
            # A deferred transaction starts with its first read; let locks show here.
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
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


def touch(path: Path, *, create: bool) -> None:
    """Create the file for its owner alone, since subjects are nobody else's business."""
    if path.exists():
        return
    if not create:
        raise LedgerError(f"there is no ledger at {path}; give the path of an existing one.")
    try:
        # Made under another name, so that no descriptor of a visible ledger is ever closed here; of
        # many that create it at once, all go on.
        descriptor, spare = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        os.close(descriptor)
        try:
            with suppress(FileExistsError):
                os.link(spare, path)
        finally:
            Path(spare).unlink()
        folder = os.open(path.parent, os.O_RDONLY)
        os.fsync(folder)
        os.close(folder)
    except OSError as error:
        raise LedgerError(f"cannot create the ledger {path}: {error.strerror}.") from error


def _code(error: sqlite3.Error) -> int:
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


def _is_lock(error: sqlite3.Error) -> bool:
    return _code(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
