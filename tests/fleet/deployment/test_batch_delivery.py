"""Delivering batches to analysers that lie, die, refuse or do not answer."""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse

from fleet_localhost import free_ports
from tacit.fleet.deployment import batch_delivery as carrying
from tacit.fleet.deployment.batch_delivery import BatchDelivery
from tacit.fleet.deployment.batches.pools import PermutedPool
from tacit.fleet.deployment.batches.registry import Registry
from tacit.fleet.deployment.batches.signatures import digest_of, new_signing_key, sign
from tacit.fleet.deployment.shuffler import Refused, Shuffler

RUN = "run1"
SIZE = 48
NODES = tuple(f"node-{i}" for i in range(4))
KEYS = {node: new_signing_key() for node in NODES}
OUTBOX = {node: os.urandom(SIZE) for node in NODES}  # what each node sends, however often asked


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(carrying, "_RETRY_SECONDS", 0.02)
    monkeypatch.setattr(carrying, "_TICK_SECONDS", 0.01)


class Scripted:
    """An analyser that says what the test tells it to, and remembers what it was sent."""

    def __init__(self) -> None:
        self.says: dict[str, Any] = {"round": 1, "finished": False}
        self.posts: list[tuple[str, bytes]] = []
        self.asked = 0
        self.answer: Callable[[], Response] = lambda: JSONResponse(self.says)

    def app(self) -> FastAPI:
        app = FastAPI()

        @app.get("/v1/status")
        async def status() -> Any:
            self.asked += 1
            return self.says

        @app.post("/v1/batches/{run}/{round_number}")
        async def batch(batch_id: str, request: Request) -> Response:
            self.posts.append((batch_id, await request.body()))
            return self.answer()

        return app


@asynccontextmanager
async def listening(analyser: Scripted) -> AsyncIterator[str]:
    port = free_ports(1)
    config = uvicorn.Config(
        analyser.app(), host="127.0.0.1", port=port, log_config=None, ws="none", lifespan="off"
    )
    server = uvicorn.Server(config)
    task = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
        if task.done():
            task.result()
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        await task


@asynccontextmanager
async def delivery(url: str, shuffler: Shuffler) -> AsyncIterator[None]:
    task = asyncio.create_task(
        BatchDelivery(url=url, tls=ssl.create_default_context()).run(shuffler)
    )
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.01)


def make(folder: Path) -> Shuffler:
    return Shuffler(
        run=RUN,
        registry=Registry({node: public for node, (_, public) in KEYS.items()}),
        pool=PermutedPool(sealed_bytes=SIZE),
        n_min=2,
        round_seconds=0.2,
        folder=folder,
    )


def send(shuffler: Shuffler, *nodes: str) -> None:
    number = shuffler.round_number or 1
    for node in nodes:
        body = OUTBOX[node]
        signature = sign(
            KEYS[node][0],
            run=RUN,
            round_number=number,
            node=node,
            analyser=digest_of(body),
            helper=digest_of(b""),
        )
        shuffler.accept(node=node, signature=signature, run=RUN, round_number=number, body=body)


def test_an_analyser_that_reopens_a_round_gets_no_second_batch(tmp_path: Path) -> None:
    """With one it would know a node: all report, then all but that one; sets have differences."""

    async def story() -> None:
        liar = Scripted()  # "round 1 is still open", whatever it was sent
        async with listening(liar) as url:
            for _ in range(2):  # also after a restart of the shuffler
                shuffler = make(tmp_path)
                async with delivery(url, shuffler):
                    if not liar.posts:
                        await until(lambda: shuffler.round_number == 1)  # noqa: B023
                        send(shuffler, *NODES)
                    asked = liar.asked
                    await until(lambda: liar.asked > asked + 5)  # noqa: B023
                    assert shuffler.round_number is None
                    with pytest.raises(Refused) as caught:
                        send(shuffler, *NODES[1:])
                    assert caught.value.code == "closed"
        assert len(liar.posts) == 1

    asyncio.run(story())


def test_an_unanswered_batch_is_sent_again_byte_for_byte(tmp_path: Path) -> None:
    async def story() -> None:
        analyser = Scripted()
        analyser.answer = lambda: Response(status_code=500 if len(analyser.posts) < 3 else 200)
        async with listening(analyser) as url:
            shuffler = make(tmp_path)
            async with delivery(url, shuffler):
                await until(lambda: shuffler.round_number == 1)
                send(shuffler, *NODES)
                await until(lambda: len(analyser.posts) > 3)
                analyser.says = {"round": 2, "finished": False}
                analyser.answer = lambda: JSONResponse(analyser.says)
                await until(lambda: shuffler.round_number == 2)
        assert len(set(analyser.posts)) == 1
        assert sorted(cut(analyser.posts[0][1])) == sorted(OUTBOX.values())

    asyncio.run(story())


