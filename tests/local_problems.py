"""Small trained models that several tests share; trained once per process."""

from __future__ import annotations

from functools import cache

from contract import toy_problem
from tacit.arrays import Floats
from tacit.data import load_dataset
from tacit.data.dataset import Dataset
from tacit.local.estimator import DPSoftShapeClassifier
from tacit.local.model import LocalModel
from tacit.local.release import Kind
from tacit.local.releases.channel import ChannelKind
from tacit.local.releases.label import LabelHead
from tacit.local.releases.place import PlaceHead
from tacit.local.releases.shapes import ShapesHead
from tacit.local.releases.vector import VectorHead


@cache
def italy() -> Dataset:
    data = load_dataset("ItalyPowerDemand")
    for shared in (data.X_train, data.y_train, data.X_test, data.y_test):
        shared.setflags(write=False)
    return data


@cache
def trained(
    release: Kind, epsilon: float = 2.0, channel: ChannelKind = "optimal"
) -> DPSoftShapeClassifier:
    """A univariate binary model on real data."""
    data = italy()
    classifier = DPSoftShapeClassifier(
        epsilon, release=release, encoder="kernels", channel=channel, random_state=0
    )
    classifier.fit(data.X_train, data.y_train)
    return classifier


@cache
def trained_multivariate(release: Kind) -> tuple[DPSoftShapeClassifier, Floats]:
    """Three classes on three channels, and its training series."""
    X, y = toy_problem(channels=3, n_classes=3, n_series=30)
    classifier = DPSoftShapeClassifier(4.0, release=release, encoder="kernels", random_state=0)
    classifier.fit(X, y)
    return classifier, X


def model_of(classifier: DPSoftShapeClassifier) -> LocalModel:
    assert classifier.model_ is not None
    return classifier.model_


def label_head(classifier: DPSoftShapeClassifier) -> LabelHead:
    head = model_of(classifier).head
    assert isinstance(head, LabelHead)
    return head


def place_head(classifier: DPSoftShapeClassifier) -> PlaceHead:
    head = model_of(classifier).head
    assert isinstance(head, PlaceHead)
    return head


def vector_head(classifier: DPSoftShapeClassifier) -> VectorHead:
    head = model_of(classifier).head
    assert isinstance(head, VectorHead)
    return head


def shapes_head(classifier: DPSoftShapeClassifier) -> ShapesHead:
    head = model_of(classifier).head
    assert isinstance(head, ShapesHead)
    return head
