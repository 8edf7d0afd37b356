"""Flower's own differential privacy, from its real classes, at the real total that we promise.

Flower does not state a total over rounds when one client is replaced; its noise multipliers are
set here so that the total is the task's. Its noise comes from NumPy's global generator.
"""

from __future__ import annotations

import logging
import math
import time
from typing import Any

import numpy as np

from tacit.accounting import compose_gaussian
from tacit.arena.fleet.problem import (
    DELTA,
    Problem,
    client_moves,
    multiplier,
    nominal,
)
from tacit.arena.outcome import Outcome
from tacit.arrays import Floats
from tacit.system.extras import needs

_ROUNDS, _LOCAL_ROUNDS = 40, 10
_SPREAD = 1.2  # of the noise in every coordinate of the last model, as in our own rule
_COUNT_SHARE = 0.1  # of the budget, for the noisy count that adapts the clip norm
_TTL = 3600.0


def fixed_clipping(given: Problem) -> Outcome:
    """`DifferentialPrivacyServerSideFixedClipping` around `FedAvg`, every client in each round."""
    needs("fleet", "flwr", what="Flower's strategies")
    from flwr.serverapp.strategy import DifferentialPrivacyServerSideFixedClipping, FedAvg

    noise, clip_norm = multiplier(given.epsilon, rounds=_ROUNDS), _clip_norm(given)
    n_clients = given.fleet.n_clients
    with _quiet():
        strategy = DifferentialPrivacyServerSideFixedClipping(FedAvg(), noise, clip_norm, n_clients)
        weights = np.zeros(given.shape)
        for number in range(_ROUNDS):
            weights = _aggregated(strategy, number, weights, given)
    spent = compose_gaussian(
        noise_multiplier=noise, delta=DELTA, rounds=_ROUNDS, noise="continuous"
    )
    return given.outcome(weights, nominal(spent), rounds=_ROUNDS, clip_norm=clip_norm)


def adaptive_clipping(given: Problem) -> Outcome:
    """`DifferentialPrivacyServerSideAdaptiveClipping` around `FedAvg`.

    A round's noise is scaled by the clip norm of the next round, so what a round costs is known
    only when its count is; rounds end where the next one would pass the total.
    """
    needs("fleet", "flwr", what="Flower's strategies")
    from flwr.serverapp.strategy import DifferentialPrivacyServerSideAdaptiveClipping, FedAvg

    whole = (2.0 / multiplier(given.epsilon, rounds=1)) ** 2  # the squared mu of the total
    count_cost = _COUNT_SHARE * whole / _ROUNDS
    count_sigma = 1.0 / math.sqrt(count_cost)
    wanted = 2.0 / math.sqrt((1.0 - _COUNT_SHARE) * whole / _ROUNDS)
    noise = (wanted**-2 + (2.0 * count_sigma) ** -2) ** -0.5
    weights, spent, done = np.zeros(given.shape), 0.0, 0
    with _quiet():
        strategy = DifferentialPrivacyServerSideAdaptiveClipping(
            FedAvg(),
            noise,
            given.fleet.n_clients,
            initial_clipping_norm=_clip_norm(given),
            clipped_count_stddev=count_sigma,
        )
        for number in range(_ROUNDS):
            before = strategy.clipping_norm
            after = _aggregated(strategy, number, weights, given)
            real = strategy.noise_multiplier * strategy.clipping_norm / before
            cost = count_cost + (2.0 / real) ** 2
            if spent + cost > whole:
                break
            weights, spent, done = after, spent + cost, number + 1
    total = compose_gaussian(
        noise_multiplier=2.0 / math.sqrt(spent), delta=DELTA, rounds=1, noise="continuous"
    )
    clip_norm = float(strategy.clipping_norm)
    return given.outcome(weights, nominal(total), rounds=done, last_clip_norm=clip_norm)


def local_noise(given: Problem) -> Outcome:
    """`LocalDpMod` in every client, `FedAvg` at the server: nobody is trusted."""
    needs("fleet", "flwr", what="Flower's LocalDpMod")
    from flwr.app import RecordDict
    from flwr.clientapp.mod import LocalDpMod
    from flwr.serverapp.strategy import FedAvg

    noise = multiplier(given.epsilon, rounds=_LOCAL_ROUNDS)
    n_clients = given.fleet.n_clients
    one_shot = multiplier(given.epsilon, rounds=1) / math.sqrt(n_clients)
    clip_norm = _SPREAD / (one_shot * _LOCAL_ROUNDS)
    # Its formula, solved for the epsilon that draws the noise of the real total.
    own_epsilon = 2.0 * clip_norm * math.sqrt(2.0 * math.log(1.25 / DELTA)) / (noise * clip_norm)
    mod = LocalDpMod(clip_norm, 2.0 * clip_norm, own_epsilon, DELTA)
    weights = np.zeros(given.shape)
    with _quiet():
        strategy = FedAvg()
        for number in range(_LOCAL_ROUNDS):
            asked = RecordDict({"arrays": _record(weights)})
            replies = [
                mod(_message(asked, node), None, lambda message, _, r=reply: r)
                for node, reply in enumerate(_replies(weights, given))
            ]
            arrays, _ = strategy.aggregate_train(number + 1, replies)
            weights = arrays.to_numpy_ndarrays()[0]
    spent = compose_gaussian(
        noise_multiplier=noise, delta=DELTA, rounds=_LOCAL_ROUNDS, noise="continuous"
    )
    return given.outcome(weights, nominal(spent), rounds=_LOCAL_ROUNDS, nominal_epsilon=own_epsilon)


def _clip_norm(given: Problem) -> float:
    """So long that the noise of all rounds together spreads as far as in our own rule."""
    return _SPREAD / (given.one_shot_noise * _ROUNDS)


def _aggregated(strategy: Any, number: int, weights: Floats, given: Problem) -> Floats:
    """The next model; what `configure_train` would remember is set, as there is no network."""
    strategy.current_arrays = _record(weights)
    arrays, _ = strategy.aggregate_train(number + 1, _replies(weights, given))
    found: Floats = arrays.to_numpy_ndarrays()[0]
    return found


def _replies(weights: Floats, given: Problem) -> list[Any]:
    """Every client's trained weights, all of one weight in the mean."""
    moves = client_moves(given.fleet, weights)
    return [_message(_content(weights - move), node) for node, move in enumerate(moves)]


def _content(weights: Floats) -> Any:
    from flwr.app import MetricRecord, RecordDict

    metrics = MetricRecord({"num-examples": 1.0})
    return RecordDict({"arrays": _record(weights), "metrics": metrics})


def _record(weights: Floats) -> Any:
    from flwr.app import Array, ArrayRecord

    return ArrayRecord({"weights": Array(np.array(weights))})


def _message(content: Any, node: int) -> Any:
    """A message as the SuperLink would hand it over."""
    from flwr.app import Message, Metadata

    metadata = Metadata(
        run_id=1,
        message_id=str(node),
        src_node_id=node + 1,
        dst_node_id=0,
        reply_to_message_id="",
        group_id="",
        created_at=time.time(),
        ttl=_TTL,
        message_type="train",
    )
    return Message(content=content, metadata=metadata)


class _quiet:
    """Flower logs a line per client and round."""

    def __enter__(self) -> None:
        self._before = logging.getLogger("flwr").level
        logging.getLogger("flwr").setLevel(logging.ERROR)

    def __exit__(self, *_: object) -> None:
        logging.getLogger("flwr").setLevel(self._before)
