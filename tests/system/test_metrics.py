"""Figures for Prometheus on an address of their own."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any
from urllib.request import urlopen

import pytest

from tacit.errors import TacitError
from tacit.system.metrics import serve_metrics


@contextmanager
def served(figures: dict[str, float]) -> Iterator[str]:
    server: Any = serve_metrics("127.0.0.1:0", part="node", figures=lambda: figures)
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/metrics"
    finally:
        server.shutdown()
        server.server_close()


def values(url: str) -> dict[str, float]:
    with urlopen(url, timeout=60) as answer:
        text = answer.read().decode()
    lines = [line.split() for line in text.splitlines() if not line.startswith("#")]
    return {name: float(value) for name, value in lines}


def test_figures_are_those_of_the_moment() -> None:
    figures = {"round": 1.0}
    with served(figures) as url:
        assert values(url) == {"tacit_node_round": 1.0}
        figures["round"] = 2.0
        assert values(url) == {"tacit_node_round": 2.0}


@pytest.mark.parametrize("address", ["9444", ":9444", "127.0.0.1:", "127.0.0.1:x", "h:70000"])
def test_an_address_is_host_and_port(address: str) -> None:
    with pytest.raises(TacitError, match="--metrics must look like"):
        serve_metrics(address, part="node", figures=dict)


def test_a_taken_port_is_refused_in_one_sentence() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(TacitError, match=f"cannot listen on {address}: Address already"):
            serve_metrics(address, part="node", figures=dict)


def test_a_light_node_is_told_the_one_package_that_is_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It has three packages; the extra `fleet` would bring all of Flower."""
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(TacitError, match=r"type: pip install prometheus-client$"):
        serve_metrics("127.0.0.1:0", part="node", figures=dict)
