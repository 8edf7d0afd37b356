"""One party of a federation, as `tacit silo party` runs it.

The party joins the others over mutual TLS, compares plans, and then lets its engine process run the
program, carrying its mail. Whatever goes wrong anywhere ends the run at every party within the
limits of its configuration, with one sentence that names the party at fault, and leaves no model.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from tacit.errors import TacitError
from tacit.silo.party.engine_process import EngineProcess
from tacit.silo.party.folder import PartyFolder
from tacit.silo.party.frames import Header
from tacit.silo.party.mesh import Mesh, RunFailure
from tacit.silo.party.model_file import MODEL, bind_to_series, write_model
from tacit.silo.party.own_data import OwnData
from tacit.silo.party.programs import program_path
from tacit.silo.party.receipts import RECEIPT, Receipt, receipt_from_dict, write_receipt
from tacit.silo.plan import (
    Facts,
    Plan,
    complete_plan,
    facts_from_dict,
    first_difference,
    running_versions,
)
from tacit.system.progress import Progress, silent

# After our own engine lost contact: how long to wait for the party at fault to be named.
BLAME_DELAY_SECONDS = 2.0
# How long a party with bad data tries to reach the others, to tell them that it cannot take part.
BAD_DATA_SECONDS = 10.0
# How a party tells the process that started it whose fault it was.
OWN_FAULT, OTHERS_FAULT = "own fault: ", "fault of another: "


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a finished run leaves at a party; `model` holds the initiator's arrays (safetensors)."""

    receipt: Receipt
    model: bytes | None


class PartyError(TacitError):
    """A run that ended without a result; `own` says that this party is at fault."""

    def __init__(self, sentence: str, *, own: bool) -> None:
        super().__init__(sentence)
        self.own = own


