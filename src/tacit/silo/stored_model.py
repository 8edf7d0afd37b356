"""Use the model that a run left in the initiator's folder."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.errors import BundleError, TacitError
from tacit.silo.party.receipts import MODEL, read_model, read_receipt

_SALT_BYTES = 16
_NAME = "own_series"


def bound_to(model: bytes, X: NDArray[np.float64]) -> bytes:
    """The model (safetensors) with a salted hash of the series that its places point into.

    It stands in the model, which stays with the initiator, and not in the receipt: whoever sees a
    hash of series can test guesses of them.
    """
    from safetensors.numpy import load, save

    salt = secrets.token_bytes(_SALT_BYTES)
    marked: bytes = save(load(model), metadata={_NAME: (salt + _digest(X, salt)).hex()})
    return marked


def is_bound_to(path: Path, X: NDArray[np.float64]) -> bool:
    """Whether the model at `path` was made with exactly these series."""
    from safetensors import safe_open

    with safe_open(path, framework="numpy") as file:
        mark = bytes.fromhex((file.metadata() or {}).get(_NAME, ""))
    salt, digest = mark[:_SALT_BYTES], mark[_SALT_BYTES:]
    return hmac.compare_digest(digest, _digest(X, salt))


def _digest(X: NDArray[np.float64], salt: bytes) -> bytes:
    shape = ",".join(str(n) for n in X.shape).encode()
    values = np.ascontiguousarray(X, dtype="<f8").tobytes()
    return hashlib.blake2b(shape + b":" + values, key=salt, digest_size=32).digest()


def classify(folder: Path, *, own: NDArray[np.float64], X: NDArray[np.float64]) -> NDArray[Any]:
    """Labels of new series (n, 1, T) by the model in `folder`.

    `own` are the initiator's series of the run: the model holds where its shapelets lie in them,
    not their values. Nothing leaves this process.
    """
    from tacit.silo.fedst.settings import settings_from
    from tacit.silo.model import trained_model

    receipt = read_receipt(folder)
    arrays = read_model(folder)
    if not is_bound_to(folder / MODEL, own):
        raise BundleError(
            f"the model in {folder} was made with other series; give the initiator's own file "
            "of that run, unchanged."
        )
    plan = receipt.plan
    if X.shape[1:] != (1, plan.series_length):
        raise TacitError(
            f"series must have one channel of length {plan.series_length}, got {X.shape[1:]}."
        )
    settings = settings_from(plan.params)
    model = trained_model(arrays, own=own, settings=settings, n_classes=len(plan.classes))
    labels: NDArray[Any] = np.array(plan.classes)[model.probabilities(X[:, 0]).argmax(axis=1)]
    return labels
