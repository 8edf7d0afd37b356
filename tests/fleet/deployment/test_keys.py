"""Who is taken for whom: every service has its own certificate, and nobody accepts another's."""

from __future__ import annotations

import asyncio
import contextlib
import http.server
import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from cryptography import x509

from fleet_localhost import LocalFleet
from tacit.errors import TacitError
from tacit.fleet.deployment.batch_delivery import BatchDelivery
from tacit.fleet.deployment.config import ShufflerConfig, read_config
from tacit.fleet.deployment.flower.app import AnalyserClient
from tacit.fleet.deployment.http import shuffler_servers
from tacit.fleet.deployment.node import Outbox, ShufflerClient, take_part
from tacit.fleet.deployment.run import analyser_status, shuffler_status
from tacit.fleet.deployment.setup import Hosts
from tacit.fleet.learning.learner import Learner
from tacit.system.certificates import Pair, self_signed, trust_only
from tacit.system.files import write_once

SERVICES = ("shuffler", "analyser", "server")


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> LocalFleet:
    return LocalFleet(tmp_path_factory.mktemp("keys") / "fleet", rounds=2, n_kernels=4)


class Eager(http.server.BaseHTTPRequestHandler):
    """Says that round 1 is open and keeps what it is sent."""

    taken: list[bytes]

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        self._answer({"round": 1, "finished": True, "instance": "posing"})

    def do_POST(self) -> None:
        self.taken.append(self.rfile.read(int(self.headers["content-length"])))
        self._answer({"accepted": True})

    def _answer(self, content: dict[str, object]) -> None:
        body = json.dumps(content).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@contextlib.contextmanager
def posing(fleet: LocalFleet, service: str) -> Iterator[tuple[str, list[bytes]]]:
    """Somebody who holds this service's certificate and key; where, and what he was sent."""
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(fleet.folder / service / "tls.crt", fleet.folder / service / "tls.key")
    taken: list[bytes] = []
    handler = type("Handler", (Eager,), {"taken": taken})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.handle_error = lambda *_: None  # type: ignore[method-assign]  # a refused handshake
    server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield f"https://127.0.0.1:{server.server_address[1]}", taken
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.mark.parametrize("service", SERVICES)
def test_a_node_reports_to_nobody_but_the_shuffler(
    fleet: LocalFleet, tmp_path: Path, service: str
) -> None:
    learner = Learner(fleet.fleet.plan)
    with posing(fleet, service) as (url, taken):
        config = replace(fleet.node("node-1"), shuffler_url=url, state=tmp_path)
        config = replace(config, ledgers=tmp_path / "persons")
        answer = take_part(config, run=fleet.fleet.run, round_number=1, model=learner.initial())
    assert answer.accepted == (service == "shuffler")
    assert len(taken) == (service == "shuffler")
    with contextlib.closing(Outbox(config, fleet.fleet, learner)) as outbox:
        assert (outbox.spent() > 0.0) == (service == "shuffler"), "what was not sent is not spent"


def node_asks_shuffler(fleet: LocalFleet, url: str) -> object:
    client = ShufflerClient(replace(fleet.node("node-1"), shuffler_url=url), fleet.fleet)
    with contextlib.closing(client):
        return client.open_round()


def server_asks_shuffler(fleet: LocalFleet, url: str) -> object:
    return shuffler_status(replace(fleet.server, shuffler_url=url))


def server_asks_analyser(fleet: LocalFleet, url: str) -> object:
    return analyser_status(replace(fleet.server, analyser_url=url))


def application_asks_analyser(fleet: LocalFleet, url: str) -> object:
    client = AnalyserClient(replace(fleet.server, analyser_url=url))
    with contextlib.closing(client._http):
        return client._http.get("/v1/status").raise_for_status()


def shuffler_asks_analyser(fleet: LocalFleet, url: str) -> object:
    config = read_config(fleet.path("shuffler"), ShufflerConfig)
    tls = trust_only(config.analyser_certificate)
    host, port = url.removeprefix("https://").split(":")
    with socket.create_connection((host, int(port)), 10) as plain:
        tls.wrap_socket(plain, server_hostname=host).close()
    return None


