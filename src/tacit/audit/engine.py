"""The audit: search a worst-case pair, learn a test on half of the runs, evaluate on the rest.

What is learned never sees the runs it is evaluated on, so the bound holds with the stated
confidence whatever the search and the learning did.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats
from tacit.audit.bounds import Claim, proportion_above, proportion_below
from tacit.audit.statistic import Detector, learn_detector
from tacit.errors import TacitError, check_at_least
from tacit.guarantee import Guarantee, Unprotected
from tacit.system.progress import Progress, silent

Input = Any  # a number, a symbol or a series: only the mechanism looks at it

_CHUNK = 2**22  # numbers held at a time
_LEARN_AT_MOST = 2**24  # numbers a test is learned from
SMALLEST_AUDIT = 2_000
# Of the bound by which pairs are compared. At 5 % a lucky tail makes a weak pair look worst about
# once in a hundred searches; at this level 400 searches had none.
_SEARCH_FALSE_ALARM = 1e-3


@dataclass(frozen=True, slots=True)
class Audited:
    """A mechanism to audit: its claim, how to run it, and pairs of inputs to try.

    `run(x, count)` returns `count` independent outputs on x, of shape (count,) or (count, d).
    `guarantee` is what a saved bundle states; mechanisms by name have only their claim.
    """

    name: str
    claim: Claim
    run: Callable[[Input, int], NDArray[Any]]
    pairs: Sequence[tuple[Input, Input]]
    guarantee: Guarantee | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditResult:
    """`verdict` is "refuted" if the claim is below what the runs prove, else "consistent".

    A release that is `Unprotected` is refuted at every epsilon, by the reason that its guarantee
    gives: N runs prove no bound above about ln N, so they would let any large number pass.
    `lower_bound` is what the runs prove in either case.
    """

    mechanism: str
    claimed_epsilon: float
    delta: float
    lower_bound: float
    confidence: float
    trials: int
    verdict: Literal["consistent", "refuted"]
    tpr: float
    fpr: float
    n_pairs: int
    seconds: float
    guarantee: Guarantee | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; an epsilon that nothing stands behind is also called nominal."""
        plain = asdict(self)
        del plain["guarantee"]
        if isinstance(self.guarantee, Unprotected):
            plain["nominal_epsilon"] = self.guarantee.nominal_epsilon
        if self.guarantee is not None:
            plain["guarantee"] = self.guarantee.to_dict()
        return plain


def check_confidence(confidence: float) -> None:
    """Refuse a confidence that no number of runs can give: at 1 every claim would pass."""
    if not 0.5 <= confidence < 1.0:
        raise TacitError(f"confidence must lie in [0.5, 1), got {confidence!r}; try 0.999.")


def audit(
    audited: Audited,
    *,
    trials: int = 1_000_000,
    confidence: float = 0.999999,
    progress: Progress = silent,
) -> AuditResult:
    """Bound epsilon from below with about `trials` runs.

    A quarter of the runs searches the pair, a quarter learns the test, and half is counted. A
    sound mechanism is refuted with probability at most 1 - `confidence`.
    """
    check_at_least(trials, SMALLEST_AUDIT, name="trials")
    check_confidence(confidence)
    if not audited.pairs:
        raise TacitError(f"{audited.name} offers no pair of inputs to tell apart.")
    started = time.perf_counter()
    false_alarm = (1.0 - confidence) / 2.0  # one half for each of the two proportions
    each = trials // 4
    pair = search_pair(audited, runs=trials // 4, progress=progress)
    progress(1, 3, "learning a test")
    detector = _learn(audited, pair, runs=trials // 8, false_alarm=false_alarm)
    progress(2, 3, "counting")
    positive, negative = pair[::-1] if detector.swapped else pair
    tpr = _count(audited, positive, detector, each)
    fpr = _count(audited, negative, detector, each)
    progress(3, 3, "done")
    lower = audited.claim.epsilon_for(
        proportion_above(tpr, each, false_alarm=false_alarm),
        proportion_below(fpr, each, false_alarm=false_alarm),
    )
    return AuditResult(
        mechanism=audited.name,
        claimed_epsilon=audited.claim.epsilon,
        delta=audited.claim.delta,
        lower_bound=lower,
        confidence=confidence,
        trials=trials,
        verdict=_verdict(audited, lower),
        tpr=tpr / each,
        fpr=fpr / each,
        n_pairs=len(audited.pairs),
        seconds=time.perf_counter() - started,
        guarantee=audited.guarantee,
    )


def _verdict(audited: Audited, lower: float) -> Literal["consistent", "refuted"]:
    unprotected = isinstance(audited.guarantee, Unprotected)
    return "refuted" if unprotected or lower > audited.claim.epsilon else "consistent"


def search_pair(audited: Audited, *, runs: int, progress: Progress = silent) -> tuple[Input, Input]:
    """The pair that looks worst: a third of the runs over all pairs, the rest over the best four.

    The best four are often nearly equal, so telling them apart takes the more runs.
    """
    pairs = list(audited.pairs)
    for keep, share in ((4, runs // 3), (1, runs - runs // 3)):
        if len(pairs) > keep:
            progress(0, 3, f"searching {len(pairs)} pairs")
            each = max(200, share // len(pairs) // 2)
            promises = [
                _learn(audited, pair, runs=each, false_alarm=_SEARCH_FALSE_ALARM).promise
                for pair in pairs
            ]
            best = np.argsort(-np.array(promises), kind="stable")[:keep]  # ties: extremes first
            pairs = [pairs[i] for i in best]
    return pairs[0]


def _learn(
    audited: Audited, pair: tuple[Input, Input], *, runs: int, false_alarm: float
) -> Detector:
    first = _outputs(audited, pair[0], min(runs, 64))
    runs = max(64, min(runs, _LEARN_AT_MOST // first.shape[1]))
    return learn_detector(
        _outputs(audited, pair[0], runs),
        _outputs(audited, pair[1], runs),
        claim=audited.claim,
        false_alarm=false_alarm,
    )


def _count(audited: Audited, x: Input, detector: Detector, runs: int) -> int:
    width = _outputs(audited, x, 1).shape[1]
    chunk = max(1, _CHUNK // width)
    sizes = [min(chunk, runs - start) for start in range(0, runs, chunk)]
    return sum(detector.hits(_outputs(audited, x, size)) for size in sizes)


def _outputs(audited: Audited, x: Input, count: int) -> Floats:
    outputs = np.asarray(audited.run(x, count), dtype=np.float64)
    outputs = outputs[:, None] if outputs.ndim == 1 else outputs.reshape(len(outputs), -1)
    if len(outputs) != count or not np.all(np.isfinite(outputs)):
        raise TacitError(
            f"{audited.name} returned {len(outputs)} outputs for {count} runs, or one that is "
            "not finite; a release must always be finite."
        )
    return outputs
