"""Labels and persons that stand in the names of files and folders."""

from __future__ import annotations

import re
from pathlib import Path

from tacit.errors import TacitError


def name_from(rule: str, path: Path, root: Path, *, option: str) -> str:
    """What a rule (folder, file, or an expression with one group) says about a file."""
    if rule == "file":
        return path.stem
    if rule == "folder":
        if path.parent == root and root.is_dir():
            raise TacitError(
                f"{option} folder: {path.name} lies in no folder below {root.name}; put the files "
                "into a folder per value, or give a regular expression with one group."
            )
        return path.parent.name
    try:
        expression = re.compile(rule)
    except re.error as error:
        raise TacitError(f"{option} {rule!r} is not a regular expression ({error}).") from error
    relative = path.relative_to(root).as_posix() if root.is_dir() else path.name
    match = expression.search(relative)
    if match is None:
        raise TacitError(
            f"{option} {rule!r} matches nothing in {relative!r}; correct the expression."
        )
    return match.group(1)


def is_file_rule(rule: str | None) -> bool:
    """Whether a rule speaks of paths: the words folder and file, or an expression with a group."""
    return rule in ("folder", "file") or (rule is not None and "(" in rule and ")" in rule)


def check_rule(rule: str | None, allowed: tuple[str, ...], *, option: str, format: str) -> None:
    """Refuse a rule that the format has no use for."""
    if rule is None or rule in allowed or is_file_rule(rule):
        return
    words = ", ".join(allowed)
    raise TacitError(
        f"{option} {rule!r} means nothing for {format} files, which have no columns; use {words}, "
        "folder, file, or a regular expression with one group such as 'subject(\\d+)'."
    )
