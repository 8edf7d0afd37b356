"""The service: releases in, labels out; bad requests get one sentence."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest

from local_problems import italy, model_of, trained
from tacit.local.collector.app import create_app
from tacit.local.release import Release


class Client:
    """Calls the application in this process, without a socket."""

    def __init__(self, app: Any) -> None:
        self._transport = httpx.ASGITransport(app=app)

    def get(self, path: str) -> httpx.Response:
        return asyncio.run(self._send("GET", path))

    def post(self, path: str, **content: Any) -> httpx.Response:
        return asyncio.run(self._send("POST", path, **content))

    async def _send(self, method: str, path: str, **content: Any) -> httpx.Response:
        async with httpx.AsyncClient(transport=self._transport, base_url="http://test") as client:
            return await client.request(method, path, **content)


@pytest.fixture(scope="module")
def client() -> Client:
    return Client(create_app(model_of(trained("label", 2.0, "krr"))))


@pytest.fixture(scope="module")
def request_body() -> dict[str, Any]:
    release: Release = trained("label", 2.0, "krr").release(italy().X_test[:200])
    return release.to_dict()


def test_health_and_guarantee(client: Client) -> None:
    assert client.get("/health").json()["status"] == "ok"
    assert client.get("/guarantee").json() == trained("label", 2.0, "krr").guarantee_.to_dict()


def test_classify(client: Client, request_body: dict[str, Any]) -> None:
    answer = client.post("/classify", json=request_body)
    assert answer.status_code == 200
    body = answer.json()
    codes = request_body["values"]
    assert body["labels"] == [body["classes"][code] for code in codes]
    assert len(body["posterior"]) == 200


def test_figures_count_answers_and_refusals(request_body: dict[str, Any]) -> None:
    client = Client(create_app(model_of(trained("label", 2.0, "krr"))))
    assert client.post("/classify", json=request_body).status_code == 200
    assert client.post("/classify", json={}).status_code == 422
    told = client.get("/metrics")
    assert told.headers["content-type"].startswith("text/plain")
    lines = [line for line in told.text.splitlines() if not line.startswith("#")]
    assert lines == ["tacit_classifier_answers 1.0", "tacit_classifier_refusals 1.0"]


@pytest.mark.parametrize("path", ["/classify", "/prevalence"])
def test_another_guarantee_than_the_models_is_refused(
    client: Client, request_body: dict[str, Any], path: str
) -> None:
    stated = {**request_body["guarantee"], "epsilon": 0.01}
    answer = client.post(path, json={**request_body, "guarantee": stated})
    assert answer.status_code == 422
    assert "epsilon 0.01" in answer.json()["error"]


def test_prevalence(client: Client, request_body: dict[str, Any]) -> None:
    body = client.post("/prevalence?of=classes&level=0.9", json=request_body).json()
    assert sum(body["share"]) == pytest.approx(1.0)
    assert body["level"] == 0.9


@pytest.mark.parametrize(
    "change",
    [
        {"values": [5]},
        {"values": [0.5]},
        {"values": "text"},
        {"values": [[0, 1]]},
        {"kind": "raw"},
        {"kind": "vector", "values": [[0.1]]},
        {"model": "another"},
        {"guarantee": {"kind": "none"}},
    ],
    ids=str,
)
def test_bad_releases_get_one_sentence(
    client: Client, request_body: dict[str, Any], change: dict[str, Any]
) -> None:
    answer = client.post("/classify", json={**request_body, **change})
    assert answer.status_code == 422
    assert "\n" not in answer.json()["error"]


def test_what_is_no_json_gets_one_sentence(client: Client) -> None:
    for content in (b"", b"{", b"[1, 2]", b"\xff\xfe"):
        assert client.post("/classify", content=content).status_code == 422
    assert client.post("/prevalence?level=2", content=b"{}").status_code == 422
