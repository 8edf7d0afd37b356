"""Kill -9: whatever was acknowledged is counted exactly once, and nothing else is."""

from __future__ import annotations

import asyncio
import base64
import json
import resource
import ssl
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from collector_parts import counting_model
from collector_process import CollectorProcess
from tacit.errors import TacitError
from tacit.local.collector.messages import (
    ENROL_PATH,
    RELEASES_PATH,
    authorization,
    device_name,
    window_digest,
)
from tacit.local.collector.storage.store import Store
from tacit.local.release import Release
from tacit.system.certificates import trust_only

N_DEVICES = 1000
AT_ONCE = 100
KILLS = 5


@dataclass
class SimulatedDevice:
    """Enrols, then sends three windows: one alone, two together; repeats until acknowledged."""

    code: str
    number: int
    port: int
    collector: str
    tls: ssl.SSLContext
    key: Ed25519PrivateKey = field(default_factory=Ed25519PrivateKey.generate)
    acknowledged: dict[str, int] = field(default_factory=dict)
    tries: int = 0

    async def report(self) -> None:
        public = self.key.public_key().public_bytes_raw()
        enrolment = {"code": self.code, "public_key": base64.b64encode(public).decode()}
        uploads = [{"a": self.number % 2}, {"b": 1, "c": self.number // 2 % 2}]
        steps: list[tuple[str, Any, dict[str, int]]] = [(ENROL_PATH, enrolment, {})]
        for upload in uploads:
            body = {
                "model": counting_model().identity,
                "kind": "label",
                "windows": list(upload),
                "values": list(upload.values()),
            }
            steps.append((RELEASES_PATH, body, upload))
        while steps:
            try:
                await self._connection(steps)
            except (OSError, asyncio.IncompleteReadError):
                self.tries += 1
                await asyncio.sleep(0.05)

    async def _connection(self, steps: list[tuple[str, Any, dict[str, int]]]) -> None:
        """Do the steps on one connection until it breaks."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, ssl=self.tls)
        try:
            while steps:
                path, plain, upload = steps[0]
                status = await self._ask(reader, writer, path, json.dumps(plain).encode())
                if status == 503:
                    raise ConnectionError
                assert status in (200, 201), status
                self.acknowledged.update(upload)
                steps.pop(0)
        finally:
            writer.transport.abort()

    async def _ask(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, path: str, body: bytes
    ) -> int:
        header = authorization(self.key, collector=self.collector, path=path, body=body)
        writer.write(
            f"POST {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: {header}\r\n"
            f"Content-Length: {len(body)}\r\n\r\n".encode()
            + body
        )
        head = await reader.readuntil(b"\r\n\r\n")
        lines = head.decode().lower().split("\r\n")
        (length,) = (line.split(":")[1] for line in lines if line.startswith("content-length"))
        await reader.readexactly(int(length))
        return int(lines[0].split()[1])


async def report_while_killed(
    devices: list[SimulatedDevice], served: CollectorProcess, *, kills: int
) -> None:
    """All devices, some at a time, while the collector is killed at spread moments."""
    gate = asyncio.Semaphore(AT_ONCE)

    async def one(device: SimulatedDevice) -> None:
        async with gate:
            await device.report()

    async def killer() -> None:
        for kill in range(1, kills + 1):
            while sum(len(device.acknowledged) for device in devices) < (
                kill * 3 * len(devices) // (kills + 1)
            ):
                await asyncio.sleep(0.01)
            await asyncio.to_thread(served.kill)
            await asyncio.to_thread(served.start)

    await asyncio.gather(killer(), *(one(device) for device in devices))


def stored(path: Path) -> dict[tuple[str, bytes], int]:
    """(device, window) -> symbol, after the counts were compared with the single releases."""
    store = Store.open(str(path))
    rows = store.read(
        "SELECT name, window_digest, symbol FROM collector_releases "
        "JOIN collector_devices ON number = device"
    )
    counts = store.read("SELECT symbol, sum(n) FROM collector_counts GROUP BY symbol")
    single = store.read("SELECT symbol, count(*) FROM collector_releases GROUP BY symbol")
    store.close()
    assert sorted(counts) == sorted(single)
    assert len({(name, window) for name, window, _ in rows}) == len(rows)
    return {(name, window): symbol for name, window, symbol in rows}


def expected(devices: list[SimulatedDevice]) -> dict[tuple[str, bytes], int]:
    return {
        (
            device_name(device.key.public_key().public_bytes_raw()),
            window_digest(window, device.collector),
        ): symbol
        for device in devices
        for window, symbol in device.acknowledged.items()
    }


@pytest.mark.slow
@pytest.mark.timeout(1200)  # six starts and a thousand handshakes, on a machine that may be busy
def test_a_thousand_devices_report_while_the_collector_is_killed(tmp_path: Path) -> None:
    counting_model().save(tmp_path / "model.tacit")
    served = CollectorProcess(tmp_path / "model.tacit", tmp_path / "r.db").start()
    tls = trust_only(served.certificate)
    devices = [
        SimulatedDevice(code, number, served.port, served.address["collector"], tls)
        for number, code in enumerate(served.codes(N_DEVICES))
    ]
    asyncio.run(report_while_killed(devices, served, kills=KILLS))
    served.kill()
    assert sum(device.tries for device in devices) >= KILLS, "the kills were felt"
    assert all(len(device.acknowledged) == 3 for device in devices)
    assert stored(tmp_path / "r.db") == expected(devices)


@pytest.mark.seconds
def test_a_store_that_is_full_acknowledges_nothing_and_recovers(tmp_path: Path) -> None:
    counting_model().save(tmp_path / "model.tacit")
    served = CollectorProcess(tmp_path / "model.tacit", tmp_path / "r.db").start()
    client = served.enrolled(tmp_path / "key.json")
    release = Release(
        kind="label",
        values=counting_model().head.channel.argmax(axis=1).repeat(1000),  # type: ignore[union-attr]
        model=counting_model().identity,
        guarantee=counting_model().guarantee,
    )
    client.send(release, windows=[f"a{n}" for n in range(2000)])
    # No file may grow: as on a full disk, only that it can be undone without rights.
    resource.prlimit(served.pid, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
    impatient = served.client(tmp_path / "key.json", patience=2.0)
    with pytest.raises(TacitError, match="store cannot be used now") as refusal:
        impatient.send(release, windows=[f"b{n}" for n in range(2000)])
    assert "\n" not in str(refusal.value)
    resource.prlimit(
        served.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    )
    assert client.send(release, windows=[f"b{n}" for n in range(2000)])["stored"] == 2000
    served.stop()
    assert len(stored(tmp_path / "r.db")) == 4000
