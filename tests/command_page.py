"""Write docs/reference/commands.md: every command with its options and JSON keys, from the code.

python tests/command_page.py
"""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

from tacit.cli.app import _commands
from tacit.cli.manner import about
from tacit.cli.manner.walk import arguments_of, choices_of, kind_of, leaves, options_of

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "reference" / "commands.md"
HEAD = """# Commands and their JSON

Written from the code by `python tests/command_page.py`; a test fails when it is out of date.

With `--json` every command prints exactly one JSON object on standard output; progress and logs go
to standard error. Bad input ends with exit code 2 and one sentence. `tacit COMMAND --help` says the
same as this page. Keys listed here stay; others may be added. Where an option takes one of several
values, they are listed as `a|b`. `--data` takes a name of `tacit data list` or a path, everywhere.

`tacit --install-completion` completes commands, options, choices and data sets in bash, zsh and
fish; `tacit --show-completion zsh` prints the script for a shell. `--verbose` (`-v`) may stand
anywhere.

A `guarantee` has `kind` (`dp`, `mpc` or `unprotected`), `trust_model`, `unit`, `assumptions`,
`not_covered` and a `sentence` to show; `dp` adds `epsilon`, `delta`, `model` and `neighbours`,
`mpc` the parties and `opened`, `unprotected` its `reason` and a `nominal_epsilon`.

```console
$ tacit account shuffle --local-epsilon 1 --n 1000 --delta 1e-6 --json
$ tacit data show GunPoint --json
```
"""
# In every command, and explained above.
EVERYWHERE = {"--json"}


def page() -> str:
    """The whole page."""
    commands = dict(leaves(_commands()))
    rows = [f"| `tacit {' '.join(path)}` | {about.KEYS[' '.join(path)]} |" for path in commands]
    keys = "\n".join(["## JSON keys", "", "| command | JSON keys at least |", "|---|---|", *rows])
    sections = [section(path, command) for path, command in commands.items()]
    return "\n".join([HEAD, keys, "", "## Options", "", *sections])


def section(path: tuple[str, ...], command: Any) -> str:
    """One command: what it does, an example, its options."""
    name = " ".join(path)
    arguments = " ".join(shown_argument(one) for one in arguments_of(command))
    guide = about.guide_of(path)
    lines = [f"### tacit {name}", "", described(command), ""]
    former = about.FORMER.get(name, {})
    rows = [row(one) for one in options_of(command) if not EVERYWHERE & set(one.opts)]
    if arguments:
        lines += [f"Arguments: {arguments}", ""]
    if rows:
        lines += ["| option | takes | default | what it is |", "|---|---|---|---|", *rows, ""]
    for old, new in former.items():
        lines += [f"`{old}` is the former name of `{new}` and still works.", ""]
    return "\n".join([*lines, f"More: [{Path(str(guide)).stem}]({linked(str(guide))})", ""])


def described(command: Any) -> str:
    """The docstring, every paragraph on one line."""
    text = inspect.getdoc(command.callback) or ""
    return "\n\n".join(" ".join(part.split()) for part in text.split("\n\n"))


def shown_argument(argument: Any) -> str:
    name = argument.metavar or argument.name.upper()
    repeated = "..." if argument.nargs == -1 else ""
    told = cell(argument.help or "")
    return f"`{name}{repeated}` ({told if told.endswith('...') else told.rstrip('.')})"


def row(option: Any) -> str:
    names = ", ".join(f"`{name}`" for name in option.opts)
    if option.secondary_opts:
        names += f" or `{option.secondary_opts[0]}`"
    closed = choices_of(option)
    takes = "\\|".join(closed) if closed else "" if option.is_flag else kind_of(option)
    takes = f"`{takes}`" if closed else takes
    repeated = ", may be repeated" if option.multiple else ""
    return f"| {names} | {takes}{repeated} | {default(option)} | {cell(option.help or '')} |"


def default(option: Any) -> str:
    if option.required:
        return "required"
    if option.default is None or option.is_flag or option.default == "":
        return "on" if option.is_flag and option.default else ""
    return f"`{option.default}`"


def cell(text: str) -> str:
    """Text in a table: no bars, no new lines."""
    return " ".join(text.split()).replace("|", "\\|")


def linked(guide: str) -> str:
    """From the page's folder to the guide."""
    return re.sub(r"^docs/", "../", guide) if guide.startswith("docs/") else f"../../{guide}"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(PAGE)
