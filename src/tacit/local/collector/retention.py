"""Erase what is older than the operator wants to keep: single releases, and counts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tacit.errors import TacitError, check_at_least
from tacit.local.collector.devices import forget_codes
from tacit.local.collector.storage.database import Database
from tacit.local.collector.storage.store import ADD_COUNTS, Store
from tacit.local.collector.storage.writer import Action

_DEVICES = 200  # whose releases one transaction looks at
QUIET_SECONDS = 3600.0  # that the clock must have run evenly before anything is erased


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """How many days to keep what; None keeps it for good.

    Single releases say which device sent them, counts by day and group do not. A window whose
    release was erased is unknown again: were it uploaded once more, it would count anew.
    """

    releases_days: int | None = None
    counts_days: int | None = None

    def __post_init__(self) -> None:
        given = {"--keep-days": self.releases_days, "--keep-count-days": self.counts_days}
        for name, days in given.items():
            if days is not None:
                check_at_least(days, 1, name=name)

    def steps(self, store: Store) -> Iterator[Action]:
        """Changes that, one transaction each, bring the store up to date; each returns a number."""
        today, now = store.clock.day(), store.clock.now()
        yield lambda database: forget_codes(database, now=now)
        if self.counts_days is not None:
            yield _erase_counts(today - self.counts_days)
        # Counts that go take their single releases along: those alone would be counted by nobody.
        limits = [days for days in (self.releases_days, self.counts_days) if days is not None]
        if limits:
            ((most,),) = store.read("SELECT coalesce(max(number), 0) FROM collector_devices")
            for first in range(0, int(most) + 1, _DEVICES):
                yield _erase_releases(today - min(limits), first)


def may_erase(store: Store) -> bool:
    """Whether the clock can be trusted.

    It has run for a while, nobody has set it, and it is not days ahead of the store's last use.
    """
    quiet = store.clock.running_seconds() >= QUIET_SECONDS
    return quiet and not store.clock.step and store.clock_doubt() is None


def erase_old(store: Store, retention: Retention) -> int:
    """Erase now; returns the number of single releases. A clock that may be ahead is refused."""
    doubt = store.clock_doubt()
    if doubt is not None:
        raise TacitError(f"{doubt}.")
    return sum(store.write(step) for step in retention.steps(store))


def confirm_clock(store: Store) -> int:
    """Go by this machine's clock from now on; returns how many counted releases lay ahead of it.

    They count from today: a clock that was ahead had put them on days that are still to come.
    """
    today, now = store.clock.day(), int(store.clock.now())

    def action(database: Database) -> int:
        ahead = database.query(
            "SELECT grp, symbol, sum(n) FROM collector_counts WHERE day > ? "
            "GROUP BY grp, symbol ORDER BY grp, symbol",
            (today,),
        )
        database.run_many(ADD_COUNTS, [(today, group, symbol, n) for group, symbol, n in ahead])
        database.query("DELETE FROM collector_counts WHERE day > ?", (today,))
        database.query("UPDATE collector_releases SET day = ? WHERE day > ?", (today, today))
        database.query("UPDATE collector_meta SET value = ? WHERE name = 'last_seen'", (str(now),))
        return int(sum(n for _, _, n in ahead))

    return store.write(action)


def _erase_counts(before: int) -> Action:
    def action(database: Database) -> int:
        database.query("DELETE FROM collector_counts WHERE day < ?", (before,))
        return 0

    return action


def _erase_releases(before: int, first: int) -> Action:
    def action(database: Database) -> int:
        gone = database.query(
            "DELETE FROM collector_releases WHERE device >= ? AND device < ? AND day < ? "
            "RETURNING 1",
            (first, first + _DEVICES, before),
        )
        return len(gone)

    return action