class Party:
    """The state of one run at one party; `run` does it all."""

    def __init__(
        self,
        folder: PartyFolder,
        data: OwnData | TacitError,
        *,
        progress: Progress = silent,
        cache: Path | None = None,
        program: str | None = None,
    ) -> None:
        if isinstance(data, TacitError):
            # Join only to tell the others, and do not wait long for them.
            short = min(folder.limits.join_seconds, BAD_DATA_SECONDS)
            folder = replace(folder, limits=replace(folder.limits, join_seconds=short))
        self._folder = folder
        self._program = program_path(folder.terms.program, agreed=program)
        self._data = data
        self._progress = progress
        self._cache = cache
        self._facts: dict[int, Facts] = {}
        self._done: set[int] = set()
        self._report: tuple[Header, bytes] | None = None
        self._mesh = Mesh(folder, on_hello=self._heard_hello, on_frame=self._heard_peer)
        self._engine = EngineProcess(
            log=folder.out / "engine.log",
            on_frame=self._heard_engine,
            on_end=self._engine_ended,
        )

    async def run(self) -> Outcome:
        """Join, agree, compute; the outcome, or one error that names the party at fault."""
        try:
            await self._mesh.open(self._hello())
            if isinstance(self._data, OwnData):
                self._facts[self._folder.rank] = self._data.facts()
                await self._engine.start()
            await self._mesh.wait_until_joined()
            plan = self._agree()
            self._order(plan)
            await self._wait()
            return self._outcome(plan)
        except RunFailure as failure:
            await self._tell(failure.culprit, str(failure))
            own = failure.culprit == self._folder.name
            raise PartyError(self._own_sentence(failure), own=own) from None
        except TacitError as error:
            await self._tell(self._folder.name, f"party '{self._folder.name}' stopped: {error}")
            raise
        finally:
            await self._engine.end()
            await self._mesh.close()

    def _own_sentence(self, failure: RunFailure) -> str:
        # What is wrong with our own data is said in full only here, never to the others.
        return str(self._data if isinstance(self._data, TacitError) else failure)

    async def _tell(self, culprit: str, sentence: str) -> None:
        frame = {"t": "abort", "culprit": culprit, "sentence": sentence}
        await self._mesh.send_to_all(frame, within=1.0)

    # -- agreeing --------------------------------------------------------------------------

    def _hello(self) -> Header:
        hello: Header = {
            "t": "hello",
            "name": self._folder.name,
            "versions": running_versions(),
            "terms": self._folder.terms.to_dict(),
        }
        if isinstance(self._data, OwnData):
            hello["facts"] = self._data.facts().to_dict()
        return hello

    def _heard_hello(self, rank: int, hello: Header) -> None:
        """Compare a peer's versions and terms with ours as soon as they come."""
        name = self._folder.terms.parties[rank]
        for what, mine in (("version", running_versions()), ("plan", self._folder.terms.to_dict())):
            theirs = hello.get("versions" if what == "version" else "terms", {})
            difference = first_difference(mine, theirs)
            if difference is not None:
                raise RunFailure(
                    name,
                    f"party '{name}' has a different {what} from '{self._folder.name}': "
                    f"{difference}; agree on one and start again.",
                )
        if hello.get("facts") is None:
            raise RunFailure(name, f"party '{name}' cannot take part: its own data were rejected.")
        self._facts[rank] = facts_from_dict(hello["facts"])

    def _agree(self) -> Plan:
        """The whole plan; every party computes the same one, or refuses for the same reason."""
        if isinstance(self._data, TacitError):
            raise RunFailure(
                self._folder.name,
                f"party '{self._folder.name}' cannot take part: its own data were rejected.",
            )
        ranks = range(len(self._folder.terms.parties))
        return complete_plan(self._folder.terms, [self._facts[rank] for rank in ranks])

    # -- computing -------------------------------------------------------------------------

    def _order(self, plan: Plan) -> None:
        from safetensors.numpy import save

        assert isinstance(self._data, OwnData)
        index = {label: number for number, label in enumerate(plan.classes)}
        y = np.array([index[label] for label in self._data.labels.tolist()], dtype=np.int64)
        order = {
            "t": "order",
            "plan": plan.to_dict(),
            "rank": self._folder.rank,
            "program": self._program,
            "private": dict(self._data.private),
            "addresses": [peer.engine for peer in self._folder.peers],
            "tls": self._folder.tls,
            "key": str(self._folder.key),
            "certificate": str(self._folder.certificate),
            "trusted": str(self._folder.trusted),
            "join_seconds": self._folder.limits.join_seconds,
            "engine_seconds": self._folder.limits.engine_seconds,
            "cache": str(self._cache) if self._cache else None,
        }
        payload = save({"X": np.ascontiguousarray(self._data.X), "y": y})
        self._engine.send(order, payload)

    def _heard_engine(self, header: Header, payload: bytes) -> None:
        kind = header["t"]
        if kind == "mail":
            self._mesh.send(int(header["to"]), {"t": "mail", "h": header["h"]}, payload)
        elif kind == "progress":
            self._progress(header["done"], header["total"], header["message"])
        elif kind == "result":
            self._report = (header, payload)
            self._done.add(self._folder.rank)
            for peer in self._mesh.others:
                self._mesh.send(peer.rank, {"t": "done"})
        elif kind == "error":
            self._engine_failed(header["sentence"], own_fault=bool(header["own"]))
        elif kind == "fault":
            name = self._folder.terms.parties[int(header["rank"])]
            self._mesh.fail(
                name,
                f"party '{name}' {header['what']}; install the same version of the package "
                "everywhere and start again.",
            )

    def _heard_peer(self, rank: int, header: Header, payload: bytes) -> None:
        if header["t"] == "mail":
            self._engine.send({"t": "mail", "from": rank, "h": header["h"]}, payload)
        elif header["t"] == "done":
            self._done.add(rank)

    @property
    def _finished(self) -> bool:
        return len(self._done) == len(self._folder.terms.parties)

    def _engine_ended(self, reason: str, own_fault: bool) -> None:
        sentence = f"party '{self._folder.name}' had to stop: {reason}; start all parties again."
        self._blame_self(sentence, at_once=own_fault)

    def _engine_failed(self, reason: str, *, own_fault: bool) -> None:
        """The engine's program raised; what it says about our data is not for the others."""
        if own_fault:
            self._data = TacitError(reason)
            public = f"party '{self._folder.name}' stopped: its engine refused to go on."
            self._blame_self(public, at_once=True)
        else:
            sentence = f"the engine of party '{self._folder.name}' lost contact: {reason}"
            self._blame_self(sentence.rstrip(".") + ".", at_once=False)

    def _blame_self(self, sentence: str, *, at_once: bool) -> None:
        if at_once:
            self._mesh.fail(self._folder.name, sentence)
            return
        # One lost engine makes the others fail too: leave time for the party at fault to be named.
        loop = asyncio.get_running_loop()
        loop.call_later(BLAME_DELAY_SECONDS, self._mesh.fail, self._folder.name, sentence)

    async def _wait(self) -> None:
        while not self._finished and not self._mesh.failed.done():
            await asyncio.sleep(0.02)
        if not self._finished:
            raise self._mesh.failed.result()
        await self._mesh.flush(within=10.0)

    def _outcome(self, plan: Plan) -> Outcome:
        assert self._report is not None
        header, payload = self._report
        fields = {"party": self._folder.name, "plan": plan.to_dict(), **header}
        fields["tls"] = self._folder.tls
        model = None
        if self._folder.rank == 0:
            assert isinstance(self._data, OwnData)
            model = bind_to_series(payload, self._data.X)
        return Outcome(receipt=receipt_from_dict(fields), model=model)


def run_party(
    folder: PartyFolder,
    data: OwnData | TacitError,
    *,
    progress: Progress = silent,
    cache: Path | None = None,
    program: str | None = None,
) -> Outcome:
    """Run one party to its end, write its receipt (and model), and return them.

    Parties: those of the plan, of which the first two (CHEETAH) or three (ABY3) compute.
    Corruption: one computing party, passive; no dealer.
    Opens: what the receipt lists, nothing else.
    """

    async def run() -> Outcome:
        # Failed handshakes by strangers do not matter; everything else is handled where it occurs.
        asyncio.get_running_loop().set_exception_handler(lambda _loop, _context: None)
        party = Party(folder, data, progress=progress, cache=cache, program=program)
        return await party.run()

    for name in (MODEL, RECEIPT):
        # Nothing of an earlier run may pass for the result of this one, nor be lost if this fails.
        earlier = folder.out / name
        if earlier.exists():
            earlier.replace(earlier.with_name(f"{name}.previous"))
    outcome = asyncio.run(run())
    if outcome.model is not None:
        write_model(folder.out, outcome.model)
    write_receipt(folder.out, outcome.receipt)
    return outcome
