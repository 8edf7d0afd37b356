"""The `c` format: C99 sources with the weights as constants, an example and golden vectors.

The runtime (`c_runtime/`) is the same for every model; what is written here are its tables. Floats
are written in hexadecimal, which every C99 compiler reads back to the bit.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.local.exports.golden import GOLDEN_FILE, Golden, feature_hash, golden_json
from tacit.local.exports.portable import PortableBody, PortableModel
from tacit.local.exports.runtime import runtime_files

_PER_LINE = 8
_NOTE = "/* Written by Tacit for one model; do not edit. */\n"


def c_files(model: PortableModel, vectors: Sequence[Golden]) -> dict[str, str]:
    """The files of an export by name."""
    return {
        **runtime_files("c_runtime"),
        "tacit_model.h": _NOTE + "".join(_sizes(model)),
        "tacit_weights.h": _NOTE + "".join(_weights(model)),
        "tacit_golden.h": _NOTE + "".join(_golden(vectors)),
        GOLDEN_FILE: golden_json(model, vectors),
    }


def _sizes(model: PortableModel) -> Iterator[str]:
    numbers = {
        "CHANNELS": model.n_channels,
        "STEPS": model.n_timepoints,
        "CLASSES": len(model.classes),
        "PLACES": model.n_places,
        "SYMBOLS": len(model.thresholds),
        "FEATURES": model.body.n_features,
        "PADDING": max(body.padding for body in model.bodies),
        "GROUP": max(1, *(pool.size for body in model.bodies for pool in body.pools)),
    }
    yield "#ifndef TACIT_MODEL_H\n#define TACIT_MODEL_H\n\n"
    yield from (f"#define TACIT_{name} {value}\n" for name, value in numbers.items())
    yield f"#define TACIT_KIND {_text(model.kind)}\n"
    yield f"#define TACIT_MODEL {_text(model.identity)}\n"
    yield f"#define TACIT_GUARANTEE {_text(json.dumps(model.guarantee))}\n\n#endif\n"


def _weights(model: PortableModel) -> Iterator[str]:
    yield "#ifndef TACIT_WEIGHTS_H\n#define TACIT_WEIGHTS_H\n\n#include <stdint.h>\n\n"
    yield (
        "typedef struct {\n    int order, dilation, count, size, skip;\n    size_t n_features;\n"
        "    const float *values;\n    const unsigned char *channels;\n} tacit_pool;\n\n"
        "typedef struct {\n    const float *offset, *scale;\n    const tacit_pool *pools;\n"
        "    int n_pools;\n    const float *weights, *intercept;\n} tacit_body;\n\n"
    )
    yield from _body("labeller", model.body)
    if model.locator is not None and model.fill is not None:
        yield from _body("locator", model.locator)
        yield from _floats("fill", model.fill)
        edges = ", ".join(str(edge) for edge in model.edges)
        yield f"static const int tacit_edges[{len(model.edges)}] = {{{edges}}};\n"
    size = len(model.thresholds)
    yield f"static const uint64_t tacit_thresholds[{size}][{size}] = {{\n"
    for row in model.thresholds.tolist():
        yield "{" + ",\n ".join(f"UINT64_C({value})" for value in row) + "},\n"
    yield "};\n\n#endif\n"


def _body(name: str, body: PortableBody) -> Iterator[str]:
    for part in ("offset", "scale", "intercept", "weights"):
        yield from _floats(f"{name}_{part}", getattr(body, part))
    entries = []
    for number, pool in enumerate(body.pools):
        values, channels = f"tacit_{name}_values_{number}", "0"
        yield from _floats(f"{name}_values_{number}", pool.values)
        if pool.channels.size:
            channels = f"tacit_{name}_channels_{number}"
            flags = _lines(str(flag) for flag in pool.channels.ravel().tolist())
            yield f"static const unsigned char {channels}[{pool.channels.size}] = {{\n{flags}}};\n"
        numbers = (pool.order, pool.dilation, pool.count, pool.size, pool.skip, pool.n_features)
        entries.append(f"{{{', '.join(map(str, numbers))}, {values}, {channels}}},\n")
    size, listed = len(entries), "".join(entries)
    yield (
        f"static const tacit_pool tacit_{name}_pools[{size}] = {{\n{listed}}};\n"
        f"static const tacit_body tacit_{name} = {{\n    tacit_{name}_offset, tacit_{name}_scale, "
        f"tacit_{name}_pools, {size},\n    tacit_{name}_weights, tacit_{name}_intercept\n"
        "};\n\n"
    )


def _golden(vectors: Sequence[Golden]) -> Iterator[str]:
    size = vectors[0].series.size
    yield "#ifndef TACIT_GOLDEN_H\n#define TACIT_GOLDEN_H\n\n#include <stdint.h>\n\n"
    yield f"#define TACIT_GOLDEN {len(vectors)}\n"
    yield f"static const double tacit_golden_series[{len(vectors)}][{size}] = {{\n"
    for vector in vectors:
        yield "{\n" + _lines(value.hex() for value in vector.series.ravel().tolist()) + "},\n"
    yield "};\n"
    symbols = ", ".join(str(vector.symbol) for vector in vectors)
    yield f"static const int tacit_golden_symbol[{len(vectors)}] = {{{symbols}}};\n"
    hashes = ",\n".join(f"UINT64_C({feature_hash(vector.features)})" for vector in vectors)
    yield f"static const uint64_t tacit_golden_hash[{len(vectors)}] = {{\n{hashes}}};\n\n#endif\n"


def _floats(name: str, array: NDArray[Any]) -> Iterator[str]:
    flat = np.asarray(array, dtype=np.float32).ravel().tolist()
    lines = _lines(_short_hex(value) + "f" for value in flat)
    yield f"static const float tacit_{name}[{len(flat)}] = {{\n{lines}}};\n"


def _short_hex(value: float) -> str:
    """`0x1.8p+1`: Python writes thirteen digits, of which a float32 needs at most six."""
    if value == 0.0:
        return "0x0p+0"
    mantissa, exponent = value.hex().split("p")
    return f"{mantissa.rstrip('0').rstrip('.')}p{exponent}"


def _lines(items: Iterable[str]) -> str:
    listed = list(items)
    starts = range(0, len(listed), _PER_LINE)
    return "".join(", ".join(listed[at : at + _PER_LINE]) + ",\n" for at in starts)


def _text(value: str) -> str:
    """A C string; a question mark is escaped, because two of them may begin a trigraph."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("?", "\\?")
    return f'"{escaped}"'
