"""Counts and shares by period and group, retention, and files of single releases."""

from __future__ import annotations

import csv
import resource
import secrets
import sys
from pathlib import Path

import numpy as np
import pytest

from collector_parts import SetClock, counting_model, enrolled, open_store, upload
from local_problems import model_of, trained
from tacit.errors import TacitError
from tacit.local.collector.counts import class_shares, count_symbols, totals_of
from tacit.local.collector.export import export_releases
from tacit.local.collector.retention import (
    QUIET_SECONDS,
    Retention,
    confirm_clock,
    erase_old,
    may_erase,
)
from tacit.local.collector.storage.clock import DAY_SECONDS
from tacit.local.collector.storage.store import Store, store_uploads
from tacit.local.collector.uploads import UploadReader
from tacit.local.prevalence import prevalence_of_counts

START = 1_790_000_000.0  # Monday, 2026-09-21


def put(store: Store, device: int, symbols: list[int], *, group: str = "") -> None:
    windows = [secrets.token_hex(8) for _ in symbols]
    sent = upload(device, windows, symbols, group=group)
    store.write(lambda database: store_uploads(database, [sent], day=store.clock.day()))


@pytest.fixture
def clock() -> SetClock:
    return SetClock(START)


@pytest.fixture
def store(tmp_path: Path, clock: SetClock) -> Store:
    """Ten days: one release of each symbol in the west, one more of symbol 1 in the east."""
    made = open_store(tmp_path / "releases.db", clock=clock)
    west, east = enrolled(made, group="west"), enrolled(made, group="east")
    for _ in range(10):
        put(made, west, [0, 1], group="west")
        put(made, east, [1], group="east")
        clock.passes(DAY_SECONDS)
    return made


def test_counts_by_period(store: Store) -> None:
    def found(by: str, **options: object) -> list[tuple[str, list[int]]]:
        slices = count_symbols(store, n_symbols=2, by=by, **options)  # type: ignore[arg-type]
        return [(f"{one.start} {one.group}", one.counts.tolist()) for one in slices]

    assert found("all") == [("None None", [10, 20])]
    assert found("all", per_group=True) == [("None east", [0, 10]), ("None west", [10, 10])]
    assert found("week") == [("2026-09-21 None", [7, 14]), ("2026-09-28 None", [3, 6])]
    assert found("month") == [("2026-09-01 None", [10, 20])]
    assert [day for day, _ in found("day", last=2)] == ["2026-09-29 None", "2026-09-30 None"]
    assert found("day")[0] == ("2026-09-21 None", [1, 2])
    with pytest.raises(TacitError, match="by must be"):
        found("hour")


def test_shares_are_those_of_the_counts(store: Store) -> None:
    model = counting_model()
    (week, _) = class_shares(store, model, by="week", level=0.9)
    direct = prevalence_of_counts(model, np.array([7, 14]), level=0.9)
    assert week.to_dict() == {"start": "2026-09-21", "group": None, **direct.to_dict()}


def test_single_releases_go_and_counts_stay(store: Store) -> None:
    assert erase_old(store, Retention(releases_days=3)) == 3 * 7
    assert store.read("SELECT count(*) FROM collector_releases") == [(9,)]
    assert totals_of(store) == {"releases": 30, "devices": 2, "groups": {"east": 1, "west": 1}}
    assert erase_old(store, Retention(releases_days=3)) == 0


def test_counts_that_go_take_their_releases_along(store: Store) -> None:
    assert erase_old(store, Retention(counts_days=4)) == 3 * 6
    assert totals_of(store)["releases"] == 12
    assert store.read("SELECT count(*) FROM collector_releases") == [(12,)]


def test_nothing_is_erased_by_a_clock_that_was_set(clock: SetClock, store: Store) -> None:
    assert may_erase(store)
    clock.is_set(400 * DAY_SECONDS)
    assert not may_erase(store)
    assert erase_old(store, Retention(releases_days=11)) == 0, "time ran on evenly"


def test_nothing_is_erased_soon_after_the_start(tmp_path: Path) -> None:
    clock = SetClock()
    store = open_store(tmp_path / "new.db", clock=clock)
    assert not may_erase(store)
    clock.passes(QUIET_SECONDS)
    assert may_erase(store)


def counted_days(store: Store) -> list[tuple[int, str, int]]:
    found = store.read("SELECT day, grp, sum(n) FROM collector_counts GROUP BY day, grp ORDER BY 1")
    singles = store.read("SELECT day, count(*) FROM collector_releases GROUP BY day ORDER BY 1")
    assert [(day, n) for day, n in singles] == [(day, n) for day, _, n in found]
    return [(int(day), str(group), int(n)) for day, group, n in found]


