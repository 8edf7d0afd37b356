"""All commands as data: their paths, options, choices and defaults, read from the code."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Path = tuple[str, ...]


def leaves(node: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Every command that does something, with the words that lead to it."""
    children = getattr(node, "commands", None)
    if children is None:
        yield path, node
    for name, child in (children or {}).items():
        yield from leaves(child, (*path, name))


def options_of(command: Any) -> list[Any]:
    """Its options but --help."""
    return [one for one in command.params if one.param_type_name == "option"]


def arguments_of(command: Any) -> list[Any]:
    """Its arguments, in order."""
    return [one for one in command.params if one.param_type_name == "argument"]


def choices_of(parameter: Any) -> tuple[str, ...]:
    """The closed choices of a parameter; empty where any value may be given."""
    return tuple(str(one) for one in getattr(parameter.type, "choices", ()))


def kind_of(parameter: Any) -> str:
    """`text`, `integer`, `float`, `path`, `boolean` or `choice`."""
    kind = str(parameter.type.name).removesuffix(" range")
    return {"directory": "path", "file": "path"}.get(kind, kind)
