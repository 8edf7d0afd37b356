"""Certificates that are their own anchors, and contexts that speak TLS 1.3 with them alone."""

from __future__ import annotations

import socket
import ssl
import threading
from pathlib import Path

import pytest

from tacit.errors import TacitError
from tacit.system.certificates import (
    check_private,
    fingerprint,
    mutual_tls,
    self_signed,
    trust_only,
)


def written(folder: Path, name: str, **how: object) -> tuple[Path, Path]:
    certificate, key = folder / f"{name}.crt", folder / f"{name}.key"
    self_signed(name, **how).write(certificate=certificate, key=key)  # type: ignore[arg-type]
    return certificate, key


def handshake(server: ssl.SSLContext, client: ssl.SSLContext, *, host: str) -> str:
    """The protocol's version; raises what the client sees."""
    left, right = socket.socketpair()

    def serve() -> None:
        try:
            with server.wrap_socket(left, server_side=True) as wrapped:
                wrapped.sendall(b"x")
        except OSError:
            left.close()

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        with client.wrap_socket(right, server_hostname=host) as wrapped:
            if wrapped.recv(1) != b"x":
                raise ConnectionError("the server hung up")
            return str(wrapped.version())
    finally:
        right.close()
        thread.join(10)


def test_a_service_is_known_by_its_own_certificate_alone(tmp_path: Path) -> None:
    mine, key = written(tmp_path, "mine", hosts=("localhost", "127.0.0.1"))
    other, _ = written(tmp_path, "other", hosts=("localhost",))
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(mine, key)
    assert handshake(server, trust_only(mine), host="127.0.0.1") == "TLSv1.3"
    with pytest.raises(ssl.SSLError):
        handshake(server, trust_only(other), host="localhost")
    with pytest.raises(ssl.SSLError):
        handshake(server, trust_only(mine), host="elsewhere")


def test_tls_1_2_is_refused(tmp_path: Path) -> None:
    mine, key = written(tmp_path, "mine", hosts=("localhost",))
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(mine, key)
    server.maximum_version = ssl.TLSVersion.TLSv1_2
    with pytest.raises(ssl.SSLError):
        handshake(server, trust_only(mine), host="localhost")


def test_peers_authenticate_both_ways(tmp_path: Path) -> None:
    north, north_key = written(tmp_path, "north", both_sides=True)
    south, south_key = written(tmp_path, "south", both_sides=True)
    server = mutual_tls(server=True, key=north_key, certificate=north, trusted=south)
    client = mutual_tls(server=False, key=south_key, certificate=south, trusted=north)
    assert handshake(server, client, host="any") == "TLSv1.3"
    strange, strange_key = written(tmp_path, "strange", both_sides=True)
    stranger = mutual_tls(server=False, key=strange_key, certificate=strange, trusted=north)
    with pytest.raises((ssl.SSLError, ConnectionError)):
        handshake(server, stranger, host="any")


def test_a_key_is_private_and_a_certificate_has_one_fingerprint(tmp_path: Path) -> None:
    certificate, key = written(tmp_path, "a")
    check_private(key)
    assert len(fingerprint(certificate)) == 64
    key.chmod(0o640)
    with pytest.raises(TacitError, match="chmod 600"):
        check_private(key)
    with pytest.raises(TacitError, match="cannot use the certificate"):
        trust_only(tmp_path / "none.crt")
    with pytest.raises(TacitError, match="cannot read the certificate"):
        fingerprint(key)
