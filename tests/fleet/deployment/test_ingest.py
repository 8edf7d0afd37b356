"""The analyser's door for batches: answered when on disk, one at a time, refused before reading."""

from __future__ import annotations

import asyncio
import os
import secrets
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from tacit.fleet.deployment.analyser import Analyser
from tacit.fleet.deployment.http import analyser_ingest_app
from tacit.fleet.deployment.seal import Sealer, new_key
from tacit.fleet.reports.privunit import shuffled_guarantee
from tacit.system.serving import bodies

RUN = "run1"
PRIVATE, PUBLIC = new_key()
SIZE = 16 + 48


class Slow:
    """A rule that opens nothing until it is told to."""

    message_bytes = 16
    helper_bytes = 0

    def __init__(self) -> None:
        self.go = threading.Event()

    def initial(self) -> bytes:
        return b"model"

    def check(self, message: bytes) -> None:
        assert self.go.wait(20)

    def update(self, model: bytes, messages: list[bytes], helper_sum: bytes = b"") -> bytes:
        return b"next"

    def spent(self, received: Any) -> Any:
        return shuffled_guarantee(received, local_epsilon=1.0, delta=1e-6) if received else None


def analyser_in(folder: Path, rule: Slow) -> Analyser:
    return Analyser(
        run=RUN,
        rounds=3,
        n_min=2,
        epsilon=3.0,
        delta=1e-6,
        private_key=PRIVATE,
        rule=rule,
        folder=folder,
    )


def sealed_batch(n: int = 3) -> bytes:
    sealer = Sealer(PUBLIC, run=RUN, report_bytes=16)
    return b"".join(sealer.seal(os.urandom(16), round_number=1) for _ in range(n))


class Body:
    """A body that knows whether anybody has asked for it."""

    def __init__(self, content: bytes, *, hold: asyncio.Event | None = None) -> None:
        self.content, self.hold, self.read = content, hold, False

    async def parts(self) -> AsyncIterator[bytes]:
        self.read = True
        yield self.content[:SIZE]
        if self.hold is not None:
            await self.hold.wait()
        yield self.content[SIZE:]


Story = Callable[[httpx.AsyncClient, Analyser, Slow], Awaitable[None]]


def tell(folder: Path, story: Story) -> None:
    async def all_of_it() -> None:
        rule = Slow()
        analyser = analyser_in(folder, rule)
        transport = httpx.ASGITransport(app=analyser_ingest_app(analyser, max_bytes=10_000))
        async with httpx.AsyncClient(transport=transport, base_url="http://analyser") as client:
            await story(client, analyser, rule)
        analyser.close()

    asyncio.run(all_of_it())


async def post(client: httpx.AsyncClient, body: Body, batch_id: str = "") -> httpx.Response:
    return await client.post(
        f"/v1/batches/{RUN}/1",
        params={"batch_id": batch_id or secrets.token_hex(16), "n_nodes": 3},
        content=body.parts(),
    )


def test_the_answer_comes_when_the_batch_is_on_disk_and_nothing_piles_up(tmp_path: Path) -> None:
    async def story(client: httpx.AsyncClient, analyser: Analyser, rule: Slow) -> None:
        content, name = sealed_batch(), secrets.token_hex(16)
        answer = await post(client, Body(content), name)
        assert answer.status_code == 202
        assert (tmp_path / "inbox.npz").exists()
        assert answer.json() == {
            "round": 1,
            "finished": False,
            "processing": True,
            "batch": name,
            "agreed": None,
        }
        again, other = Body(content), Body(sealed_batch())
        assert (await post(client, again, name)).status_code == 202
        refused = await post(client, other)
        assert refused.status_code == 503
        assert "being processed" in refused.json()["refused"]
        assert not again.read
        assert not other.read
        rule.go.set()
        await until(lambda: not analyser.processing)
        where = (await client.get("/v1/status")).json()
        assert (where["round"], where["batch"]) == (2, name)
        late = Body(content)
        assert (await post(client, late, name)).status_code == 202
        assert not late.read

    tell(tmp_path, story)


def test_one_body_is_read_at_a_time(tmp_path: Path) -> None:
    async def story(client: httpx.AsyncClient, analyser: Analyser, rule: Slow) -> None:
        hold = asyncio.Event()
        first, second = Body(sealed_batch(), hold=hold), Body(sealed_batch())
        task = asyncio.create_task(post(client, first))
        await until(lambda: first.read)
        refused = await post(client, second)
        assert refused.status_code == 503
        assert not second.read
        hold.set()
        assert (await task).status_code == 202
        rule.go.set()

    tell(tmp_path, story)


def test_a_sender_that_falls_silent_loses_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bodies, "PAUSE_SECONDS", 0.05)

    async def story(client: httpx.AsyncClient, analyser: Analyser, rule: Slow) -> None:
        silent = Body(sealed_batch(), hold=asyncio.Event())
        refused = await post(client, silent)
        assert refused.status_code == 408, "not a refusal for good: the batch may come again"
        assert not analyser.processing
        rule.go.set()
        assert (await post(client, Body(sealed_batch()))).status_code == 202

    tell(tmp_path, story)


def test_a_batch_that_cannot_be_taken_is_refused_unread(tmp_path: Path) -> None:
    async def story(client: httpx.AsyncClient, analyser: Analyser, rule: Slow) -> None:
        for path in (f"/v1/batches/{RUN}/2", "/v1/batches/other/1"):
            body = Body(sealed_batch())
            params = {"batch_id": secrets.token_hex(16), "n_nodes": "3"}
            answer = await client.post(path, params=params, content=body.parts())
            assert answer.status_code == 409
            assert answer.json()["round"] == 1
            assert not body.read

    tell(tmp_path, story)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.01)