def test_a_shuffler_that_dies_before_the_answer_sends_the_same_batch(tmp_path: Path) -> None:
    async def story() -> None:
        analyser = Scripted()
        analyser.answer = lambda: Response(status_code=503)
        async with listening(analyser) as url:
            first = make(tmp_path)
            async with delivery(url, first):
                await until(lambda: first.round_number == 1)
                send(first, *NODES)
                await until(lambda: bool(analyser.posts))
            # Dead. The analyser says that the round is open, and only three nodes would be asked.
            analyser.answer = lambda: JSONResponse(analyser.says)
            second = make(tmp_path)
            async with delivery(url, second):
                await until(lambda: second.waiting() is None)
                assert second.round_number is None
                analyser.says = {"round": 2, "finished": False}
                await until(lambda: second.round_number == 2)
        assert len(set(analyser.posts)) == 1

    asyncio.run(story())


def test_a_batch_that_is_refused_for_good_ends_its_round(tmp_path: Path) -> None:
    async def story() -> None:
        analyser = Scripted()
        refusal = {"refused": "round 7 is next, not 1.", **analyser.says}
        analyser.answer = lambda: JSONResponse(refusal, status_code=409)
        async with listening(analyser) as url:
            shuffler = make(tmp_path)
            async with delivery(url, shuffler):
                await until(lambda: shuffler.round_number == 1)
                send(shuffler, *NODES)
                await until(lambda: bool(analyser.posts) and shuffler.waiting() is None)
                asked = analyser.asked
                await until(lambda: analyser.asked > asked + 5)
                assert shuffler.round_number is None, "it has seen the batch: no other one of it"
                analyser.says = {"round": 2, "finished": False}
                await until(lambda: shuffler.round_number == 2)
        assert len(analyser.posts) == 1

    asyncio.run(story())


def test_a_round_of_which_nothing_left_may_be_asked_again(tmp_path: Path) -> None:
    async def story() -> None:
        analyser = Scripted()
        async with listening(analyser) as url:
            shuffler = make(tmp_path)
            async with delivery(url, shuffler):
                await until(lambda: shuffler.round_number == 1)
                send(shuffler, NODES[0])
                await until(shuffler.overdue)
                assert not analyser.posts, "one is too few: it waits"
            again = make(tmp_path)  # dies with a report in memory
            async with delivery(url, again):
                await until(lambda: again.round_number == 1)
                send(again, *NODES)
                await until(lambda: bool(analyser.posts))

    asyncio.run(story())


@pytest.mark.parametrize(
    "nonsense",
    [
        {},
        {"round": "x", "finished": False},
        [],
        {"round": None},
        {"round": 10**400, "finished": False},
    ],
)
def test_an_answer_that_makes_no_sense_is_asked_for_again(tmp_path: Path, nonsense: Any) -> None:
    async def story() -> None:
        analyser = Scripted()
        analyser.says = nonsense
        async with listening(analyser) as url:
            shuffler = make(tmp_path)
            async with delivery(url, shuffler):
                await until(lambda: analyser.asked > 3)
                assert shuffler.round_number is None
                analyser.says = {"round": 1, "finished": False}
                await until(lambda: shuffler.round_number == 1)

    asyncio.run(story())


def test_a_batch_that_the_analyser_has_is_not_sent_again(tmp_path: Path) -> None:
    """Its answer was lost: asking is cheap, a batch is not."""

    async def story() -> None:
        analyser = Scripted()

        def lost() -> Response:
            analyser.says = {
                "round": 1,
                "finished": False,
                "processing": True,
                "batch": analyser.posts[-1][0],
            }
            return Response(status_code=502)

        analyser.answer = lost
        async with listening(analyser) as url:
            shuffler = make(tmp_path)
            async with delivery(url, shuffler):
                await until(lambda: shuffler.round_number == 1)
                send(shuffler, *NODES)
                await until(lambda: bool(analyser.posts) and shuffler.waiting() is None)
                assert shuffler.round_number is None
                analyser.says = {"round": 2, "finished": False}
                await until(lambda: shuffler.round_number == 2)
        assert len(analyser.posts) == 1

    asyncio.run(story())


def cut(body: bytes) -> list[bytes]:
    return [body[i : i + SIZE] for i in range(0, len(body), SIZE)]
