"""Load a fleet's two services, as real processes over TLS, with simulated devices in one round.

    python benchmarks/fleet_load.py --devices 10000 --at-once 64            # processor seconds
    python benchmarks/fleet_load.py --devices 2000 --at-once 2000 --broken 300   # a rush

Every device has its own key and connection and sends a real report (UCIHAR's shape: 9 channels of
128 values, 6 classes). `--broken` devices stop in the middle of their headers or body and stay.
Prints one JSON line: per service processor seconds of the round, peak and last resident memory, the
bytes that a device sends, and how long an answer took. Targets for `distributed` and 10,000
devices: 60 processor seconds for both services, 1 GB each, 10 kB per device.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import ssl
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from fleet_localhost import LocalFleet, local_fleet, wait_until
from tacit.arena.record import commit, versions
from tacit.fleet.deployment.batches.registry import write_registry
from tacit.fleet.deployment.batches.signatures import digest_of, new_signing_key, sign
from tacit.fleet.deployment.config import RunDescription
from tacit.fleet.deployment.seal import Sealer, sealed_size
from tacit.fleet.reports.calibration import make_plan
from tacit.fleet.reports.mechanisms import report_of
from tacit.noise import SYSTEM_NOISE
from tacit.system.certificates import trust_only
from tacit.system.toml import write_toml

SERVICES = ("shuffler", "analyser")
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass
class Usage:
    """What a process has used so far."""

    cpu_seconds: float
    peak_mb: float
    rss_mb: float


def usage(pid: int) -> Usage:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    memory = dict(
        line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines()
    )
    return Usage(
        (int(fields[11]) + int(fields[12])) / _TICKS,
        int(memory["VmHWM"].split()[0]) / 1024,
        int(memory["VmRSS"].split()[0]) / 1024,
    )


def prepare(fleet: LocalFleet, *, n: int, n_min: int, mechanism: str) -> dict[str, bytes]:
    """Give a small fleet's services a plan for n devices, and the keys of all of them."""
    plan = make_plan(
        classes=tuple("abcdef"),
        n_channels=9,
        length=128,
        mechanism=mechanism,
        n_clients=n,
        n_min=n_min,
        n_rounds=2,
    )
    described = replace(fleet.fleet, plan=report_of(plan).plan_for_files())
    fleet.fleet = described
    keys = {f"device-{i}": new_signing_key() for i in range(n)}
    for part in SERVICES:
        write_toml(fleet.folder / part / "plan.toml", described.to_plain())
        write_registry(
            fleet.folder / part / "nodes.txt", {name: public for name, (_, public) in keys.items()}
        )
    return {name: private + public for name, (private, public) in keys.items()}


def requests(described: RunDescription, keys: dict[str, bytes], *, host: str) -> list[bytes]:
    """One whole HTTP request per device, with noise, shares, seals and signature of its own."""
    report = report_of(described.plan)
    rng = np.random.default_rng(0)
    sealer = Sealer(described.public_key, run=described.run, report_bytes=report.message_bytes)
    helper = Sealer(
        described.helper_key,
        run=described.run,
        report_bytes=report.helper_bytes or 1,
        reader="helper",
    )
    made = []
    for name, key in keys.items():
        direction = rng.standard_normal((1, described.plan.dimension))
        direction /= np.linalg.norm(direction)
        sent = report.randomize(direction, source=SYSTEM_NOISE)[0]
        parts = report.encode(sent, source=SYSTEM_NOISE)
        sender = key[32:] if parts.helper else b""
        body = sealer.seal(parts.analyser, round_number=1, sender=sender)
        if parts.helper:
            body += helper.seal(parts.helper, round_number=1, sender=sender)
        cut = sealed_size(report.message_bytes)
        signature = sign(
            key[:32],
            run=described.run,
            round_number=1,
            node=name,
            analyser=digest_of(body[:cut]),
            helper=digest_of(body[cut:]),
        )
        head = (
            f"POST /v1/reports/{described.run}/1 HTTP/1.1\r\nhost: {host}\r\n"
            f"x-tacit-node: {name}\r\n"
            f"x-tacit-signature: {signature.hex()}\r\ncontent-length: {len(body)}\r\n"
            "connection: close\r\n\r\n"
        )
        made.append(head.encode() + body)
    return made


