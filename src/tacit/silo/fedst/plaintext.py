"""The same computation for one owner who holds everything: the comparison scopes and the oracle.

Nothing is protected here. With quality F and a ridge classifier or a forest `fit_pooled` gives, bit
for bit, the model that a federation of the same owners would give, because P0's rows come first and
candidates, thresholds and centres come from them alone. Not so with information gain and logistic
regression: the engine approximates logarithms and divisions, so near ties may fall differently and
weights agree to the engine's precision only.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tacit.silo.fedst.parameters import public_parameters
from tacit.silo.fedst.program import run_stages
from tacit.silo.fedst.settings import Settings
from tacit.silo.secure.plain_session import run_alone
from tacit.silo.secure.session import LocalInputs, ProgramResult
from tacit.system.progress import Progress, silent


def fit_alone(
    settings: Settings,
    inputs: LocalInputs,
    *,
    n_classes: int,
    n_anchor: int | None = None,
    progress: Progress = silent,
) -> ProgramResult:
    """Search, transform and classifier of one owner; the first `n_anchor` rows act as P0's."""
    kept = len(inputs.X) if n_anchor is None else n_anchor
    public = public_parameters(
        settings,
        counts=(len(inputs.X),),
        n_classes=n_classes,
        series_length=inputs.X.shape[2],
        n_channels=inputs.X.shape[1],
        n_sources=kept,
    )
    private = {**inputs.private, "n_anchor": kept}
    whole = LocalInputs(X=inputs.X, y=inputs.y, private=private)
    return run_alone(lambda session: run_stages(session, whole, public), progress=progress)


def fit_pooled(
    settings: Settings,
    inputs: Sequence[LocalInputs],
    *,
    n_classes: int,
    progress: Progress = silent,
) -> ProgramResult:
    """The federation's result computed on pooled plaintext; P0's inputs come first."""
    together = LocalInputs(
        X=np.concatenate([own.X for own in inputs]),
        y=np.concatenate([own.y for own in inputs]),
        private=inputs[0].private,
    )
    return fit_alone(
        settings, together, n_classes=n_classes, n_anchor=len(inputs[0].X), progress=progress
    )
