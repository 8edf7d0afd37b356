"""What a store needs from a database, once for SQLite and once for PostgreSQL.

SQL is written with `?` for values and runs on both. Every failure of the database itself becomes
`StoreUnavailable`: nothing of the transaction was kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol

from tacit.errors import TacitError

POSTGRES = ("postgresql://", "postgres://")


class StoreError(TacitError):
    """The store cannot be opened or belongs to something else."""


class StoreUnavailable(TacitError):
    """The store cannot write or read now; nothing was acknowledged."""


class Row(NamedTuple):
    """One release: who, which window (a digest), when, and what."""

    device: int
    window: bytes
    day: int
    symbol: int
    vector: bytes | None


Key = tuple[int, bytes]


class Database(Protocol):
    """One connection; used by one thread at a time."""

    def query(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run one statement and return its rows, if it has any."""

    def run_many(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        """Run one statement for every row."""

    def insert_releases(self, rows: Sequence[Row]) -> set[Key]:
        """Insert what is not there yet; return the keys that were new."""

    def revoked_among(self, devices: Sequence[int]) -> set[int]:
        """Which of these devices are revoked; none of the others will be before the commit."""

    def transaction(self) -> AbstractContextManager[None]:
        """All or nothing, on disk when the block ends."""

    def create_tables(self) -> None:
        """Make the tables, inside a transaction, if there are none."""

    def has_tables(self) -> bool:
        """Whether this is a store, `StoreError` if it is something else."""

    def close(self) -> None:
        """Let go of it."""


def shown(address: str) -> str:
    """An address for messages: without user, password and options."""
    if not address.startswith(POSTGRES):
        return address
    scheme, rest = address.split("://", 1)
    return f"{scheme}://{rest.rsplit('@', 1)[-1].split('?', 1)[0]}"
