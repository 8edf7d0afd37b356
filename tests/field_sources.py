"""Open the file that a field of a disclosure names, and find the value where it says it stands."""

from __future__ import annotations

import json
import tomllib
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

_FLEET_HEAD = len(b"tacit fleet model 1\n") + 32  # then a digest and an archive of arrays


def content_of(path: Path) -> Any:
    """All that a file says in words and numbers, read without the package."""
    data = path.read_bytes()
    if path.suffix == ".json":
        return json.loads(data)
    if path.suffix == ".toml":
        return tomllib.loads(data.decode())
    if path.suffix == ".tacit":
        head = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
        return json.loads(head["__metadata__"]["values"])
    with np.load(BytesIO(data[data.startswith(b"tacit fleet") * _FLEET_HEAD :])) as arrays:
        return {"meta": json.loads(arrays["meta"].tobytes())}


def read_value(source: str, folders: list[Path]) -> Any:
    """The value at `FILE: field.of.a.field`."""
    file, field = source.split(": ")
    (path,) = (folder / file for folder in folders if (folder / file).exists())
    value = content_of(path)
    for part in field.split("."):
        value = value[int(part)] if isinstance(value, list) else value[part]
    return value


def check_sources(fields: dict[str, Any], *folders: Path) -> set[str]:
    """Every value that was read stands at its source; returns the names of computed ones.

    `fields` is that of a disclosure's JSON. What is computed names files that exist.
    """
    computed = set()
    for key, field in fields.items():
        source, value = field["source"], field["value"]
        if source.startswith("computed from "):
            computed.add(key)
            continue
        where, *rounded = source.split(", rounded up")
        found = read_value(where, list(folders))
        if rounded:
            assert found < value < found + 1e-4, key
        else:
            assert found == value, (key, source)
    return computed
