"""Figures of a service for Prometheus: gauges by name, as a page or on an address of their own.

Figures are about a run or a process, never about one person. Light nodes carry this module, so
prometheus_client is imported only when a page is asked for.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from tacit.errors import TacitError
from tacit.system.extras import MissingExtra

if TYPE_CHECKING:
    from http.server import HTTPServer

    from prometheus_client import CollectorRegistry
    from prometheus_client.metrics_core import Metric

Figures = Callable[[], Mapping[str, float]]


def gauges(part: str, figures: Figures) -> CollectorRegistry:
    """What `figures` returns whenever it is asked, by names without the service's prefix."""
    from prometheus_client import CollectorRegistry
    from prometheus_client.core import GaugeMetricFamily
    from prometheus_client.registry import Collector

    class Gauges(Collector):
        def collect(self) -> Iterator[Metric]:
            for name, value in dict(figures()).items():
                described = f"{part}: {name.replace('_', ' ')}"
                yield GaugeMetricFamily(f"tacit_{part}_{name}", described, value=value)

    registry = CollectorRegistry()
    registry.register(Gauges())
    return registry


def serve_metrics(address: str, *, part: str, figures: Figures) -> HTTPServer:
    """Answer `GET /metrics` at HOST:PORT from a thread of its own, until the process ends."""
    if importlib.util.find_spec("prometheus_client") is None:  # a light node has no extra
        raise MissingExtra(
            "'--metrics' needs prometheus_client, which is not installed; type: pip install "
            "prometheus-client"
        )
    from prometheus_client import start_http_server

    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or not 0 <= int(port) < 65536:
        raise TacitError(f"--metrics must look like 127.0.0.1:9444, got {address!r}.")
    try:
        server, _ = start_http_server(
            int(port), addr=host.strip("[]"), registry=gauges(part, figures)
        )
    except OSError as error:
        raise TacitError(
            f"--metrics cannot listen on {address}: {error.strerror or error}; choose another."
        ) from error
    return server
