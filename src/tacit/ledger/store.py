"""One SQLite file, for any number of threads and processes: transactions that hold or refuse.

Every transaction has a connection of its own, alone under a lock on a file beside the ledger.
SQLite's own locks belong to the process and are gone when it closes any descriptor of the file, as
when it copies it; another process would then delete the write-ahead log under the transaction.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from tacit.errors import LedgerError
from tacit.system.files import sync_folder
from tacit.system.locks import locked

_PAUSE_SECONDS = 0.005


class Store:
    """Transactions on one file, with the write-ahead log synced in full."""

    def __init__(self, path: Path, *, timeout_seconds: float) -> None:
        self.path = path
        self._timeout_seconds = timeout_seconds

    @contextmanager
    def transaction(
        self, kind: str, *, committed: Callable[[], None] | None = None
    ) -> Iterator[sqlite3.Connection]:
        """One transaction: commit at the end, roll back on any error, speak in LedgerErrors.

        `committed` is called after the commit, while the ledger is still locked.
        """
        with self._alone():
            try:
                connection = self._patiently(lambda: self._begun(kind))
                try:
                    yield connection
                    connection.execute("COMMIT")
                    if committed is not None:
                        committed()
                finally:
                    if connection.in_transaction:
                        with suppress(sqlite3.Error):
                            connection.execute("ROLLBACK")
                    connection.close()
            except sqlite3.Error as error:
                raise LedgerError(self._sentence(error)) from error

    def touch(self, *, create: bool) -> None:
        """Create the file for its owner alone, since subjects are nobody else's business."""
        if self.path.exists():
            return
        if not create:
            raise LedgerError(
                f"there is no ledger at {self.path}; give the path of an existing one."
            )
        with self._alone():
            try:
                os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600))
                sync_folder(self.path.parent)
            except OSError as error:
                raise LedgerError(self._not_created(error)) from error

    @contextmanager
    def _alone(self) -> Iterator[None]:
        with ExitStack() as stack:
            try:
                beside = self.path.with_name(f"{self.path.name}.lock")
                stack.enter_context(locked(beside, timeout_seconds=self._timeout_seconds))
            except TimeoutError as error:
                raise LedgerError(self._locked()) from error
            except OSError as error:
                raise LedgerError(self._not_created(error)) from error
            yield

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

    def _locked(self) -> str:
        return (
            f"the ledger {self.path} was locked by another process for more than "
            f"{self._timeout_seconds:g} s; nothing was released, try again."
        )

    def _not_created(self, error: OSError) -> str:
        return f"cannot create the ledger {self.path}: {error.strerror}; nothing was released."

    def _sentence(self, error: sqlite3.Error) -> str:
        if _is_lock(error):
            return self._locked()
        if _code(error) == sqlite3.SQLITE_FULL:
            return f"no room to write the ledger {self.path}; nothing was released, free some disk."
        return (
            f"the ledger {self.path} cannot be used ({error}); nothing was released, "
            "check the path, its permissions and 'tacit ledger verify'."
        )


def _code(error: sqlite3.Error) -> int:
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


def _is_lock(error: sqlite3.Error) -> bool:
    return _code(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
