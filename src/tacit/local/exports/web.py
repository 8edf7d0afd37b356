"""The `web` format: one JavaScript module without dependencies, its model inside.

The module (`web_runtime/device.mjs`) is the same for every model; what is written here is the model
that it ends with: a description, and all float32 tables as one base64 text.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.local.exports.golden import GOLDEN_FILE, Golden, golden_json
from tacit.local.exports.portable import PortableBody, PortableModel
from tacit.local.exports.runtime import runtime_files

MODULE = "device.mjs"


def web_files(model: PortableModel, vectors: Sequence[Golden]) -> dict[str, str]:
    """The files of an export by name."""
    files = runtime_files("web_runtime")
    text = json.dumps(web_model(model), allow_nan=False, separators=(",", ":"))
    return {
        **files,
        MODULE: f"{files[MODULE]}\nconst MODEL = {text};\n",
        GOLDEN_FILE: golden_json(model, vectors),
    }


def web_model(model: PortableModel) -> dict[str, Any]:
    """The model as the module reads it."""
    tables = _Tables()
    bodies = [_body(body, tables) for body in model.bodies]
    fill = None if model.fill is None else tables.add(model.fill)
    return {
        "format": "tacit-web",
        "format_version": 1,
        "kind": model.kind,
        "identity": model.identity,
        "guarantee": model.guarantee,
        "epsilon": model.epsilon,
        "classes": list(model.classes),
        "n_channels": model.n_channels,
        "n_timepoints": model.n_timepoints,
        "edges": list(model.edges),
        "thresholds": [[str(value) for value in row] for row in model.thresholds.tolist()],
        "bodies": bodies,
        "fill": fill,
        "data": tables.base64(),
    }


class _Tables:
    """Float32 tables, one after the other; each is named by its start and its length."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._length = 0

    def add(self, array: NDArray[Any]) -> tuple[int, int]:
        start, size = self._length, int(array.size)
        self._parts.append(np.asarray(array, dtype="<f4").tobytes())
        self._length += size
        return start, size

    def base64(self) -> str:
        return base64.b64encode(b"".join(self._parts)).decode()


def _body(body: PortableBody, tables: _Tables) -> dict[str, Any]:
    pools = [
        {
            "order": pool.order,
            "dilation": pool.dilation,
            "count": pool.count,
            "size": pool.size,
            "skip": pool.skip,
            "n_features": pool.n_features,
            "values": tables.add(pool.values),
            "channels": "".join(str(flag) for flag in pool.channels.ravel().tolist()),
        }
        for pool in body.pools
    ]
    parts = {name: tables.add(getattr(body, name)) for name in ("offset", "scale", "intercept")}
    return {"pools": pools, **parts, "weights": tables.add(body.weights)}
