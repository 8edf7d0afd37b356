"""The interface of a round's reports: what a client sends, what comes of it and what it costs.

Client:   `randomize` its direction, then `encode` it: a part of `message_bytes` for the analyser,
          and where `helper_bytes` is above 0 one for the share helper, each sealed to its reader.
Helper:   `sum_helper_parts` of the reports that both servers have agreed on.
Analyser: `check` every message, then `collect` them: a `RoundSum`, or `RoundNotReleased`.
Account:  `guarantee` of a run after rounds with given numbers of reports; `node_cost` of one report
          at its node.

A further mechanism needs three things: its settings in `tacit.fleet.plan`, a subclass of `Report`,
and its line in `tacit.fleet.reports.mechanisms`. NumPy only on the client's side.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from tacit.arrays import Floats, Integers
from tacit.errors import TacitError
from tacit.fleet.plan import FleetPlan, Settings
from tacit.guarantee import DpGuarantee
from tacit.noise import NoiseSource


class RoundNotReleased(TacitError):
    """Too few valid reports came: nothing of the round is used or published."""


class Parts(NamedTuple):
    """One report on its way: what the analyser reads, and what the share helper reads, if it does.

    Neither may be opened by anybody but its reader.
    """

    analyser: bytes
    helper: bytes = b""


@dataclass(frozen=True, slots=True)
class RoundSum:
    """What a round reveals: the mean of `n` randomized directions; `refused` were out of range."""

    mean: Floats
    n: int
    refused: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeBudget:
    """What one node may spend over a whole run; without a delta none is spent."""

    epsilon: float
    delta: float | None = None


class Report(ABC):
    """One mechanism under one plan."""

    settings_type: ClassVar[type[Settings]]
    # Whether the analyser sees single reports, which it could try to link to clients.
    shows_single_reports: ClassVar[bool]
    # Reports of a round up to which a simulation keeps its guarantee; None: any number.
    most_simulated: ClassVar[int | None] = None

    def __init__(self, plan: FleetPlan) -> None:
        self.plan = plan

    @staticmethod
    @abstractmethod
    def calibrate(draft: FleetPlan, *, n_most: int) -> Settings:
        """The least noise that keeps the draft's total with `n_min` to `n_most` reports a round."""

    @staticmethod
    @abstractmethod
    def default_rounds(n_clients: int) -> int:
        """A public default for the number of rounds when all clients take part in each."""

    @property
    @abstractmethod
    def message_bytes(self) -> int:
        """The one size of the analyser's part of every report of the run."""

    @property
    def helper_bytes(self) -> int:
        """The one size of the share helper's part; 0 where a report goes through the shuffler."""
        return 0

    @property
    def analyser_admits_nodes(self) -> bool:
        """Whether the analyser keeps a list of the nodes, as the share helper does.

        Where a report has two parts, both servers check who sent it; a blind shuffler's analyser
        must not even know who could have.
        """
        return self.helper_bytes > 0

    @abstractmethod
    def randomize(self, directions: Floats, *, source: NoiseSource) -> Floats | Integers:
        """One randomized report per row, a direction of norm at most 1.

        Guarantee, Assumes, Composes, Not covered: see the mechanism.
        """

    @abstractmethod
    def encode(self, report: Floats | Integers, *, source: NoiseSource) -> Parts:
        """A report in parts of fixed sizes, each ready to be sealed to its reader."""

    @abstractmethod
    def check(self, message: bytes) -> None:
        """Refuse a message that no honest client can have sent, as far as one message shows it."""

    def sum_helper_parts(self, parts: Iterable[bytes]) -> bytes:
        """The share helper's contribution to `collect`, from its parts of the agreed reports."""
        raise TacitError(f"reports of the mechanism {self.plan.mechanism} have no second part.")

    @abstractmethod
    def collect(self, messages: Iterable[bytes], helper_sum: bytes = b"") -> RoundSum:
        """Check and average a round; the n that counts is the number of valid reports."""

    @abstractmethod
    def block_total(self, directions: Floats, *, source: NoiseSource) -> Floats | Integers:
        """What these clients add to a simulated sum; totals of blocks of clients add up."""

    @abstractmethod
    def released_mean(self, total: Floats | Integers, n: int, *, source: NoiseSource) -> Floats:
        """The mean that `collect` would return for `n` clients with this total."""

    @property
    def simulated_apart(self) -> str:
        """Why a simulated run keeps no guarantee though a deployed one would; empty if it does."""
        return ""

    @abstractmethod
    def noise_norm(self) -> float:
        """Root mean square norm of the noise on the mean of `n_min` reports; public."""

    @abstractmethod
    def weight(self, n: int) -> float:
        """What a mean of `n` reports counts beside means with other settings: 1 / its variance."""

    @abstractmethod
    def with_local_epsilon(self, local_epsilon: float, *, n_min: int) -> Report:
        """The same mechanism for those of the clients who chose their own local epsilon."""

    @abstractmethod
    def node_cost(self, round_index: int) -> DpGuarantee:
        """What one node debits for its report of the `round_index`-th round it takes part in."""

    def stated_cost(self, *, epsilon: float, delta: float) -> DpGuarantee:
        """A cost that was worked out when the plan was made, for nodes without an accountant."""
        raise TacitError(f"a node works out by itself what {self.plan.mechanism} costs it.")

    def check_stated(self, costs: Sequence[tuple[float, float]]) -> None:
        """Refuse costs in a plan file that are smaller than the noise allows."""
        if costs:
            raise TacitError(f"a node works out by itself what {self.plan.mechanism} costs it.")

    @abstractmethod
    def node_budget(self) -> NodeBudget:
        """A node's own limit over the whole run, a hair above the sum of its debits."""

    @abstractmethod
    def _composed(self, received: Sequence[int]) -> DpGuarantee:
        """What protects a client that took part in these rounds, at least one."""

    def guarantee(self, received: Sequence[int]) -> DpGuarantee | None:
        """What protects every client of a run whose rounds had these numbers of valid reports.

        The one statement of a run, in simulation and in deployment. It is that of the worst
        client: in the rounds with the fewest reports, as often as the plan lets it take part.
        """
        worst = sorted(received)[: self.plan.client_rounds]
        return self._composed(worst) if worst else None

    def plan_for_files(self) -> FleetPlan:
        """The plan with settings that survive being written and added up in decimals."""
        return self.plan

    def check_enough(self, n: int) -> None:
        """Refuse to release a round with fewer valid reports than the calibration counts on."""
        if n < self.plan.n_min:
            raise RoundNotReleased(
                f"the round has {n} valid reports and needs {self.plan.n_min}; nothing of it is "
                "released."
            )