@pytest.mark.parametrize("ahead", [1, 400])
def test_a_start_with_a_clock_ahead_can_be_undone(tmp_path: Path, ahead: int) -> None:
    """Seen to fail at 1aadbb1: the store was refused for ever once the clock was right again."""
    path, right = tmp_path / "a.db", SetClock()
    store = open_store(path, clock=right)
    device = enrolled(store)

    def put(opened: Store, window: str) -> None:
        day = opened.clock.day()
        sent = [upload(device, [window], [0])]
        opened.write(lambda database: store_uploads(database, sent, day=day))

    put(store, "before")
    store.close()
    wrong = open_store(path, clock=SetClock(right.now() + ahead * DAY_SECONDS))
    put(wrong, "ahead")
    wrong.clock.passes(QUIET_SECONDS)  # type: ignore[attr-defined]
    if ahead > 3:  # then nothing is believed, and so nothing is lost
        assert not may_erase(wrong)
        assert "--confirm" in (wrong.clock_doubt() or "")
        with pytest.raises(TacitError, match="nothing is erased until"):
            erase_old(wrong, Retention(releases_days=1))
        wrong.close()
        open_store(path, clock=SetClock(right.now())).close()
    else:
        wrong.close()
        with pytest.raises(TacitError, match="--confirm"):
            open_store(path, clock=SetClock(right.now()))
    today = right.day()
    store = Store.open(str(path), clock=SetClock(right.now()), any_clock=True)
    assert counted_days(store) == [(today, "", 1), (today + ahead, "", 1)]
    assert confirm_clock(store) == 1
    assert confirm_clock(store) == 0
    assert counted_days(store) == [(today, "", 2)]
    store.close()
    again = open_store(path, clock=SetClock(right.now() + QUIET_SECONDS))
    assert again.clock_doubt() is None


def test_after_a_long_pause_the_clock_is_confirmed_once(tmp_path: Path) -> None:
    start = SetClock()
    open_store(tmp_path / "a.db", clock=start).close()
    late = SetClock(start.now() + 30 * DAY_SECONDS)
    store = open_store(tmp_path / "a.db", clock=late)
    late.passes(QUIET_SECONDS)
    enrolled(store)  # being used does not make the clock right
    assert not may_erase(store)
    confirm_clock(store)
    assert may_erase(store)
    assert erase_old(store, Retention(releases_days=1)) == 0
    store.close()


def test_days_to_keep_must_be_whole_and_positive() -> None:
    for wrong in (0, -1):
        with pytest.raises(TacitError, match="--keep-days"):
            Retention(releases_days=wrong)


def test_csv(store: Store, tmp_path: Path) -> None:
    assert export_releases(store, tmp_path / "all.csv") == 30
    with (tmp_path / "all.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert rows[0].keys() == {"day", "group", "symbol"}
    assert sum(row["group"] == "west" and row["symbol"] == "0" for row in rows) == 10
    assert {row["day"] for row in rows} == {f"2026-09-{day}" for day in range(21, 31)}
    with pytest.raises(TacitError, match="exists"):
        export_releases(store, tmp_path / "all.csv")
    with pytest.raises(TacitError, match=r"\.csv or \.parquet"):
        export_releases(store, tmp_path / "all.txt")


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_full_disk_leaves_no_part_of_an_export(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # it would stay truncated for later runs
    before = sorted(tmp_path.iterdir())
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))
    try:
        with pytest.raises(TacitError, match=rf"cannot write .*all\.{ending}: File too large"):
            export_releases(store, tmp_path / f"all.{ending}")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert sorted(tmp_path.iterdir()) == before


def test_parquet_and_empty_stores(store: Store, tmp_path: Path) -> None:
    import pyarrow.parquet

    assert export_releases(store, tmp_path / "all.parquet", devices=True) == 30
    table = pyarrow.parquet.read_table(tmp_path / "all.parquet")
    assert table.column_names == ["device", "day", "group", "symbol"]
    assert sum(table["symbol"].to_pylist()) == 20
    empty = open_store(tmp_path / "empty.db")
    assert export_releases(empty, tmp_path / "empty.csv") == 0
    assert (tmp_path / "empty.csv").read_text() == "day,group,symbol\n"


def test_pages_of_a_large_export_join(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import tacit.local.collector.export as module

    export_releases(store, tmp_path / "whole.csv", devices=True)
    monkeypatch.setattr(module, "_ROWS", 7)
    assert export_releases(store, tmp_path / "pages.csv", devices=True) == 30
    assert (tmp_path / "pages.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()


def test_places_are_counted_as_symbols_and_impossible_ones_refused(tmp_path: Path) -> None:
    import json

    model = model_of(trained("place", 2.0))
    channel = model.head.channel  # type: ignore[union-attr]
    possible = np.flatnonzero(channel.max(axis=0) > 0.0)
    body = {"model": model.identity, "kind": "place", "windows": ["w"]}
    read = UploadReader(model).read
    assert read(json.dumps({**body, "values": [int(possible[-1])]}).encode()).symbols == [
        possible[-1]
    ]
    never = np.flatnonzero(channel.max(axis=0) <= 0.0)
    wrong = [len(channel), *never.tolist()]
    for symbol in wrong:
        with pytest.raises(TacitError, match=r"outside|never releases"):
            read(json.dumps({**body, "values": [symbol]}).encode())


def test_shares_of_places_are_those_of_their_classes(tmp_path: Path) -> None:
    model = model_of(trained("place", 2.0, "krr"))
    made = Store.open(str(tmp_path / "places.db"), model=model)
    put(made, enrolled(made), [0, 1, 2, 3, 3, 4, 7])  # five of the first class, two of the second
    (share,) = class_shares(made, model)
    made.close()
    direct = prevalence_of_counts(model, np.array([1, 1, 1, 2, 1, 0, 0, 1]))
    assert share.shares.to_dict() == direct.to_dict()
    assert (share.shares.n, len(share.shares.share)) == (7, 2)
