"""A real studio process on a workspace, for tests that talk to it or drive a browser."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
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
    pid: int = 0

    @property
    def address(self) -> str:
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc}"

    @property
    def token(self) -> str:
        return parse_qs(urlsplit(self.url).query)["token"][0]

    def most_kilobytes(self) -> int:
        """The most memory that its own process has held so far."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        return int(status.split("VmHWM:")[1].split()[0])

    def client(self) -> httpx.Client:
        """A client as our pages are: with the cookie and the origin."""
        return httpx.Client(
            base_url=self.address,
            cookies=self.cookies(),
            headers={"Origin": self.address, "Accept": "application/json"},
            timeout=120.0,
        )

    def cookies(self) -> dict[str, str]:
        """What a browser keeps after it opened the address."""
        entered = httpx.get(self.url, timeout=120.0)
        assert entered.status_code == 303
        return dict(entered.cookies.items())


@contextmanager
def running_studio(workspace: Path, *, port: int = 0) -> Iterator[Studio]:
    command = [sys.executable, "-m", "tacit", "studio", "--port", str(port), "--json"]
    process = subprocess.Popen(
        [*command, "--workspace", str(workspace)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        url = json.loads(process.stdout.readline())["url"]
        yield Studio(url, workspace, process.pid)
    finally:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def state_of(client: httpx.Client, job: str) -> str:
    """What the page of a job says of it."""
    (found,) = re.findall(r'<p class="kicker">.* · (\w+)</p>', client.get(f"/jobs/{job}").text)
    return str(found)


def ended(client: httpx.Client, job: str) -> str:
    """Its state once it has ended."""
    deadline = time.monotonic() + 300.0
    while (state := state_of(client, job)) == "running" and time.monotonic() < deadline:
        time.sleep(0.1)
    return state
