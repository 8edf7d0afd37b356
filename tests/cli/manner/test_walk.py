"""Walk every command with bad values: one sentence, exit code 2, no traceback, no file left."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from command import assert_refused, tacit
from tacit.cli.app import app

# Values that make a call complete, so that the one bad value is what gets refused.
REQUIRED = {
    "name": "GunPoint",
    "data": "GunPoint",
    "epsilon": "1",
    "local_epsilon": "1",
    "central_epsilon": "1",
    "n": "1000",
    "delta": "1e-6",
    "of": "shuffler",
}

BAD_NUMBERS = {"integer": ["x", "1.5", "-1"], "float": ["x", "nan", "inf", "-1", "0"]}


def commands(node: Any = None, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    node = node or typer.main.get_command(app)
    if hasattr(node, "commands"):
        for name, child in node.commands.items():
            yield from commands(child, (*path, name))
    else:
        yield path, node


LEAVES = dict(commands())
leaves = pytest.mark.parametrize("path", LEAVES, ids=" ".join)


def options(command: Any) -> list[Any]:
    return [p for p in command.params if p.param_type_name == "option"]


def complete_call(path: tuple[str, ...], *, without: str | None = None) -> list[str]:
    """The command with something in every required place."""
    words = list(path)
    for param in LEAVES[path].params:
        if not param.required or param.name == without:
            continue
        number = param.type.name.split(" ")[0] in BAD_NUMBERS
        value = REQUIRED.get(param.name, "2" if number else "nowhere")
        words += [value] if param.param_type_name == "argument" else [param.opts[0], value]
    return words


@pytest.fixture(autouse=True)
def _empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TACIT_DATA", raising=False)
    yield
    assert list(tmp_path.iterdir()) == [], "a refused call left a file behind"


@leaves
def test_help_has_an_example_and_json(path: tuple[str, ...], capsys: Any) -> None:
    shown = tacit(capsys, *path, "--help")
    assert shown.code == 0
    assert "Example" in shown.out
    assert "--json" in {opt for option in options(LEAVES[path]) for opt in option.opts}


@leaves
def test_an_unknown_option_is_refused(path: tuple[str, ...], capsys: Any) -> None:
    assert_refused(tacit(capsys, *complete_call(path), "--no-such-option"), "--no-such-option")


@leaves
def test_a_missing_argument_is_refused(path: tuple[str, ...], capsys: Any) -> None:
    for param in LEAVES[path].params:
        if param.required:
            assert_refused(tacit(capsys, *complete_call(path, without=param.name)), "Missing")


# Numbers that look bad and are not: a pure guarantee has delta 0.
FINE = {(("account", "group"), "--delta", "0")}
NUMBERS = [
    (path, option.opts[0], value)
    for path, command in LEAVES.items()
    for option in options(command)
    for value in BAD_NUMBERS.get(option.type.name.split(" ")[0].removesuffix(" range"), [])
    if (path, option.opts[0], value) not in FINE
]


@pytest.mark.parametrize(
    ("path", "option", "value"), NUMBERS, ids=[f"{' '.join(p)} {o} {v}" for p, o, v in NUMBERS]
)
def test_a_bad_number_is_refused(
    path: tuple[str, ...], option: str, value: str, capsys: Any
) -> None:
    words = complete_call(path)
    if option in words:
        words[words.index(option) + 1] = value
    else:
        words += [option, value]
    assert_refused(tacit(capsys, *words, "--json"))


@leaves
def test_a_missing_file_or_data_set_is_refused(path: tuple[str, ...], capsys: Any) -> None:
    """Every path and every name that a command reads must be checked before it works."""
    for param in LEAVES[path].params:
        if param.required and param.name in {"name", "data"}:
            words = complete_call(path, without=param.name)
            words += ["no-such-set"] if param.param_type_name == "argument" else [
                param.opts[0], "no-such-set",
            ]  # fmt: skip
            refused = tacit(capsys, *words)
            assert_refused(refused)
            # Where another path is missing too, either of them may be named.
            assert "no-such-set" in refused.err or "nowhere" in refused.err


def test_verbose_tells_the_cause(capsys: Any, tmp_path: Path) -> None:
    bad = tmp_path / "x.npz"
    bad.write_text("no")
    for words in (["--verbose", "data", "show", bad], ["data", "show", bad, "-v"]):
        outcome = tacit(capsys, *words)
        assert outcome.code == 2
        assert "because ValueError" in outcome.err
    bad.unlink()


def test_the_shell_completes_commands() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tacit"],
        env={
            **os.environ,
            "_TACIT_COMPLETE": "complete_bash",
            "COMP_WORDS": "tacit da",
            "COMP_CWORD": "1",
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.stdout.split() == ["data"]


@pytest.mark.seconds
@pytest.mark.parametrize("words", [["data", "show", "GunPoint"], ["nonsense"]])
def test_a_real_process_has_the_same_manners(words: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tacit", *words, "--json"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == (0 if words[0] == "data" else 2)
    assert "Traceback" not in done.stderr
    assert len(done.stdout.splitlines()) == (1 if words[0] == "data" else 0)
