"""A store on a PostgreSQL server, which several collectors may share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tacit.local.collector.storage.database import Key, Row, StoreError, StoreUnavailable, shown
from tacit.system.extras import needs

_CONNECT_SECONDS = 10
_LOCK = 0x5443_4C31  # one collector at a time makes the tables

_TABLES = """
CREATE TABLE collector_meta (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE collector_codes (
  digest BYTEA PRIMARY KEY, grp TEXT NOT NULL, expires BIGINT NOT NULL, device TEXT NOT NULL
);
CREATE TABLE collector_devices (
  number BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name TEXT NOT NULL UNIQUE,
  public_key BYTEA NOT NULL, grp TEXT NOT NULL, enrolled INTEGER NOT NULL, revoked INTEGER NOT NULL
);
CREATE TABLE collector_releases (
  device BIGINT NOT NULL, window_digest BYTEA NOT NULL, day INTEGER NOT NULL,
  symbol INTEGER NOT NULL, vector BYTEA, PRIMARY KEY (device, window_digest)
);
CREATE TABLE collector_counts (
  day INTEGER NOT NULL, grp TEXT NOT NULL, symbol INTEGER NOT NULL, n BIGINT NOT NULL,
  PRIMARY KEY (day, grp, symbol)
);
"""
_INSERT = """
INSERT INTO collector_releases (device, window_digest, day, symbol, vector)
SELECT * FROM unnest(%s::bigint[], %s::bytea[], %s::int[], %s::int[], %s::bytea[])
ON CONFLICT DO NOTHING RETURNING device, window_digest
"""
_REVOKED = (
    "SELECT number, revoked FROM collector_devices WHERE number = ANY(?) ORDER BY number FOR SHARE"
)


class Postgres:
    """One connection, made again after the server went away."""

    def __init__(self, address: str) -> None:
        needs("postgres", "psycopg", what="a store on PostgreSQL")
        import psycopg

        self._address = address
        self._error = psycopg.Error
        self._inside = False  # a transaction, which no new connection would continue
        try:
            self._database = self._connected()
        except psycopg.Error as error:
            raise StoreError(
                f"cannot connect to {shown(address)}: {_first_line(error)}; check the address and "
                "that the server runs."
            ) from error

    def _connected(self) -> Any:
        import psycopg

        made = psycopg.connect(
            self._address,
            autocommit=True,
            connect_timeout=_CONNECT_SECONDS,
            application_name="tacit.local.collector",
        )
        # Acknowledged means on disk, whatever the server's own default is.
        (waits,) = made.execute("SHOW synchronous_commit").fetchall()[0]
        if waits == "off":
            made.execute("SET synchronous_commit = on")
        return made

    def has_tables(self) -> bool:
        """Whether this is a store."""
        return self.query("SELECT to_regclass('collector_meta')")[0][0] is not None

    def create_tables(self) -> None:
        """Make the tables, inside a transaction, if there are none."""
        self.query("SELECT pg_advisory_xact_lock(?)", (_LOCK,))
        if not self.has_tables():
            with self._explained():
                self._database.execute(_TABLES)

    def query(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run one statement and return its rows, if it has any."""
        with self._explained():
            cursor = self._database.execute(sql.replace("?", "%s"), values)
            return cursor.fetchall() if cursor.description else []

    def run_many(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        """Run one statement for every row."""
        with self._explained(), self._database.cursor() as cursor:
            cursor.executemany(sql.replace("?", "%s"), rows)

    def insert_releases(self, rows: Sequence[Row]) -> set[Key]:
        """Insert what is not there yet; return the keys that were new."""
        if not rows:
            return set()
        # In one order everywhere, so that two collectors never wait for each other.
        columns = [list(column) for column in zip(*sorted(rows, key=_key), strict=True)]
        with self._explained():
            found = self._database.execute(_INSERT, columns).fetchall()
        return {(device, bytes(window)) for device, window in found}

    def revoked_among(self, devices: Sequence[int]) -> set[int]:
        """Which of these devices are revoked; whoever revokes another waits for the commit."""
        if not devices:
            return set()
        found = self.query(_REVOKED, (list(devices),))
        return {number for number, revoked in found if revoked}

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing, on the server's disk when the block ends."""
        self._begin()
        self._inside = True
        done = False
        try:
            yield
            with self._explained():
                self._database.execute("COMMIT")
            done = True
        finally:
            if not done and not self._database.closed:
                with self._explained():
                    self._database.execute("ROLLBACK")
            self._inside = False

    def _begin(self) -> None:
        """Begin, on a new connection if the server has been restarted meanwhile."""
        begin = "BEGIN ISOLATION LEVEL READ COMMITTED"
        try:
            self._database.execute(begin)
        except self._error:
            self._database.close()
            with self._explained():
                self._database.execute(begin)

    def close(self) -> None:
        """Let go of the server."""
        self._database.close()

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            if self._database.closed and not self._inside:
                self._database = self._connected()
            yield
        except self._error as error:
            raise StoreUnavailable(
                f"the store cannot be used now ({_first_line(error)}); nothing was counted, send "
                "it again later."
            ) from error


def _key(row: Row) -> Key:
    return row.device, row.window


def _first_line(error: Exception) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]
