"""Use the model that a run left in the initiator's folder."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.errors import BundleError, TacitError
from tacit.silo.receipts import read_model, read_receipt


def data_fingerprint(X: NDArray[np.float64]) -> str:
    """SHA-256 of series: the model points into exactly these."""
    shape = ",".join(str(n) for n in X.shape)
    return hashlib.sha256(
        shape.encode() + np.ascontiguousarray(X, dtype="<f8").tobytes()
    ).hexdigest()


def classify(folder: Path, *, own: NDArray[np.float64], X: NDArray[np.float64]) -> NDArray[Any]:
    """Labels of new series (n, 1, T) by the model in `folder`.

    `own` are the initiator's series of the run: the model holds where its shapelets lie in them,
    not their values. Nothing leaves this process.
    """
    from tacit.silo.candidates import choose_encoding, encode
    from tacit.silo.model import model_from
    from tacit.silo.settings import settings_from

    receipt = read_receipt(folder)
    arrays = read_model(folder)
    if receipt.info.get("own_series") != data_fingerprint(own):
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
    encoding = choose_encoding(
        series_length=plan.series_length,
        normalise=settings.normalise,
        value_bound=settings.value_bound,
    )
    model = model_from(
        arrays, own=encode(own[:, 0], encoding), encoding=encoding, n_classes=len(plan.classes)
    )
    labels: NDArray[Any] = np.array(plan.classes)[model.probabilities(X[:, 0]).argmax(axis=1)]
    return labels
