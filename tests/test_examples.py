"""Every example runs by itself in an empty folder and says what it promises to say."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"
SAYS = {
    "wearable": (
        "a second release is refused",
        "spent 2 in all, chain intact: True",
        "estimated shares",
    ),
    "hospitals": ("together: accuracy", "what is opened: shapelet indices", "because of:"),
    "fleet": ("distributed: accuracy", "privunit: accuracy", "central"),
    "both": ("training: Distributed", "release: Local", "ten releases and training", "right on"),
    "researcher": ("krr at 1: at least", "consistent", "refuted", "recovered exactly: True"),
}


def test_every_example_is_listed_and_tested() -> None:
    scripts = {path.stem for path in EXAMPLES.glob("*.py")}
    listed = re.findall(r"^\| \[(\w+)\.py\]", (EXAMPLES / "README.md").read_text(), re.M)
    assert scripts == set(listed) == set(SAYS)


@pytest.mark.seconds
@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=[pytest.mark.silo] if n == "hospitals" else []) for n in SAYS],
)
def test_an_example_runs_in_an_empty_folder(name: str, tmp_path: Path) -> None:
    environment = {k: v for k, v in os.environ.items() if k != "TACIT_DATA"}
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / f"{name}.py")],
        capture_output=True, text=True, timeout=120, cwd=tmp_path, env=environment, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    for words in SAYS[name]:
        assert words in done.stdout, done.stdout
