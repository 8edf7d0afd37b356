"""The command that writes docs/results.md: idempotent, and its verdicts follow the lines."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


def write_page(page: Path, results: Path) -> str:
    words = [sys.executable, "benchmarks/results_page.py", "--results", results, "--page", page]
    subprocess.run([str(word) for word in words], cwd=ROOT, check=True, timeout=120)
    return page.read_text()


def rocket(data: str, epsilon: float | None, accuracy: float, **changes: Any) -> dict[str, Any]:
    task = {"suite": "softshape-table2", "method": "rocket", "data": data, "epsilon": epsilon,
            "seed": 0, "options": {}}  # fmt: skip
    return {"task": task, "status": "done", "commit": "abc", "accuracy": accuracy, **changes}


def test_the_page_is_filled_from_the_lines_and_stays_the_same(tmp_path: Path) -> None:
    page, results = tmp_path / "results.md", tmp_path / "results"
    shutil.copy(ROOT / "docs" / "results.md", page)
    folder = results / "arena" / "softshape-table2"
    folder.mkdir(parents=True)
    lines = [
        rocket(data, epsilon, accuracy)
        for data in ("a", "b")
        for epsilon, accuracy in ((None, 0.9), (0.1, 0.5), (0.5, 0.5), (1.0, 0.6), (5.0, 0.66))
    ]
    lines.append(rocket("c", None, 0.0, commit="abc-dirty"))
    (folder / "results.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    first = write_page(page, results)
    assert "| rocket | 0.898 | 0.900 | 0.565 | 0.565 | other sets | 2 | 1 | - |" in first
    claim = "| DP-SoftShape | against .565 for rocket in the same setting | reproduced | 0.565 on"
    assert claim in first
    assert "three orders of magnitude of speedup | not tested here" in first
    assert write_page(page, results) == first
