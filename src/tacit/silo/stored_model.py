"""The model that a run left in the initiator's folder: classify with it, and explain."""

from __future__ import annotations

import io
from collections.abc import Mapping
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
from tacit.silo.party.model_file import MODEL, bind_to_series, is_bound_to, read_model
from tacit.silo.party.receipts import Receipt, read_receipt
from tacit.silo.party.results import Outcome, Results
from tacit.system.files import write_secret

OWN = "own.npz"


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
        return self.model.features(self.own)

    def probabilities(self, X: Cube) -> Floats:
        """Class probabilities (n, C) of new series."""
        self.model.check_shape(X.shape[1:])
        return self.model.probabilities(X)

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
        """Why one series (channels, T) gets its class; `own_labels` are those of the own series."""
        self.model.check_shape(x.shape)
        return explain(
            self.model,
            x,
            classes=self.classes,
            own_features=self.own_features,
            own_codes=self.codes_of(own_labels),
            n_shapelets=n_shapelets,
        )


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


def write_stored(
    folder: Path,
    *,
    receipt: Receipt,
    arrays: Mapping[str, NDArray[Any]],
    own: Cube,
    own_labels: NDArray[np.str_],
) -> Path:
    """The folder that a party's run leaves at the initiator, with its own series beside the model.

    `load_stored` reads it; `own` is `OWN` in it. Both files are readable by their owner only.
    """
    from safetensors.numpy import save

    files = io.BytesIO()
    np.savez(files, X=own, y=own_labels)
    results = Results(folder)
    results.begin()
    write_secret(folder / OWN, files.getvalue())
    model = save({name: np.ascontiguousarray(array) for name, array in arrays.items()})
    results.stage(Outcome(receipt=receipt, model=bind_to_series(model, own)))
    results.publish()
    return folder
