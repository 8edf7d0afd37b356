"""A workspace with as many releases and runs as the studio promises to show quickly."""

from __future__ import annotations

import json
import secrets
import time
from pathlib import Path

from collector_parts import SetClock, counting_model, enrolled
from tacit.arena.grid import Choice
from tacit.arena.suites import suite_tasks
from tacit.guarantee import DpGuarantee
from tacit.ledger import Ledger
from tacit.local.collector.storage.clock import DAY_SECONDS
from tacit.local.collector.storage.store import Store, Upload, store_uploads

N_DEVICES, PER_DEVICE, DAYS = 100, 1000, 30
N_RUNS = 100
PAGES = (
    "/", "/data", "/data/GunPoint", "/data/import/table.csv", "/plan", "/plan/GunPoint", "/train",
    "/look", "/look/italy", "/device", "/population", "/population/hospital",
    "/federation", "/budget", "/budget/device.db", "/arena", "/arena/quick", "/jobs",
    "/collect/hospital/", "/vega.js",
)  # fmt: skip


def filled_store(path: Path) -> None:
    """10^5 releases of a hundred devices over thirty days."""
    store = Store.open(str(path), model=counting_model(), clock=SetClock(time.time() - 1e5))
    devices = [enrolled(store, group=f"ward {n % 3}") for n in range(N_DEVICES)]
    today = int(store.clock.now() // DAY_SECONDS)
    for day in range(DAYS):
        uploads = [
            Upload(
                device=device,
                group=f"ward {n % 3}",
                windows=[secrets.token_bytes(16) for _ in mine],
                symbols=[int(w % 10 < 3) for w in mine],
            )
            for n, device in enumerate(devices)
            if (mine := range(day, PER_DEVICE, DAYS))
        ]
        store.write(lambda database, now=today - day, sent=uploads: store_uploads(  # type: ignore[misc]
            database, sent, day=now))  # fmt: skip
    store.close()


def fill_workspace(workspace: Path) -> None:
    """Something for every page to show: `PAGES` are their addresses."""
    for room in ("models/italy", "stores", "arena/quick", "ledgers", "uploads", "jobs"):
        (workspace / room).mkdir(parents=True)
    counting_model().save(workspace / "models" / "italy" / "model.tacit")
    filled_store(workspace / "stores" / "hospital.db")
    cost = DpGuarantee(epsilon=2.0, model="local", unit="series")
    lines = [
        {"task": task.to_dict(), "status": "done", "commit": "abc1234567", "accuracy": 0.8,
         "guarantee": cost.to_dict(), "leakage": None, "details": {}, "seconds": 2.0,
         "cpu_seconds": 1.0}
        for task in suite_tasks("quick", Choice(seeds=tuple(range(60))))[:N_RUNS]
    ]  # fmt: skip
    results = workspace / "arena" / "quick" / "results.jsonl"
    results.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with Ledger.open(workspace / "ledgers" / "device.db") as ledger:
        ledger.debit_many(
            subjects=[f"series {n}" for n in range(1000)], subject_kind="series", guarantee=cost,
            purpose="label release",
        )  # fmt: skip
    rows = ["label," + ",".join(f"t{n}" for n in range(50))]
    rows += [f"{n % 2}," + ",".join(str(n % 7 + k) for k in range(50)) for n in range(1000)]
    (workspace / "uploads" / "table.csv").write_text("\n".join(rows))
    for n in range(N_RUNS):
        job = workspace / "jobs" / f"20260101-000000-{n:06d}"
        job.mkdir()
        about = {"kind": "other"}
        described = {"title": f"run {n}", "arguments": ["data", "show", "GunPoint", "--json"],
                     "about": about, "started": 0.0}  # fmt: skip
        (job / "job.json").write_text(json.dumps(described))
        (job / "exit").write_text("0")
        (job / "result.json").write_text("{}")
