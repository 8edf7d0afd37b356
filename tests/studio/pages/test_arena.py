"""The arena's page in the studio: every result with its promise, and the report beside it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from studio_server import running_studio
from tacit.arena.grid import Choice
from tacit.arena.suites import suite_tasks
from tacit.guarantee import DpGuarantee, Unprotected
from tacit.studio.pages.arena import rows_of

pytestmark = [pytest.mark.seconds, pytest.mark.xdist_group("studio")]
N_RUNS = 100


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A hundred runs, every second of them only nominally protected."""
    tasks = suite_tasks("quick", Choice(seeds=tuple(range(60))))[:N_RUNS]
    lines = []
    for number, task in enumerate(tasks):
        sound = DpGuarantee(epsilon=2.0, model="local", unit="series")
        nominal = Unprotected(reason="of the test", nominal_epsilon=2.0)
        guarantee = sound if number % 2 else nominal
        lines.append({
            "task": task.to_dict(), "status": "done", "commit": "abc1234567",
            "accuracy": 0.5 + 0.4 * (number % 10) / 10, "guarantee": guarantee.to_dict(),
            "leakage": None, "details": {}, "seconds": 2.0, "cpu_seconds": 1.0 + number % 7,
        })  # fmt: skip
    place = tmp_path / "arena" / "quick"
    place.mkdir(parents=True)
    (place / "results.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return tmp_path


@pytest.fixture
def client(folder: Path) -> Iterator[httpx.Client]:
    with running_studio(folder) as studio, studio.client() as opened:
        yield opened


def test_every_run_is_counted_with_its_promise(client: httpx.Client) -> None:
    assert "/arena/quick" in client.get("/arena").text
    page = client.get("/arena/quick").text
    assert f"{N_RUNS} finished runs" in page
    assert 'class="sortable"' in page
    body = page.split("<tbody>")[1]
    cells = [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in body.split("<tr>")[1:]]
    assert sum(int(row[5]) for row in cells) == N_RUNS
    assert all("nominal" in row[3] and "epsilon 2" in row[3] for row in cells), "half of them"


def test_means_are_of_their_own_group() -> None:
    def run(method: str, accuracy: float) -> dict[str, object]:
        task = {"suite": "s", "method": method, "options": {}, "epsilon": 1.0, "data": "d"}
        guarantee = Unprotected(reason="of the test").to_dict()
        return {"task": task, "accuracy": accuracy, "cpu_seconds": 1.0, "guarantee": guarantee}

    found = {row.method: row for row in rows_of([run("a", 0.2), run("b", 0.9), run("a", 0.4)])}
    assert found["a"].accuracy == pytest.approx(0.3)
    assert (found["b"].n_runs, found["a"].n_runs) == (1, 2)


def test_an_empty_folder_gets_a_sentence(client: httpx.Client, folder: Path) -> None:
    (folder / "arena" / "empty").mkdir()
    assert "arena run" in client.get("/arena/empty").json()["error"]
