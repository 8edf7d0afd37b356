"""Counts of symbols by period and group, and the class shares that follow from them."""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from tacit.arrays import Integers
from tacit.errors import TacitError
from tacit.local.collector.storage.clock import date_of
from tacit.local.collector.storage.store import Store
from tacit.local.model import LocalModel
from tacit.local.prevalence import Prevalence, Target, prevalence_of_counts

Period = Literal["all", "day", "week", "month"]
PERIODS: tuple[Period, ...] = get_args(Period)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Slice:
    """How often each symbol came in one period from one group (None: all of them)."""

    start: dt.date | None
    group: str | None
    counts: Integers


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Share:
    """The class shares of one slice."""

    start: dt.date | None
    group: str | None
    shares: Prevalence

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        start = None if self.start is None else self.start.isoformat()
        return {"start": start, "group": self.group, **self.shares.to_dict()}


def count_symbols(
    store: Store,
    *,
    n_symbols: int,
    by: Period = "all",
    per_group: bool = False,
    last: int | None = None,
) -> list[Slice]:
    """Counts of the symbols, oldest first; `last` keeps that many periods."""
    if by not in PERIODS:
        raise TacitError(f"by must be one of {', '.join(PERIODS)}, got {by!r}.")
    totals: defaultdict[tuple[dt.date | None, str | None], Integers] = defaultdict(
        lambda: np.zeros(n_symbols, dtype=np.int64)
    )
    rows = store.read("SELECT day, grp, symbol, n FROM collector_counts WHERE n > 0")
    for day, group, symbol, n in rows:
        totals[_start(day, by), group if per_group else None][symbol] += n
    ordered = sorted(totals, key=lambda key: (key[0] or dt.date.min, key[1] or ""))
    kept = _last_starts([start for start, _ in ordered], last)
    return [
        Slice(start=start, group=group, counts=totals[start, group])
        for start, group in ordered
        if start in kept
    ]


def class_shares(
    store: Store,
    model: LocalModel,
    *,
    by: Period = "all",
    per_group: bool = False,
    last: int | None = None,
    of: Target = "device_labels",
    level: float = 0.95,
) -> list[Share]:
    """Shares of the classes with intervals, for each period and group that has releases.

    Every interval holds for its own class, period and group with probability `level`; what is
    counted are windows, not devices or persons.
    """
    slices = count_symbols(
        store, n_symbols=n_symbols_of(model), by=by, per_group=per_group, last=last
    )
    return [
        Share(
            start=one.start,
            group=one.group,
            shares=prevalence_of_counts(model, one.counts, of=of, level=level),
        )
        for one in slices
    ]


def totals_of(store: Store) -> dict[str, Any]:
    """How many releases and devices a store holds, and how many devices of each group."""
    ((held,),) = store.read("SELECT coalesce(sum(n), 0) FROM collector_counts")
    groups = store.read(
        "SELECT grp, count(*) FROM collector_devices WHERE revoked = 0 GROUP BY grp ORDER BY grp"
    )
    return {
        "releases": int(held),
        "devices": sum(n for _, n in groups),
        "groups": dict(groups),
    }


def windows_per_device(store: Store) -> list[tuple[int, int]]:
    """(w, n): n devices have w windows here, among the releases that are still kept; no names."""
    found = store.read(
        "SELECT w, count(*) FROM (SELECT count(*) AS w FROM collector_releases GROUP BY device) "
        "AS held GROUP BY w ORDER BY w"
    )
    return [(int(w), int(n)) for w, n in found]


def n_symbols_of(model: LocalModel) -> int:
    """How many symbols a store of this model counts: those of its channel, or its classes."""
    channel = getattr(model.head, "channel", None)
    return len(model.classes) if channel is None else len(channel)


def _start(day: int, by: Period) -> dt.date | None:
    date = date_of(day)
    if by == "all":
        return None
    if by == "week":
        return date - dt.timedelta(days=date.weekday())
    return date.replace(day=1) if by == "month" else date


def _last_starts(starts: Sequence[dt.date | None], last: int | None) -> set[dt.date | None]:
    distinct = sorted(set(starts), key=lambda start: start or dt.date.min)
    return set(distinct if last is None else distinct[-last:])
