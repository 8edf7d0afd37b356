"""`DPHybridClassifier`: a fleet trains it under (epsilon, delta), devices release under epsilon."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats
from tacit.errors import TacitError, check_epsilon
from tacit.fleet.estimator import ClientClassifier, DPTimeFLClassifier
from tacit.fleet.model import FleetModel, load_fleet_model
from tacit.guarantee import DpGuarantee, composed
from tacit.hybrid.bridge import RECOGNITION, release_model, stated_confusion
from tacit.ledger import Ledger
from tacit.local.bundle import bundle_folder
from tacit.local.device import release_rows
from tacit.local.estimator import MODEL_FILE
from tacit.local.exports.write import Format, export_model
from tacit.local.model import LocalModel, classes_of, load_model
from tacit.local.release import Release
from tacit.local.releases.label import LabelHead
from tacit.noise import SYSTEM_NOISE, NoiseSource
from tacit.system.progress import Progress


class DPHybridClassifier(ClientClassifier):
    """Classify time series that nobody shows: neither to train the model nor to use it.

    Guarantee: `training_guarantee_`, (`epsilon`, `delta`) per client that took part in the
    training; `guarantee_`, pure `release_epsilon` per released series, whoever trained.
    Composes: `composed_guarantee(m)` for a person who holds one client and makes m releases.
    Every call of `release`, `predict` or `predict_proba` is a new release of each series.
    Assumes: what the two guarantees list; here the fleet is simulated in one process.
    Not covered: whether, when and how often somebody takes part or releases.

    Parameters
    ----------
    n_clients : number of clients the series are dealt to when `fit` gets no `client`.
    epsilon, delta : totals per training client.
    release_epsilon : total per released series.
    mechanism : how clients report, as in `DPTimeFLClassifier`.
    n_rounds : None is the fleet's default.
    n_kernels : random kernels among the public features.
    recognition : how often the devices' labels are right, as far as anybody knows without looking
        at data; shapes `predict_proba` alone. Errors count as evenly spread.
    random_state : seed of split and schedule; never of noise.
    progress : called with rounds done, rounds in all and epsilon spent so far.

    After `fit`: `guarantee_`, `training_guarantee_`, `history_`, `classes_`.

    Example
    -------
    >>> from tacit import DPHybridClassifier, load_dataset
    >>> data = load_dataset("ItalyPowerDemand")
    >>> hybrid = DPHybridClassifier(n_clients=8, n_rounds=1, n_kernels=20, random_state=0)
    >>> hybrid.fit(data.X_train, data.y_train).predict(data.X_test[:3]).shape
    (3,)
    >>> hybrid.training_guarantee_.unit, hybrid.guarantee_.unit
    ('client', 'series')
    """

    model_: LocalModel
    guarantee_: DpGuarantee
    training_guarantee_: DpGuarantee
    history_: tuple[Any, ...]

    _tags = {  # noqa: RUF012  # aeon reads a plain dictionary
        "X_inner_type": "numpy3D",
        "capability:multivariate": True,
        "algorithm_type": "feature",
        "non_deterministic": True,
    }

    def __init__(
        self,
        n_clients: int = 100,
        epsilon: float = 8.0,
        delta: float = 1e-5,
        release_epsilon: float = 5.0,
        *,
        mechanism: Literal["privunit", "distributed"] = "distributed",
        n_rounds: int | None = None,
        n_kernels: int = 256,
        recognition: float = RECOGNITION,
        random_state: int | None = None,
        progress: Progress | None = None,
    ) -> None:
        self.n_clients = n_clients
        self.epsilon = epsilon
        self.delta = delta
        self.release_epsilon = release_epsilon
        self.mechanism = mechanism
        self.n_rounds = n_rounds
        self.n_kernels = n_kernels
        self.recognition = recognition
        self.random_state = random_state
        self.progress = progress
        super().__init__()

    def _fit(self, X: Floats, y: NDArray[Any]) -> DPHybridClassifier:
        # Refused before the fleet spends anything.
        check_epsilon(self.release_epsilon, name="release_epsilon")
        stated_confusion(len(self.classes_), recognition=self.recognition)
        fleet = DPTimeFLClassifier(
            n_clients=self.n_clients,
            epsilon=self.epsilon,
            delta=self.delta,
            mechanism=self.mechanism,
            n_rounds=self.n_rounds,
            n_kernels=self.n_kernels,
            random_state=self.random_state,
            progress=self.progress,
        )
        fleet.fit(X, y, client=self.__dict__.get("_client"))
        self._use(
            release_model(
                fleet.plan_,
                fleet.model_.average,
                training=fleet.guarantee_,
                classes=self.classes_,
                release_epsilon=self.release_epsilon,
                recognition=self.recognition,
            )
        )
        self.history_ = fleet.history_
        return self

    @classmethod
    def from_fleet(
        cls,
        path: str | os.PathLike[str],
        *,
        release_epsilon: float,
        recognition: float = RECOGNITION,
    ) -> DPHybridClassifier:
        """A classifier from a model that a fleet has trained.

        `path` is a file of 'tacit train timefl --out', or the folder of a deployment: the fleet's,
        its analyser's, or `runs/RUN` of an earlier run. Nobody's series are looked at, and nothing
        is spent: `recognition` is stated, not measured.
        """
        trained = _trained_model(Path(path))
        plan = trained.plan
        model = release_model(
            plan,
            trained.average,
            training=trained.guarantee,
            classes=np.array(plan.classes),
            release_epsilon=check_epsilon(release_epsilon, name="release_epsilon"),
            recognition=recognition,
        )
        return cls._of(model, recognition=recognition)

    @classmethod
    def load(cls, directory: str | os.PathLike[str]) -> DPHybridClassifier:
        """Read a folder that `save` wrote, or a device file."""
        place = Path(directory)
        model = load_model(place / MODEL_FILE if place.is_dir() else place)
        if model.training is None or not isinstance(model.head, LabelHead):
            raise TacitError(
                f"{directory} was trained on shown series; load it as DPSoftShapeClassifier."
            )
        return cls._of(model, recognition=float(np.trace(model.head.gain)))

    @classmethod
    def _of(cls, model: LocalModel, *, recognition: float) -> DPHybridClassifier:
        made = cls(release_epsilon=model.guarantee.epsilon, recognition=recognition)
        made.classes_ = classes_of(model.classes, model.class_type)
        made.n_classes_ = len(model.classes)
        made._class_dictionary = {label: code for code, label in enumerate(made.classes_)}
        made.metadata_ = {"n_channels": model.n_channels, "n_timepoints": model.n_timepoints}
        made.history_ = ()
        made._use(model)
        made.epsilon, made.delta = made.training_guarantee_.epsilon, made.training_guarantee_.delta
        made.is_fitted = True
        return made

    def _use(self, model: LocalModel) -> None:
        if model.training is None:
            raise TacitError("this model states no guarantee for its training; train it again.")
        self.model_ = model
        self.guarantee_, self.training_guarantee_ = model.guarantee, model.training

    def composed_guarantee(self, n_releases: int) -> DpGuarantee:
        """For a person who holds one training client and makes this many releases at most."""
        self._check_is_fitted()
        return composed(self.training_guarantee_, self.guarantee_, n_releases=n_releases)

    def release(
        self,
        X: Any,
        *,
        ledger: Ledger | None = None,
        subject: str | Sequence[str] | None = None,
        source: NoiseSource = SYSTEM_NOISE,
    ) -> Release:
        """What devices send: one randomised label per series, debited to the ledger first."""
        self._check_is_fitted()
        return release_rows(
            self.model_, X, where="X", ledger=ledger, subject=subject, source=source
        )

    def classify(self, release: Release) -> NDArray[Any]:
        """The server's labels for releases of this model."""
        self._check_is_fitted()
        return np.asarray(self.classes_[self.model_.decide(release)])

    def device_labels(self, X: Any) -> NDArray[Any]:
        """What the devices themselves say, before anything is randomised; not for release."""
        self._check_is_fitted()
        codes = self.model_.head.summarise(self.model_.check_series(X))
        return np.asarray(self.classes_[codes])

    def export_device(self, path: str | os.PathLike[str], format: Format = "npz") -> None:
        """Write the one file that a device needs (see `tacit.local.device`).

        `web` and `c` hold random kernels only, and refuse the public features of a fleet.
        """
        self._check_is_fitted()
        export_model(self.model_, path, format=format)

    def save(self, directory: str | os.PathLike[str]) -> None:
        """Write the classifier to a folder, with both guarantees; `load` reads it back."""
        self._check_is_fitted()
        self.model_.save(bundle_folder(directory) / MODEL_FILE)

    def _predict(self, X: NDArray[Any]) -> NDArray[Any]:
        return self.classify(self.release(X))

    def _predict_proba(self, X: NDArray[Any]) -> Floats:
        return self.model_.posterior(self.release(X))

    @classmethod
    def _get_test_params(cls, parameter_set: str = "default") -> dict[str, Any]:
        """Small enough for aeon's own checks, with so little noise that its comparisons hold."""
        return {
            "n_clients": 4,
            "mechanism": "privunit",  # the other one wants more clients than aeon has series
            "n_rounds": 3,
            "n_kernels": 20,
            "release_epsilon": 40.0,
            "random_state": 0,
        }


def _trained_model(path: Path) -> FleetModel:
    if not path.is_dir():
        return load_fleet_model(path)
    from tacit.fleet.deployment.analyser_state import read_fleet_model

    return read_fleet_model(path)
