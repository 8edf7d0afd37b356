"""A peer whose certificate has expired is a trouble by that name, and heals when it is renewed."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from fleet_localhost import LocalFleet, free_ports
from tacit.fleet.deployment import batch_delivery, http
from tacit.fleet.deployment.batch_delivery import BatchDelivery
from tacit.fleet.deployment.config import ShufflerConfig, read_config, read_run
from tacit.fleet.deployment.run import open_analyser, open_shuffler
from tacit.fleet.deployment.serving.upkeep import Upkeep
from tacit.system import certificates
from tacit.system.certificates import self_signed, trust_only


@pytest.mark.seconds
def test_an_expired_analyser_shows_at_the_shuffler_and_heals(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_delivery, "_RETRY_SECONDS", 0.05)
    fleet = LocalFleet(tmp_path / "fleet", n_kernels=4)
    new = self_signed("analyser", hosts=("localhost", "127.0.0.1"))
    monkeypatch.setattr(certificates, "VALID_DAYS", 0)
    old = self_signed("analyser", hosts=("localhost", "127.0.0.1"))
    config = fleet.analyser
    old.write(certificate=config.certificate, key=config.private_key)
    shuffler_config = read_config(fleet.path("shuffler"), ShufflerConfig)
    trusted = shuffler_config.analyser_certificate
    trusted.write_bytes(old.certificate + new.certificate)
    shuffler, _ = open_shuffler(shuffler_config, fleet.fleet)
    analyser = open_analyser(config, read_run(config.plan))
    upkeep = Upkeep(config.certificate, config.certificate.with_name("tls-next.crt"))
    app = http.analyser_ingest_app(analyser, max_bytes=10**6)
    port = free_ports(1)
    server = http._server(app, replace(config, host="127.0.0.1"), upkeep, port=port)
    delivery = BatchDelivery(url=f"https://localhost:{port}", tls=trust_only(trusted))
    asked = httpx.ASGITransport(app=http.shuffler_app(shuffler, delivery))

    async def story() -> None:
        serving = asyncio.create_task(server.serve())
        delivering = asyncio.create_task(delivery.run(shuffler))
        async with asyncio.timeout(60), httpx.AsyncClient(transport=asked) as client:
            while "expired" not in str(delivery.trouble):
                await asyncio.sleep(0.02)
            unwell = await client.get("http://shuffler/healthz")
            assert unwell.status_code == 503
            assert unwell.json()["trouble"].endswith("ConnectError: certificate has expired)")
            new.write(certificate=config.certificate, key=config.private_key)
            upkeep.look()  # what a running service does every two seconds
            while delivery.trouble is not None or shuffler.round_number != 1:
                await asyncio.sleep(0.02)
            assert (await client.get("http://shuffler/healthz")).status_code == 200
        delivering.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await delivering
        server.should_exit = True
        await serving

    asyncio.run(story())
