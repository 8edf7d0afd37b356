"""Deliver the shuffler's batches to the analyser, and learn from it which round is open.

A share helper also gives the sum of its masks, once the analyser has said whose. The analyser is
not trusted here. What it says decides when the next round opens, when a batch need not be sent any
more and which reports are added; never whether a round is forwarded twice, or added over two sets.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import httpx

from tacit.fleet.deployment.batches.share_sums import ShareSums
from tacit.fleet.deployment.shuffler import Batch, Refused, Shuffler

_T = TypeVar("_T")
_LOG = logging.getLogger("tacit.fleet")
_TICK_SECONDS = 0.1
_RETRY_SECONDS = 0.5
_TIMEOUT_SECONDS = 30.0


class BatchDelivery:
    """Sends the shuffler's batches to the analyser and learns from it which round is open.

    `trouble` says what stands in the way right now, or None.
    """

    def __init__(self, *, url: str, tls: ssl.SSLContext, sums: ShareSums | None = None) -> None:
        self._url = url
        self._tls = tls
        self._sums = sums
        self.trouble: str | None = None
        self._lasts = False  # until what failed has succeeded, whatever else does meanwhile
        self.finished = False
        self.model: tuple[int, bytes] | None = None  # the open round's, for nodes that poll

    async def run(self, shuffler: Shuffler) -> None:
        """Ask for the round, wait until it is due, deliver, and so on until the run is finished.

        A batch that was left unacknowledged when this shuffler last stopped goes first.
        """
        async with httpx.AsyncClient(
            base_url=self._url, verify=self._tls, timeout=_TIMEOUT_SECONDS, trust_env=False
        ) as client:
            await self._deliver(client, shuffler, await self._patiently(shuffler.waiting))
            while await self._open_next(client, shuffler):
                await self._deliver(client, shuffler, await self._collected(client, shuffler))
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
                self.finished = True
                return False
            try:
                shuffler.open_round(answer.round_number)
                await self._fetch_model(client)
                return True
            except Refused as refused:
                if str(refused) != said and not answer.processing:
                    _LOG.warning("no round is opened: %s", refused)
                    said = str(refused)
            await asyncio.sleep(_RETRY_SECONDS)

    async def _fetch_model(self, client: httpx.AsyncClient) -> None:
        """The public model of the round that was opened; nodes of Flower get it from the server."""
        try:
            response = await client.get("/v1/model")
            if response.status_code == httpx.codes.OK:
                self.model = int(response.headers["x-tacit-round"]), response.content
                self.trouble = None
        except (httpx.TransportError, ValueError, KeyError) as error:
            self._say(f"the analyser does not answer ({_cause(error)})")

    async def _collected(self, client: httpx.AsyncClient, shuffler: Shuffler) -> Batch:
        """Wait until the round is due with enough reports, and have its batch on disk."""
        while not shuffler.due():
            await asyncio.sleep(_TICK_SECONDS)
            if self.model is None or self.model[0] != shuffler.round_number:
                await self._fetch_model(client)
        return await self._patiently(shuffler.release)

    async def _deliver(
        self, client: httpx.AsyncClient, shuffler: Shuffler, batch: Batch | None
    ) -> None:
        """Send one batch until the analyser has it, or will never take it; then delete it."""
        if batch is None:
            return
        refused = await self._until_settled(client, batch)
        self._all_well()
        if refused is None:
            _LOG.info("forwarded a batch of %d", batch.n_nodes)
            if self._sums is not None:
                await self._until_added(client, batch, self._sums)
        else:
            # It may have seen the batch, so the round is over; no other batch of it is ever made.
            _LOG.warning("the analyser does not take round %d: %s", batch.round_number, refused)
        await self._patiently(shuffler.acknowledge)
        self._all_well()

    async def _until_added(self, client: httpx.AsyncClient, batch: Batch, sums: ShareSums) -> None:
        """Give the sum over the agreed set, as often as it is asked for, until the round ends."""
        question = client.build_request("GET", "/v1/status")
        while True:
            now = await self._until_answered(question, client)
            if now.last_batch != batch.batch_id or not now.processing:
                return
            if now.agreed is not None:
                await self._give_sum(client, batch, sums, now.agreed)
            await asyncio.sleep(_TICK_SECONDS)

    async def _give_sum(
        self, client: httpx.AsyncClient, batch: Batch, sums: ShareSums, agreed: _Agreed
    ) -> None:
        about = {"batch_id": batch.batch_id, "digest": agreed.digest}
        try:
            # In a thread: adding thousands of masks takes seconds, and nodes ask meanwhile.
            content = await asyncio.to_thread(
                sums.give, batch, left_out=agreed.left_out, digest=agreed.digest
            )
        except Refused as refused:
            # For good: the round would never end if the analyser went on waiting for its sum.
            self._say(f"no sum is given for round {batch.round_number}: {refused}", lasts=True)
            content, about = b"", {**about, "refused": str(refused)}
            await asyncio.sleep(_RETRY_SECONDS)
        except OSError as error:
            self._say(f"no sum is given for round {batch.round_number}: {error}", lasts=True)
            await asyncio.sleep(_RETRY_SECONDS)
            return
        request = client.build_request(
            "POST",
            f"/v1/sums/{batch.run}/{batch.round_number}",
            params=about,
            content=content,
            headers={"content-type": "application/octet-stream"},
        )
        await self._answer(request, client)

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
        """The analyser's answer, or None if it is away or busy.

        That it answers a question does not mean that it takes a batch: only the next attempt to
        hand one over can end the trouble that the last one met.
        """
        handing_over = request.method == "POST"
        try:
            response = await client.send(request)
            if response.status_code in (200, 202, 409):
                answer = _Answer.read(response)
                if handing_over or not self._lasts:
                    self._all_well()
                return answer
            self._say(
                f"the analyser answers with status {response.status_code}", lasts=handing_over
            )
        except (httpx.TransportError, ValueError, RecursionError) as error:
            self._say(f"the analyser does not answer ({_cause(error)})")
        return None

    async def _patiently(self, action: Callable[[], _T]) -> _T:
        """Try until the disk lets it through: a full disk must not end it."""
        while True:
            try:
                return action()
            except OSError as error:
                self._say(f"the shuffler's state folder cannot be used: {error.strerror}")
            await asyncio.sleep(_RETRY_SECONDS)

    def _say(self, trouble: str, *, lasts: bool = False) -> None:
        """Show a trouble until it has passed, and log it when it is new, not at every attempt."""
        if trouble != self.trouble:
            _LOG.warning("%s", trouble)
        self.trouble, self._lasts = trouble, lasts

    def _all_well(self) -> None:
        self.trouble, self._lasts = None, False


def _cause(error: Exception) -> str:
    """The kind of error, and for TLS what it says, such as that a certificate has expired."""
    inner = error.__cause__
    while inner is not None and not isinstance(inner, ssl.SSLError):
        inner = inner.__cause__ or inner.__context__
    said = getattr(inner, "verify_message", None) or getattr(inner, "reason", None)
    return f"{type(error).__name__}: {said}" if said else type(error).__name__


@dataclass(frozen=True, slots=True, kw_only=True)
class _Agreed:
    """Which places of its batch the analyser leaves out, and the digest of what is left."""

    left_out: tuple[int, ...]
    digest: str

    @classmethod
    def read(cls, plain: Any) -> _Agreed | None:
        if plain is None:
            return None
        left_out = tuple(int(place) for place in plain["left_out"])
        return cls(left_out=left_out, digest=str(plain["digest"]))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    """Where the analyser says it stands, and why it refused a batch if it did."""

    round_number: int
    finished: bool
    processing: bool
    last_batch: str | None
    agreed: _Agreed | None
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
                agreed=_Agreed.read(plain.get("agreed")),
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
