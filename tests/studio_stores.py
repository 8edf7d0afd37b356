"""A workspace with as many releases and runs as the studio promises to show quickly."""

from __future__ import annotations

import contextlib
import io
import json
import secrets
import time
from math import sin
from pathlib import Path

import numpy as np

from collector_parts import SetClock, counting_model, enrolled
from tacit.arena.grid import Choice
from tacit.arena.suites import suite_tasks
from tacit.cli.app import run
from tacit.fleet.deployment.analyser_state import AnalyserRound, AnalyserState, analyser_config
from tacit.fleet.deployment.config import read_run
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
    "/data/plain", "/jobs/trained", "/jobs/refused", "/pages/trained", "/federation/three",
    "/federation/fleet", "/collect/hospital/device",
    "/budget/device.db/disclosure?subject=series%201",
)  # fmt: skip


def filled_store(path: Path) -> None:
    """10^5 releases of a hundred devices over thirty days."""
    store = Store.open(str(path), model=counting_model(), clock=SetClock(time.time() - 1e5))
    devices = [enrolled(store, group=f"ward {n % 3}") for n in range(N_DEVICES)]
    today = int(store.clock.now() // DAY_SECONDS)
    for day in range(DAYS):
        often = 300 + 60 * sin(day / 4.0)  # of a thousand windows
        uploads = [
            Upload(
                device=device,
                group=f"ward {n % 3}",
                windows=[secrets.token_bytes(16) for _ in mine],
                symbols=[int((w * 7919 + n * 104_729) % 1000 < often) for w in mine],
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
        words = ["data", "show", "GunPoint"]
        add_job(workspace, f"20260101-000000-{n:06d}", f"run {n}", words, result="{}")
    (workspace / "data").mkdir()
    np.savez(workspace / "data" / "plain.npz", X=np.sin(np.arange(200.0)).reshape(5, 1, 40))
    add_training(workspace)
    add_federations(workspace / "federations")


def add_job(
    workspace: Path,
    name: str,
    title: str,
    words: list[str],
    *,
    result: str = "",
    log: str = "",
    **about: str,
) -> None:
    """A job that has ended: well if it has a result, else with a refusal."""
    job = workspace / "jobs" / name
    job.mkdir()
    about = about or {"kind": "other"}
    described = {"title": title, "arguments": [*words, "--json"], "about": about, "started": 0.0}
    (job / "job.json").write_text(json.dumps(described))
    (job / "exit").write_text("0" if result else "2")
    (job / "result.json").write_text(result)
    (job / "log.txt").write_text(log)


def command(*words: object) -> str:
    """What a command prints."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        assert run([str(word) for word in words]) == 0
    return said.getvalue()


def add_training(workspace: Path) -> None:
    """One training with its page, and one that was refused."""
    (workspace / "pages").mkdir(exist_ok=True)
    words = ["train", "softshape", "--data", "ItalyPowerDemand", "--epsilon", "2", "--page",
             str(workspace / "pages" / "trained.html")]  # fmt: skip
    result = command(*words, "--json")
    about = {"kind": "train", "method": "softshape", "data": "ItalyPowerDemand", "model": "italy"}
    add_job(workspace, "trained", "Local releases", words, result=result, **about)
    add_job(workspace, "refused", "Local releases", words, log="tacit: choose another page.")


def add_federations(folder: Path) -> None:
    """A silo before its run, and a fleet of five nodes after three of six rounds."""
    folder.mkdir(exist_ok=True)
    command("silo", "init", folder / "three", "--parties", "north,east,south", "--json")
    command("fleet", "init", folder / "fleet", "--data", "GunPoint", "--nodes", 5, "--rounds", 6,
            "--epsilon", 8, "--n-min", 2, "--json")  # fmt: skip
    config = analyser_config(folder / "fleet")
    config.state.mkdir(exist_ok=True)
    history = tuple(
        AnalyserRound(round_number=n, batch_id=f"b{n}", n=reports, left_out=0, released=True,
                      epsilon=1.25 * n)
        for n, reports in enumerate((5, 5, 4), start=1)
    )  # fmt: skip
    state = AnalyserState(model=b"", next_round=4, history=history)
    (config.state / "checkpoint.npz").write_bytes(state.to_bytes(read_run(config.plan).run))
