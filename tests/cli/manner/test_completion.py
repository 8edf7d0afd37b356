"""Completion in real shells: commands, options, closed choices and names of data sets."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import time
from pathlib import Path

import pytest

from command import assert_refused, tacit
from system_packages import needed

Capture = pytest.CaptureFixture[str]
# What is typed, and what the shell must offer for it.
TYPED = [
    ("tacit da", {"data"}),
    ("tacit train softshape --mode pub", {"published"}),
    ("tacit fleet init --mechanism d", {"distributed"}),
    ("tacit fleet classify model --data Gun", {"GunPoint"}),
    ("tacit train softshape --rel", {"--release"}),
]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty home with a `tacit` on its path that runs this package."""
    folder = tmp_path_factory.mktemp("home")
    program = folder / "bin" / "tacit"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m tacit "$@"\n')
    program.chmod(0o755)
    return folder


def environment(home: Path) -> dict[str, str]:
    path = f"{home / 'bin'}:{os.environ['PATH']}"
    left = {key: value for key, value in os.environ.items() if key != "TACIT_DATA"}
    # Files and settings of the one who runs the tests stay out of it.
    return {**left, "HOME": str(home), "PATH": path, "TERM": "dumb", "XDG_CONFIG_HOME": str(home)}


def script(capsys: Capture, shell: str, home: Path) -> Path:
    """The file that `tacit --show-completion SHELL` prints."""
    shown = tacit(capsys, "--show-completion", shell)
    assert shown.code == 0
    file = home / f"completion.{shell}"
    file.write_text(shown.out)
    return file


def test_each_shell_gets_its_own_script(capsys: Capture) -> None:
    """From whatever shell it is asked for."""
    scripts = {
        shell: tacit(capsys, "--show-completion", shell).out for shell in ("bash", "zsh", "fish")
    }
    assert scripts["bash"].rstrip().endswith("complete -o default -F _tacit_completion tacit")
    assert scripts["zsh"].startswith("#compdef tacit")
    assert scripts["fish"].startswith("complete --command tacit")


def test_an_unknown_shell_is_refused(capsys: Capture) -> None:
    assert_refused(tacit(capsys, "--show-completion", "tcsh"), "tcsh", "bash, zsh, fish")
    assert_refused(tacit(capsys, "--show-completion", "zsh", "fish"), "zsh fish")


def test_completion_is_installed_for_the_shell_that_is_named(
    capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    told = tacit(capsys, "--install-completion", "fish")
    assert told.code == 0
    assert (tmp_path / ".config/fish/completions/tacit.fish").is_file()
    assert not (tmp_path / ".bashrc").exists()


def in_bash(typed: str, file: Path, home: Path) -> set[str]:
    code = f"""
      source {file}
      COMP_WORDS=({typed}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
      $(complete -p tacit | sed 's/.*-F \\([^ ]*\\).*/\\1/') tacit
      printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    return set(run([needed("bash"), "--norc", "-c", code], home).split())


def in_fish(typed: str, file: Path, home: Path) -> set[str]:
    code = f"source {file}; complete --do-complete '{typed}'"
    lines = run([needed("fish"), "--no-config", "-c", code], home).splitlines()
    return {line.split("\t")[0] for line in lines if line.strip()}


def run(words: list[str], home: Path) -> str:
    done = subprocess.run(
        words, env=environment(home), cwd=home, capture_output=True, text=True, check=True,
        timeout=120,
    )  # fmt: skip
    return done.stdout


def in_zsh(typed: str, file: Path, home: Path) -> set[str]:
    """zsh completes in its line editor alone: type into a terminal and read what it wrote."""
    begun, before = home / "begun", f"{typed}\t"
    begun.unlink(missing_ok=True)
    setup = (
        f"autoload -Uz compinit; compinit -u -d {home}/dump; source {file}; "
        f"unsetopt automenu; PS1=''; touch {begun}\n"
    )
    master, slave = pty.openpty()
    shell = subprocess.Popen(
        [needed("zsh"), "-f", "-i"], stdin=slave, stdout=slave, stderr=slave, close_fds=True,
        env=environment(home), cwd=home, start_new_session=True,
    )  # fmt: skip
    os.close(slave)
    # A widget writes the line as completed to a file, which no terminal can garble.
    widget = f"done-line() {{ print -r -- $BUFFER > {home}/line; zle kill-whole-line }}\n"
    try:
        for words in (widget, "zle -N done-line; bindkey '^X' done-line\n", setup):
            os.write(master, words.encode())
        wait_for(begun, master)
        (home / "line").unlink(missing_ok=True)
        os.write(master, f"{before}\x18".encode())
        wait_for(home / "line", master)
        return {(home / "line").read_text().split()[-1]}
    finally:
        shell.kill()
        shell.wait()
        os.close(master)


def wait_for(file: Path, master: int) -> None:
    import select

    deadline = time.monotonic() + 120
    while not (file.exists() and (file.stat().st_size or file.name == "begun")):
        assert time.monotonic() < deadline, f"zsh did not write {file.name}"
        if select.select([master], [], [], 0.05)[0]:
            os.read(master, 65536)  # else the terminal would fill up


@pytest.mark.seconds
@pytest.mark.parametrize("shell", ["bash", "fish", "zsh"])
def test_a_real_shell_completes(shell: str, home: Path, capsys: Capture) -> None:
    complete = {"bash": in_bash, "fish": in_fish, "zsh": in_zsh}[shell]
    file = script(capsys, shell, home)
    # Each completion in fish or zsh starts the program several times.
    for typed, expected in TYPED if shell == "bash" else TYPED[2:4]:
        assert complete(typed, file, home) == expected, f"{shell}: {typed}"


@pytest.mark.seconds
def test_features_are_completed_after_a_comma(home: Path, capsys: Capture) -> None:
    file = script(capsys, "bash", home)
    offered = in_bash("tacit train fedst --features shapelets,", file, home)
    assert offered == {"shapelets,intervals", "shapelets,dictionary"}
