"""The store: what is there counts once, what is wrong is refused, nothing is half-written."""

from __future__ import annotations

import os
import secrets
import sqlite3
import stat
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path

import pytest

from collector_parts import SetClock, counting_model, enrolled, open_store, upload
from local_problems import model_of, trained
from tacit.errors import TacitError
from tacit.local.collector.devices import enrol, find_device, make_codes, revoke
from tacit.local.collector.messages import Refused
from tacit.local.collector.storage.clock import DAY_SECONDS
from tacit.local.collector.storage.database import Database, StoreError, StoreUnavailable, shown
from tacit.local.collector.storage.store import Store, Stored, store_uploads
from tacit.local.collector.storage.writer import Writer


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(tmp_path / "releases.db")


def counted(store: Store) -> dict[tuple[str, int], int]:
    """(group, symbol) -> n; the single releases must say the same."""
    counts = {
        (group, symbol): n
        for group, symbol, n in store.read(
            "SELECT grp, symbol, sum(n) FROM collector_counts GROUP BY grp, symbol"
        )
    }
    single = {
        (group, symbol): n
        for group, symbol, n in store.read(
            "SELECT grp, symbol, count(*) FROM collector_releases JOIN collector_devices "
            "ON number = device GROUP BY grp, symbol"
        )
    }
    assert {key: n for key, n in counts.items() if n} == single
    return single


def put(store: Store, *uploads: object) -> list[Stored]:
    day = store.clock.day()
    return store.write(lambda database: store_uploads(database, uploads, day=day))  # type: ignore[arg-type]


def test_a_repeated_upload_counts_once(store: Store) -> None:
    device = enrolled(store)
    first = upload(device, ["a", "b", "c"], [0, 1, 1])
    assert put(store, first) == [Stored(3, 0)]
    assert put(store, first) == [Stored(0, 3)]
    assert put(store, upload(device, ["c", "d"], [1, 0])) == [Stored(1, 1)]
    assert counted(store) == {("", 0): 2, ("", 1): 2}


def test_another_release_of_a_window_refuses_its_whole_upload_and_no_other(store: Store) -> None:
    one, two = enrolled(store), enrolled(store, group="east")
    put(store, upload(one, ["b"], [0]))
    assert put(
        store, upload(one, ["a", "b"], [1, 1]), upload(two, ["a", "b"], [1, 1], group="east")
    ) == [Stored(0, 0, (1,)), Stored(2, 0)]
    assert counted(store) == {("", 0): 1, ("east", 1): 2}
    assert put(store, upload(one, ["a"], [0])) == [Stored(1, 0)], "'a' was not kept"


def test_windows_of_two_devices_are_different_windows(store: Store) -> None:
    one, two = enrolled(store), enrolled(store)
    put(store, upload(one, ["a"], [0]), upload(two, ["a"], [1]))
    assert counted(store) == {("", 0): 1, ("", 1): 1}


def test_many_windows_are_compared_with_what_is_stored(store: Store) -> None:
    device, names = enrolled(store), [str(n) for n in range(1200)]
    put(store, upload(device, names, [0] * 1200))
    assert put(store, upload(device, names, [0] * 1200)) == [Stored(0, 1200)]
    changed = put(store, upload(device, names, [0] * 1199 + [1]))
    assert changed == [Stored(0, 0, (1199,))]


def test_a_transaction_that_fails_leaves_nothing(store: Store) -> None:
    device = enrolled(store)

    def fails(database: Database) -> None:
        store_uploads(database, [upload(device, ["a"], [0])], day=1)
        raise RuntimeError("between")

    with pytest.raises(RuntimeError, match="between"):
        store.write(fails)
    assert counted(store) == {}


def test_the_store_is_private_and_survives_a_reopening(tmp_path: Path) -> None:
    path = tmp_path / "releases.db"
    store = open_store(path)
    put(store, upload(enrolled(store), ["a"], [0]))
    name = store.collector
    store.close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    again = open_store(path)
    assert again.collector == name
    assert counted(again) == {("", 0): 1}


@pytest.mark.seconds
def test_what_other_processes_write_is_seen_here(tmp_path: Path) -> None:
    """A second connection here must not drop the locks of the first, see `_check_place`."""
    store = open_store(tmp_path / "a.db")
    writer = Writer(store)
    enrolled(store)
    other = (
        "import sys; from tacit.local.collector.storage.store import Store\n"
        "from tacit.local.collector.devices import make_codes\n"
        "store = Store.open(sys.argv[1]); print(*make_codes(store, count=1)); store.close()"
    )
    for _ in range(2):
        made = subprocess.run(
            [sys.executable, "-c", other, str(tmp_path / "a.db")],
            check=True,
            timeout=120,
            stdout=subprocess.PIPE,
            text=True,
        )
        change = enrol(made.stdout, secrets.token_bytes(32), now=store.clock.now())
        writer.change(change).result(timeout=60)
    writer.close()


