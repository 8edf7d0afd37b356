"""Connections between the parties: what a peer says is made safe to print."""

from __future__ import annotations

from tacit.silo.party.links.mesh import printable


def test_the_words_of_a_peer_are_made_harmless() -> None:
    assert printable("party\x1b[31m 'c'\nis gone") == "party[31m 'c'is gone"
    assert len(printable("x" * 10_000)) == 400
