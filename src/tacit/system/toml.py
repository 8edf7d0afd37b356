"""Configuration files as TOML: one reader, one writer, and errors that name the file."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tacit.errors import TacitError
from tacit.system.files import write_atomic


def read_toml(path: Path) -> dict[str, Any]:
    """The file's values, or one sentence that says what is wrong with it."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except IsADirectoryError as error:
        raise TacitError(f"{path} is a folder; name the .toml file in it.") from error
    except OSError as error:
        raise TacitError(
            f"cannot read the configuration {path} ({error.strerror}); check the path."
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise TacitError(f"the configuration {path} is not valid TOML: {error}.") from error


def write_toml(path: Path, values: Mapping[str, Any], *, comment: str = "") -> None:
    """Write the values whole or not at all, under the comment; values that are None stay out."""
    import tomli_w

    head = "".join(f"# {line}".rstrip() + "\n" for line in comment.splitlines())
    write_atomic(path, (head + tomli_w.dumps(_without_none(values))).encode())


def _without_none(values: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: _without_none(value) if isinstance(value, Mapping) else value
        for key, value in values.items()
        if value is not None
    }
