"""One party of a federation, as `tacit silo party` runs it.

The party joins the others over mutual TLS, compares plans, and then lets its engine process run the
program, carrying its mail. Whatever goes wrong anywhere ends the run at every party within the
limits of its configuration, with one sentence that names the party at fault, and leaves no model.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

import numpy as np

from tacit.errors import TacitError
from tacit.silo.party.data_budget import DataBudget
from tacit.silo.party.engine_process import EngineProcess
from tacit.silo.party.folder import PartyFolder, check_fingerprint
from tacit.silo.party.hello import Refusal, cannot_take_part, facts_in, hello_of
from tacit.silo.party.links.frames import Header
from tacit.silo.party.links.gate import Gate, Purpose
from tacit.silo.party.links.mesh import Mesh, RunFailure
from tacit.silo.party.links.tunnel import EngineFolder, Tunnel
from tacit.silo.party.model_file import bind_to_series
from tacit.silo.party.own_data import OwnData
from tacit.silo.party.programs import check_params, check_plan, program_path
from tacit.silo.party.progress_relay import ProgressRelay, Step
from tacit.silo.party.receipts import receipt_from_dict
from tacit.silo.party.results import Outcome, Results
from tacit.silo.party.run_log import RunLog, no_log
from tacit.silo.plan import (
    COMPUTING,
    Facts,
    Plan,
    complete_plan,
)
from tacit.system.posix import needs_posix
from tacit.system.progress import Progress, silent

# After our own engine lost contact: how long to wait for the party at fault to be named.
BLAME_DELAY_SECONDS = 2.0
# How a party tells the process that started it whose fault it was.
OWN_FAULT, OTHERS_FAULT = "own fault: ", "fault of another: "


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
        data: OwnData | Refusal,
        *,
        progress: Progress = silent,
        cache: Path | None = None,
        program: str | None = None,
        budget: DataBudget | None = None,
        log: RunLog = no_log,
    ) -> None:
        self._results = Results(folder.out)
        data = first_refusal(folder, self._results, program) or data
        self._folder = folder
        self._agreed_program = program
        self._data: OwnData | TacitError = data
        self._budget = budget
        self._plan: Plan | None = None
        self._log = log
        self._progress = progress
        self._cache = cache
        self._facts: dict[int, Facts] = {}
        self._done: set[int] = set()
        self._outcome: Outcome | None = None
        self._gate = Gate(folder)
        self._mesh = Mesh(folder, self._gate, on_hello=self._heard_hello, on_frame=self._heard_peer)
        self._relay = ProgressRelay(
            rank=folder.rank,
            n_parties=len(folder.terms.parties),
            n_computing=COMPUTING[folder.terms.protocol],
            send=self._mesh.send,
            show=self._show_progress,
        )
        self._scratch = EngineFolder()
        self._tunnel = Tunnel(
            self._gate,
            self._scratch.path,
            rank=folder.rank,
            n_computing=COMPUTING[folder.terms.protocol],
            on_lost=self._tunnel_lost,
        )
        self._engine = EngineProcess(
            log=folder.out / "engine.log",
            on_frame=self._heard_engine,
            on_end=self._engine_ended,
        )

    async def run(self) -> Outcome:
        """Join, agree, compute; the outcome, or one error that names the party at fault."""
        try:
            await self._open()
            await self._mesh.wait_until_joined()
            self._log("joined", parties=list(self._folder.terms.parties))
            self._plan = self._agree()
            self._log("agreed", fingerprint=self._plan.fingerprint)
            self._debit(self._plan)
            self._order(self._plan)
            return await self._wait()
        except RunFailure as failure:
            await self._tell(failure.culprit, str(failure))
            own = failure.culprit == self._folder.name or isinstance(self._data, TacitError)
            raise PartyError(self._own_sentence(failure), own=own) from None
        except Refusal as refusal:
            self._data = refusal
            await self._tell(self._folder.name, str(self._cannot_take_part(refusal)))
            raise
        except TacitError as error:
            await self._tell(self._folder.name, f"party '{self._folder.name}' stopped: {error}")
            raise
        finally:
            await self._engine.end()
            await self._gate.shut()
            await self._tunnel.close()
            await self._mesh.close()
            self._scratch.remove()

    def _accept(self, rank: int, purpose: Purpose) -> asyncio.BaseProtocol | None:
        return self._mesh.accept(rank) if purpose == Purpose.MESH else self._tunnel.accept(rank)

    async def _open(self) -> None:
        """Listen, start the engine and begin to join; who cannot listen still tells the others."""
        try:
            await self._gate.open(self._accept)
        except TacitError as error:
            self._data = Refusal(str(error), public="it cannot listen at its address")
        await self._tunnel.open(join_seconds=self._folder.limits.join_seconds)
        mine: Facts | Refusal
        if isinstance(self._data, OwnData):
            mine = self._facts[self._folder.rank] = self._data.facts()
            await self._engine.start()
        else:
            assert isinstance(self._data, Refusal)
            mine = self._data
        self._mesh.open(hello_of(self._folder, mine))
        others = [peer.name for peer in self._mesh.others]
        self._progress(0, 1, f"waiting for {', '.join(others)}")
        self._log("waiting", parties=others)

    def _cannot_take_part(self, refusal: Refusal) -> RunFailure:
        return cannot_take_part(self._folder.name, refusal.public)

    def _own_sentence(self, failure: RunFailure) -> str:
        # What is wrong with our own data is said in full only here, never to the others.
        return str(self._data if isinstance(self._data, TacitError) else failure)

    async def _tell(self, culprit: str, sentence: str) -> None:
        frame = {"t": "abort", "culprit": culprit, "sentence": sentence}
        await self._mesh.send_to_all(frame, within=1.0)

    # -- agreeing --------------------------------------------------------------------------

    def _heard_hello(self, rank: int, hello: Header) -> None:
        """Compare a peer's versions and terms with ours as soon as they come."""
        self._facts[rank] = facts_in(hello, self._folder, rank=rank)

    def _agree(self) -> Plan:
        """The whole plan; every party computes the same one, or refuses for the same reason."""
        if isinstance(self._data, Refusal):
            raise self._cannot_take_part(self._data)
        ranks = range(len(self._folder.terms.parties))
        plan = complete_plan(self._folder.terms, [self._facts[rank] for rank in ranks])
        check_plan(plan, memory_gb=self._folder.limits.memory_gb)
        return plan

    def _debit(self, plan: Plan) -> None:
        """Before anything is shared; the others hear that we stop, not what our ledger holds."""
        if self._budget is None:
            return
        try:
            self._budget.debit(plan, rank=self._folder.rank)
        except TacitError as error:
            raise Refusal(str(error), public="its ledger refused") from error

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
            "program": program_path(plan.program, agreed=self._agreed_program),
            "private": dict(self._data.private),
            "addresses": self._tunnel.addresses,
            "log": str(self._scratch.path / "spu.log"),
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
            self._relay.heard_engine(header)
        elif kind == "result":
            self._keep_result(header, payload)
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
        elif header["t"] == "progress":
            self._relay.heard_peer(rank, header)
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

    def _tunnel_lost(self, rank: int, reason: str, is_fault: bool) -> None:
        """A peer's engine is cut off; a peer that has finished or says why comes first."""
        delay = 0.0 if is_fault else BLAME_DELAY_SECONDS
        asyncio.get_running_loop().call_later(delay, self._blame_tunnel, rank, reason)

    def _blame_tunnel(self, rank: int, reason: str) -> None:
        if rank not in self._done:
            name = self._folder.terms.parties[rank]
            self._mesh.fail(name, f"party '{name}' {reason}; start all parties again.")

    def _show_progress(self, step: Step) -> None:
        self._progress(step.done, step.total, step.words)
        self._log("progress", **asdict(step), engine_bytes_sent=self._tunnel.n_sent)

    def _keep_result(self, header: Header, payload: bytes) -> None:
        """Have the result on the drive before the others are told that this party is done."""
        self._outcome = self._outcome_of(header, payload)
        try:
            self._results.stage(self._outcome)
        except OSError as error:
            self._mesh.fail(
                self._folder.name,
                f"party '{self._folder.name}' cannot write its result ({error.strerror}); make "
                "room there and start all parties again.",
            )
            return
        self._done.add(self._folder.rank)
        for peer in self._mesh.others:
            self._mesh.send(peer.rank, {"t": "done"})

    def _outcome_of(self, header: Header, payload: bytes) -> Outcome:
        assert self._plan is not None
        assert isinstance(self._data, OwnData)
        fields = {"party": self._folder.name, "plan": self._plan.to_dict(), **header}
        model = bind_to_series(payload, self._data.X) if self._folder.rank == 0 else None
        return Outcome(receipt=receipt_from_dict(fields), model=model)

    async def _wait(self) -> Outcome:
        while not self._finished and not self._mesh.failed.done():
            if self._tunnel.is_complete and self._mesh.is_complete:
                await self._gate.shut()  # nobody else is expected
            await asyncio.sleep(0.02)
        if not self._finished:
            raise self._mesh.failed.result()
        await self._mesh.flush(within=10.0)
        assert self._outcome is not None
        self._results.publish()
        self._log("finished", seconds=self._outcome.receipt.seconds)
        return self._outcome


