"""Strangers, foreign pages and odd names get nothing from a running studio."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import numpy as np
import pytest

from studio_server import Studio, running_studio
from tacit.studio.pages.data import MOST_UPLOAD

pytestmark = [pytest.mark.seconds, pytest.mark.xdist_group("studio")]


@pytest.fixture(scope="module")
def studio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studio]:
    with running_studio(tmp_path_factory.mktemp("workspace")) as running:
        yield running


def test_the_token_opens_it_and_nothing_else_does(studio: Studio) -> None:
    with httpx.Client(base_url=studio.address) as stranger:
        assert stranger.get("/").status_code == 403
        assert stranger.get("/?token=wrong").status_code == 403
        assert stranger.get("/style.css").status_code == 403
        entered = stranger.get(studio.url)
        assert entered.status_code == 303
        assert "token" not in entered.headers["location"]
        assert stranger.get("/").status_code == 200


def test_two_studios_on_one_machine_leave_each_other_alone(studio: Studio, tmp_path: Path) -> None:
    with running_studio(tmp_path) as second, httpx.Client(timeout=120.0) as browser:
        for each in (studio, second):
            assert browser.get(each.url).status_code == 303
        for each in (studio, second):
            assert browser.get(each.address).status_code == 200


def test_a_cookie_ends_with_its_studio(tmp_path: Path) -> None:
    """Every server of this machine is sent it, so it must not open the studios after this one."""
    with running_studio(tmp_path) as first:
        port, cookies = int(urlsplit(first.address).port or 0), first.cookies()
        assert httpx.get(first.address, cookies=cookies, timeout=120.0).status_code == 200
    with running_studio(tmp_path, port=port) as again:
        assert again.token != first.token
        assert httpx.get(again.address, cookies=cookies, timeout=120.0).status_code == 403
        assert httpx.get(again.address, cookies=again.cookies(), timeout=120.0).status_code == 200


@pytest.mark.parametrize("site", ["same-site", "cross-site", "odd"])
def test_another_page_starts_nothing_by_a_link(studio: Studio, site: str) -> None:
    """A server on another port is the same site: the cookie comes along, this header tells."""
    paths = ("/plan/GunPoint", "/data/import/a.csv/tried", "/budget/x.db/export", "/collect/x/")
    with studio.client() as client:
        for path in paths:
            assert client.get(path, headers={"Sec-Fetch-Site": site}).status_code == 403
        for own in ("same-origin", "none"):
            assert client.get("/plan", headers={"Sec-Fetch-Site": own}).status_code == 200
    assert not (studio.workspace / "stores" / "x.db").exists()
    assert not list(studio.workspace.glob("**/*GunPoint*"))


def test_the_page_that_the_command_opens_enters(studio: Studio) -> None:
    """It is a file, so the browser calls it another site and sends no cookie to a redirect."""
    with httpx.Client(base_url=studio.address, timeout=120.0) as browser:
        entered = browser.get(studio.url, headers={"Sec-Fetch-Site": "cross-site"})
        assert entered.status_code == 200
        assert 'content="0;url=/"' in entered.text
        assert studio.token not in entered.text
        assert browser.get("/").status_code == 200


def test_refusals_have_the_headers_too(studio: Studio) -> None:
    for answer in (
        httpx.get(studio.address, timeout=120.0),
        httpx.get(studio.address, headers={"Host": "evil.example"}, timeout=120.0),
        httpx.post(studio.address + "/train", timeout=120.0),
    ):
        assert answer.status_code in (403, 421)
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]


def test_written_pages_can_do_nothing_but_show(studio: Studio) -> None:
    for room in ("pages", "arena/quick"):
        (studio.workspace / room).mkdir(exist_ok=True)
        (studio.workspace / room / "report.html").write_text("<body><p>written</p></body>")
    with studio.client() as client:
        for path in ("/pages/report", "/arena/quick/report"):
            page = client.get(path)
            assert "written" in page.text
            for word in ("default-src", "form-action", "base-uri", "frame-ancestors"):
                assert f"{word} 'none'" in page.headers["content-security-policy"]


@pytest.mark.parametrize(
    ("path", "status", "sentence"),
    [
        ("/look/none?index=", 422, "index must be a whole number, got"),
        ("/population/none?budget=x", 422, "budget must be a number, got"),
        ("/nowhere", 404, "there is nothing at /nowhere"),
    ],
)
def test_what_the_framework_refuses_is_a_page(
    studio: Studio, path: str, status: int, sentence: str
) -> None:
    with studio.client() as client:
        page = client.get(path, headers={"Accept": "text/html"})
        plain = client.get(path).json()["error"]
    assert page.status_code == status
    assert "That is not possible" in page.text
    assert sentence in page.text
    assert plain.startswith(sentence)


def test_another_host_name_is_refused(studio: Studio) -> None:
    with studio.client() as client:
        assert client.get("/", headers={"Host": "evil.example:80"}).status_code == 421


@pytest.mark.parametrize("origin", ["http://evil.example", "null", ""])
def test_another_page_changes_nothing(studio: Studio, origin: str) -> None:
    with studio.client() as client:
        answer = client.post("/train", json={}, headers={"Origin": origin})
    assert answer.status_code == 403
    assert not list((studio.workspace / "jobs").iterdir())


def test_pages_say_that_nothing_comes_from_elsewhere(studio: Studio) -> None:
    with studio.client() as client:
        for path in (
            "/",
            "/data",
            "/plan",
            "/train",
            "/look",
            "/device",
            "/population",
            "/federation",
            "/arena",
            "/budget",
            "/jobs",
        ):
            page = client.get(path)
            assert page.status_code == 200
            assert "default-src 'none'" in page.headers["content-security-policy"]
            assert "http://" not in page.text
            assert "https://" not in page.text


@pytest.mark.parametrize(
    "path", ["/data/..%2f..%2fetc", "/jobs/..%2f..", "/look/%2e%2e", "/budget/..%2fx.db"]
)
def test_paths_lead_nowhere_else(studio: Studio, path: str) -> None:
    with studio.client() as client:
        answer = client.get(path)
    assert answer.status_code in (404, 422)
    assert "root:" not in answer.text


def test_mistakes_get_a_sentence(studio: Studio) -> None:
    wrong = [
        ({"method": "softshape", "data": "GunPoint", "epsilon": "-1"}, "epsilon must be"),
        ({"method": "softshape", "data": "GunPoint", "epsilon": "x"}, "must be a number"),
        ({"method": "magic", "data": "GunPoint"}, "method must be one of"),
        ({"method": "timefl", "data": "Nothing", "epsilon": "8", "clients": "2"}, "no data set"),
    ]
    with studio.client() as client:
        for body, sentence in wrong:
            answer = client.post("/train", json=body)
            assert answer.status_code == 422
            assert sentence in answer.json()["error"]
        kind = {"Content-Type": "application/json; charset=utf-8"}
        for content in (b"[1]", b"{", b"x" * 100_000):
            assert client.post("/train", content=content, headers=kind).status_code == 422
        answer = client.post("/train", content=b"{}", headers={"Content-Type": "text/plain"})
        assert "sends JSON here, got 'text/plain'" in answer.json()["error"]
        for odd in ("inf", "nan", "-inf", "1e999"):
            body = {"method": "fedst", "data": "GunPoint", "parties": odd}
            assert "parties must be a number" in client.post("/train", json=body).json()["error"]
    assert not list((studio.workspace / "jobs").iterdir())


def test_a_script_in_a_class_name_stays_text(studio: Studio) -> None:
    evil = "</script><script>alert(1)</script>"
    rng = np.random.default_rng(0)
    np.savez(
        studio.workspace / "data" / "evil.npz",
        X_train=rng.normal(size=(8, 1, 30)),
        y_train=np.array([evil, "b"] * 4),
        X_test=rng.normal(size=(4, 1, 30)),
        y_test=np.array([evil, "b"] * 2),
    )
    with studio.client() as client:
        page = client.get("/data/evil").text
    assert evil not in page
    assert "alert(1)" in page, "the name is shown"


def test_an_upload_is_whole_or_not_there(studio: Studio) -> None:
    with studio.client() as client:
        assert client.put("/data/upload/a.csv", content=b"1,2\n").json()["bytes"] == 4
        assert client.put("/data/upload/..%2fa.csv", content=b"x").status_code in (404, 422)
        into = client.put("/data/upload/a.csv/b.csv", content=b"x")
        assert "a.csv is a file, not a folder" in into.json()["error"]
        assert client.post("/data/uploads", json={"name": "b.dat"}).json() == {"name": "b"}
        assert "name of a folder" in client.put("/data/upload/b", content=b"x").json()["error"]
        (studio.workspace / "uploads" / "b").rmdir()
    stored = studio.workspace / "uploads" / "a.csv"
    assert oct(stored.stat().st_mode)[-3:] == "600"
    names = {path.name for path in (studio.workspace / "uploads").iterdir()}
    assert names == {"a.csv"}


def half_sent(studio: Studio, name: str, length: int, body: bytes = b"1,2\n") -> bytes:
    """Announce `length` bytes, send fewer, and return what is answered until then."""
    parts = urlsplit(studio.address)
    ((cookie, value),) = studio.cookies().items()
    head = (
        f"PUT /data/upload/{name} HTTP/1.1\r\nHost: {parts.netloc}\r\nOrigin: {studio.address}\r\n"
        f"Cookie: {cookie}={value}\r\nAccept: application/json\r\n"
        f"Content-Length: {length}\r\n\r\n"
    )
    with socket.create_connection((parts.hostname, parts.port), timeout=60.0) as line:
        line.sendall(head.encode() + body)
        return whole_answer(line) if length > MOST_UPLOAD else b""


def whole_answer(line: socket.socket) -> bytes:
    """Head and body of one answer, in however many pieces they come."""
    with line.makefile("rb") as stream:
        head = list(iter(stream.readline, b"\r\n"))
        length = next(int(text[15:]) for text in head if text.startswith(b"content-length:"))
        return b"".join(head) + stream.read(length)


def test_an_oversize_upload_is_refused_at_once(studio: Studio) -> None:
    answer = half_sent(studio, "big.csv", MOST_UPLOAD + 1)
    assert b"422" in answer.splitlines()[0]
    assert b"larger than 2 GB" in answer
    assert "big.csv" not in {path.name for path in (studio.workspace / "uploads").iterdir()}


def test_an_upload_that_breaks_off_leaves_nothing(studio: Studio) -> None:
    half_sent(studio, "half.csv", 1000)
    with studio.client() as client:  # the studio is still there, and the file is not
        deadline = time.monotonic() + 30.0
        while time.monotonic() < deadline:
            assert "half.csv" not in client.get("/data").text
            if not list((studio.workspace / "uploads").glob("*half*")):
                return
    raise AssertionError("part of a file was left")


@pytest.mark.parametrize("path", ["/models/..%2fx", "/pages/..%2f..", "/budget/x.db/disclosure"])
def test_files_are_served_from_their_rooms_alone(studio: Studio, path: str) -> None:
    (studio.workspace / "secret.html").write_text("root:")
    with studio.client() as client:
        answer = client.get(path)
    assert answer.status_code in (404, 422)
    assert "root:" not in answer.text
