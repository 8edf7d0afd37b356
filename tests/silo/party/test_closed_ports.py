"""Strangers at the ports of real parties: they are turned away, and the run goes on."""

from __future__ import annotations

import json
import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from silo_parties import SHORT, Federation, engines_of, federation, listening_ports
from tacit.silo.party.folder import read_folder, split_address
from tacit.system.certificates import self_signed

pytestmark = pytest.mark.slow
REQUEST = (
    b"POST /org.interconnection.link.ReceiverService/Push HTTP/1.1\r\n"
    b"Host: x\r\nContent-Length: 2\r\n\r\n{}"
)


@pytest.fixture(scope="module")
def visited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Federation]:
    """Three parties; strangers of every kind knock at the first two while the third is awaited."""
    folder = tmp_path_factory.mktemp("visited")
    patient = replace(SHORT, join_seconds=180.0)
    with federation(
        folder, program="distances_program", limits=patient, k=2, length=5, repeats=60
    ) as f:
        f.start("a")
        f.start("b")
        yield f


def address_of(f: Federation, name: str) -> tuple[str, int]:
    peer = read_folder(f.configs["a"]).peers[f.terms.parties.index(name)]
    return split_address(peer.address)


def until_listening(place: tuple[str, int]) -> None:
    for _ in range(600):
        try:
            socket.create_connection(place, timeout=5.0).close()
            return
        except ConnectionRefusedError:
            time.sleep(0.1)
    raise AssertionError("the party does not listen")


def context(pair: tuple[Path, Path] | None, alpn: str | None) -> ssl.SSLContext:
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.check_hostname = False
    made.verify_mode = ssl.CERT_NONE
    if pair is not None:
        made.load_cert_chain(*pair)
    if alpn is not None:
        made.set_alpn_protocols([alpn])
    return made


def is_turned_away(
    place: tuple[str, int],
    tls: ssl.SSLContext | None,
    *,
    words: bytes = REQUEST,
    within: float = 30.0,
) -> bool:
    """Whether the connection is closed without an answer to `words`."""
    try:
        with socket.create_connection(place, timeout=within) as plain:
            connection = plain if tls is None else tls.wrap_socket(plain)
            with connection:
                connection.sendall(words)
                return connection.recv(1) == b""
    except TimeoutError:
        return False
    except (ssl.SSLError, ConnectionError):
        return True


def test_strangers_are_turned_away_and_the_run_goes_on(visited: Federation) -> None:
    f = visited
    stranger = self_signed("x", both_sides=True)
    pair = (f.folder / "x.crt", f.folder / "x.key")
    stranger.write(certificate=pair[0], key=pair[1])
    home = f.configs["a"].parent
    own = (home / "party.crt", home / "party.key")
    with ExitStack() as held:
        for name in ("a", "b"):
            place = address_of(f, name)
            until_listening(place)
            for _ in range(200):  # connections that never say anything
                held.enter_context(socket.create_connection(place, timeout=30.0))
            assert is_turned_away(place, None)
            for alpn in ("tacit-mesh", "tacit-engine", None):
                assert is_turned_away(place, context(None, alpn))
                assert is_turned_away(place, context(pair, alpn))
            half = held.enter_context(socket.create_connection(place, timeout=30.0))
            half.sendall(b"\x16\x03\x01\x02\x00\x01")  # the beginning of a TLS handshake
        # A party's own certificate does not pass for another's, nor for an unknown purpose.
        assert is_turned_away(address_of(f, "a"), context(own, "tacit-mesh"))
        assert is_turned_away(address_of(f, "b"), context(own, "http/1.1"))
        twin = context(own, "tacit-engine")
        assert not is_turned_away(address_of(f, "b"), twin, words=b"", within=1.0)
        f.start("c")
        results = {name: f.end(name, within=200.0) for name in "abc"}
    for name, (code, out, err) in results.items():
        assert code == 0, (name, err)
        assert json.loads(out)["guarantee"]["opened"] == [
            "the number seven -> all parties",
            "distances -> a",
        ]
        assert list(f.sockets_of(name).iterdir()) == []


def test_engines_listen_at_no_port_and_parties_at_none_once_all_are_there(
    tmp_path: Path,
) -> None:
    with federation(tmp_path) as f:
        f.start_all()
        f.until_working("a")
        for name in "abc":
            (engine,) = engines_of(f.configs[name].parent)
            assert listening_ports(engine) == []
            (folder,) = f.sockets_of(name).iterdir()
            assert folder.stat().st_mode & 0o777 == 0o700
            assert listening_ports(f.running[name].pid) == []
            assert is_turned_away(address_of(f, name), None)
        f.running["b"].kill()
        for name in "ac":
            f.assert_refused(name, "party 'b' is gone", within=100.0)
