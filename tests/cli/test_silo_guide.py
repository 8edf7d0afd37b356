"""The guide's three terminals, word for word: every command, and what it says it prints."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

import pytest

from command import tacit
from silo_parties import shared_cache
from tacit.silo.party.localhost import local_addresses

pytestmark = [pytest.mark.slow, pytest.mark.silo]
GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "silo.md"
NAMES = ("north", "south", "west")


@dataclass
class Step:
    """One command of the guide, whose terminal it is typed in, and what the guide says follows."""

    who: str
    command: str
    expected: list[str] = field(default_factory=list)

    @property
    def is_joint(self) -> bool:
        """Whether the parties must run it at the same time."""
        return self.command.startswith(("tacit silo check", "tacit silo party"))


def tutorial() -> str:
    text = GUIDE.read_text(encoding="utf-8")
    return text[text.index("## Try it") : text.index("## Deploy")]


def steps() -> list[Step]:
    found: list[Step] = []
    for block in re.findall(r"^```console\n(.*?)^```", tutorial(), re.M | re.S):
        for line in block.splitlines():
            typed = re.fullmatch(r"(\w*)\$ (tacit .*)", line)
            if typed is not None:
                found.append(Step(typed[1], typed[2]))
            else:
                found[-1].expected.append(line)
    return found


def move_to_free_ports(folder: Path, addresses: list[str]) -> None:
    for name in NAMES:
        config = folder / "federation" / name / "party.toml"
        text = config.read_text()
        for old, new in zip(range(9100, 9103), addresses, strict=True):
            text = text.replace(f"127.0.0.1:{old}", new)
        config.write_text(text.replace("silence_seconds = 15.0", "silence_seconds = 60.0"))


def run_together(group: list[Step], environment: dict[str, str]) -> None:
    running = [
        subprocess.Popen(
            [sys.executable, "-m", *shlex.split(step.command)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )
        for step in group
    ]
    ended = [(process.communicate(timeout=400), process.returncode) for process in running]
    for step, ((_, err), code) in zip(group, ended, strict=True):
        assert code == (2 if step.expected else 0), (step.command, err)
        for line in step.expected:
            assert line in err, (step.command, err)


def test_the_tutorial_runs_as_it_stands(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    environment = {**os.environ, "XDG_CACHE_HOME": str(shared_cache(tmp_path_factory))}
    for source in re.findall(r"^```python\n(.*?)^```", tutorial(), re.M | re.S):
        exec(compile(source, "silo.md", "exec"), {})
    todo = steps()
    assert {step.who for step in todo} == {"", *NAMES}
    assert sum(step.is_joint for step in todo) == 6
    with local_addresses(3) as addresses:
        for joint, group in groupby(todo, key=lambda step: step.is_joint):
            if joint:
                run_together(list(group), environment)
                continue
            for step in group:
                outcome = tacit(capsys, *shlex.split(step.command)[1:])
                assert outcome.code == 0, (step.command, outcome.err)
                if "silo init" in step.command:
                    move_to_free_ports(tmp_path, addresses)
    assert "why &#x27;" in (tmp_path / "why.html").read_text()
    assert (tmp_path / "new.html").is_file()
    for name in NAMES:
        out = tmp_path / "federation" / name / "out"
        assert (out / "receipt.json").is_file()
        assert (out / "model.safetensors").exists() == (name == "north")
