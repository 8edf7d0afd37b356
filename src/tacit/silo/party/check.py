"""A dry run: whether all parties could start, before anything is shared.

Every party may check at the same time, or check against parties that already wait for a run. What
is exchanged are the hellos of a run, and no run begins.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from contextlib import suppress
from dataclasses import dataclass, field, replace

from tacit.errors import TacitError
from tacit.silo.party.data_budget import DataBudget
from tacit.silo.party.folder import PartyFolder
from tacit.silo.party.hello import Refusal, facts_in, hello_of
from tacit.silo.party.links.frames import FrameError, encode, read_frame
from tacit.silo.party.links.gate import ForeignCertificate, Gate, Purpose, stream_protocol
from tacit.silo.party.links.mesh import REFUSAL_SECONDS, RETRY_SECONDS, foreign_certificate
from tacit.silo.party.own_data import OwnData
from tacit.silo.party.party import first_refusal
from tacit.silo.party.programs import check_plan
from tacit.silo.party.results import Results
from tacit.silo.plan import Facts, complete_plan

# After everything was seen: how long to stay for parties that look a moment later.
_STAY_SECONDS = 2.0


@dataclass(slots=True)
class PeerCheck:
    """What a check found out about one other party; `problem` is None if it is ready."""

    name: str
    reached: bool = False
    reached_us: bool = False
    problem: str | None = None
    facts: Facts | None = field(default=None, repr=False)


def check_federation(
    folder: PartyFolder,
    data: OwnData | Refusal,
    *,
    program: str | None = None,
    budget: DataBudget | None = None,
) -> dict[str, PeerCheck]:
    """Meet all other parties within `join_seconds`; what was found out about each, by name.

    Raises if this party itself cannot take part, or if the parties do not fit together.
    """
    refusal = first_refusal(folder, Results(folder.out), program)
    problem = refusal or (data if isinstance(data, Refusal) else None)
    if problem is not None:
        asyncio.run(_meet(_not_waiting_long(folder), problem))
        raise problem
    found = asyncio.run(_meet(folder, data))
    assert isinstance(data, OwnData)
    facts = [data.facts() if n == folder.name else found[n].facts for n in folder.terms.parties]
    known = [fact for fact in facts if fact is not None]
    if len(known) == len(facts):
        plan = complete_plan(folder.terms, known)
        check_plan(plan, memory_gb=folder.limits.memory_gb)
    if budget is not None:
        budget.check(folder.terms.params, rank=folder.rank)
    return found


def _not_waiting_long(folder: PartyFolder) -> PartyFolder:
    """The folder of a party that only tells the others that it cannot take part."""
    short = min(folder.limits.join_seconds, REFUSAL_SECONDS)
    return replace(folder, limits=replace(folder.limits, join_seconds=short))


async def _meet(folder: PartyFolder, data: OwnData | Refusal) -> dict[str, PeerCheck]:
    asyncio.get_running_loop().set_exception_handler(lambda _loop, _context: None)
    visit = _Visit(folder, data)
    await visit.gate.open(visit.accept)
    try:
        work = [visit.look_at(rank) for rank in visit.found]
        await asyncio.wait_for(asyncio.gather(*work), folder.limits.join_seconds)
        await visit.until_seen()
    except TimeoutError:
        pass
    finally:
        await visit.gate.shut()
    return {found.name: found for found in visit.found.values()}


class _Visit:
    """The meetings of one check."""

    def __init__(self, folder: PartyFolder, data: OwnData | Refusal) -> None:
        self._folder = folder
        self._deadline = time.monotonic() + folder.limits.join_seconds
        facts = data.facts() if isinstance(data, OwnData) else data
        self._hello = encode(hello_of(folder, facts, dry=True))
        self.gate = Gate(folder)
        names = enumerate(folder.terms.parties)
        self.found = {rank: PeerCheck(n) for rank, n in names if rank != folder.rank}

    def accept(self, rank: int, purpose: Purpose) -> asyncio.BaseProtocol | None:
        """Answer a party that looks at us; a run cannot begin here."""
        if purpose != Purpose.MESH:
            return None

        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with suppress(OSError, ssl.SSLError, FrameError, asyncio.IncompleteReadError):
                await read_frame(reader)
                self.found[rank].reached_us = True
                writer.write(self._hello)
                await writer.drain()
            writer.close()

        return stream_protocol(answer)

    async def look_at(self, rank: int) -> None:
        """Try until the party answers, or is known not to be the right one."""
        found = self.found[rank]
        address = self._folder.peers[rank].address
        while time.monotonic() < self._deadline:
            try:
                await self._exchange(rank, found)
                return
            except (ForeignCertificate, ssl.SSLCertVerificationError):
                found.problem = foreign_certificate(found.name)
                return
            except asyncio.IncompleteReadError:
                found.problem = (
                    f"party '{found.name}' at {address} closes the connection: it does not know "
                    f"the certificate of '{self._folder.name}'; exchange certificates again."
                )
            except (OSError, FrameError):
                limit = self._folder.limits.join_seconds
                found.problem = (
                    f"party '{found.name}' was not reached at {address} within {limit:g} s; start "
                    "its check or its run, and let this machine reach that port."
                )
            await asyncio.sleep(RETRY_SECONDS)

    async def _exchange(self, rank: int, found: PeerCheck) -> None:
        reader, writer = await self.gate.open_stream(rank)
        try:
            writer.write(self._hello)
            hello, _ = await read_frame(reader)
        finally:
            writer.close()
        found.reached, found.problem = True, None
        try:
            found.facts = facts_in(hello, self._folder, rank=rank)
        except TacitError as error:
            found.problem = str(error)

    async def until_seen(self) -> None:
        """Stay for the others: until each has reached us, and a moment longer."""
        while not all(found.reached_us for found in self.found.values()):
            if time.monotonic() > self._deadline:
                break
            await asyncio.sleep(0.05)
        for found in self.found.values():
            if not found.reached_us and found.problem is None:
                own = self._folder.peers[self._folder.rank].address
                found.problem = (
                    f"party '{found.name}' did not reach '{self._folder.name}' at {own}; let its "
                    "machine reach that port."
                )
        await asyncio.sleep(_STAY_SECONDS)
