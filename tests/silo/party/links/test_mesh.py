"""Connections between the parties: who has come, and what a peer says is made safe to print."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from tacit.silo.party.folder import Limits, PartyFolder, read_folder, write_folders
from tacit.silo.party.hello import hello_of
from tacit.silo.party.links.gate import Gate
from tacit.silo.party.links.mesh import Mesh, printable
from tacit.silo.party.localhost import local_addresses
from tacit.silo.plan import Facts, Terms


def test_the_words_of_a_peer_are_made_harmless() -> None:
    assert printable("party\x1b[31m 'c'\nis gone") == "party[31m 'c'is gone"
    assert len(printable("x" * 10_000)) == 400


def test_who_was_reached_has_not_come_yet(tmp_path: Path) -> None:
    """A port may close when the others have come to it, not when they were reached from it."""
    terms = Terms(program="fedst", parties=("a", "b"), protocol="CHEETAH")
    with local_addresses(2) as addresses:
        configs = write_folders(tmp_path / "f", terms, addresses=addresses, limits=Limits())
        reached, came = asyncio.run(_b_greets_a(*(read_folder(c) for c in configs.values())))
    assert reached == [True, False]
    assert came == [False, True]


async def _b_greets_a(*folders: PartyFolder) -> tuple[list[bool], list[bool]]:
    """Whether b, then a, has reached the other, and whether the other has come to it."""
    gates = [Gate(folder) for folder in folders]
    a, b = (
        Mesh(folder, gate, on_hello=_ignore, on_frame=_ignore)
        for folder, gate in zip(folders, gates, strict=True)
    )
    facts = Facts(count=1, series_length=2, n_channels=1, classes=("x",))
    await gates[0].open(lambda rank, _purpose: a.accept(rank))
    a.open(hello_of(folders[0], facts))  # b does not listen
    b.open(hello_of(folders[1], facts))
    try:
        async with asyncio.timeout(30):
            while not a.is_complete or b.others[0].sender is None:
                await asyncio.sleep(0.01)
        reached = [mesh.others[0].sender is not None for mesh in (b, a)]
        return reached, [mesh.is_complete for mesh in (b, a)]
    finally:
        await a.close()
        await b.close()
        await gates[0].shut()


def _ignore(*_: Any) -> None:
    """Nothing is expected of what parties say here."""
