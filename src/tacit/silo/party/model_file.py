"""The initiator's model file: the arrays of a run (safetensors, no pickle), bound to its series."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats
from tacit.errors import BundleError, reason_of
from tacit.system.files import write_secret

MODEL = "model.safetensors"
_SALT_BYTES = 16
_NAME = "own_series"


def bind_to_series(model: bytes, X: Floats) -> bytes:
    """The model (safetensors) with a salted hash of the series that its places point into.

    It stands in the model, which stays with the initiator, and not in the receipt: whoever sees a
    hash of series can test guesses of them.
    """
    from safetensors.numpy import load, save

    salt = secrets.token_bytes(_SALT_BYTES)
    marked: bytes = save(load(model), metadata={_NAME: (salt + _digest(X, salt)).hex()})
    return marked


def is_bound_to(path: Path, X: Floats) -> bool:
    """Whether the model at `path` was made with exactly these series."""
    from safetensors import safe_open

    with safe_open(path, framework="numpy") as file:
        mark = bytes.fromhex((file.metadata() or {}).get(_NAME, ""))
    salt, digest = mark[:_SALT_BYTES], mark[_SALT_BYTES:]
    return hmac.compare_digest(digest, _digest(X, salt))


def _digest(X: Floats, salt: bytes) -> bytes:
    shape = ",".join(str(n) for n in X.shape).encode()
    values = np.ascontiguousarray(X, dtype="<f8").tobytes()
    return hashlib.blake2b(shape + b":" + values, key=salt, digest_size=32).digest()


def write_model(folder: Path, model: bytes) -> None:
    """Write the initiator's model, whole or not at all."""
    write_secret(folder / MODEL, model)


def read_model(folder: Path) -> dict[str, NDArray[Any]]:
    """Read the arrays of the initiator's model."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        arrays = load((folder / MODEL).read_bytes())
    except (OSError, SafetensorError) as error:
        raise BundleError(f"cannot read {folder / MODEL}: {reason_of(error)}.") from error
    return {name: np.asarray(array) for name, array in arrays.items()}
