"""Several collectors on one PostgreSQL server, a real one."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from collector_parts import counting_model, enrolled, open_store, upload
from collector_process import CollectorProcess
from local_problems import model_of, trained
from postgres_server import PostgresServer
from tacit.local.collector.client import Identity
from tacit.local.collector.counts import class_shares
from tacit.local.collector.devices import enrol, make_codes, revoke
from tacit.local.collector.export import export_releases
from tacit.local.collector.messages import Refused
from tacit.local.collector.retention import Retention, erase_old
from tacit.local.collector.storage.database import Database, StoreError, StoreUnavailable
from tacit.local.collector.storage.store import Store, Stored, store_uploads
from tacit.local.collector.storage.writer import Writer
from tacit.local.release import Release

pytestmark = [pytest.mark.seconds, pytest.mark.xdist_group("postgres")]


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    made = PostgresServer()
    yield made
    made.remove()


def release_of(*symbols: int) -> Release:
    import numpy as np

    model = counting_model()
    return Release(
        kind="label", values=np.array(symbols), model=model.identity, guarantee=model.guarantee
    )


def test_the_same_rules_as_in_a_file(server: PostgresServer, tmp_path: Path) -> None:
    store = open_store(server.new_database())
    one, two = enrolled(store), enrolled(store, group="east")

    def put(*uploads: object) -> list[Stored]:
        day = store.clock.day()
        return store.write(lambda database: store_uploads(database, uploads, day=day))  # type: ignore[arg-type]

    assert put(upload(one, ["a", "b"], [0, 1])) == [Stored(2, 0)]
    assert put(upload(one, ["a", "b"], [0, 1])) == [Stored(0, 2)]
    east = upload(two, ["a"], [1], group="east")
    assert put(upload(one, ["b", "c"], [0, 0]), east) == [Stored(0, 0, (0,)), Stored(1, 0)]
    counts = "SELECT grp, symbol, n FROM collector_counts ORDER BY grp, symbol"
    assert store.read(counts) == [("", 0, 1), ("", 1, 1), ("east", 1, 1)]
    shares = class_shares(store, counting_model(), by="week", per_group=True)
    assert [(one.group, one.shares.n) for one in shares] == [("", 2), ("east", 1)]
    assert export_releases(store, tmp_path / "all.csv") == 3
    (name,) = store.read("SELECT name FROM collector_devices WHERE number = ?", (one,))[0]
    assert revoke(store, name, erase=True) == 2
    assert store.read("SELECT sum(n) FROM collector_counts") == [(1,)]
    assert put(upload(one, ["d"], [0])) == [Stored(0, 0, revoked=True)]
    assert erase_old(store, Retention(releases_days=1)) == 0
    store.close()
    other = model_of(trained("label", 2.0))
    with pytest.raises(StoreError, match="a store of its own"):
        Store.open(store.address, model=other)


def test_two_writers_with_the_same_windows_at_once(server: PostgresServer) -> None:
    """Whoever comes second waits for the first, and then finds the release there."""
    address = server.new_database()
    store = open_store(address)
    devices = [enrolled(store) for _ in range(20)]
    writers = [Writer(store), Writer(open_store(address))]
    waiting = [
        writer.upload(upload(device, [f"w{n}", f"v{n}"], [0, 1]))
        for n in range(5)
        for device in devices
        for writer in writers
    ]
    results = [one.result(timeout=120) for one in waiting]
    for writer in writers:
        writer.close()
    assert sum(one.new for one in results) == 200
    assert sum(one.repeated for one in results) == 200
    assert store.read("SELECT sum(n) FROM collector_counts") == [(200,)]
    assert store.read("SELECT count(*) FROM collector_releases") == [(200,)]
    store.close()


def test_whoever_revokes_waits_for_an_upload_and_erases_it(server: PostgresServer) -> None:
    address = server.new_database()
    store, other = open_store(address), open_store(address)
    device = enrolled(store)
    (name,) = store.read("SELECT name FROM collector_devices WHERE number = ?", (device,))[0]
    with ThreadPoolExecutor(1) as pool:

        def upload_and_revoke(database: Database) -> Future[int]:
            assert store_uploads(database, [upload(device, ["a"], [0])], day=1) == [Stored(1, 0)]
            revoking = pool.submit(revoke, other, name, erase=True)
            with pytest.raises(TimeoutError):
                revoking.result(timeout=0.5)
            return revoking

        assert store.write(upload_and_revoke).result(timeout=60) == 1
    assert store.read("SELECT count(*) FROM collector_releases") == [(0,)]


_FULL = (
    "CREATE FUNCTION full_disk() RETURNS trigger AS "
    "$$ BEGIN RAISE disk_full; END $$ LANGUAGE plpgsql",
    "CREATE TRIGGER full_disk BEFORE INSERT ON collector_counts EXECUTE FUNCTION full_disk()",
)


def test_a_full_server_counts_nothing_and_says_so(server: PostgresServer) -> None:
    """The releases go in and the counts find no room: neither stays."""
    store = open_store(server.new_database())
    device = enrolled(store)
    store.write(lambda database: [database.query(statement) for statement in _FULL])
    writer = Writer(store)
    sent = upload(device, ["a", "b"], [0, 1])
    with pytest.raises(StoreUnavailable, match="cannot be used now") as refusal:
        writer.upload(sent).result(timeout=60)
    assert "\n" not in str(refusal.value)
    assert "send it again" in (writer.failing or "")
    assert store.read("SELECT count(*) FROM collector_releases") == [(0,)]
    store.write(lambda database: database.query("DROP TRIGGER full_disk ON collector_counts"))
    assert writer.upload(sent).result(timeout=60) == Stored(2, 0), "it heals by itself"
    assert writer.failing is None
    writer.close()


def test_one_code_at_two_collectors_at_once(server: PostgresServer) -> None:
    address = server.new_database()
    stores = [open_store(address), open_store(address)]
    codes = make_codes(stores[0], count=10)

    def take(store: Store, code: str) -> bool:
        try:
            store.write(enrol(code, secrets.token_bytes(32), now=store.clock.now()))
        except Refused:
            return False
        return True

    with ThreadPoolExecutor(2) as pool:
        for code in codes:
            assert sorted(pool.map(take, stores, [code, code])) == [False, True]


def test_two_collectors_behind_one_name(server: PostgresServer, tmp_path: Path) -> None:
    counting_model().save(tmp_path / "model.tacit")
    address = server.new_database()
    options = ("--files", tmp_path / "files")
    served = [
        CollectorProcess(tmp_path / "model.tacit", address, *options).start() for _ in range(2)
    ]
    one, two = served
    release, key = release_of(0, 1, 1), tmp_path / "device.json"
    try:
        assert one.enrolled(key).send(release) == {"stored": 3, "repeated": 0}
        one.kill()
        assert two.client(key).send(release) == {"stored": 0, "repeated": 3}
        with pytest.raises(Refused, match="another release already"):
            two.client(key).send(release_of(1), windows=[f"{release.id}-0"])
        server.stop()
        server.start()  # the collector's connection is gone; it makes another
        assert two.client(key).send(release_of(1)) == {"stored": 1, "repeated": 0}
        assert Identity.load(key).enrolled
    finally:
        log = two.stop()
        one.stop()
    assert "Traceback" not in log
    store = Store.open(address)
    assert store.read("SELECT sum(n) FROM collector_counts") == [(4,)]
    store.close()


def test_a_server_that_is_not_there() -> None:
    with pytest.raises(StoreError, match="cannot connect") as refusal:
        open_store("postgresql://me:secret@127.0.0.1:1/x")
    assert "secret" not in str(refusal.value)
    assert "\n" not in str(refusal.value)