async def upload(content: bytes, *, port: int, tls: ssl.SSLContext) -> tuple[int, float]:
    """The status of one device's upload, tried until it is answered, and the seconds it took."""
    start = time.monotonic()
    while True:
        try:
            reader, writer = await asyncio.open_connection(
                "127.0.0.1", port, ssl=tls, server_hostname="127.0.0.1"
            )
            writer.write(content)
            await writer.drain()
            line = await asyncio.wait_for(reader.readline(), 120)
            writer.close()
            if line and line.split()[1] != b"503":
                return int(line.split()[1]), time.monotonic() - start
        except (OSError, ssl.SSLError, TimeoutError):
            pass
        await asyncio.sleep(0.5)


async def stop_halfway(content: bytes, *, port: int, tls: ssl.SSLContext, at: int) -> None:
    """A device that sends the first bytes and then nothing, and does not hang up."""
    try:
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", port, ssl=tls, server_hostname="127.0.0.1"
        )
        writer.write(content[:at])
        await writer.drain()
        await reader.read()
        writer.close()
    except (OSError, ssl.SSLError):
        pass


async def rush(
    contents: list[bytes], *, port: int, tls: ssl.SSLContext, at_once: int, broken: int
) -> list[tuple[int, float]]:
    """All uploads, so many at a time, beside devices that stopped halfway."""
    gate = asyncio.Semaphore(at_once)
    halfway = [
        asyncio.create_task(
            stop_halfway(contents[i % len(contents)], port=port, tls=tls, at=40 if i % 2 else 2000)
        )
        for i in range(broken)
    ]

    async def one(content: bytes) -> tuple[int, float]:
        async with gate:
            return await upload(content, port=port, tls=tls)

    answers = await asyncio.gather(*(one(content) for content in contents))
    for task in halfway:
        task.cancel()
    return answers


def measure(folder: Path, asked: argparse.Namespace) -> dict[str, Any]:
    with local_fleet(folder, rounds=2, mechanism=asked.mechanism, round_seconds=600.0) as fleet:
        keys = prepare(fleet, n=asked.devices, n_min=asked.devices, mechanism=asked.mechanism)
        port = int(fleet.server.shuffler_url.rpartition(":")[2])
        contents = requests(fleet.fleet, keys, host=f"127.0.0.1:{port}")
        fleet.start(*SERVICES)
        wait_until(lambda: is_open(fleet), seconds=120, what="round 1 opens")
        before = {part: usage(fleet.running[part].pid) for part in SERVICES}
        tls = trust_only(fleet.server.shuffler_certificate)
        start = time.monotonic()
        answers = asyncio.run(
            rush(contents, port=port, tls=tls, at_once=asked.at_once, broken=asked.broken)
        )
        uploaded = time.monotonic() - start
        wait_until(lambda: fleet.status()["round"] == 2, seconds=600, what="round 1 is released")
        ended = time.monotonic() - start
        time.sleep(asked.rest)
        after = {part: usage(fleet.running[part].pid) for part in SERVICES}
        seconds = [taken for _, taken in answers]
        history = fleet.status()["history"]
    codes = [code for code, _ in answers]
    return {
        "mechanism": asked.mechanism,
        "devices": asked.devices,
        "at_once": asked.at_once,
        "broken": asked.broken,
        "answers": {str(code): codes.count(code) for code in sorted(set(codes))},
        "n": history[0]["n"],
        "released": history[0]["released"],
        "bytes_per_device": max(map(len, contents)),
        "upload_seconds": round(uploaded, 1),
        "round_seconds": round(ended, 1),
        "answer_p50": round(statistics.median(seconds), 2),
        "answer_max": round(max(seconds), 2),
        "services": {
            part: {
                "cpu_seconds": round(after[part].cpu_seconds - before[part].cpu_seconds, 2),
                "peak_mb": round(after[part].peak_mb),
                "rss_mb": round(after[part].rss_mb),
            }
            for part in SERVICES
        },
    }


def is_open(fleet: LocalFleet) -> bool:
    try:
        return bool(fleet.shuffler_status()["round"] == 1)
    except ValueError:
        return False


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--devices", type=int, default=10_000)
    parser.add_argument("--at-once", type=int, default=64)
    parser.add_argument("--broken", type=int, default=0)
    parser.add_argument("--mechanism", default="distributed")
    parser.add_argument("--rest", type=float, default=5.0, help="seconds before memory is read")
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    origin = {"commit": commit(), "versions": versions()}  # of the code that begins to run
    with tempfile.TemporaryDirectory() as folder:
        found = measure(Path(folder) / "fleet", asked)
    line = json.dumps({**found, **origin}, sort_keys=True)
    print(line)
    if asked.out:
        with asked.out.open("a") as file:
            file.write(line + "\n")
    total = sum(part["cpu_seconds"] for part in found["services"].values())
    return 0 if total <= 60.0 and found["released"] else 1


if __name__ == "__main__":
    sys.exit(main())
