"""Run the command line in this process and look at what it prints and returns."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest

from left_out import skip_if_left_out
from tacit.cli.app import run


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
    capsys.readouterr()
    code = run([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    skip_if_left_out(captured.err)
    return Outcome(code, captured.out, captured.err)


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