@pytest.mark.parametrize(
    ("asks", "whom"),
    [
        (node_asks_shuffler, "shuffler"),
        (server_asks_shuffler, "shuffler"),
        (server_asks_analyser, "analyser"),
        (application_asks_analyser, "analyser"),
        (shuffler_asks_analyser, "analyser"),
    ],
)
def test_no_service_passes_for_another(
    fleet: LocalFleet, asks: Callable[[LocalFleet, str], object], whom: str
) -> None:
    for service in SERVICES:
        expected = contextlib.nullcontext() if service == whom else pytest.raises(Exception)
        with posing(fleet, service) as (url, _), expected as refused:
            asks(fleet, url)
        if refused is not None:
            reasons = {type(refused.value).__name__, str(refused.value)}
            assert any("SSLCert" in r or "ConnectError" in r for r in reasons), reasons


def test_delivery_trusts_the_analyser_alone(
    fleet: LocalFleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    trusted: list[Path] = []

    def remembering(path: Path) -> ssl.SSLContext:
        trusted.append(path)
        return trust_only(path)

    monkeypatch.setattr(
        "tacit.fleet.deployment.http.trust_only",
        remembering,
    )
    config = read_config(fleet.path("shuffler"), ShufflerConfig)
    shuffler_servers(config, None, None)  # type: ignore[arg-type]
    assert [path.read_bytes() for path in trusted] == [fleet.analyser.certificate.read_bytes()]


def test_delivery_takes_no_way_round(monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy in the environment would see who talks to whom, and when."""
    with socket.create_server(("127.0.0.1", 0)) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{proxy.getsockname()[1]}")
        monkeypatch.delenv("NO_PROXY", raising=False)
        monkeypatch.delenv("no_proxy", raising=False)
        with socket.create_server(("127.0.0.1", 0)) as nobody:
            url = f"https://127.0.0.1:{nobody.getsockname()[1]}"
        delivery = BatchDelivery(url=url, tls=ssl.create_default_context())
        shuffler: Any = SimpleNamespace(waiting=lambda: None)  # it gets no further than to ask
        with pytest.raises(TimeoutError):
            asyncio.run(asyncio.wait_for(delivery.run(shuffler), 0.5))
        proxy.settimeout(0.2)
        with pytest.raises(TimeoutError):
            proxy.accept()


def names_in(pair: Pair) -> set[str]:
    certificate = x509.load_pem_x509_certificate(pair.certificate)
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return {str(name.value) for name in names}


def test_a_certificate_names_its_own_host_alone() -> None:
    here = {"localhost", "127.0.0.1"}
    far = Hosts(server="s.org", shuffler="one.org", analyser="10.0.0.3", listen="0.0.0.0")
    made = far.certificates("x")
    assert names_in(made.shuffler) == {"one.org"}
    assert names_in(made.analyser) == {"10.0.0.3"}
    # Flower's processes on the server come to it over the loopback address.
    assert names_in(made.server) == {"s.org"} | here
    assert names_in(replace(far, listen="10.0.0.1").certificates("x").server) == {
        "s.org",
        "10.0.0.1",
    }
    near = replace(far, shuffler="localhost", analyser="127.0.0.1").certificates("x")
    assert names_in(near.shuffler) == names_in(near.analyser) == here


def test_no_certificate_can_sign_another() -> None:
    for pair in (self_signed("a client"), self_signed("a service", hosts=("localhost",))):
        extensions = x509.load_pem_x509_certificate(pair.certificate).extensions
        assert not extensions.get_extension_for_class(x509.BasicConstraints).value.ca
        assert not extensions.get_extension_for_class(x509.KeyUsage).value.key_cert_sign


def test_a_missing_or_broken_certificate_is_named(tmp_path: Path) -> None:
    broken = tmp_path / "broken.crt"
    broken.write_text("nothing")
    for path in (broken, tmp_path / "missing.crt"):
        with pytest.raises(TacitError, match=path.name):
            trust_only(path)


def test_a_file_is_written_once_also_where_there_are_no_hard_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(Path, "hardlink_to", refuse)
    path = tmp_path / "report"
    write_once(path, b"first", mode=0o600)
    with pytest.raises(FileExistsError):
        write_once(path, b"second", mode=0o600)
    assert path.read_bytes() == b"first"
    assert [found.name for found in tmp_path.iterdir()] == ["report"]
