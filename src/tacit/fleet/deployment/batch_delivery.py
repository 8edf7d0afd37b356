"""Deliver the shuffler's batches to the analyser, and learn from it which round is open.

The analyser is not trusted here. What it says decides when the next round opens and when a batch
need not be sent any more, never whether a round is forwarded twice.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import httpx

from tacit.fleet.deployment.shuffler import Batch, Refused, Shuffler

_T = TypeVar("_T")
_LOG = logging.getLogger("tacit.fleet")
_TICK_SECONDS = 0.1
_RETRY_SECONDS = 0.5
_TIMEOUT_SECONDS = 30.0


class BatchDelivery:
    """Sends the shuffler's batches to the analyser and learns from it which round is open."""

    def __init__(self, *, url: str, tls: ssl.SSLContext) -> None:
        self._url = url
        self._tls = tls

    async def run(self, shuffler: Shuffler) -> None:
        """Ask for the round, wait until it is due, deliver, and so on until the run is finished.

        A batch that was left unacknowledged when this shuffler last stopped goes first.
        """
        async with httpx.AsyncClient(
            base_url=self._url, verify=self._tls, timeout=_TIMEOUT_SECONDS, trust_env=False
        ) as client:
            await self._deliver(client, shuffler, await _patiently(shuffler.waiting))
            while await self._open_next(client, shuffler):
                await self._deliver(client, shuffler, await self._collected(shuffler))
        _LOG.info("the run is finished; no further round is opened")

    async def _open_next(self, client: httpx.AsyncClient, shuffler: Shuffler) -> bool:
        """Open the round that the analyser names, once it is the next; False if there is none.

        A round that was forwarded stays closed, whatever the analyser says: the shuffler waits
        until the analyser has come further.
        """
        said = ""
        while True:
            answer = await self._until_answered(client.build_request("GET", "/v1/status"), client)
            if answer.finished:
                shuffler.open_round(None)
                return False
            try:
                shuffler.open_round(answer.round_number)
                return True
            except Refused as refused:
                if str(refused) != said and not answer.processing:
                    _LOG.warning("no round is opened: %s", refused)
                    said = str(refused)
            await asyncio.sleep(_RETRY_SECONDS)

    async def _collected(self, shuffler: Shuffler) -> Batch:
        """Wait until the round is due with enough reports, and have its batch on disk."""
        while True:
            await asyncio.sleep(_TICK_SECONDS)
            if not shuffler.due():
                continue
            batch = await _patiently(shuffler.release)
            if batch is not None:
                return batch
            _LOG.warning("too few reports came in time: dropped, the round stays open")

    async def _deliver(
        self, client: httpx.AsyncClient, shuffler: Shuffler, batch: Batch | None
    ) -> None:
        """Send one batch until the analyser has it, or will never take it; then delete it."""
        if batch is None:
            return
        refused = await self._until_settled(client, batch)
        if refused is None:
            _LOG.info("forwarded a batch of %d", batch.n_nodes)
        else:
            # It may have seen the batch, so the round is over; no other batch of it is ever made.
            _LOG.warning("the analyser does not take round %d: %s", batch.round_number, refused)
        await _patiently(shuffler.acknowledge)

    async def _until_settled(self, client: httpx.AsyncClient, batch: Batch) -> str | None:
        """None once the analyser has the batch, or why it will never take it.

        It is asked before every attempt, because a batch is large and its answer can get lost.
        """
        question = client.build_request("GET", "/v1/status")
        while True:
            now = await self._until_answered(question, client)
            if now.last_batch == batch.batch_id:
                return None
            if now.finished or now.round_number != batch.round_number:
                return "the run is finished" if now.finished else f"it is at {now.round_number}"
            answer = await self._answer(_batch_request(client, batch), client)
            if answer is not None:
                return answer.refused
            await asyncio.sleep(_RETRY_SECONDS)

    async def _until_answered(self, request: httpx.Request, client: httpx.AsyncClient) -> _Answer:
        while True:
            answer = await self._answer(request, client)
            if answer is not None:
                return answer
            await asyncio.sleep(_RETRY_SECONDS)

    async def _answer(self, request: httpx.Request, client: httpx.AsyncClient) -> _Answer | None:
        """The analyser's answer, or None if it is away or busy."""
        try:
            response = await client.send(request)
            if response.status_code in (200, 202, 409):
                return _Answer.read(response)
            _LOG.warning("the analyser answers with status %d", response.status_code)
        except (httpx.TransportError, ValueError, RecursionError) as error:
            _LOG.warning("the analyser does not answer yet (%s)", type(error).__name__)
        return None


async def _patiently(action: Callable[[], _T]) -> _T:
    """Try until the disk lets it through: a full disk must not end it."""
    while True:
        try:
            return action()
        except OSError as error:
            _LOG.error("the shuffler's state folder cannot be used: %s", error)
        await asyncio.sleep(_RETRY_SECONDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    """Where the analyser says it stands, and why it refused a batch if it did."""

    round_number: int
    finished: bool
    processing: bool
    last_batch: str | None
    refused: str | None

    @classmethod
    def read(cls, response: httpx.Response) -> _Answer:
        plain = response.json()
        try:
            return cls(
                round_number=int(plain["round"]),
                finished=bool(plain["finished"]),
                processing=bool(plain.get("processing", False)),
                last_batch=plain.get("batch"),
                refused=str(plain.get("refused"))[:200] if response.status_code == 409 else None,
            )
        except (KeyError, TypeError, AttributeError, ArithmeticError) as error:
            raise ValueError("not an analyser's answer") from error


def _batch_request(client: httpx.AsyncClient, batch: Batch) -> httpx.Request:
    return client.build_request(
        "POST",
        f"/v1/batches/{batch.run}/{batch.round_number}",
        params={"batch_id": batch.batch_id, "n_nodes": batch.n_nodes},
        content=batch.messages,
        headers={"content-type": "application/octet-stream"},
    )
