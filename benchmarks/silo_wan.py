"""The default fit over a slow line: every connection between parties passes a delay proxy.

    python benchmarks/silo_wan.py [--one-way-ms 10] [--mbit 100] [--series 512] [--length 100]
        [--candidates 500] [--shapelets 200] [--search-only] [--set key=value ...] [--out FILE]

Prints one JSON line, and appends it to FILE: seconds of the stages, bytes and messages of every
party, and the processor seconds of all. The proxy holds back every byte for the one-way delay, and
gives each party one uplink of the given rate for all that it sends. Parties and proxy are processes
of this machine and share its cores.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from silo_speed import (
    SEARCH_ONLY,
    cpu_of_children,
    lengths_around,
    machine,
    synthetic,
    write_line,
)

from tacit.silo.fedst.settings import settings_from
from tacit.silo.party import localhost
from tacit.silo.party.folder import Limits, split_address, write_folders
from tacit.silo.party.localhost import local_addresses
from tacit.silo.party.receipts import Receipt, read_receipt
from tacit.silo.plan import Plan, default_protocol
from tacit.silo.secure.compiler import default_cache

_PIECE = 1 << 16
_QUEUED_SECONDS = 0.05  # how much of its uplink a connection may have waiting


@dataclass
class Line:
    """One-way delay and rate; `free` says when each party's uplink is free again."""

    delay_seconds: float
    bytes_per_second: float
    free: dict[int, float] = field(default_factory=dict)

    def book(self, sender: int, n_bytes: int) -> float:
        """Take the sender's uplink for these bytes; when they arrive at the other end."""
        start = max(time.monotonic(), self.free.get(sender, 0.0))
        self.free[sender] = start + n_bytes / self.bytes_per_second
        return self.free[sender] + self.delay_seconds


async def pump(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, line: Line, sender: int
) -> None:
    """Carry one direction of a connection, each piece no sooner than it may arrive."""
    waiting: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()

    async def deliver() -> None:
        while True:
            when, data = await waiting.get()
            await asyncio.sleep(max(0.0, when - time.monotonic()))
            if not data:
                writer.close()
                return
            writer.write(data)
            await writer.drain()

    delivering = asyncio.ensure_future(deliver())
    with suppress(OSError):
        while data := await reader.read(_PIECE):
            waiting.put_nowait((line.book(sender, len(data)), data))
            ahead = line.free[sender] - time.monotonic() - _QUEUED_SECONDS
            if ahead > 0:
                await asyncio.sleep(ahead)
    waiting.put_nowait((time.monotonic() + line.delay_seconds, b""))
    with suppress(OSError):
        await delivering


async def carry(routes: Sequence[Mapping[str, Any]], line: Line) -> None:
    """Listen at the near end of every route and carry its connections, for ever."""

    def handler(route: Mapping[str, Any]) -> Any:
        async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                there = await asyncio.open_connection(*split_address(route["to"]), limit=1 << 18)
            except OSError:
                writer.close()
                return
            await asyncio.gather(
                pump(reader, there[1], line, route["source"]),
                pump(there[0], writer, line, route["target"]),
            )

        return handle

    for route in routes:
        host, port = split_address(route["near"])
        await asyncio.start_server(handler(route), host, port, limit=1 << 18)
    print("ready", flush=True)
    await asyncio.Event().wait()


@contextmanager
def proxy(routes: Sequence[Mapping[str, Any]], *, one_way_ms: float, mbit: float) -> Iterator[None]:
    """The proxy as a process of its own."""
    order = json.dumps({"routes": routes, "one_way_ms": one_way_ms, "mbit": mbit})
    command = [sys.executable, __file__, "--proxy", order]
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        yield
    finally:
        process.kill()
        process.wait()


def run_over(
    plan: Plan, inputs: Sequence[Any], *, one_way_ms: float, mbit: float
) -> tuple[list[Receipt], float]:
    """Run the plan with every party reaching the others through the proxy; receipts, seconds."""
    n = plan.n_parties
    pairs = [(a, b) for a in range(n) for b in range(n) if a != b]
    with (
        tempfile.TemporaryDirectory(prefix="tacit-wan-") as scratch,
        local_addresses(n) as homes,
        local_addresses(len(pairs)) as near,
    ):
        limits = Limits(join_seconds=300.0, silence_seconds=120.0, engine_seconds=600.0)
        configs = write_folders(Path(scratch) / "f", plan.terms, addresses=homes, limits=limits)
        routes = []
        for (a, b), place in zip(pairs, near, strict=True):
            config = configs[plan.parties[a]]
            config.write_text(config.read_text().replace(f'"{homes[b]}"', f'"{place}"'))
            routes.append({"near": place, "to": homes[b], "source": a, "target": b})
        with proxy(routes, one_way_ms=one_way_ms, mbit=mbit):
            start = time.monotonic()
            options = ["--cache", str(default_cache()), "--program", plan.program]
            localhost.run_parties(configs, options, inputs)
            seconds = time.monotonic() - start
        return [read_receipt(config.parent / "out") for config in configs.values()], seconds


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--one-way-ms", type=float, default=10.0)
    parser.add_argument("--mbit", type=float, default=100.0)
    parser.add_argument("--series", type=int, default=512)
    parser.add_argument("--length", type=int, default=100)
    parser.add_argument("--candidates", type=int, default=500)
    parser.add_argument("--shapelets", type=int, default=200)
    parser.add_argument("--search-only", action="store_true")
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--proxy", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.proxy is not None:
        order = json.loads(options.proxy)
        line = Line(order["one_way_ms"] / 1e3, order["mbit"] * 1e6 / 8)
        asyncio.run(carry(order["routes"], line))
        return
    inputs = synthetic(m=options.series, n=options.length, parties=3)
    chosen: dict[str, Any] = {
        "n_candidates": options.candidates,
        "n_shapelets": options.shapelets,
        "lengths": lengths_around(options.length),
    }
    chosen |= SEARCH_ONLY if options.search_only else {}
    for change in options.set:
        key, _, value = change.partition("=")
        chosen[key] = json.loads(value) if value[:1].isdigit() else value
    plan = Plan(
        program="fedst",
        parties=("P0", "P1", "P2"),
        protocol=default_protocol(3),
        classes=("0", "1"),
        series_length=options.length,
        counts=tuple(len(own.X) for own in inputs),
        params=settings_from(chosen).to_params(),
    )
    before = cpu_of_children()
    receipts, seconds = run_over(plan, inputs, one_way_ms=options.one_way_ms, mbit=options.mbit)
    record = {
        "one_way_ms": options.one_way_ms,
        "mbit": options.mbit,
        "M": options.series,
        "N": options.length,
        "params": dict(plan.params),
        "stage_seconds": receipts[0].info["seconds"],
        "compile_seconds": receipts[0].info["compile_seconds"],
        "bytes_sent": [receipt.bytes_sent for receipt in receipts],
        "messages": [receipt.rounds for receipt in receipts],
        "wall_seconds": round(seconds, 1),
        "cpu_seconds": round(cpu_of_children() - before, 1),
        **machine(),
    }
    if options.out is not None:
        write_line(options.out, record)
    print(json.dumps(record))


if __name__ == "__main__":
    main()