class TestCodes:
    def test_a_code_works_once(self, store: Store) -> None:
        (code,) = make_codes(store, count=1, group="ward 3")
        key, other = secrets.token_bytes(32), secrets.token_bytes(32)
        now = store.clock.now()
        name = store.write(enrol(code, key, now=now))
        assert store.write(enrol(code.lower().replace("-", " "), key, now=now)) == name
        with pytest.raises(Refused, match="used by another device"):
            store.write(enrol(code, other, now=now))
        device = find_device(store, name)
        assert device is not None
        assert (device.group, device.public_key, device.revoked) == ("ward 3", key, False)

    def test_an_expired_code_and_an_unknown_one(self, tmp_path: Path) -> None:
        clock = SetClock()
        store = open_store(tmp_path / "a.db", clock=clock)
        (code,) = make_codes(store, count=1, days=2)
        clock.passes(2 * DAY_SECONDS)
        with pytest.raises(Refused, match="expired at 2026-09-23"):
            store.write(enrol(code, secrets.token_bytes(32), now=clock.now()))
        with pytest.raises(Refused, match="not known"):
            store.write(enrol("AAAA", secrets.token_bytes(32), now=clock.now()))
        assert store.read("SELECT count(*) FROM collector_devices") == [(0,)]

    def test_an_enrolled_key_needs_no_second_code(self, store: Store) -> None:
        one, two = make_codes(store, count=2)
        key = secrets.token_bytes(32)
        store.write(enrol(one, key, now=store.clock.now()))
        with pytest.raises(Refused, match="enrolled already"):
            store.write(enrol(two, key, now=store.clock.now()))
        store.write(enrol(two, secrets.token_bytes(32), now=store.clock.now()))  # still unused

    def test_codes_are_not_in_the_store(self, store: Store, tmp_path: Path) -> None:
        codes = make_codes(store, count=20)
        assert len(set(codes)) == 20
        store.close()
        held = b"".join(file.read_bytes() for file in tmp_path.iterdir())
        assert not any(code.encode() in held for code in codes)

    @pytest.mark.parametrize(
        "wrong", [{"count": 0}, {"days": 0.0}, {"group": "a\nb"}, {"group": "x" * 65}]
    )
    def test_bad_wishes(self, store: Store, wrong: dict[str, object]) -> None:
        with pytest.raises(TacitError):
            make_codes(store, **{"count": 1, **wrong})  # type: ignore[arg-type]


def test_erasing_a_device_takes_its_releases_out_of_the_counts(store: Store) -> None:
    one, two = enrolled(store), enrolled(store)
    put(store, upload(one, ["a", "b"], [0, 1]), upload(two, ["a"], [1]))
    (name,) = store.read("SELECT name FROM collector_devices WHERE number = ?", (one,))[0]
    assert revoke(store, name, erase=True) == 2
    device = find_device(store, name)
    assert device is not None
    assert device.revoked
    assert counted(store) == {("", 1): 1}
    # An upload that was on its way: the device was known, and is revoked by now.
    late = put(store, upload(one, ["c"], [0]), upload(two, ["c"], [1]))
    assert late == [Stored(0, 0, revoked=True), Stored(1, 0)]
    assert counted(store) == {("", 1): 2}
    with pytest.raises(TacitError, match="no device"):
        revoke(store, "nobody")


