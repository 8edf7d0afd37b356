"""Strangers, foreign pages and odd names get nothing from a running studio."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import numpy as np
import pytest

from studio_server import Studio, running_studio

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
        for path in ("/", "/data", "/plan", "/train", "/look", "/budget", "/jobs"):
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
        assert client.post("/train", content=b"[1]").status_code == 422
        assert client.post("/train", content=b"x" * 100_000).status_code == 422
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
    names = {path.name for path in (studio.workspace / "uploads").iterdir()}
    assert names == {"a.csv"}
