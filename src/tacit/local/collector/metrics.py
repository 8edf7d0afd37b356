"""Figures for Prometheus: totals of the whole collector, nothing per device or group."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Metrics:
    """What one collector process has done since it started, and what its store holds."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self.releases = Counter(
            "tacit_collector_releases",
            "Releases in uploads that were answered, by outcome.",
            ["outcome"],
            registry=self._registry,
        )
        self.refusals = Counter(
            "tacit_collector_refusals",
            "Requests that were refused, by HTTP status.",
            ["status"],
            registry=self._registry,
        )
        self._commits = self._gauge("commits", "Transactions since the start.")
        self._commit_seconds = self._gauge("commit_seconds", "Seconds spent in transactions.")
        self._writable = self._gauge("writable", "1 if the last transaction succeeded.")
        self._held = self._gauge("held_releases", "Releases that the store counts.")
        self._devices = self._gauge("devices", "Devices that are enrolled and not revoked.")
        for outcome in ("stored", "repeated", "refused"):
            self.releases.labels(outcome)

    def _gauge(self, name: str, text: str) -> Gauge:
        return Gauge(f"tacit_collector_{name}", text, registry=self._registry)

    def text(
        self, *, commits: int, commit_seconds: float, writable: bool, held: int, devices: int
    ) -> bytes:
        """The page that Prometheus reads."""
        self._commits.set(commits)
        self._commit_seconds.set(commit_seconds)
        self._writable.set(writable)
        self._held.set(held)
        self._devices.set(devices)
        return generate_latest(self._registry)
