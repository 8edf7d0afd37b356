"""Run the command line in this process and look at what it prints and returns."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from left_out import skip_if_left_out
from tacit.cli.app import run
from tacit.cli.manner.about import KEYS, with_new_names


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one JSON object on standard output."""
        lines = self.out.strip().splitlines()
        assert len(lines) == 1, f"not exactly one line on standard output: {self.out!r}"
        return json.loads(lines[0])


def tacit(capsys: pytest.CaptureFixture[str], *arguments: object) -> Outcome:
    """Run `tacit ARGUMENTS` and capture it."""
    words = [str(argument) for argument in arguments]
    capsys.readouterr()
    code = run(words)
    captured = capsys.readouterr()
    skip_if_left_out(captured.err)
    outcome = Outcome(code, captured.out, captured.err)
    if code == 0 and "--json" in words and "--help" not in words:
        missing = documented_keys(words) - set(outcome.json)
        assert not missing, f"tacit {' '.join(words)} lacks {sorted(missing)}"
    return outcome


def documented_keys(words: Sequence[str]) -> set[str]:
    """The keys that the reference promises for this call, in so far as its words decide it."""
    path = next(path for n in (2, 1) if (path := " ".join(words[:n])) in KEYS)
    always, *more = re.sub(r"\([^()]*\)", "", KEYS[path]).split(";")
    given = {word.partition("=")[0] for word in with_new_names(words)}
    conditions = {" in published mode" if "published" in words else " in sound mode"}
    if not any(Path(word).name == "shuffler" for word in words):
        conditions.add(" unless FOLDER is the shuffler's")
    promised = [always]
    for part in more:
        condition, _, keys = part.partition(" also ")
        option = re.fullmatch(r" with `(--[\w-]+)`", condition)
        if (option is not None and option[1] in given) or condition in conditions:
            promised.append(keys)
    return {key for keys in promised for key in re.findall(r"`(\w+)`", keys)}


def assert_refused(outcome: Outcome, *words: str) -> None:
    """Exit code 2, one sentence on standard error, nothing on standard output."""
    assert outcome.code == 2, outcome
    assert outcome.out == ""
    lines = outcome.err.strip().splitlines()
    assert len(lines) == 1, outcome.err
    assert lines[0].startswith("tacit: ")
    assert "Traceback" not in outcome.err
    for word in words:
        assert word in lines[0], lines[0]
