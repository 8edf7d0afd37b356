"""Classify with the model that a run left in the initiator's folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.errors import BundleError, TacitError
from tacit.silo.fedst.settings import settings_from
from tacit.silo.model import trained_model
from tacit.silo.party.model_file import MODEL, is_bound_to, read_model
from tacit.silo.party.receipts import read_receipt


def classify(folder: Path, *, own: NDArray[np.float64], X: NDArray[np.float64]) -> NDArray[Any]:
    """Labels of new series (n, 1, T) by the model in `folder`.

    `own` are the initiator's series of the run: the model holds where its shapelets lie in them,
    not their values. Nothing leaves this process.
    """
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