class TestOpening:
    def test_a_store_of_another_model(self, tmp_path: Path) -> None:
        open_store(tmp_path / "a.db").close()
        other = model_of(trained("label", 2.0))
        with pytest.raises(StoreError, match="a store of its own") as refusal:
            Store.open(str(tmp_path / "a.db"), model=other)
        assert counting_model().identity in str(refusal.value)

    def test_a_file_that_is_no_database(self, tmp_path: Path) -> None:
        path = tmp_path / "a.db"
        path.write_bytes(b"not a database, but long enough to have a header" * 100)
        with pytest.raises(StoreError, match="cannot be read"):
            open_store(path)
        assert path.read_bytes().startswith(b"not a database")

    def test_another_programs_database(self, tmp_path: Path) -> None:
        path = tmp_path / "a.db"
        with closing(sqlite3.connect(path)) as database, database:
            database.execute("CREATE TABLE mine (a)")
        database.close()
        with pytest.raises(StoreError, match="another program"):
            open_store(path)

    def test_a_damaged_store(self, tmp_path: Path) -> None:
        path = tmp_path / "a.db"
        store = open_store(path)
        device = enrolled(store)
        put(store, upload(device, [str(n) for n in range(2000)], [0] * 2000))
        store.close()
        content = bytearray(path.read_bytes())
        middle = len(content) // 2 // 4096 * 4096
        content[middle : middle + 4096] = b"\xa5" * 4096
        path.write_bytes(content)
        with pytest.raises(StoreError, match="cannot be read"):
            open_store(path)

    def test_no_store_and_no_model_to_make_one(self, tmp_path: Path) -> None:
        with pytest.raises(StoreError, match="cannot use the store"):
            Store.open(str(tmp_path / "none.db"))
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize("address", ["mysql://x/y", "/nowhere/a.db", "/"])
    def test_places_that_cannot_hold_one(self, address: str) -> None:
        with pytest.raises(StoreError):
            open_store(address)

    def test_a_store_that_may_only_be_read(self) -> None:
        # Root may write to anything, so a user without rights has to try.
        nobody = 65534 if os.geteuid() == 0 else os.geteuid()
        code = "import os, sys; from tacit.local.collector.storage.sqlite import Sqlite\n"
        code += "os.setuid(int(sys.argv[2]))\nSqlite(sys.argv[1], create=True)"
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "a.db"
            open_store(path).close()
            path.chmod(0o444)
            path.parent.chmod(0o755)
            done = subprocess.run(
                [sys.executable, "-c", code, str(path), str(nobody)],
                capture_output=True,
                text=True,
                timeout=120,
            )
        assert "StoreError: cannot use the store" in done.stderr, done.stderr
        assert "Permission denied" in done.stderr

    def test_a_clock_that_was_set_back(self, tmp_path: Path) -> None:
        clock = SetClock()
        store = open_store(tmp_path / "a.db", clock=clock)
        clock.passes(DAY_SECONDS)
        enrolled(store)
        store.close()
        with pytest.raises(StoreError, match="tacit collector clock STORE --confirm"):
            open_store(tmp_path / "a.db", clock=SetClock())
        late = SetClock()
        late.passes(DAY_SECONDS)
        open_store(tmp_path / "a.db", clock=SetClock(late.now())).close()

    def test_messages_hold_no_password(self) -> None:
        address = "postgresql://me:secret@db.example:5432/x?password=secret"
        assert shown(address) == "postgresql://db.example:5432/x"


def test_a_step_of_the_clock_does_not_move_the_day() -> None:
    clock = SetClock()
    day = clock.day()
    clock.is_set(400 * DAY_SECONDS)
    assert clock.day() == day
    assert clock.step == 400 * DAY_SECONDS
    clock.passes(DAY_SECONDS)
    assert clock.day() == day + 1


class TestWriter:
    def test_what_waits_is_committed_together(self, store: Store) -> None:
        writer = Writer(store)
        devices = [enrolled(store) for _ in range(40)]
        waiting = [
            writer.upload(upload(device, [f"w{n}"], [n % 2]))
            for n in range(5)
            for device in devices
        ]
        assert {one.result(timeout=60) for one in waiting} == {Stored(1, 0)}
        assert writer.commits < len(waiting)
        assert sum(counted(store).values()) == 200
        writer.close()

    def test_what_is_acknowledged_is_committed(self, store: Store) -> None:
        """Another connection sees it at once; an answer before the commit would come first."""
        writer = Writer(store)
        device = enrolled(store)
        for n in range(1, 31):
            writer.upload(upload(device, [f"w{n}"], [0])).result(timeout=60)
            assert store.read("SELECT count(*) FROM collector_releases") == [(n,)]
        writer.close()

    def test_two_requests_of_one_device_at_once_count_once(self, store: Store) -> None:
        writer = Writer(store)
        device = enrolled(store)
        waiting = [writer.upload(upload(device, ["a", "b"], [0, 1])) for _ in range(20)]
        results = [one.result(timeout=60) for one in waiting]
        assert sum(one.new for one in results) == 2
        assert sum(one.repeated for one in results) == 38
        writer.close()
        assert counted(store) == {("", 0): 1, ("", 1): 1}

    def test_closing_finishes_what_waits_and_takes_no_more(self, store: Store) -> None:
        writer = Writer(store)
        device = enrolled(store)
        waiting = [writer.upload(upload(device, [f"w{n}"], [0])) for n in range(50)]
        writer.close()
        assert all(one.result(timeout=0).new == 1 for one in waiting)
        with pytest.raises(StoreUnavailable):
            writer.upload(upload(device, ["late"], [0]))

    def test_a_refused_change_leaves_the_others_alone(self, store: Store) -> None:
        writer = Writer(store)
        device = enrolled(store)
        sent = writer.upload(upload(device, ["a"], [0]))
        refused = writer.change(enrol("AAAA", secrets.token_bytes(32), now=0.0))
        with pytest.raises(Refused):
            refused.result(timeout=60)
        assert sent.result(timeout=60) == Stored(1, 0)
        writer.close()

    def test_a_defect_fails_its_commit_and_the_writer_goes_on(self, store: Store) -> None:
        writer = Writer(store)
        device = enrolled(store)

        def broken(database: Database) -> None:
            raise RuntimeError("defect")

        with pytest.raises(StoreUnavailable, match="nothing was counted"):
            writer.change(broken).result(timeout=60)
        assert "nothing was counted" in str(writer.failing)
        assert writer.upload(upload(device, ["a"], [0])).result(timeout=60) == Stored(1, 0)
        assert str(writer.failing) == "None"
        writer.close()
