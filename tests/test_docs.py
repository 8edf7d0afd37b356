"""README and docs: every python block runs, every `$ tacit` line succeeds.

A block under `<!-- not run: reason -->` is left out; the reason has to be given.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from command import tacit

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"(<!-- not run: [^\n]+ -->\n)?^```(python|console)\n(.*?)^```", re.M | re.S)


def blocks(page: Path, language: str) -> list[str]:
    found = BLOCK.findall(page.read_text(encoding="utf-8"))
    return [body for skipped, kind, body in found if kind == language and not skipped]


def with_blocks(language: str) -> list[object]:
    """The pages that have such blocks; those of the silo family need its extra."""
    return [
        pytest.param(page, marks=[pytest.mark.silo] if page.name.startswith("silo") else [])
        for page in PAGES
        if blocks(page, language)
    ]


@pytest.fixture(autouse=True)
def _in_a_fresh_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TACIT_DATA", raising=False)


@pytest.mark.parametrize("page", with_blocks("python"), ids=lambda page: page.name)
def test_python_examples_run(page: Path) -> None:
    names: dict[str, object] = {}
    for number, source in enumerate(blocks(page, "python"), start=1):
        exec(compile(source, f"{page.name} block {number}", "exec"), names)


@pytest.mark.parametrize("page", with_blocks("console"), ids=lambda page: page.name)
def test_console_examples_run(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    commands = [
        line[2:]
        for body in blocks(page, "console")
        for line in body.splitlines()
        if line.startswith("$ tacit ")
    ]
    for command in commands:
        outcome = tacit(capsys, *shlex.split(command)[1:])
        assert outcome.code == 0, f"{command}\n{outcome.err}"


def test_links_between_pages_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\((?!http)([^)#]+)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_public_names_are_the_documented_ones() -> None:
    import tacit as package

    table = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    documented = set(re.findall(r"^\| `(\w+)` \|", table, re.M))
    assert documented == set(package.__all__)
    for name in package.__all__:
        assert getattr(package, name) is not None
