"""Completion in shells: names that only the package knows, and the script for a named shell."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Sequence
from typing import Any

import typer

from tacit.errors import TacitError

SHELLS = ("bash", "zsh", "fish", "powershell", "pwsh")
_VARIABLE = "_TACIT_COMPLETE"
HELP = {
    "--show-completion": "Print completion for this shell, or for bash, zsh or fish by name.",
    "--install-completion": "Install completion for this shell, or for bash, zsh or fish by name.",
}


def data_sets(incomplete: str) -> list[str]:
    """Names of data sets at hand; paths are completed by the shell."""
    from tacit.data.load import known_names

    try:
        return [name for name in known_names() if name.startswith(incomplete)]
    except TacitError:
        return []


def suites(incomplete: str) -> list[str]:
    """Names of the arena's suites."""
    from tacit.arena.suites import SUITES

    return [name for name in SUITES if name.startswith(incomplete)]


def methods(incomplete: str) -> list[str]:
    """Names of the arena's methods."""
    from tacit.arena.methods import method_names

    return [name for name in method_names() if name.startswith(incomplete)]


def mechanisms(incomplete: str) -> list[str]:
    """What can be audited by name."""
    from tacit.audit import demonstration_names, mechanism_names, training_names

    names = ["all", *mechanism_names(), *training_names(), *demonstration_names()]
    return [name for name in names if name.startswith(incomplete)]


def features(incomplete: str) -> list[str]:
    """Kinds of features after the ones already named; a kind is named once."""
    *before, last = incomplete.split(",")
    kinds = [kind for kind in ("shapelets", "intervals", "dictionary") if kind not in before]
    kinds += [] if before else ["all"]
    return [",".join([*before, kind]) for kind in kinds if kind.startswith(last)]


def completion_asked(arguments: Sequence[str]) -> bool:
    """Whether these words ask for a shell's completion script."""
    return bool(arguments) and arguments[0] in HELP


def give_completion(arguments: Sequence[str]) -> None:
    """Print or install the script for the shell that is named, else for the one that is running."""
    scripts: Any = importlib.import_module("typer.completion")
    option, *rest = arguments
    shell = rest[0] if rest else _running_shell()
    if shell not in SHELLS or len(rest) > 1:
        got = " ".join(rest) if rest else "none that could be recognised"
        raise TacitError(f"{option} takes one of {', '.join(SHELLS)}; got {got}.")
    if option == "--show-completion":
        named = {"prog_name": "tacit", "complete_var": _VARIABLE, "shell": shell}
        typer.echo(scripts.get_completion_script(**named))
        return
    _, path = scripts.install(shell=shell, prog_name="tacit", complete_var=_VARIABLE)
    typer.echo(f"Completion for {shell} is in {path}; it works in new terminals.")


def _running_shell() -> str | None:
    if importlib.util.find_spec("shellingham") is None:
        return None
    shellingham: Any = importlib.import_module("shellingham")
    try:
        return str(shellingham.detect_shell()[0])
    except shellingham.ShellDetectionFailure:
        return None
