"""One file that holds a public model: the safetensors format with a JSON header, no code in it.

Written and read with NumPy and the standard library, because devices carry this module. The header
names format and version and holds a SHA-256 over everything else, so that a truncated, altered or
foreign file is refused before anything is computed with it. The checksum finds accidents and
careless edits; someone who may rewrite the file may also rewrite the checksum, so deliver bundles
over a channel that authenticates the sender.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import struct
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.errors import BundleError
from tacit.system.files import write_atomic

Arrays = dict[str, NDArray[Any]]

FORMAT = "tacit-local"
FORMAT_VERSION = 3  # 3: random kernels in stacks of dilations
_LARGEST_HEADER = 2**24
_DTYPES = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "U8": "|u1", "BOOL": "|b1"
}  # fmt: skip
_CODES = {np.dtype(text): code for code, text in _DTYPES.items()}


def write_bundle(path: str | os.PathLike[str], arrays: Arrays, values: dict[str, Any]) -> None:
    """Write arrays and plain values to one file, whole or not at all."""
    target = Path(path)
    ordered = {name: _plain(name, arrays[name]) for name in sorted(arrays)}
    entries, offset = {}, 0
    for name, array in ordered.items():
        end = offset + array.nbytes
        entries[name] = {
            "dtype": _CODES[array.dtype],
            "shape": list(array.shape),
            "data_offsets": [offset, end],
        }
        offset = end
    payload = b"".join(array.tobytes() for array in ordered.values())
    text = json.dumps(values, sort_keys=True, allow_nan=False)
    metadata = {
        "format": FORMAT,
        "format_version": str(FORMAT_VERSION),
        "values": text,
        "sha256": _checksum(entries, text, payload),
    }
    header = json.dumps({"__metadata__": metadata, **entries}).encode()
    header += b" " * (-len(header) % 8)
    _write(target, struct.pack("<Q", len(header)) + header + payload)


def read_bundle(path: str | os.PathLike[str]) -> tuple[Arrays, dict[str, Any]]:
    """Read back what `write_bundle` wrote; refuse anything that is not exactly that."""
    source = Path(path)
    try:
        data = source.read_bytes()
    except OSError as error:
        raise BundleError(
            f"cannot read the bundle {source}: {error.strerror or error}; check the path."
        ) from error
    header, payload = _split(data, source)
    metadata = header.pop("__metadata__", None)
    _check_version(metadata, source)
    _check_sum(metadata, header, payload, source)
    try:
        arrays = {name: _array(entry, payload) for name, entry in header.items()}
        values = json.loads(metadata["values"])
    except (KeyError, TypeError, ValueError) as error:
        raise _damaged(source) from error
    return arrays, values


def bundle_folder(directory: str | os.PathLike[str]) -> Path:
    """The folder for a trained classifier, made if it is not there."""
    folder = Path(directory)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BundleError(
            f"cannot make the folder {folder}: {error.strerror or error}; choose another."
        ) from error
    return folder


def _plain(name: str, array: NDArray[Any]) -> NDArray[Any]:
    little = np.asarray(array, order="C")
    little = little.astype(little.dtype.newbyteorder("<"), copy=False)
    if little.dtype not in _CODES:
        raise BundleError(f"the array {name!r} has type {array.dtype}, which a bundle cannot hold.")
    return little


def _array(entry: dict[str, Any], payload: bytes) -> NDArray[Any]:
    start, end = entry["data_offsets"]
    dtype, shape = np.dtype(_DTYPES[entry["dtype"]]), tuple(entry["shape"])
    if not 0 <= start <= end <= len(payload) or end - start != dtype.itemsize * math.prod(shape):
        raise ValueError("offsets do not fit")
    return np.frombuffer(payload[start:end], dtype=dtype).reshape(shape).copy()


def _split(data: bytes, source: Path) -> tuple[dict[str, Any], bytes]:
    if len(data) < 8:
        raise _damaged(source)
    (size,) = struct.unpack("<Q", data[:8])
    if size > min(_LARGEST_HEADER, len(data) - 8):
        raise _damaged(source)
    try:
        header = json.loads(data[8 : 8 + size])
    except ValueError as error:
        raise _damaged(source) from error
    if not isinstance(header, dict):
        raise _damaged(source)
    return header, data[8 + size :]


def _check_version(metadata: Any, source: Path) -> None:
    if not isinstance(metadata, dict) or metadata.get("format") != FORMAT:
        raise BundleError(
            f"{source} is not a Tacit bundle; make one with 'tacit train softshape --out DIR'."
        )
    if metadata.get("format_version") != str(FORMAT_VERSION):
        raise BundleError(
            f"{source} has bundle version {metadata.get('format_version')!r}, this program reads "
            f"version {FORMAT_VERSION}; export it again with the installed version."
        )


def _check_sum(
    metadata: dict[str, Any], entries: dict[str, Any], payload: bytes, source: Path
) -> None:
    if metadata.get("sha256") != _checksum(entries, str(metadata.get("values")), payload):
        raise _damaged(source)


def _checksum(entries: dict[str, Any], values: str, payload: bytes) -> str:
    digest = hashlib.sha256()
    described = json.dumps(entries, sort_keys=True).encode()
    for part in (FORMAT.encode(), bytes([FORMAT_VERSION]), described, values.encode(), payload):
        digest.update(struct.pack("<Q", len(part)))
        digest.update(part)
    return digest.hexdigest()


def _damaged(source: Path) -> BundleError:
    return BundleError(
        f"{source} is truncated or was altered: its checksum does not match its content; "
        "fetch it again from whoever trained it."
    )


def _write(target: Path, data: bytes) -> None:
    try:
        target.parent.resolve(strict=True)  # a bundle is not a reason to make folders
        write_atomic(target, data)
    except OSError as error:
        raise BundleError(
            f"cannot write to {target.parent}: {error.strerror or error}; choose another folder."
        ) from error
