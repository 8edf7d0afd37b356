"""Commands that pages show can be typed as they stand: the command line itself reads them."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

import tacit.report
import tacit.studio
from tacit.cli.app import _commands

PLACES = [Path(package.__path__[0]) / "templates" for package in (tacit.studio, tacit.report)]
# In <pre> or <code>, up to the next tag; what a template fills in stands for one word.
SHOWN = re.compile(r"(?:<pre>|<code>|^)tacit ([^<\n]+)", re.M)


def shown() -> list[tuple[str, str]]:
    """Template and command."""
    pages = [page for place in PLACES for page in sorted(place.glob("*.html"))]
    return [
        (page.name, command.strip())
        for page in pages
        for command in SHOWN.findall(re.sub(r"{{.*?}}", "NAME", page.read_text(encoding="utf-8")))
    ]


def read(command: str) -> None:
    """Parse it as typed; a bare name of a command only has to be one."""
    node: Any = _commands()
    context = None
    words = shlex.split(command)
    while words and hasattr(node, "commands"):
        context = node.make_context(words[0], [], parent=context, resilient_parsing=True)
        node = node.commands[words.pop(0)]
    if words:
        node.make_context(node.name, words, parent=context)


@pytest.mark.parametrize(("page", "command"), shown())
def test_the_command_line_takes_what_a_page_shows(page: str, command: str) -> None:
    read(command)


def test_the_check_finds_commands_and_notices_a_wrong_one() -> None:
    assert len(shown()) >= 9
    with pytest.raises(Exception, match=r"No such option|Got unexpected"):
        read("arena run --suite quick --out FOLDER")
