"""Connections between the parties: what a peer says is made safe to print."""

from __future__ import annotations

from tacit.silo.party.mesh import clean


def test_the_words_of_a_peer_are_made_harmless() -> None:
    assert clean("party\x1b[31m 'c'\nis gone") == "party[31m 'c'is gone"
    assert len(clean("x" * 10_000)) == 400
