"""The learning rule of a plan as the services see it: bytes in, bytes out.

The model travels as one flat vector of little-endian float64: weights, velocity, average, and two
counters. Everything in it is the protected, public output. NumPy only: nodes carry this module.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats
from tacit.errors import TacitError
from tacit.fleet.learning.head import HeadModel, class_scores, feature_map, initial_model
from tacit.fleet.learning.rounds import client_messages, server_step
from tacit.fleet.plan import FleetPlan
from tacit.fleet.reports.mechanisms import report_of
from tacit.fleet.reports.protocol import NodeBudget, Parts
from tacit.guarantee import DpGuarantee
from tacit.noise import SYSTEM_NOISE, NoiseSource


class Learner:
    """What nodes and the analyser compute under one plan."""

    def __init__(self, plan: FleetPlan) -> None:
        self.plan = plan
        self._report = report_of(plan)
        self.message_bytes = self._report.message_bytes
        self.helper_bytes = self._report.helper_bytes

    def initial(self) -> bytes:
        """The model before the first round."""
        return model_to_bytes(initial_model(self.plan))

    def report(
        self,
        model: bytes,
        X: Floats,
        y: Sequence[str] | NDArray[np.str_],
        *,
        source: NoiseSource = SYSTEM_NOISE,
    ) -> Parts:
        """A node's randomized report for one round, a part for each server that reads one.

        Guarantee, Assumes, Composes, Not covered: see `Report.randomize` of the plan's mechanism.
        """
        head = model_from_bytes(model, self.plan)
        return client_messages(head, X, y, self.plan, source=source)

    def check(self, message: bytes) -> None:
        """Refuse a message that no honest node can have sent, as far as one message shows it."""
        self._report.check(message)

    def sum_helper_parts(self, parts: Iterable[bytes]) -> bytes:
        """The share helper's contribution to a round."""
        return self._report.sum_helper_parts(parts)

    def update(self, model: bytes, messages: list[bytes], helper_sum: bytes = b"") -> bytes:
        """The next model from one round's messages, or a refusal to release the round."""
        head = model_from_bytes(model, self.plan)
        mean = self._report.collect(messages, helper_sum).mean
        return model_to_bytes(server_step(head, mean, self.plan))

    def spent(self, received: Sequence[int]) -> DpGuarantee | None:
        """What protects every client of a run whose rounds had these numbers of reports."""
        return self._report.guarantee(received)

    def node_cost(self, round_index: int) -> DpGuarantee:
        """What one node debits for its report of the `round_index`-th round it takes part in."""
        return self._report.node_cost(round_index)

    def node_costs(self) -> tuple[tuple[float, float], ...]:
        """(epsilon, delta) that a node debits in its first, second, ... round, for a plan file."""
        rounds = range(1, self.plan.client_rounds + 1)
        costs = [self._report.node_cost(index) for index in rounds] if self.helper_bytes else []
        return tuple((cost.epsilon, cost.delta) for cost in costs)

    def check_stated(self, costs: Sequence[tuple[float, float]]) -> None:
        """Refuse costs in a plan file that are smaller than the noise allows."""
        self._report.check_stated(costs)

    def stated_cost(self, *, epsilon: float, delta: float) -> DpGuarantee:
        """A cost from a plan file as the guarantee that it is."""
        return self._report.stated_cost(epsilon=epsilon, delta=delta)

    def node_budget(self) -> NodeBudget:
        """A node's own limit over the whole run."""
        return self._report.node_budget()

    def predict(self, model: bytes, X: Floats) -> NDArray[Any]:
        """Labels of series from the average of the last iterates."""
        head = model_from_bytes(model, self.plan)
        rows = feature_map(self.plan).transform(np.asarray(X, dtype=np.float64))
        best = class_scores(rows, head.average).argmax(axis=1)
        labels: NDArray[Any] = np.asarray(self.plan.classes)[best]
        return labels


def model_to_bytes(model: HeadModel) -> bytes:
    """The model as one flat vector."""
    counters = np.array([model.n_averaged, model.round_number], dtype=np.float64)
    parts = [model.weights.ravel(), model.velocity.ravel(), model.average.ravel(), counters]
    return bytes(np.concatenate(parts).astype("<f8").tobytes())


def model_from_bytes(content: bytes, plan: FleetPlan) -> HeadModel:
    """Read a model back; refuse one of another size, or with values that are no numbers."""
    shape = (len(plan.classes) - 1, plan.n_features)
    size = shape[0] * shape[1]
    if len(content) != 8 * (3 * size + 2):
        raise TacitError(
            f"a model of this plan has {8 * (3 * size + 2)} bytes, got {len(content)}; "
            "the server and this node must share one plan."
        )
    flat = np.frombuffer(content, dtype="<f8").astype(np.float64)
    if not np.all(np.isfinite(flat)):
        raise TacitError("the model holds values that are not finite; it is not used.")
    weights, velocity, average = flat[: 3 * size].reshape(3, *shape)
    return HeadModel(weights, velocity, average, int(flat[-2]), int(flat[-1]))
