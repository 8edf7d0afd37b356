"""A real studio process on a workspace, for tests that talk to it or drive a browser."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx


@dataclass(frozen=True)
class Studio:
    url: str
    workspace: Path

    @property
    def address(self) -> str:
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc}"

    @property
    def token(self) -> str:
        return parse_qs(urlsplit(self.url).query)["token"][0]

    def client(self) -> httpx.Client:
        """A client as our pages are: with the cookie and the origin."""
        return httpx.Client(
            base_url=self.address,
            cookies={"tacit_studio": self.token},
            headers={"Origin": self.address, "Accept": "application/json"},
            timeout=120.0,
        )


@contextmanager
def running_studio(workspace: Path) -> Iterator[Studio]:
    command = [sys.executable, "-m", "tacit", "studio", "--port", "0", "--json"]
    process = subprocess.Popen(
        [*command, "--workspace", str(workspace)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        yield Studio(json.loads(process.stdout.readline())["url"], workspace)
    finally:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()
