"""The model that a run left in the initiator's folder: classify with it, and explain."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Cube, Floats, Integers
from tacit.errors import BundleError, TacitError
from tacit.silo.explain import Explanation, explain
from tacit.silo.fedst.settings import settings_from
from tacit.silo.model import ShapeletModel, trained_model
from tacit.silo.party.model_file import MODEL, is_bound_to, read_model
from tacit.silo.party.receipts import Receipt, read_receipt


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredModel:
    """The initiator's model of one run, with its receipt and its own series of that run.

    Nothing that is computed here leaves this process.
    """

    receipt: Receipt
    model: ShapeletModel
    own: Cube

    @property
    def classes(self) -> tuple[str, ...]:
        """The classes, in the order of the probabilities."""
        return self.receipt.plan.classes

    @property
    def own_features(self) -> Integers:
        """Features (K, n) of the initiator's own series."""
        return self.model.features(self.own[:, 0])

    def probabilities(self, X: Cube) -> Floats:
        """Class probabilities (n, C) of new series."""
        self._check_shape(X.shape[1:])
        return self.model.probabilities(X[:, 0])

    def labels_of(self, probabilities: Floats) -> NDArray[Any]:
        """The most probable class of each row."""
        labels: NDArray[Any] = np.array(self.classes)[probabilities.argmax(axis=1)]
        return labels

    def codes_of(self, labels: NDArray[Any]) -> NDArray[np.intp]:
        """The number of each label among the classes."""
        number = {label: code for code, label in enumerate(self.classes)}
        try:
            return np.array([number[str(label)] for label in labels], dtype=np.intp)
        except KeyError as error:
            raise TacitError(
                f"the model does not know the class {error}; give the initiator's own file of "
                "that run, unchanged."
            ) from error

    def explain(self, x: Floats, *, own_labels: NDArray[Any], n_shapelets: int) -> Explanation:
        """Why one series (1, T) gets its class; `own_labels` are those of the own series."""
        self._check_shape(x.shape)
        return explain(
            self.model,
            x[0],
            classes=self.classes,
            own_features=self.own_features,
            own_codes=self.codes_of(own_labels),
            n_shapelets=n_shapelets,
        )

    def _check_shape(self, shape: tuple[int, ...]) -> None:
        length = self.receipt.plan.series_length
        if shape != (1, length):
            raise TacitError(f"series must have one channel of length {length}, got {shape}.")


def load_stored(folder: Path, *, own: Cube) -> StoredModel:
    """The model in `folder`, or a refusal.

    `own` are the initiator's series of the run: the model holds where its shapelets lie in them,
    not their values.
    """
    receipt = read_receipt(folder)
    arrays = read_model(folder)
    if not is_bound_to(folder / MODEL, own):
        raise BundleError(
            f"the model in {folder} was made with other series; give the initiator's own file "
            "of that run, unchanged."
        )
    plan = receipt.plan
    settings = settings_from(plan.params)
    model = trained_model(arrays, own=own, settings=settings, n_classes=len(plan.classes))
    return StoredModel(receipt=receipt, model=model, own=own)
