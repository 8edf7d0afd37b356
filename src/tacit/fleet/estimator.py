"""DP-TimeFL as an aeon classifier: a simulated fleet behind `fit` and `predict`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from aeon.classification.base import BaseClassifier
from numpy.typing import NDArray

from tacit.arrays import Floats
from tacit.data import as_cube, split_clients
from tacit.errors import TacitError, check_at_least, check_delta, check_epsilon
from tacit.fleet.learning.head import class_scores
from tacit.fleet.reports.calibration import default_rounds, make_plan
from tacit.fleet.simulation.feature_rows import feature_rows
from tacit.fleet.simulation.fleet import make_fleet
from tacit.fleet.simulation.simulator import SimulatedRun, simulate
from tacit.guarantee import DpGuarantee, Guarantee
from tacit.noise import SYSTEM_NOISE, NoiseSource
from tacit.system.progress import Progress, silent
from tacit.system.seeds import generator


class ClientClassifier(BaseClassifier):  # type: ignore[misc]
    """A classifier whose `fit` also takes the owner of every series.

    aeon forbids a classifier to define `fit` itself; this base class hands the owners over.
    """

    def fit(self, X: Any, y: Any, client: Any = None) -> Any:
        """Train; `client` names the owner of every series, by default dealt out at random."""
        self._client = client
        try:
            return super().fit(X, y)
        finally:
            self.__dict__.pop("_client", None)

    def reset(self, keep: str | list[str] | None = None) -> Any:
        """As in aeon, whose `fit` begins with it; the owners given to `fit` must survive it."""
        names = [keep] if isinstance(keep, str) else list(keep or [])
        return super().reset(keep=[*names, "_client"])


class DPTimeFLClassifier(ClientClassifier):
    """Federated classifier whose clients are protected one by one.

    sound: a linear head on public features, client-level (epsilon, delta) under replacement;
    `mechanism` is "privunit" (shuffled local reports) or "distributed" (noise shares and a secure
    sum). published: the paper as written, which carries `Unprotected`.

    After `fit`: `guarantee_`; `history_`, one record per round. No training accuracy is in it:
    measuring one on clients' data would be a release of its own. `client_epsilon_` is what each
    client spent (sound); `reidentification_` the share of reports joined to senders (published).

    Parameters
    ----------
    n_clients : number of clients the series are dealt to when `fit` gets no `client`.
    clients_per_round : clients asked per round; None is all (sound) or Table II (published).
    epsilon, delta : totals per client (sound); nominal epsilon_0 and unused (published).
    mode : "sound" or "published".
    mechanism : "privunit" or "distributed"; sound only.
    n_rounds : None is `calibration.default_rounds` (sound) or Table II (published).
    n_min : fewest reports for a round to be released; None is all that are asked.
    n_kernels : random kernels among the public features.
    local_epsilon : one local epsilon per client, instead of the calibrated one; sound privunit.
    k : the paper's privacy coefficient, one or one per client; published only.
    checkpoint : file to save to after every round; `resume` continues from it, with the order of
        clients that it holds, and refuses other series per client or other local epsilons.
    random_state : seed of split, schedule, initial weights and batches; never of noise.
    progress : called with rounds done, rounds in all and epsilon spent so far.
    """

    _tags = {  # noqa: RUF012  # aeon reads a plain dictionary
        "capability:multivariate": True,
        "algorithm_type": "feature",
        "non_deterministic": True,
    }

    def __init__(
        self,
        n_clients: int = 100,
        clients_per_round: int | None = None,
        epsilon: float = 8.0,
        delta: float = 1e-5,
        mode: Literal["sound", "published"] = "sound",
        mechanism: Literal["privunit", "distributed"] = "privunit",
        n_rounds: int | None = None,
        n_min: int | None = None,
        n_kernels: int = 256,
        local_epsilon: Sequence[float] | None = None,
        k: float | Sequence[float] = 0.5,
        checkpoint: str | Path | None = None,
        resume: bool = False,
        random_state: int | None = None,
        progress: Progress | None = None,
    ) -> None:
        self.n_clients = n_clients
        self.clients_per_round = clients_per_round
        self.epsilon = epsilon
        self.delta = delta
        self.mode = mode
        self.mechanism = mechanism
        self.n_rounds = n_rounds
        self.n_min = n_min
        self.n_kernels = n_kernels
        self.local_epsilon = local_epsilon
        self.k = k
        self.checkpoint = checkpoint
        self.resume = resume
        self.random_state = random_state
        self.progress = progress
        self._source: NoiseSource = SYSTEM_NOISE
        super().__init__()

    def _fit(self, X: Floats, y: NDArray[Any]) -> DPTimeFLClassifier:
        client = self.__dict__.get("_client")
        X = as_cube(X)
        check_epsilon(self.epsilon)
        check_delta(self.delta)
        rng = generator(self.random_state)
        owners = self._dealt(y, rng) if client is None else _numbered(client, len(X))
        labels = np.searchsorted(self.classes_, y).astype(np.int64)
        if self.mode == "sound":
            self._fit_sound(X, labels, owners, rng)
        elif self.mode == "published":
            self._fit_published(X, labels, owners, rng)
        else:
            raise TacitError(f"unknown mode {self.mode!r}; use sound or published.")
        return self

    def _dealt(self, y: NDArray[Any], rng: np.random.Generator) -> NDArray[np.int64]:
        check_at_least(self.n_clients, 2, name="n_clients")
        return split_clients(y, n_clients=self.n_clients, how="iid", rng=rng)

    def _fit_sound(
        self,
        X: Floats,
        labels: NDArray[np.int64],
        client: NDArray[np.int64],
        rng: np.random.Generator,
    ) -> None:
        n_clients = int(client.max()) + 1
        rounds = self.n_rounds
        if rounds is None:
            rounds = default_rounds(mechanism=self.mechanism, n_clients=n_clients)
        plan = make_plan(
            classes=tuple(str(label) for label in self.classes_),
            n_channels=X.shape[1],
            length=X.shape[2],
            mechanism=self.mechanism,
            n_clients=n_clients,
            epsilon=self.epsilon,
            delta=self.delta,
            n_rounds=rounds,
            clients_per_round=self.clients_per_round,
            n_min=self.n_min,
            n_kernels=self.n_kernels,
        )
        rows = feature_rows(plan, X)
        fleet = make_fleet(rows, labels, client, n_clients=n_clients, n_classes=len(plan.classes))
        run: SimulatedRun = simulate(
            fleet,
            plan,
            clients_per_round=self.clients_per_round,
            local_epsilon=self.local_epsilon,
            rng=rng,
            source=self._source,
            progress=self.progress or silent,
            checkpoint=Path(self.checkpoint) if self.checkpoint else None,
            resume=self.resume,
        )
        self.plan_, self.model_ = plan, run.model
        self.guarantee_: Guarantee = run.guarantee
        self.history_: tuple[Any, ...] = run.history
        self.client_epsilon_ = run.client_epsilon
        self.averages_ = run.averages

    def _fit_published(
        self,
        X: Floats,
        labels: NDArray[np.int64],
        client: NDArray[np.int64],
        rng: np.random.Generator,
    ) -> None:
        from tacit.fleet.published.training import client_data, run_published, table_two

        n_clients = int(client.max()) + 1
        asked = {"n_rounds": self.n_rounds, "clients_per_round": self.clients_per_round}
        changes = {name: value for name, value in asked.items() if value is not None}
        run = run_published(
            client_data(X, labels, client, n_clients=n_clients),
            table_two(n_clients=n_clients, epsilon_0=self.epsilon, **changes),
            n_classes=len(self.classes_),
            k=self.k,
            seed=int(rng.integers(2**31)),
            source=self._source,
            progress=self.progress or silent,
        )
        self.run_ = run
        self.guarantee_, self.history_ = run.guarantee, run.history
        self.reidentification_ = run.reidentification

    def save(self, path: str | Path) -> None:
        """Write the trained head, its plan and its guarantee to one file (see `FleetModel`)."""
        from tacit.fleet.model import FleetModel

        self._check_is_fitted()
        if self.mode != "sound" or not isinstance(self.guarantee_, DpGuarantee):
            raise TacitError(
                "only a sound model is saved, with the guarantee that it was trained under; "
                "train with mode='sound'."
            )
        model = FleetModel(
            self.plan_, self.model_.average, self.guarantee_, self.model_.round_number
        )
        model.save(Path(path))

    def _scores(self, X: Floats) -> Floats:
        X = as_cube(X)
        if self.mode == "published":
            return self.run_.scores(X)
        return class_scores(feature_rows(self.plan_, X), self.model_.average)

    def _predict(self, X: Floats) -> NDArray[Any]:
        chosen: NDArray[Any] = self.classes_[self._scores(X).argmax(axis=1)]
        return chosen

    def _predict_proba(self, X: Floats) -> Floats:
        scores = self._scores(X)
        scores = np.exp(scores - scores.max(axis=1, keepdims=True))
        chances: Floats = scores / scores.sum(axis=1, keepdims=True)
        return chances

    @classmethod
    def _get_test_params(cls, parameter_set: str = "default") -> dict[str, Any]:
        """Small enough for aeon's own checks."""
        return {"n_clients": 4, "n_rounds": 3, "n_kernels": 20, "random_state": 0}


def _numbered(client: Any, n_series: int) -> NDArray[np.int64]:
    """Clients as 0..n-1 in sorted order of their names."""
    names, numbers = np.unique(np.asarray(client), return_inverse=True)
    if numbers.shape != (n_series,) or len(names) < 2:
        raise TacitError(
            f"client must name one of at least two clients for each of the {n_series} series."
        )
    owners: NDArray[np.int64] = numbers.astype(np.int64)
    return owners
