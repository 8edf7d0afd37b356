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
from tacit.errors import (
    TacitError,
    check_at_least,
    check_choice,
    check_delta,
    check_epsilon,
    check_flag,
    check_positive,
    is_number,
)
from tacit.fleet.learning.head import class_scores
from tacit.fleet.reports.calibration import default_rounds, make_plan
from tacit.fleet.simulation.feature_rows import feature_rows
from tacit.fleet.simulation.fleet import make_fleet
from tacit.fleet.simulation.simulator import SimulatedRun, simulate
from tacit.guarantee import DpGuarantee, Guarantee
from tacit.noise import SYSTEM_NOISE, NoiseSource
from tacit.system.progress import Progress, silent
from tacit.system.seeds import generator, whole_seed

SOUND_DELTA = 1e-5


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
    epsilon, delta : totals per client (sound); the nominal epsilon_0 and the limit at which the
        accountant ends the run (published). delta None is 1e-5 (sound) or Table II (published).
    mode : "sound" or "published".
    mechanism : "privunit" or "distributed"; sound only.
    n_rounds : None is `calibration.default_rounds` (sound); published: the most rounds, None until
        the accountant or convergence ends the run.
    n_min : fewest reports for a round to be released; None is all that are asked.
    n_kernels : random kernels among the public features.
    local_epsilon : one local epsilon per client, instead of the calibrated one; sound privunit.
    k : the paper's privacy coefficient, one or one per client; published only.
    preset : "paper" (40 local epochs, about 200,000 weights) or "tuned" (5 and about 11,000);
        local_epochs, batch_size, network ("paper" or "light") and clip_norm change single settings
        of it; published only.
    proposals : the clients' suggested longest delays T_i, one or one per client; published only.
    checkpoint : file to save to after every round; `resume` continues from it, with the order of
        clients that it holds, and refuses other series per client or other local epsilons.
    random_state : seed of split, schedule, initial weights and batches; never of noise. A whole
        number seeds the published mode as the arena's task with that seed.
    progress : called with rounds done, rounds in all and epsilon spent so far.

    Example
    -------
    >>> from tacit import DPTimeFLClassifier, load_dataset
    >>> data = load_dataset("ItalyPowerDemand")
    >>> fleet = DPTimeFLClassifier(n_clients=8, n_rounds=1, n_kernels=20, random_state=0)
    >>> fleet.fit(data.X_train, data.y_train).predict(data.X_test[:3]).shape
    (3,)
    >>> fleet.guarantee_.unit
    'client'
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
        delta: float | None = None,
        mode: Literal["sound", "published"] = "sound",
        mechanism: Literal["privunit", "distributed"] = "privunit",
        n_rounds: int | None = None,
        n_min: int | None = None,
        n_kernels: int = 256,
        local_epsilon: Sequence[float] | None = None,
        k: float | Sequence[float] = 0.5,
        preset: Literal["paper", "tuned"] = "paper",
        local_epochs: int | None = None,
        batch_size: int | None = None,
        network: Literal["paper", "light"] | None = None,
        clip_norm: float | None = None,
        proposals: Sequence[float] | None = None,
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
        self.preset = preset
        self.local_epochs = local_epochs
        self.batch_size = batch_size
        self.network = network
        self.clip_norm = clip_norm
        self.proposals = proposals
        self.checkpoint = checkpoint
        self.resume = resume
        self.random_state = random_state
        self.progress = progress
        self._source: NoiseSource = SYSTEM_NOISE
        super().__init__()

    def _fit(self, X: Floats, y: NDArray[Any]) -> DPTimeFLClassifier:
        client = self.__dict__.get("_client")
        X = as_cube(X)
        self._check_parameters()
        rng = generator(self.random_state)
        owners = self._dealt(y, rng) if client is None else _numbered(client, len(X))
        labels = np.searchsorted(self.classes_, y).astype(np.int64)
        if self.mode == "sound":
            self._fit_sound(X, labels, owners, rng)
        else:
            self._fit_published(X, labels, owners, rng)
        return self

    def _check_parameters(self) -> None:
        check_epsilon(self.epsilon)
        if self.delta is not None:
            check_delta(self.delta)
        check_choice(self.mode, ("sound", "published"), name="mode")
        check_choice(self.mechanism, ("privunit", "distributed"), name="mechanism")
        check_flag(self.resume, name="resume")
        _check_numbers(self.k, name="k")
        check_choice(self.preset, ("paper", "tuned"), name="preset")
        if self.network is not None:
            check_choice(self.network, ("paper", "light"), name="network")
        for name in ("local_epochs", "batch_size"):
            if vars(self)[name] is not None:
                check_at_least(vars(self)[name], 1, name=name)
        if self.clip_norm is not None:
            check_positive(self.clip_norm, name="clip_norm")
        if self.proposals is not None:
            _check_numbers(self.proposals, name="proposals")
        if self.local_epsilon is not None:
            _check_numbers(self.local_epsilon, name="local_epsilon")
        if self.checkpoint is not None and not isinstance(self.checkpoint, (str, Path)):
            raise TacitError(f"checkpoint must be a path or None, got {self.checkpoint!r}.")

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
            delta=SOUND_DELTA if self.delta is None else self.delta,
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
        from tacit.fleet.published.clients import client_data
        from tacit.fleet.published.settings import table_two
        from tacit.fleet.published.training import run_published

        n_clients = int(client.max()) + 1
        config = table_two(
            n_clients=n_clients,
            preset=self.preset,
            epsilon_0=self.epsilon,
            delta_limit=self.delta,
            n_rounds=self.n_rounds,
            clients_per_round=self.clients_per_round,
            local_epochs=self.local_epochs,
            batch_size=self.batch_size,
            network=self.network,
            clip_norm=self.clip_norm,
        )
        run = run_published(
            client_data(X, labels, client, n_clients=n_clients),
            config,
            n_classes=len(self.classes_),
            k=self.k,
            proposals=self.proposals,
            seed=whole_seed(rng if self.random_state is None else self.random_state),
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
                "only a model with a guarantee is saved, and this one has none; train with "
                "mode='sound', and with mechanism='distributed' for more than 2000 clients a round."
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


def _check_numbers(values: Any, *, name: str) -> None:
    """One number, or one for each client."""
    each = [values] if np.ndim(values) == 0 else list(values)
    if not all(is_number(value) for value in each):
        raise TacitError(f"{name} must be a number, or one for each client, got {values!r}.")


def _numbered(client: Any, n_series: int) -> NDArray[np.int64]:
    """Clients as 0..n-1 in sorted order of their names."""
    names, numbers = np.unique(np.asarray(client), return_inverse=True)
    if numbers.shape != (n_series,) or len(names) < 2:
        raise TacitError(
            f"client must name one of at least two clients for each of the {n_series} series."
        )
    owners: NDArray[np.int64] = numbers.astype(np.int64)
    return owners
