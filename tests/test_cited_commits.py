"""Commits that the documentation cites can be had from this repository's own history."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
# `git show 1a2b3c4:path`, also where a line ends in it, and a bare hash in backticks.
SHOWN = re.compile(r"git show\s+([0-9a-f]{7,40}):(\S+?\.\w+)")
BARE = re.compile(r"`([0-9a-f]{7,40})`")


def git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else ""


def cited() -> list[tuple[str, str, str]]:
    """Page, commit, and the path that is shown of it or nothing."""
    found = []
    for page in sorted((ROOT / "docs").rglob("*.md")):
        text = page.read_text(encoding="utf-8")
        found += [(page.name, commit, path) for commit, path in SHOWN.findall(text)]
        found += [
            (page.name, commit, "")
            for commit in BARE.findall(text)
            if re.search("[a-f]", commit) and re.search("[0-9]", commit)
        ]
    return found


def missing(citations: list[tuple[str, str, str]], history: list[str]) -> list[str]:
    """Citations whose commit is no ancestor, or did not hold the file."""
    known = {commit[:length] for commit in history for length in {len(c) for _, c, _ in citations}}
    return [
        f"{page}: {commit}:{path}"
        for page, commit, path in citations
        if commit not in known or (path and not git("cat-file", "-t", f"{commit}:{path}"))
    ]


def test_every_commit_that_the_docs_cite_can_be_had() -> None:
    """Where the history is at hand: not in an archive of the files, nor in a shallow clone."""
    if shutil.which("git") is None or Path(git("rev-parse", "--show-toplevel") or "/") != ROOT:
        pytest.skip("this is no clone")
    if git("rev-parse", "--is-shallow-repository") != "false":
        pytest.skip("a shallow clone has no history")
    history = git("rev-list", "HEAD").split()
    citations = cited()
    assert len(citations) > 10
    assert not missing(citations, history)
    made_up = [("page", "abc1234", ""), ("page", history[0][:7], "benchmarks/gone.py")]
    assert len(missing(made_up, history)) == 2
