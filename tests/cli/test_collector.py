"""`tacit serve --store`, `send` and `collector` from end to end, and their refusals."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from collector_parts import SetClock, counting_model
from collector_process import CollectorProcess
from command import assert_refused, tacit
from local_problems import italy, model_of, trained
from tacit.local.collector.storage.clock import DAY_SECONDS
from tacit.local.collector.storage.store import Store

Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bundle") / "model.tacit"
    counting_model().save(path)
    return path


@pytest.mark.seconds
def test_a_population_from_codes_to_shares(capsys: Capture, bundle: Path, tmp_path: Path) -> None:
    store = tmp_path / "releases.db"
    made = tacit(
        capsys, "collector", "codes", store, "--bundle", bundle, "--group", "east", "--json"
    )
    (code,) = made.json["codes"]
    release = tmp_path / "releases.json"
    trained("label", 2.0, "krr").release(italy().X_test[:50]).save(release)
    plain = json.loads(release.read_text())
    plain.pop("id")
    (tmp_path / "old.json").write_text(json.dumps(plain))
    served = CollectorProcess(bundle, store).start()
    call = ("--to", served.url, "--trust", served.certificate, "--key", tmp_path / "key.json")
    try:
        assert_refused(tacit(capsys, "send", release, *call), "--code")
        sent = tacit(capsys, "send", release, *call, "--code", code, "--json")
        assert (sent.json["stored"], sent.json["repeated"]) == (50, 0)
        again = tacit(capsys, "send", release, *call, "--json")
        assert (again.json["stored"], again.json["repeated"]) == (0, 50)
        assert_refused(tacit(capsys, "send", tmp_path / "old.json", *call), "no id", "--as")
        for expected in (50, 0):
            named = tacit(capsys, "send", tmp_path / "old.json", *call, "--as", "monday", "--json")
            assert named.json["stored"] == expected
    finally:
        served.stop()
    shown = tacit(capsys, "collector", "show", store, "--json").json
    assert (shown["releases"], shown["devices"], shown["groups"]) == (100, 1, {"east": 1})
    shares = tacit(
        capsys, "collector", "prevalence", store, "--bundle", bundle, "--by", "day", "--json"
    ).json
    assert shares["periods"][0]["n"] == 100
    out = tmp_path / "all.csv"
    assert (
        tacit(capsys, "collector", "export", store, "--out", out, "--json").json["releases"] == 100
    )
    erased = tacit(
        capsys, "collector", "revoke", store, "--key", tmp_path / "key.json", "--erase", "--json"
    )
    assert erased.json["erased"] == 100
    assert tacit(capsys, "collector", "erase", store, "--keep-days", 1, "--json").json == {
        "erased": 0
    }
    assert tacit(capsys, "collector", "show", store, "--json").json["releases"] == 0


def test_what_serve_refuses(capsys: Capture, bundle: Path, tmp_path: Path) -> None:
    store = tmp_path / "r.db"
    for options, words in (
        (("--host", "0.0.0.0"), ("--reader-token",)),
        (("--host", "0.0.0.0", "--insecure", "--reader-token", "t"), ("--insecure",)),
        (("--cert", "a.pem"), ("--cert and --key",)),
        (("--allow-origin", "*"), ("--allow-origin", "'*'")),
        (("--allow-origin", "https://a/b"), ("--allow-origin",)),
        (("--keep-days", "0"), ("--keep-days",)),
    ):
        assert_refused(tacit(capsys, "serve", bundle, "--store", store, *options), *words)
        assert not store.exists()
    for needless in (
        ("--reader-token", "t"),
        ("--cert", "c.pem", "--key", "k.pem"),
        ("--insecure",),
        ("--allow-origin", "https://a"),
        ("--certificate-name", "a"),
        ("--files", "f"),
        ("--keep-days", 3, "--keep-count-days", 4),
    ):
        named = [str(word) for word in needless if str(word).startswith("--")]
        assert_refused(tacit(capsys, "serve", bundle, *needless), *named, "--store")
    nowhere = tmp_path / "none" / "r.db"
    free = ("--port", 0)  # the default one may be in use on this machine
    refused = tacit(capsys, "serve", bundle, "--store", nowhere, *free)
    assert_refused(refused, "cannot use the store")
    (tmp_path / "text.db").write_bytes(b"no database " * 500)
    refused = tacit(capsys, "serve", bundle, "--store", tmp_path / "text.db", *free)
    assert_refused(refused, "cannot be read")
    other = tmp_path / "other.tacit"
    model_of(trained("label", 2.0)).save(other)
    tacit(capsys, "collector", "codes", tmp_path / "mine.db", "--bundle", bundle)
    before = (tmp_path / "mine.db").read_bytes()
    serve = ("serve", other, "--store", tmp_path / "mine.db", *free)
    assert_refused(tacit(capsys, *serve), "a store of its own")
    shares = ("collector", "prevalence", tmp_path / "mine.db", "--bundle", other)
    assert_refused(tacit(capsys, *shares), "a store of its own")
    assert (tmp_path / "mine.db").read_bytes() == before
    (tmp_path / "cert.pem").write_text("x")
    (tmp_path / "key.pem").write_text("x")
    (tmp_path / "key.pem").chmod(0o600)
    pair = ("--cert", tmp_path / "cert.pem", "--key", tmp_path / "key.pem", *free)
    assert_refused(tacit(capsys, "serve", bundle, "--store", store, *pair), "cert.pem")


@pytest.mark.parametrize(
    ("call", "word"),
    [
        (("show", "none.db"), "cannot use the store"),
        (("codes", "none.db"), "cannot use the store"),
        (("erase", "none.db"), "--keep-days"),
        (("revoke", "none.db"), "--device"),
        (("show", "mysql://x"), "postgresql://"),
    ],
)
def test_what_the_other_commands_refuse(
    capsys: Capture,
    call: tuple[str, ...],
    word: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert_refused(tacit(capsys, "collector", *call), word)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "ftp://x", "https://"])
def test_addresses_that_send_refuses(capsys: Capture, tmp_path: Path, url: str) -> None:
    release = tmp_path / "r.json"
    trained("label", 2.0, "krr").release(italy().X_test[:1]).save(release)
    assert_refused(tacit(capsys, "send", release, "--to", url), "https")


def test_a_collector_that_is_not_there(capsys: Capture, tmp_path: Path) -> None:
    release = tmp_path / "r.json"
    trained("label", 2.0, "krr").release(italy().X_test[:1]).save(release)
    key = tmp_path / "key.json"
    call = ("--to", "https://127.0.0.1:1", "--code", "x", "--patience", 1, "--key", key)
    assert_refused(tacit(capsys, "send", release, *call), "no answer", "counts once")
    key.write_text("{}")
    key.chmod(0o600)
    assert_refused(tacit(capsys, "send", release, *call), "not a device key")


def test_a_store_that_a_wrong_clock_used_is_recovered(
    capsys: Capture, bundle: Path, tmp_path: Path
) -> None:
    path = tmp_path / "r.db"
    ahead = SetClock(time.time() + 2 * DAY_SECONDS)
    Store.open(str(path), model=counting_model(), clock=ahead).close()
    refused = tacit(capsys, "collector", "show", path)
    assert_refused(refused, "tacit collector clock")
    looked = tacit(capsys, "collector", "clock", path, "--json").json
    assert looked["last_seen"] > looked["now"]
    assert_refused(tacit(capsys, "collector", "show", path), "tacit collector clock")
    settled = tacit(capsys, "collector", "clock", path, "--confirm", "--json").json
    assert settled["last_seen"] <= settled["now"]
    assert tacit(capsys, "collector", "show", path).code == 0
