"""Checkpoints of a fleet run: one file, replaced atomically, that never forgets what was spent.

`received` holds the number of reports of every round that was *opened*; a round is entered there
before its reports are drawn. A run that died between opening a round and saving its model resumes
with that round counted as spent and not repeated: it can over-count, never under-count.

The account counts how often a client reports and with which local epsilon. Both stand in the
`Schedule`, so it is kept in the file, and a resumption with another one is refused.
"""

from __future__ import annotations

import hashlib
import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.errors import BundleError
from tacit.fleet.learning.head import HeadModel, initial_model
from tacit.fleet.plan import FleetPlan, plan_from_json
from tacit.system.files import write_secret

_MAGIC = b"tacit fleet run 2\n"
_OLD_MAGIC = b"tacit fleet run 1\n"  # did not keep the schedule
_HEAD = len(_MAGIC) + 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """Which client reports when, from which series, and with which local epsilon.

    Rounds take `clients_per_round` clients in turn from `order`. `local_epsilon` is None where the
    plan's holds for everybody. `deal` is `deal_digest` of the series: owners and sizes, no values,
    because a digest of values would let a reader of the file test guesses at them.
    """

    order: tuple[int, ...]
    clients_per_round: int
    local_epsilon: tuple[float, ...] | None
    deal: str


def deal_digest(
    client: NDArray[np.int64], *, n_clients: int, n_features: int, n_classes: int
) -> str:
    """SHA-256 of the owner of every series, in their order, and of the sizes of the problem."""
    sizes = np.array([n_clients, n_features, n_classes, len(client)], dtype="<i8")
    owners = np.asarray(client).astype("<i8")
    return hashlib.sha256(sizes.tobytes() + owners.tobytes()).hexdigest()


@dataclass(frozen=True, slots=True)
class SimulationCheckpoint:
    """The model, the rounds opened so far with their numbers of reports, plan and schedule."""

    plan: FleetPlan
    schedule: Schedule
    model: HeadModel
    received: tuple[int, ...]


def fresh(plan: FleetPlan, schedule: Schedule) -> SimulationCheckpoint:
    """The state before the first round."""
    return SimulationCheckpoint(plan, schedule, initial_model(plan), ())


def save_checkpoint(path: Path, state: SimulationCheckpoint) -> None:
    """Write the state to one file; plain arrays, nothing executable."""
    model, schedule = state.model, state.schedule
    buffer = io.BytesIO()
    np.savez(
        buffer,
        plan=np.frombuffer(state.plan.to_json().encode(), dtype=np.uint8),
        weights=model.weights,
        velocity=model.velocity,
        average=model.average,
        counters=np.array([model.n_averaged, model.round_number], dtype=np.int64),
        received=np.array(state.received, dtype=np.int64),
        order=np.array(schedule.order, dtype=np.int64),
        clients_per_round=np.array([schedule.clients_per_round], dtype=np.int64),
        local_epsilon=np.array(schedule.local_epsilon or (), dtype=np.float64),
        deal=np.frombuffer(schedule.deal.encode(), dtype=np.uint8),
    )
    content = buffer.getvalue()
    write_secret(path, _MAGIC + hashlib.sha256(content).digest() + content)


def load_checkpoint(path: Path, plan: FleetPlan | None = None) -> SimulationCheckpoint:
    """Read a state back; refuse a damaged file, or one of another plan than `plan`."""
    try:
        stored = path.read_bytes()
    except OSError as error:
        raise BundleError(f"there is no checkpoint {path}; start without --resume.") from error
    if stored.startswith(_OLD_MAGIC):
        raise BundleError(
            f"the checkpoint {path} was written by an earlier version, which kept no order "
            "of the clients; start without --resume."
        )
    head, content = stored[:_HEAD], stored[_HEAD:]
    if head != _MAGIC + hashlib.sha256(content).digest():
        raise BundleError(
            f"the checkpoint {path} is damaged, or not a checkpoint of a fleet; start without "
            "--resume."
        )
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        return _checked(dict(arrays), path, plan)


def resume_checkpoint(path: Path, plan: FleetPlan, schedule: Schedule) -> SimulationCheckpoint:
    """The state to go on from, with the order of the clients that the file holds.

    The order of `schedule` is not looked at: it comes from a generator that a resumed run need
    not have seeded alike. Everything else must be equal, or what the earlier rounds cost would
    be accounted by numbers that they were not drawn with.
    """
    state = load_checkpoint(path, plan)
    held = state.schedule
    if held.deal != schedule.deal or len(held.order) != len(schedule.order):
        raise BundleError(
            f"the checkpoint {path} belongs to series dealt to clients in another way; resume "
            "with the same data, the same clients and the same seed."
        )
    if held.clients_per_round != schedule.clients_per_round:
        raise BundleError(
            f"the checkpoint {path} asks {held.clients_per_round} clients per round, not "
            f"{schedule.clients_per_round}; resume with the same number."
        )
    for client in range(len(held.order)):
        before, now = _epsilon_of(client, held), _epsilon_of(client, schedule)
        if before != now:
            raise BundleError(
                f"the checkpoint {path} gives client {client} {before}, not {now}; resume with "
                "the same local epsilons."
            )
    return state


def _epsilon_of(client: int, schedule: Schedule) -> str:
    if schedule.local_epsilon is None:
        return "the plan's local epsilon"
    return f"the local epsilon {schedule.local_epsilon[client]!r}"


def _checked(
    stored: dict[str, NDArray[Any]], path: Path, plan: FleetPlan | None
) -> SimulationCheckpoint:
    held = plan_from_json(stored["plan"].tobytes().decode())
    if plan is not None and held != plan:
        raise BundleError(
            f"the checkpoint {path} belongs to another plan; resume with the same options."
        )
    shape = (len(held.classes) - 1, held.n_features)
    weights = [stored[name].astype(np.float64) for name in ("weights", "velocity", "average")]
    if any(w.shape != shape or not np.all(np.isfinite(w)) for w in weights):
        raise BundleError(
            f"the checkpoint {path} holds weights of another shape; start without --resume."
        )
    n_averaged, round_number = (int(value) for value in stored["counters"])
    received = tuple(int(n) for n in stored["received"])
    if not 0 <= round_number <= len(received) <= held.n_rounds or min(received, default=1) < 1:
        raise BundleError(
            f"the checkpoint {path} counts rounds that cannot have been; start without --resume."
        )
    model = HeadModel(weights[0], weights[1], weights[2], n_averaged, round_number)
    return SimulationCheckpoint(held, _checked_schedule(stored, path), model, received)


def _checked_schedule(stored: dict[str, NDArray[Any]], path: Path) -> Schedule:
    order = tuple(int(client) for client in stored["order"])
    (per_round,) = (int(value) for value in stored["clients_per_round"])
    local_epsilon = tuple(float(value) for value in stored["local_epsilon"])
    if sorted(order) != list(range(len(order))) or not 1 <= per_round <= len(order):
        raise BundleError(
            f"the checkpoint {path} holds no order of all clients; start without --resume."
        )
    if len(local_epsilon) not in (0, len(order)):
        raise BundleError(f"the checkpoint {path} lacks local epsilons; start without --resume.")
    return Schedule(
        order=order,
        clients_per_round=per_round,
        local_epsilon=local_epsilon or None,
        deal=stored["deal"].tobytes().decode(),
    )
