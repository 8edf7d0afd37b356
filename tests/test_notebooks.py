"""The notebooks run from the first cell to the last in a kernel of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"
NOTEBOOKS = sorted(EXAMPLES.glob("*.ipynb"))
RUN = """
import sys
import nbformat
from nbclient import NotebookClient
notebook = nbformat.read(sys.argv[1], as_version=4)
NotebookClient(notebook, timeout=240, kernel_name="python3").execute()
nbformat.write(notebook, sys.argv[2])
"""
SHOWS = {
    "local": ("differential privacy with epsilon = 2", "image/svg+xml", "released"),
    "fleet": ("epsilon = ", "accuracy 0.", "image/svg+xml"),
}


def test_every_notebook_is_listed_without_outputs() -> None:
    assert {path.stem for path in NOTEBOOKS} == set(SHOWS)
    listed = (EXAMPLES / "README.md").read_text()
    for path in NOTEBOOKS:
        assert f"[{path.name}]({path.name})" in listed
        assert '"outputs": []' in path.read_text()
        assert "output_type" not in path.read_text()


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path: Path, tmp_path: Path) -> None:
    pytest.importorskip("nbclient")
    environment = {k: v for k, v in os.environ.items() if k != "TACIT_DATA"}
    environment |= {"IPYTHONDIR": str(tmp_path / "ipython"), "JUPYTER_PLATFORM_DIRS": "1"}
    out = tmp_path / "out.ipynb"
    done = subprocess.run(
        [sys.executable, "-c", RUN, str(path), str(out)],
        capture_output=True, text=True, timeout=280, cwd=tmp_path, env=environment, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    made = out.read_text()
    for words in SHOWS[path.stem]:
        assert words in made, words
    assert "cdn." not in made
