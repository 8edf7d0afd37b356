"""From the head that a fleet trained to a model that devices release with.

Everything here is computed from what is public: the trained head, which left under the fleet's
guarantee, and a recognition rate that somebody states. No series and no label is looked at, so
this step spends nothing.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats
from tacit.errors import TacitError, is_number
from tacit.fleet.learning.head import class_scores, feature_map
from tacit.fleet.plan import FleetPlan
from tacit.guarantee import DpGuarantee, Guarantee
from tacit.local.encoding.body import Body
from tacit.local.encoding.public_features import PublicEncoder
from tacit.local.encoding.ridge import LinearClassifier
from tacit.local.model import LocalModel, new_model
from tacit.local.releases.channel import design_channel
from tacit.local.releases.label import LabelHead

RECOGNITION = 0.95


def release_model(
    plan: FleetPlan,
    weights: Floats,
    *,
    training: Guarantee,
    classes: NDArray[np.generic],
    release_epsilon: float,
    recognition: float = RECOGNITION,
) -> LocalModel:
    """A model whose devices send one label through k-ary randomized response.

    Guarantee: pure `release_epsilon` per released series; `training`, which the weights left
    under, for the clients. `weights` are the fleet's class contrasts, (classes - 1, features).
    """
    if not isinstance(training, DpGuarantee):
        raise TacitError(
            "the fleet's model carries no differential privacy, so a device cannot promise any "
            "for its training; train with mode='sound', and with mechanism='distributed' for more "
            "than 2000 clients a round."
        )
    gain = stated_confusion(len(classes), recognition=recognition)
    channel = design_channel(gain, epsilon=release_epsilon, kind="krr")
    head = LabelHead(_body(plan, weights), channel, gain, release_epsilon)
    return new_model(
        head,
        classes,
        n_channels=plan.n_channels,
        n_timepoints=plan.length,
        training=training,
    )


def stated_confusion(n_classes: int, *, recognition: float) -> Floats:
    """Joint shares (device label, class) of equal classes, each recognised at the stated rate.

    Errors are spread evenly: who errs how would have to be learned from somebody's series.
    """
    if not (is_number(recognition) and 1.0 / n_classes < recognition < 1.0):
        raise TacitError(
            f"recognition must lie above {1.0 / n_classes:.3g}, which guessing reaches with "
            f"{n_classes} classes, and below 1, got {recognition!r}."
        )
    wrong = (1.0 - recognition) / (n_classes - 1)
    table = np.full((n_classes, n_classes), wrong) + (recognition - wrong) * np.eye(n_classes)
    joint: Floats = table / n_classes
    return joint


def _body(plan: FleetPlan, weights: Floats) -> Body:
    features = feature_map(plan)
    scores = class_scores(np.eye(features.n_features), weights).astype(np.float32)
    # The features end with the constant that carries the bias.
    classifier = LinearClassifier(scores, np.zeros(scores.shape[1], dtype=np.float32), 1.0)
    return Body("public", PublicEncoder(features), classifier)
