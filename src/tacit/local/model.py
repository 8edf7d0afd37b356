"""A public model of the local family: one head, for the device and for the server.

The device side (`summarise`, `randomize`) turns a series into what leaves; the server side
(`decide`, `posterior`) turns what arrived into labels. Both live in one file, because the model is
public: nothing in it is a secret, and knowing it helps no attacker beyond the guarantee.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit._version import VERSION
from tacit.arrays import Floats
from tacit.data.validate import as_cube, refuse_constant
from tacit.errors import BundleError, TacitError
from tacit.guarantee import DpGuarantee, Guarantee, from_dict
from tacit.local.bundle import Arrays, read_bundle, write_bundle
from tacit.local.encoding.body import body_from_arrays
from tacit.local.release import Release, local_guarantee
from tacit.local.releases.label import LabelHead
from tacit.local.releases.place import PlaceHead, Places
from tacit.local.releases.shapes import ShapesHead
from tacit.local.releases.vector import VectorHead
from tacit.noise import SYSTEM_NOISE, NoiseSource

Head = LabelHead | PlaceHead | VectorHead | ShapesHead


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class LocalModel:
    """A head with the names of its classes and the shape of the series it reads."""

    head: Head
    classes: tuple[str, ...]
    class_type: str  # "str", "int", "float" or "bool": what the labels were before they became text
    n_channels: int
    n_timepoints: int
    identity: str = ""
    training: DpGuarantee | None = None  # of the clients that trained it; None: nothing is promised
    guarantee: DpGuarantee = field(init=False)  # what one release of one series reveals at most

    def __post_init__(self) -> None:
        stated = local_guarantee(
            self.head.epsilon,
            assumptions=self.head.assumptions,
            trained_privately=self.training is not None,
        )
        object.__setattr__(self, "guarantee", stated)

    def check_series(self, X: Any, *, where: str = "X") -> Floats:
        """Series this model can release, as (n, channels, T), or a refusal."""
        cube = as_cube(X, where=where)
        if cube.shape[1:] != (self.n_channels, self.n_timepoints):
            raise TacitError(
                f"{where} has {cube.shape[1]} channels and {cube.shape[2]} steps, the "
                f"model reads {self.n_channels} and {self.n_timepoints}; resample the series "
                "or train on this shape."
            )
        refuse_constant(cube, where=where)
        return cube

    def randomize(self, summary: Any, *, source: NoiseSource = SYSTEM_NOISE) -> Release:
        """What leaves, from the head's private summary of each series."""
        values = self.head.randomize(summary, source=source)
        return Release(
            kind=self.head.kind, values=values, model=self.identity, guarantee=self.guarantee
        )

    def decide(self, release: Release) -> NDArray[np.intp]:
        """Class codes, by the server."""
        return self.head.decide(self._checked(release))

    def posterior(self, release: Release) -> Floats:
        """Class probabilities (n, classes), by the server."""
        return self.head.posterior(self._checked(release))

    def places(self, release: Release) -> Places:
        """Where in each series the evidence for its class lies, by the server."""
        if not isinstance(self.head, PlaceHead):
            raise TacitError(f"a {self.head.kind!r} release says nothing of places; use 'place'.")
        return self.head.places(self._checked(release))

    def labels(self, release: Release) -> list[str]:
        """Class names, by the server."""
        return [self.classes[code] for code in self.decide(release)]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the bundle: one file."""
        arrays, values = self._content()
        write_bundle(path, arrays, {**values, "identity": self.identity, "tacit": VERSION})

    def identified(self) -> LocalModel:
        """The same model, named by the hash of its content."""
        arrays, values = self._content()
        digest = hashlib.sha256(json.dumps(values, sort_keys=True).encode())
        for name in sorted(arrays):
            digest.update(name.encode())
            digest.update(np.ascontiguousarray(arrays[name]).tobytes())
        return replace(self, identity=digest.hexdigest()[:16])

    def _checked(self, release: Release) -> NDArray[Any]:
        if not isinstance(release, Release):
            raise TacitError(
                f"only releases are classified, got {type(release).__name__}; make one with "
                "'release', or read a file with 'load_release'."
            )
        if release.kind != self.head.kind or release.model != self.identity:
            raise TacitError(
                f"these are {release.kind!r} releases of model {release.model or '?'}, this is "
                f"{self.head.kind!r} model {self.identity}; classify them with the bundle that "
                "released them."
            )
        if release.guarantee != self.guarantee:
            raise TacitError(
                f"these releases state a guarantee that model {self.identity} does not give "
                f"({_stated(release.guarantee)}); take the file as the device wrote it."
            )
        self.head.check_values(release.values)
        return release.values

    def _content(self) -> tuple[Arrays, dict[str, Any]]:
        arrays: Arrays = {f"head.{name}": array for name, array in self.head.arrays().items()}
        values: dict[str, Any] = {
            "kind": self.head.kind,
            "epsilon": self.head.epsilon,
            "guarantee": self.guarantee.to_dict(),
            "classes": list(self.classes),
            "class_type": self.class_type,
            "n_channels": self.n_channels,
            "n_timepoints": self.n_timepoints,
        }
        if self.training is not None:
            values["training"] = self.training.to_dict()
        if not isinstance(self.head, LabelHead):
            values["head"] = self.head.values()
        if not isinstance(self.head, ShapesHead):
            body_arrays, values["body"] = self.head.body.arrays()
            arrays.update({f"body.{name}": array for name, array in body_arrays.items()})
        return arrays, values


def new_model(
    head: Head,
    classes: NDArray[Any],
    *,
    n_channels: int,
    n_timepoints: int,
    training: DpGuarantee | None = None,
) -> LocalModel:
    """A model for a trained head, named by the hash of its content."""
    return LocalModel(
        head=head,
        classes=tuple(str(label) for label in classes),
        class_type=class_type(classes),
        n_channels=n_channels,
        n_timepoints=n_timepoints,
        training=training,
    ).identified()


def class_type(classes: NDArray[Any]) -> str:
    """What labels are before they become text."""
    return {"i": "int", "u": "int", "f": "float", "b": "bool"}.get(classes.dtype.kind, "str")


def classes_of(names: Sequence[str], kind: str) -> NDArray[Any]:
    """Labels of the type that they were trained with, from their texts."""
    if kind == "bool":
        return np.array([name == "True" for name in names])
    return np.array(names) if kind == "str" else np.array(names, dtype=kind)


def _stated(guarantee: Guarantee) -> str:
    """The number that was stated, where there is one, to tell forgery from another version."""
    if isinstance(guarantee, DpGuarantee):
        return f"epsilon {guarantee.epsilon!r}, {guarantee.trust_model}"
    return guarantee.kind


def load_model(path: str | os.PathLike[str]) -> LocalModel:
    """Read a bundle; refuse one that is damaged, foreign, or promises more than it keeps."""
    arrays, values = read_bundle(path)
    try:
        head = _head(arrays, values)
        model = LocalModel(
            head=head,
            classes=tuple(values["classes"]),
            class_type=values["class_type"],
            n_channels=values["n_channels"],
            n_timepoints=values["n_timepoints"],
            identity=values["identity"],
            training=_training(values, path),
        )
        stated = from_dict(values["guarantee"])
    except (KeyError, TypeError, IndexError, AttributeError) as error:
        raise BundleError(
            f"{path} lacks {error}; it holds no model for releases, export it again."
        ) from error
    # Compared as objects: how a sentence words its numbers may change between versions.
    if stated != model.guarantee:
        raise BundleError(
            f"{path} states a guarantee that its mechanism does not have; export it again."
        )
    return model


def _training(values: dict[str, Any], path: str | os.PathLike[str]) -> DpGuarantee | None:
    if "training" not in values:
        return None
    stated = from_dict(values["training"])
    if not isinstance(stated, DpGuarantee) or stated.unit != "client":
        raise BundleError(
            f"{path} states a training guarantee that is not one per client; export it again."
        )
    return stated


def _head(arrays: Arrays, values: dict[str, Any]) -> Head:
    own = _with_prefix("head.", arrays)
    epsilon = float(values["epsilon"])
    if values["kind"] == "shapes":
        return ShapesHead.from_arrays(own, values["head"], epsilon=epsilon)
    body = body_from_arrays(_with_prefix("body.", arrays), values["body"])
    if values["kind"] == "place":
        return PlaceHead.from_arrays(body, own, values["head"], epsilon=epsilon)
    if values["kind"] == "vector":
        return VectorHead.from_arrays(body, own, values["head"], epsilon=epsilon)
    return LabelHead(body, own["channel"], own["gain"], epsilon)


def _with_prefix(prefix: str, arrays: Arrays) -> Arrays:
    return {
        name.removeprefix(prefix): array
        for name, array in arrays.items()
        if name.startswith(prefix)
    }
