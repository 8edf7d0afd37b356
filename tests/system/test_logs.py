"""Logs of services: text for people, JSON lines for machines, and programs' output within them."""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from command import tacit
from fleet_localhost import free_ports
from tacit.system.logs import is_json, log_to_standard_error, output_of_programs

LOG = logging.getLogger("tacit.somewhere")


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    loggers = [logging.getLogger(name) for name in ("tacit", "uvicorn.error")]
    before = [(logger, list(logger.handlers), logger.level) for logger in loggers]
    yield
    for logger, handlers, level in before:
        logger.handlers[:] = handlers
        logger.setLevel(level)


def test_json_is_one_object_per_line(capsys: pytest.CaptureFixture[str]) -> None:
    log_to_standard_error("json")
    assert is_json()
    LOG.info("forwarded a batch of %d", 5)
    try:
        raise ValueError("a\nb")
    except ValueError:
        LOG.exception("round 3 failed")
    first, second = (json.loads(line) for line in capsys.readouterr().err.splitlines())
    assert (first["level"], first["event"]) == ("info", "forwarded a batch of 5")
    assert time.strptime(first["time"], "%Y-%m-%dT%H:%M:%SZ")
    assert second["level"] == "error"
    assert "ValueError: a\nb" in second["error"]


def test_text_is_a_line_with_the_time(capsys: pytest.CaptureFixture[str]) -> None:
    log_to_standard_error("text")
    assert not is_json()
    LOG.info("forwarded")
    assert capsys.readouterr().err.rstrip().endswith(" forwarded")


def test_what_a_program_writes_becomes_lines_of_the_log(
    capsys: pytest.CaptureFixture[str],
) -> None:
    log_to_standard_error("json")
    output = output_of_programs()
    assert isinstance(output, int)
    coloured = r"print('\x1b[92mout\x1b[0m', flush=True)"
    code = f"import sys; {coloured}; print('\\u00e9rr', file=sys.stderr)"
    subprocess.run([sys.executable, "-c", code], stdout=output, stderr=output, check=True)
    os.close(output)
    events: list[str] = []
    deadline = time.monotonic() + 60
    while len(events) < 2 and time.monotonic() < deadline:
        time.sleep(0.01)
        events += [json.loads(line)["event"] for line in capsys.readouterr().err.splitlines()]
    assert events == ["out", "\u00e9rr"]


@pytest.mark.seconds
@pytest.mark.parametrize("service", ["shuffler", "serve"])
def test_every_line_of_a_service_is_json(
    service: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Started as its operator would, stopped by a signal; others set up their log in one call."""
    words = [*start_of(service, tmp_path, capsys), "--log-format", "json"]
    process = subprocess.Popen(
        [sys.executable, "-m", "tacit", *words],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        assert process.stderr is not None
        # It says where it listens: a fleet's service in the log, a collector in a table.
        (process.stderr if service == "shuffler" else process.stdout).readline()
    finally:
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=60)
    assert all(isinstance(json.loads(line), dict) for line in err.splitlines()), err


def start_of(service: str, folder: Path, capsys: Any) -> list[str]:
    if service == "serve":
        train = ("train", "softshape", "--data", "ItalyPowerDemand", "--out", folder / "bundle")
        assert tacit(capsys, *train).code == 0
        return ["serve", "bundle", "--store", "store.db", "--port", "0"]
    words = ("--data", "ItalyPowerDemand", "--port", free_ports(4), "--kernels", 20)
    assert tacit(capsys, "fleet", "init", folder / "fleet", *words).code == 0
    return ["fleet", service, f"fleet/{service}/{service}.toml"]