def first_refusal(folder: PartyFolder, results: Results, program: str | None) -> Refusal | None:
    """Why this party cannot take part, whatever its data are; None if it can."""
    try:
        check_fingerprint(folder)
    except TacitError as error:
        public = "its plan does not have the fingerprint that its file states"
        return Refusal(str(error), public=public)
    try:
        program_path(folder.terms.program, agreed=program)
        check_params(folder.terms.program, folder.terms.params)
        results.begin()
    except Refusal as refusal:
        return refusal
    except OSError as error:
        sentence = f"{folder.out} cannot be written to ({error.strerror}); choose another folder."
        return Refusal(sentence, public="it cannot write to its output folder")
    return None


def run_party(
    folder: PartyFolder,
    data: OwnData | Refusal,
    *,
    progress: Progress = silent,
    cache: Path | None = None,
    program: str | None = None,
    budget: DataBudget | None = None,
    log: RunLog = no_log,
) -> Outcome:
    """Run one party to its end, write its receipt (and model), and return them.

    Parties: those of the plan, of which the first two (CHEETAH) or three (ABY3) compute.
    Corruption: one computing party, passive; no dealer.
    Opens: what the receipt lists, nothing else.
    Debits `budget` before anything is shared, if the plan has an epsilon.
    """
    needs_posix("a party")

    async def run() -> Outcome:
        # Failed handshakes by strangers do not matter; everything else is handled where it occurs.
        asyncio.get_running_loop().set_exception_handler(lambda _loop, _context: None)
        party = Party(
            folder, data, progress=progress, cache=cache, program=program, budget=budget, log=log
        )
        return await party.run()

    try:
        return asyncio.run(run())
    except TacitError as error:
        log("failed", reason=str(error))
        raise
    finally:
        with suppress(OSError):
            Results(folder.out).drop()
