"""benchmarks/silo_speed.py without its federations: what it records of the parts that take long."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "silo_speed.py"


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The script; a run takes 4 processor seconds to start, and a candidate 30 or .05."""
    spec = importlib.util.spec_from_file_location("silo_speed_script", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    def run(*, m: int, candidates: int, **params: Any) -> tuple[None, dict[str, Any], None]:
        cost = 30.0 if params["quality"] == "ig-basic" else 0.05
        spent = 4.0 + cost * candidates * (m > 6)
        sizes = {"M": m, "N": 100, "n": 3, "candidates": candidates}
        times = {"seconds": 1.0, "seconds_without_compiling": 1.0, "cpu_seconds": spent}
        counts = {"stage_bytes_sent_by_P0": {"search": 1}, "rounds": {"search": 1}}
        rest: dict[str, Any] = {"bytes_sent_by_party": [1], "stage_seconds": {}}
        return None, {**sizes, **times, **counts, **rest}, None

    monkeypatch.setattr(module, "run", run)
    monkeypatch.setattr(module, "machine", lambda: {"commit": "abc"})
    monkeypatch.setattr(
        module, "_few", lambda cache: {"n": 100, "cache": cache, "quality": "f", "distance": "dot"}
    )
    return module


def test_equal_candidates_are_compared_without_the_start(script: Any, tmp_path: Path) -> None:
    script.part_equal(tmp_path, tmp_path)
    text = (tmp_path / "silo_speed.jsonl").read_text()
    start, basic, ours = (json.loads(line) for line in text.splitlines())
    assert (start["state"], start["cpu_seconds"]) == ("start alone", 4.0)
    assert basic["cpu_per_candidate"] == 30.0
    assert ours["cpu_per_candidate"] == 0.05
    assert ours["times_faster_than_basic"] == 600.0
    assert 260.0 < ours["times_faster_with_start"] < 270.0
    script.part_equal(tmp_path, tmp_path)  # nothing is measured again
    assert (tmp_path / "silo_speed.jsonl").read_text() == text
