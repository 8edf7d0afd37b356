"""`DPSoftShapeClassifier`: train on consented series, then classify what devices release.

Training data is trusted to the trainer and not protected; the trained model is public. What is
protected is every series that is released later: in `sound` mode each release is epsilon-LDP in
total, whatever the series.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from aeon.classification.base import BaseClassifier
from numpy.typing import NDArray

from tacit.arrays import Codes, Floats
from tacit.data.validate import as_cube, refuse_constant
from tacit.errors import BundleError, TacitError, check_choice, check_epsilon
from tacit.guarantee import DpGuarantee, Unprotected
from tacit.local.bundle import bundle_folder, read_bundle, write_bundle
from tacit.local.device import release_rows
from tacit.local.encoding.body import TrainedBody, train_kernels
from tacit.local.exports.write import Format, export_model
from tacit.local.model import Head, LocalModel, class_type, classes_of, load_model, new_model
from tacit.local.release import SYMBOL_KINDS, Release
from tacit.local.release_parameter import ReleaseParameter
from tacit.local.releases.class_checks import (
    check_class_sizes,
    expected_shares,
    single_series_notes,
)
from tacit.local.releases.label import fit_label
from tacit.local.releases.place import Places, check_place_release, fit_place
from tacit.local.releases.shapes import Allocation, ShapesHead, fit_shapes
from tacit.local.releases.vector import fit_vector
from tacit.noise import SYSTEM_NOISE, NoiseSource
from tacit.system.extras import needs
from tacit.system.progress import Progress, silent
from tacit.system.seeds import generator, whole_seed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tacit.ledger import Ledger
    from tacit.local.softshape.leakage import Leakage
    from tacit.local.softshape.published import TrainedSoftShape
    from tacit.local.softshape.settings import SoftShapeSettings


MODEL_FILE = "model.tacit"
PUBLISHED_FILE = "published.tacit"
# What is trained with PyTorch; a device runs all of it in NumPy.
_TRAINED_NETWORKS = {
    "mode": ("published",),
    "release": ("vector", "shapes"),
    "encoder": ("softshape",),
}
_CHOICES = {
    "mode": ("sound", "published"),
    "release": ("label", "place", "vector", "shapes"),
    "encoder": ("kernels", "softshape"),
    "channel": ("optimal", "krr"),
    "preset": ("paper", "tuned"),
}


class DPSoftShapeClassifier(BaseClassifier):  # type: ignore[misc]
    """Classify time series from releases that are locally differentially private.

    Guarantee (`mode="sound"`): each release is `epsilon`-LDP in total when the whole series is
    replaced, for what the code computes: all noise is drawn and added in whole numbers.
    Composes: every call of `release`, `predict` or `predict_proba` is a new release of each
    series, and releases of one series add up; pass a ledger to `release` to account for them.
    Not covered: the training series; `mode="published"`, which promises nothing.

    Parameters
    ----------
    epsilon : total budget per series (`published`: the paper's nominal parameter, no guarantee).
    mode : "sound", or "published" for DP-SoftShape as written, with its measured leakage.
    release : what a device sends: "label", "place" (the class and where its evidence lies),
        "vector" or "shapes"; as a method, `release(X)` sends.
    encoder : what turns a series into features: "kernels" (random ones, quick and better on all
        sets of the benchmark), or "softshape", the network without noise.
    channel : "optimal" for accuracy, or "krr", from which prevalence can always be estimated.
    class_shares : label -> share of the classes among the series that will be released, where it
        is known to differ from the training set's; shapes the channel of a label or place
        release and the server's posterior. It is public, like the model. None: as in training.
    preset : of published mode: "paper" for DP-SoftShape to the letter, or "tuned" for the network
        with our better settings; without `settings` only.
    settings : of the SoftShape network, in published mode or as an encoder; None: the preset's in
        published mode, as an encoder those of "tuned".
    random_state : seed of kernels, splits and batches; the noise of releases is never seeded.
        A whole number trains the published model of the arena's task with that seed.
    progress : called with steps done, steps in all and a message.

    After `fit`: `guarantee_`, `history_`, `classes_`, and in published mode `leakage_`, measured
    on the training series, because `fit` has no others (the arena measures test series); `notes` of
    `history_` say what had to be assumed, such as how well a class with one series is recognised.

    Example
    -------
    >>> from tacit import DPSoftShapeClassifier, load_dataset
    >>> data = load_dataset("ItalyPowerDemand")
    >>> classifier = DPSoftShapeClassifier(epsilon=3.0, random_state=0)
    >>> release = classifier.fit(data.X_train, data.y_train).release(data.X_test[:5])
    >>> release.values.shape  # one symbol per series leaves
    (5,)
    >>> classifier.classify(release).shape
    (5,)
    >>> classifier.guarantee_.epsilon
    3.0
    """

    release = ReleaseParameter()
    model_: LocalModel | None
    published_: TrainedSoftShape | None
    leakage_: Leakage | None
    guarantee_: DpGuarantee | Unprotected
    history_: dict[str, Any]

    _tags = {  # noqa: RUF012
        "X_inner_type": "numpy3D",
        "capability:multivariate": True,
        "algorithm_type": "hybrid",
        # The noise of a release comes from the operating system and cannot be seeded.
        "non_deterministic": True,
    }

    def __init__(
        self,
        epsilon: float = 1.0,
        mode: Literal["sound", "published"] = "sound",
        release: Literal["label", "place", "vector", "shapes"] = "label",
        *,
        encoder: Literal["kernels", "softshape"] = "kernels",
        channel: Literal["optimal", "krr"] = "optimal",
        class_shares: Mapping[Any, float] | None = None,
        preset: Literal["paper", "tuned"] = "paper",
        settings: SoftShapeSettings | None = None,
        random_state: int | None = None,
        progress: Progress | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.mode = mode
        self.release = release
        self.encoder = encoder
        self.channel = channel
        self.class_shares = class_shares
        self.preset = preset
        self.settings = settings
        self.random_state = random_state
        self.progress = progress
        super().__init__()

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The constructor's parameters, `release` as plain text."""
        return {**super().get_params(deep=deep), "release": vars(self)["release"]}

    def classify(self, release: Release) -> NDArray[Any]:
        """The server's labels for releases of this model."""
        self._check_is_fitted()
        return np.asarray(self.classes_[self._sound_model().decide(release)])

    def posterior(self, release: Release) -> Floats:
        """The server's class probabilities for releases of this model."""
        self._check_is_fitted()
        return self._sound_model().posterior(release)

    def allocation(self) -> Allocation:
        """The public budget per patch of a `shapes` model, for the picture."""
        head = self._sound_model().head
        if not isinstance(head, ShapesHead):
            raise TacitError(f"a {head.kind!r} release has no budget per patch; use 'shapes'.")
        return head.allocation

    def places(self, release: Release) -> Places:
        """Where the evidence lies: the server's posterior over the places of a `place` release."""
        self._check_is_fitted()
        return self._sound_model().places(release)

    def export_device(self, path: str | os.PathLike[str], format: Format = "npz") -> None:
        """Write what a device needs: `npz` one file for NumPy (see `tacit.local.device`), `web`
        and `c` a folder with a JavaScript module or C99 sources and golden vectors.
        """
        self._check_is_fitted()
        export_model(self._sound_model(), path, format=format)

    def save(self, directory: str | os.PathLike[str]) -> None:
        """Write the trained classifier to a folder; `load` reads it back."""
        self._check_is_fitted()
        folder = bundle_folder(directory)
        if self.model_ is not None:
            self.model_.save(folder / MODEL_FILE)
            (folder / PUBLISHED_FILE).unlink(missing_ok=True)  # of an earlier classifier
        if self.published_ is not None:
            write_bundle(
                folder / PUBLISHED_FILE,
                self.published_.state_arrays(),
                {
                    "published": self.published_.state_values(),
                    "classes": [str(label) for label in self.classes_],
                    "class_type": class_type(self.classes_),
                    "leakage": self.leakage_,
                },
            )
            (folder / MODEL_FILE).unlink(missing_ok=True)

    @classmethod
    def load(cls, directory: str | os.PathLike[str]) -> DPSoftShapeClassifier:
        """Read a folder that `save` wrote, or a device file."""
        place = Path(directory)
        if place.is_dir() and (place / PUBLISHED_FILE).exists():
            return cls._load_published(place / PUBLISHED_FILE)
        model = load_model(place / MODEL_FILE if place.is_dir() else place)
        loaded = cls(epsilon=model.head.epsilon, release=model.head.kind)
        loaded._restore(model.classes, model.class_type, (model.n_channels, model.n_timepoints))
        loaded.model_, loaded.guarantee_ = model, model.guarantee
        return loaded

    @classmethod
    def _load_published(cls, path: Path) -> DPSoftShapeClassifier:
        from tacit.local.softshape.published import from_state_arrays

        arrays, values = read_bundle(path)
        try:
            trained = from_state_arrays(arrays, values["published"])
            classes, kind, leakage = values["classes"], values["class_type"], values["leakage"]
        except KeyError as error:
            raise BundleError(f"{path} lacks {error}; save it again.") from error
        if trained.epsilon is None:
            raise BundleError(f"{path} holds a network without noise, not a classifier.")
        loaded = cls(epsilon=trained.epsilon, mode="published", settings=trained.settings)
        loaded._restore(classes, kind, (trained.network.n_channels, trained.network.length))
        loaded.published_, loaded.guarantee_, loaded.leakage_ = trained, trained.guarantee, leakage
        return loaded

    def _restore(self, classes: Sequence[str], kind: str, shape: tuple[int, int]) -> None:
        self.classes_ = classes_of(classes, kind)
        self.n_classes_ = len(classes)
        self._class_dictionary = {label: code for code, label in enumerate(self.classes_)}
        self.metadata_ = {"n_channels": shape[0], "n_timepoints": shape[1]}
        self.model_, self.published_, self.leakage_, self.history_ = None, None, None, {}
        self.is_fitted = True

    def _fit(self, X: NDArray[Any], y: NDArray[Any]) -> DPSoftShapeClassifier:
        self._check_parameters()
        cube = as_cube(X, where="the training data")
        refuse_constant(cube, where="the training data")
        codes = np.searchsorted(self.classes_, y).astype(np.intp)
        check_class_sizes(codes)
        self.model_, self.published_, self.leakage_, self.history_ = None, None, None, {}
        start = time.process_time()
        if self.mode == "published":
            self._fit_published(cube, codes)
        else:
            self._fit_sound(cube, codes)
        self.history_["train_cpu_seconds"] = time.process_time() - start
        return self

    def _fit_sound(self, X: Floats, codes: Codes) -> None:
        shares = expected_shares(self.class_shares, self.classes_)
        if self.release == "place":
            check_place_release(n_classes=self.n_classes_, n_timepoints=X.shape[2])
        rng = generator(self.random_state)
        head = self._fit_head(X, codes, shares, rng)
        self.model_ = new_model(head, self.classes_, n_channels=X.shape[1], n_timepoints=X.shape[2])
        self.guarantee_ = self.model_.guarantee

    def _fit_head(
        self, X: Floats, codes: Codes, shares: Floats | None, rng: np.random.Generator
    ) -> Head:
        epsilon, report = self.epsilon, self.progress or silent
        if self.release == "shapes":
            return fit_shapes(
                X, codes, n_classes=self.n_classes_, epsilon=epsilon, rng=rng, progress=report
            )
        trained = self._train_body(X, codes, rng, report)
        self.history_ |= {
            "encoder": trained.body.kind,
            "held_out_accuracy": trained.accuracy,
            "held_out_log_loss": trained.log_loss,
            "notes": single_series_notes(codes, self.classes_),
        }
        body, held_out = trained.body, trained.held_out
        if self.release == "vector":
            return fit_vector(body, held_out, codes, epsilon=epsilon, rng=rng, progress=report)
        if self.release == "place":
            return fit_place(
                body,
                held_out,
                X,
                codes,
                epsilon=epsilon,
                rng=rng,
                channel=self.channel,
                shares=shares,
                progress=report,
            )
        return fit_label(
            body, held_out, codes, epsilon=epsilon, channel=self.channel, shares=shares
        )

    def _train_body(
        self, X: Floats, codes: Codes, rng: np.random.Generator, report: Progress
    ) -> TrainedBody:
        if self.encoder == "softshape":
            from tacit.local.softshape.encoder import train_softshape

            return train_softshape(
                X,
                codes,
                n_classes=self.n_classes_,
                rng=rng,
                settings=self.settings,
                progress=report,
            )
        return train_kernels(X, codes, n_classes=self.n_classes_, rng=rng, progress=report)

    def _fit_published(self, X: Floats, codes: Codes) -> None:
        from tacit.local.softshape.leakage import measure_leakage
        from tacit.local.softshape.published import train_published
        from tacit.local.softshape.settings import preset_settings

        self.published_ = train_published(
            X,
            codes,
            self.n_classes_,
            epsilon=self.epsilon,
            settings=self.settings or preset_settings(self.preset),
            seed=whole_seed(self.random_state),
            progress=self.progress,
        )
        self.guarantee_ = self.published_.guarantee
        self.leakage_ = measure_leakage(self.published_, X, epsilon=self.epsilon)
        self.history_ = {"loss": list(self.published_.losses)}

    def _predict(self, X: NDArray[Any]) -> NDArray[Any]:
        if self.published_ is not None:
            scores = self.published_.predict_scores(self._check_published(X))
            return np.asarray(self.classes_[scores.argmax(axis=1)])
        return self.classify(self._release(X))

    def _predict_proba(self, X: NDArray[Any]) -> Floats:
        if self.published_ is not None:
            return self.published_.predict_scores(self._check_published(X))
        return self.posterior(self._release(X))

    def _release(
        self,
        X: Any,
        *,
        ledger: Ledger | None = None,
        subject: str | Sequence[str] | None = None,
        source: NoiseSource = SYSTEM_NOISE,
    ) -> Release:
        self._check_is_fitted()
        return release_rows(
            self._sound_model(), X, where="X", ledger=ledger, subject=subject, source=source
        )

    def _sound_model(self) -> LocalModel:
        if self.model_ is None:
            raise TacitError(
                "mode 'published' makes no private release; train with mode='sound' to release, "
                "export or classify."
            )
        return self.model_

    def _check_published(self, X: NDArray[Any]) -> Floats:
        cube = as_cube(X)
        refuse_constant(cube, where="X")
        return cube

    def _check_parameters(self) -> None:
        check_epsilon(self.epsilon)
        for name, allowed in _CHOICES.items():
            check_choice(vars(self)[name], allowed, name=name)
        _check_settings(self.settings)
        if self.class_shares is not None and (
            self.mode != "sound" or self.release not in SYMBOL_KINDS
        ):
            raise TacitError(
                "class_shares shape the label and place releases of mode 'sound', not "
                f"{str(self.release)!r} in mode {self.mode!r}; leave them out."
            )

        for name, trained in _TRAINED_NETWORKS.items():
            if vars(self)[name] in trained:
                needs("networks", "torch", what=f"training with {name} {vars(self)[name]!r}")

    @classmethod
    def _get_test_params(cls, parameter_set: str = "default") -> list[dict[str, Any]]:
        """Small settings for aeon's checks, with so little noise that its comparisons hold."""
        from tacit.local.softshape.settings import SoftShapeSettings

        return [
            {"epsilon": 40.0, "encoder": "kernels"},
            {"epsilon": 1e9, "mode": "published", "settings": SoftShapeSettings(steps=3)},
        ]


def _check_settings(settings: object) -> None:
    from tacit.local.softshape.settings import SoftShapeSettings

    if settings is not None and not isinstance(settings, SoftShapeSettings):
        raise TacitError(f"settings must be SoftShapeSettings or None, got {settings!r}.")
