"""The plaintext twin of a federation: the same seeds, split and program, and no engine."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from tacit.arrays import Floats
from tacit.guarantee import Unprotected
from tacit.silo import FedSTClassifier

_REASON = (
    "the plaintext twin of the federation, for its accuracy: the secure run gives the same model "
    "up to fixed-point rounding, this run protected nothing"
)


class FedSTTwin(FedSTClassifier):
    """What `FedSTClassifier` gives with the same `random_state`: minutes become seconds.

    Guarantee: none, `Unprotected`.
    """

    def _fit_together(
        self,
        X: Floats,
        codes: NDArray[Any],
        party: NDArray[Any],
        settings: Any,
        private_seed: int,
    ) -> None:
        from tacit.silo.fedst.plaintext import fit_pooled
        from tacit.silo.secure.session import LocalInputs

        owners = [
            LocalInputs(X=X[party == p], y=codes[party == p], private={"seed": private_seed})
            for p in range(self.n_parties)
        ]
        result = fit_pooled(settings, owners, n_classes=len(self.classes_))
        self._keep(owners[0], result, settings)
        self.guarantee_ = Unprotected(reason=_REASON)
