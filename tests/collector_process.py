"""A collector as its own process behind HTTPS, which tests may kill and start again."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from tacit.local.collector.client import CollectorClient
from tacit.local.collector.devices import make_codes
from tacit.local.collector.storage.store import Store


class CollectorProcess:
    """`tacit serve BUNDLE --store STORE`; `start` returns when it listens."""

    def __init__(self, bundle: Path, store: Path | str, *options: object) -> None:
        self.bundle, self.store, self.options = bundle, store, options
        self.process: subprocess.Popen[str] | None = None
        self.address: dict[str, Any] = {}
        self.port = 0
        self._clients: list[CollectorClient] = []

    def start(self) -> CollectorProcess:
        command = [sys.executable, "-m", "tacit", "serve", str(self.bundle), "--json"]
        command += ["--store", str(self.store), "--port", str(self.port)]
        self.process = subprocess.Popen(
            [*command, *map(str, self.options)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, self._said()
        self.address = json.loads(line)
        self.port = self.address["port"]
        return self

    @property
    def url(self) -> str:
        return str(self.address["url"])

    @property
    def certificate(self) -> Path:
        return Path(self.address["certificate"])

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def kill(self) -> None:
        """SIGKILL: no handler runs, nothing is flushed."""
        assert self.process is not None
        os.kill(self.process.pid, signal.SIGKILL)
        self._end()

    def stop(self) -> str:
        """SIGTERM; returns the log."""
        assert self.process is not None
        if self.process.poll() is None:
            self.process.terminate()
        return self._end()

    def _end(self) -> str:
        assert self.process is not None
        self.close_clients()
        _, log = self.process.communicate(timeout=120)
        return log

    def _said(self) -> str:
        assert self.process is not None
        return self.process.communicate(timeout=60)[1]

    def codes(self, count: int, *, group: str = "") -> list[str]:
        store = Store.open(str(self.store))
        made = make_codes(store, count=count, group=group)
        store.close()
        return made

    def client(self, key: Path, *, patience: float = 120.0) -> CollectorClient:
        made = CollectorClient(self.url, key=key, trust=self.certificate, patience=patience)
        self._clients.append(made)
        return made

    def close_clients(self) -> None:
        while self._clients:
            self._clients.pop().close()

    def enrolled(self, key: Path, *, group: str = "") -> CollectorClient:
        """A client of a new device."""
        client = self.client(key)
        client.enrol(self.codes(1, group=group)[0])
        return client
