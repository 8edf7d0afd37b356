"""FedST as an aeon classifier: one call starts the owners' processes and ends with P0's model."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from aeon.classification.base import BaseClassifier
from numpy.typing import NDArray

from tacit.arrays import Cube, Floats
from tacit.data import as_cube, split_parties
from tacit.errors import TacitError, check_at_least
from tacit.guarantee import Guarantee, Unprotected
from tacit.silo.fedst.settings import FEDERATED_SCOPES, Settings, as_tuple, feature_kinds
from tacit.system.extras import needs
from tacit.system.seeds import generator

if TYPE_CHECKING:
    from tacit.silo.explain import Explanation
    from tacit.silo.model import Shapelet, ShapeletModel
    from tacit.silo.secure.session import LocalInputs, ProgramResult
    from tacit.system.progress import Progress

_PLAIN_REASON = {
    "local": "LocalST: P0 used its own series only, in plaintext, and nothing left it",
    "global": "GlobalST: the series of all parties were pooled in plaintext",
}


class _PartyClassifier(BaseClassifier):  # type: ignore[misc]  # aeon has no type information
    """A classifier whose `fit` also takes the owner of each series.

    aeon forbids a classifier to define `fit` itself; this base class hands the owners over.
    """

    def fit(self, X: Any, y: Any, party: Any = None) -> Any:
        """Fit P0's model; `party` is the owner of each series, None for a stratified equal split.

        Party 0 is the initiator, whose series the shapelets come from.
        """
        self._party = None if party is None else np.asarray(party)
        try:
            return super().fit(X, y)
        finally:
            self.__dict__.pop("_party", None)

    def reset(self, keep: str | list[str] | None = None) -> Any:
        """As in aeon, whose `fit` begins with it; the parties given to `fit` must survive it."""
        names = [keep] if isinstance(keep, str) else list(keep or [])
        return super().reset(keep=[*names, "_party"])


class FedSTClassifier(_PartyClassifier):
    """Shapelet transform over the secret-shared series of several owners (FedST, Liang and Wang).

    Guarantee: `guarantee_`, an `MpcGuarantee` whose `opened` is the recorded list of everything
    revealed; P0 learns the shapelet indices and the classifier, nobody else learns anything. For
    the scopes "local" and "global", which run in plaintext for comparison, `Unprotected`.
    Assumes: passive adversary, one of the computing parties; see `guarantee_.assumptions`. `fit`
    runs all parties on this machine; between organisations use `tacit silo`.
    Not covered: counts, lengths, channels, classes present and timing.

    Series may have several channels: a candidate is cut from one channel and compared with that
    channel only.

    Parameters
    ----------
    n_parties : owners; 2 use CHEETAH, 3 or more ABY3 with three of them computing.
    quality : "f", "ig" or "ig-basic".
    classifier : "ridge", "logistic" or "forest".
    n_candidates, n_shapelets : candidates examined and shapelets kept.
    time_contract : seconds for the whole search, sharing and ranking included, to the nearest
        batch; None to examine all candidates.
    scope : "federated", "local-search", "local-transform", or in plaintext "local", "global".
    distance : "dot", or "elementwise" for the paper's basic protocol (slow, equal results).
    lengths : candidate lengths; None for a grid from min(3, N/4) to N.
    normalise : z-normalise every series first; if False, `value_bound` must bound all values.
    features : kinds of candidates: "shapelets", "intervals", "dictionary", several, or "all".
    epsilon : differential privacy of what P0 learns, in all; for classifier "forest" with scope
        "local-search", or with scope "federated" and quality "ig" (half of it for the shapelets).
    ledger : path of a ledger that is debited before an `epsilon` run; None for no ledger.

    Example
    -------
    >>> from tacit import FedSTClassifier, load_dataset
    >>> data = load_dataset("ItalyPowerDemand")
    >>> classifier = FedSTClassifier(scope="local", n_candidates=5, n_shapelets=2, random_state=0)
    >>> classifier.fit(data.X_train, data.y_train).predict(data.X_test[:3]).shape
    (3,)
    >>> classifier.guarantee_.kind  # scope "federated" computes on shares, and has "mpc" here
    'unprotected'
    """

    _tags = {  # noqa: RUF012  # aeon's own convention
        "capability:multivariate": True,
        "capability:unequal_length": False,
        "capability:missing_values": False,
        "algorithm_type": "shapelet",
    }

    def __init__(
        self,
        n_parties: int = 3,
        quality: str = "f",
        classifier: str = "ridge",
        n_candidates: int = 500,
        n_shapelets: int = 200,
        time_contract: float | None = None,
        scope: str = "federated",
        distance: str = "dot",
        lengths: tuple[int, ...] | None = None,
        normalise: bool = True,
        value_bound: float | None = None,
        n_trees: int = 40,
        depth: int | None = None,
        n_steps: int = 300,
        features: str | tuple[str, ...] = "shapelets",
        epsilon: float | None = None,
        ledger: str | None = None,
        random_state: int | None = None,
        progress: Progress | None = None,
    ) -> None:
        self.n_parties = n_parties
        self.quality = quality
        self.classifier = classifier
        self.n_candidates = n_candidates
        self.n_shapelets = n_shapelets
        self.time_contract = time_contract
        self.scope = scope
        self.distance = distance
        self.lengths = lengths
        self.normalise = normalise
        self.value_bound = value_bound
        self.n_trees = n_trees
        self.depth = depth
        self.n_steps = n_steps
        self.features = features
        self.epsilon = epsilon
        self.ledger = ledger
        self.random_state = random_state
        self.progress = progress
        super().__init__()

    def _fit(self, X: Floats, y: NDArray[Any]) -> FedSTClassifier:
        rng = generator(self.random_state)
        settings = self._settings(public_seed=int(rng.integers(2**31)))
        private_seed = int(rng.integers(2**31))
        cube = as_cube(X)
        codes = np.searchsorted(self.classes_, y)
        party = self._owners(codes, rng)
        needs("silo", "jax", "spu", what="FedSTClassifier")
        start = time.monotonic()
        if self.scope in FEDERATED_SCOPES:
            self._fit_together(cube, codes, party, settings, private_seed)
        else:
            rows = party == 0 if self.scope == "local" else np.ones(len(codes), dtype=bool)
            self._fit_plain(cube[rows], codes[rows], settings, private_seed)
        self.history_["total_seconds"] = time.monotonic() - start
        self._keep_own_features()
        return self

    def _settings(self, *, public_seed: int) -> Settings:
        check_at_least(self.n_parties, 2, name="n_parties")
        return Settings(
            quality=self.quality,
            distance=self.distance,
            classifier=self.classifier,
            scope=self.scope,
            n_candidates=self.n_candidates,
            n_shapelets=self.n_shapelets,
            lengths=None if self.lengths is None else as_tuple(self.lengths, name="lengths"),
            time_contract=self.time_contract,
            normalise=self.normalise,
            value_bound=self.value_bound,
            n_trees=self.n_trees,
            depth=self.depth,
            n_steps=self.n_steps,
            features=feature_kinds(self.features),
            epsilon=self.epsilon,
            seed=public_seed,
        )

    def _owners(self, codes: NDArray[np.intp], rng: np.random.Generator) -> NDArray[np.int64]:
        party = getattr(self, "_party", None)
        if party is None:
            return split_parties(codes, n_parties=self.n_parties, rng=rng)
        if party.shape != codes.shape or not np.isin(party, np.arange(self.n_parties)).all():
            raise TacitError(
                f"party must give each of the {len(codes)} series a number from 0 to "
                f"{self.n_parties - 1}, got an array of shape {party.shape}."
            )
        if len(np.unique(party)) < self.n_parties:
            raise TacitError(
                f"every one of the {self.n_parties} parties needs at least one series."
            )
        owners: NDArray[np.int64] = party.astype(np.int64)
        return owners

    def _fit_plain(
        self, X: Floats, codes: NDArray[np.intp], settings: Settings, private_seed: int
    ) -> None:
        from tacit.silo.fedst.plaintext import fit_alone
        from tacit.system.progress import silent

        inputs = _inputs(X, codes, private_seed)
        result = fit_alone(
            settings,
            inputs,
            n_classes=len(self.classes_),
            progress=self.progress or silent,
        )
        self._keep(inputs, result, settings)
        self.guarantee_: Guarantee = Unprotected(reason=_PLAIN_REASON[self.scope])

    def _fit_together(
        self,
        X: Floats,
        codes: NDArray[np.intp],
        party: NDArray[np.int64],
        settings: Settings,
        private_seed: int,
    ) -> None:
        from tacit.silo.party.localhost import run_federation
        from tacit.silo.plan import Plan, default_protocol
        from tacit.silo.secure.session import ProgramResult

        inputs = [
            _inputs(X[party == p], codes[party == p], private_seed) for p in range(self.n_parties)
        ]
        plan = Plan(
            program="fedst",
            parties=tuple(f"P{p}" for p in range(self.n_parties)),
            protocol=default_protocol(self.n_parties),
            classes=tuple(str(label) for label in self.classes_),
            series_length=X.shape[2],
            n_channels=X.shape[1],
            counts=tuple(len(own.X) for own in inputs),
            params=settings.to_params(),
        )
        self._debit(settings)
        outcome = run_federation(plan, inputs, progress=self.progress)
        result = ProgramResult(arrays=outcome.arrays, info=outcome.info)
        self._keep(inputs[0], result, settings)
        receipt = outcome.receipts[0]
        self._federated = receipt, dict(outcome.arrays)
        self.guarantee_ = receipt.guarantee
        self.history_ |= {
            "bytes_sent": receipt.bytes_sent,
            "bytes_sent_by_party": [r.bytes_sent for r in outcome.receipts],
            "rounds": max(r.rounds for r in outcome.receipts),
        }

    def _debit(self, settings: Settings) -> None:
        """Write the privacy of what will be opened to the ledger, before anything is."""
        from tacit.ledger import Ledger
        from tacit.ledger.anchors import configured_anchor
        from tacit.silo.party.data_budget import opened_privacy

        cost = opened_privacy(settings.to_params())
        if cost is None or self.ledger is None:
            return
        shapelets = "shapelets and " if settings.selection_epsilon is not None else ""
        with Ledger.open(Path(self.ledger), anchor=configured_anchor(self.ledger)) as ledger:
            ledger.debit(
                subject="fedst",
                guarantee=cost,
                purpose=f"{shapelets}leaf labels of a federated forest, opened to P0",
                subject_kind="model",
            )

    def _keep(self, own: LocalInputs, result: ProgramResult, settings: Settings) -> None:
        from tacit.silo.model import trained_model

        self.model_: ShapeletModel = trained_model(
            result.arrays, own=own.X, settings=settings, n_classes=len(self.classes_)
        )
        self.own_series_: Cube = own.X
        self.own_codes_: NDArray[np.intp] = own.y
        self.history_: dict[str, Any] = {
            "seconds": dict(result.info["seconds"]),
            "bytes_sent": 0,
            "n_examined": int(result.info["n_examined"]),
            "stages": dict(result.info),
        }

    def _keep_own_features(self) -> None:
        self.own_features_ = self.model_.features(self.own_series_)

    @property
    def shapelets_(self) -> list[Shapelet]:
        """The shapelets chosen, best first; all of them cut from P0's own series."""
        return self.model_.shapelets

    def _predict_proba(self, X: Floats) -> Floats:
        cube = as_cube(X)
        self.model_.check_shape(cube.shape[1:])
        return self.model_.probabilities(cube)

    def _predict(self, X: Floats) -> NDArray[Any]:
        labels: NDArray[Any] = np.asarray(self.classes_)[self._predict_proba(X).argmax(axis=1)]
        return labels

    def explain(self, x: Any, *, n_shapelets: int = 5) -> Explanation:
        """Why one series (channels, N) gets its class: what drove it and where that lies.

        Uses the model, the series given and P0's own data only; nothing is sent anywhere.
        """
        from tacit.silo.explain import explain

        self._check_is_fitted()
        series = as_cube(np.atleast_2d(np.asarray(x, dtype=np.float64))[None])[0]
        self.model_.check_shape(series.shape)
        return explain(
            self.model_,
            series,
            classes=[str(label) for label in self.classes_],
            own_features=self.own_features_,
            own_codes=self.own_codes_,
            n_shapelets=n_shapelets,
        )

    def save(self, path: str | Path) -> Path:
        """Write the folder that `tacit silo classify` and `explain` read, with P0's own series.

        Only a run on shares leaves a receipt, so the scopes "local" and "global" are refused.
        """
        from tacit.silo.stored_model import write_stored

        self._check_is_fitted()
        if self.scope not in FEDERATED_SCOPES:
            raise TacitError(
                f"scope {self.scope!r} runs in plaintext and leaves no receipt to store; train "
                'with scope "federated".'
            )
        receipt, arrays = self._federated
        labels = np.array([str(label) for label in self.classes_])[self.own_codes_]
        return write_stored(
            Path(path), receipt=receipt, arrays=arrays, own=self.own_series_, own_labels=labels
        )

    @classmethod
    def _get_test_params(cls, parameter_set: str = "default") -> dict[str, Any]:
        """Settings for aeon's checks: plaintext and small."""
        return {"scope": "global", "n_candidates": 12, "n_shapelets": 4, "n_trees": 3, "depth": 2}


def _inputs(X: Floats, codes: NDArray[np.intp], private_seed: int) -> LocalInputs:
    from tacit.silo.secure.session import LocalInputs

    return LocalInputs(X=X, y=codes.astype(np.intp), private={"seed": private_seed})
