"""Addresses on this machine: all different, and ours until we listen."""

from __future__ import annotations

import socket

import pytest

from tacit.errors import TacitError
from tacit.silo.party import localhost
from tacit.silo.party.localhost import local_addresses


def test_addresses_differ_and_stay_ours_until_we_listen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(localhost, "_PORTS", range(19_900, 19_920))
    with local_addresses(3) as first, local_addresses(3) as second:
        drawn = [*first, *second]
        assert len(set(drawn)) == 6
        host, port = drawn[0].split(":")
        with (
            socket.create_server((host, int(port))) as server,
            socket.create_connection((host, int(port))) as client,
            server.accept()[0] as peer,
        ):
            client.sendall(b"x")
            assert peer.recv(1) == b"x"


def test_no_address_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(localhost, "_PORTS", range(19_920, 19_922))
    with pytest.raises(TacitError, match="no free port"), local_addresses(3):
        pass
