"""How fast a collector acknowledges, how much memory it takes, and how soon shares are known.

A collector process behind HTTPS and its clients share this machine. Every client is a device with
a key and a connection of its own; an answer counts as acknowledged after the commit.

    python benchmarks/local_collector.py                 # 200 clients, 10^6 releases
    python benchmarks/local_collector.py --clients 20 --releases 20000 --seconds 3
    python benchmarks/local_collector.py --out FILE      # append the line, with the commit
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import os
import ssl
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tacit.arena.record import commit, versions
from tacit.data import load_dataset
from tacit.local.collector.counts import class_shares
from tacit.local.collector.devices import make_codes
from tacit.local.collector.messages import ENROL_PATH, RELEASES_PATH, authorization
from tacit.local.collector.storage.store import Store
from tacit.local.estimator import DPSoftShapeClassifier
from tacit.local.model import LocalModel
from tacit.system.certificates import trust_only

BATCH = 1000


class Client:
    """One device on one connection."""

    def __init__(self, code: str, number: int, address: dict[str, Any], model: str) -> None:
        self.code, self.number, self.address, self.model = code, number, address, model
        self.key = Ed25519PrivateKey.generate()
        self.sent = 0

    async def enrol(self, tls: ssl.SSLContext) -> None:
        self.reader, self.writer = await asyncio.open_connection(
            "127.0.0.1", self.address["port"], ssl=tls
        )
        public = base64.b64encode(self.key.public_key().public_bytes_raw()).decode()
        await self.ask(ENROL_PATH, {"code": self.code, "public_key": public})

    async def release(self, size: int) -> None:
        start, self.sent = self.sent, self.sent + size
        windows = [str(n) for n in range(start, self.sent)]
        values = [(self.number + n) % 2 for n in range(size)]
        body = {"model": self.model, "kind": "label", "windows": windows, "values": values}
        await self.ask(RELEASES_PATH, body)

    async def ask(self, path: str, plain: dict[str, Any]) -> None:
        body = json.dumps(plain).encode()
        header = authorization(self.key, collector=self.address["collector"], path=path, body=body)
        self.writer.write(
            f"POST {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: {header}\r\n"
            f"Content-Length: {len(body)}\r\n\r\n".encode()
            + body
        )
        head = (await self.reader.readuntil(b"\r\n\r\n")).lower()
        length = int(head.split(b"content-length:")[1].split(b"\r\n")[0])
        answer = await self.reader.readexactly(length)
        if b" 200 " not in head.split(b"\r\n")[0] and b" 201 " not in head.split(b"\r\n")[0]:
            raise SystemExit(f"refused: {answer.decode()}")


async def measure(
    clients: list[Client], tls: ssl.SSLContext, options: argparse.Namespace, pid: int
) -> dict[str, float]:
    for start in range(0, len(clients), 20):
        await asyncio.gather(*(client.enrol(tls) for client in clients[start : start + 20]))
    before = memory_mib(pid)
    single, single_busy = await rate(clients, 1, options.seconds, pid)
    batched, batched_busy = await rate(clients, BATCH, options.seconds, pid)
    warm = memory_mib(pid)
    share = max(1, options.releases // len(clients) // BATCH)
    await asyncio.gather(*(repeat(client, share) for client in clients))
    return {
        "single_per_second": single,
        "single_server_cpu_share": single_busy,
        "batched_per_second": batched,
        "batched_server_cpu_share": batched_busy,
        "memory_before_mib": before,
        "memory_warm_mib": warm,
        "memory_after_mib": memory_mib(pid),
    }


async def repeat(client: Client, times: int) -> None:
    for _ in range(times):
        await client.release(BATCH)


async def rate(clients: list[Client], size: int, seconds: float, pid: int) -> tuple[float, float]:
    """Acknowledged releases a second, and the share of a core that the collector used."""
    start, busy = time.monotonic(), cpu_seconds(pid)
    end = start + seconds
    before = sum(client.sent for client in clients)

    async def work(client: Client) -> None:
        while time.monotonic() < end:
            await client.release(size)

    await asyncio.gather(*(work(client) for client in clients))
    passed = time.monotonic() - start
    sent = sum(client.sent for client in clients) - before
    return sent / passed, (cpu_seconds(pid) - busy) / passed


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory_mib(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) / 1024


def trained_model() -> LocalModel:
    data = load_dataset("ItalyPowerDemand")
    made = DPSoftShapeClassifier(2.0, channel="krr", encoder="kernels", random_state=0)
    model: LocalModel | None = made.fit(data.X_train, data.y_train).model_
    assert model is not None
    return model


def prevalence_seconds(store: Store, model: LocalModel) -> tuple[int, float]:
    start = time.perf_counter()
    (share,) = class_shares(store, model)
    class_shares(store, model, by="day", per_group=True)
    return share.shares.n, time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--releases", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--folder", type=Path, help="where the store is written, on a real disk")
    parser.add_argument("--out", type=Path, help="append the line to this file")
    options = parser.parse_args()
    model = trained_model()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        bundle, path = Path(folder) / "model.tacit", Path(folder) / "releases.db"
        model.save(bundle)
        command = [sys.executable, "-m", "tacit", "serve", str(bundle), "--json"]
        command += ["--store", str(path), "--port", "0"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            address = json.loads(server.stdout.readline())
            store = Store.open(str(path))
            codes = make_codes(store, count=options.clients)
            clients = [
                Client(code, number, address, model.identity) for number, code in enumerate(codes)
            ]
            tls = trust_only(Path(address["certificate"]))
            result: dict[str, float] = asyncio.run(measure(clients, tls, options, server.pid))
            n, seconds = prevalence_seconds(store, model)
            store.close()
            server.terminate()
        acknowledged = sum(client.sent for client in clients)
        assert n == acknowledged, f"{n} counted, {acknowledged} acknowledged"
        result |= {"releases_held": n, "prevalence_seconds": seconds}
        result["load_average"] = os.getloadavg()[0]
    rounded = {name: round(value, 4) for name, value in result.items()}
    line = {"clients": options.clients, **rounded, "commit": commit(), "versions": versions()}
    print(json.dumps(line))
    if options.out is not None:
        with options.out.open("a") as file:
            file.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
