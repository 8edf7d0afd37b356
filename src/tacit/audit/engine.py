"""The audit: exact where a mechanism states its law, else a test that is learned and evaluated.

With a law the privacy loss is computed, and runs show whether the code draws from it. Without one a
worst-case pair is searched, a test learned on half of the runs and evaluated on the rest; what is
learned never sees the runs it is evaluated on, so the bound holds with the stated confidence
whatever the search and the learning did. Either way the result says what it would have noticed.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats
from tacit.audit.bounds import (
    POWER,
    Claim,
    detectable,
    detectable_event,
    proportion_above,
    proportion_below,
)
from tacit.audit.fit import check_fit
from tacit.audit.laws import Law
from tacit.audit.shown import table_html
from tacit.audit.statistic import Detector, learn_detectors
from tacit.errors import TacitError, check_at_least
from tacit.guarantee import Guarantee, Unprotected, rounded_down, rounded_up
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
    `guarantee` is what a saved bundle states; mechanisms by name have only their claim. `law` is
    the distribution that the mechanism says its outputs have, where it can be written down.
    """

    name: str
    claim: Claim
    run: Callable[[Input, int], NDArray[Any]]
    pairs: Sequence[tuple[Input, Input]]
    guarantee: Guarantee | None = None
    law: Law | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditResult:
    """`verdict` is "refuted" if the claim is below what is proved, else "consistent".

    `method` "exact": `lower_bound` is the privacy loss of the stated law, and runs that do not
    follow the law refute it too; "sampled": `lower_bound` is what the runs prove.
    `detectable_epsilon` is the smallest epsilon that would have been refuted with 95 % power
    (`power`) by an event as likely as the one tested, and `detectable_event` the probability that
    outputs of one input must have, which the other never gives, to be found with that power. A
    violation below both may be there. `finding` says what decided.

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
    method: Literal["exact", "sampled"] = "sampled"
    exact_epsilon: float | None = None
    detectable_epsilon: float = math.inf
    detectable_event: float = 1.0
    power: float = POWER
    finding: str = ""
    guarantee: Guarantee | None = None

    def _repr_html_(self) -> str:
        """For notebooks: the claim beside what was proved."""
        rows = [
            ("mechanism", self.mechanism),
            ("verdict", self.verdict),
            ("claimed epsilon", rounded_up(self.claimed_epsilon)),
            ("proved at least", rounded_down(max(0.0, self.lower_bound))),
            ("how", f"{self.method}, {self.trials:,} trials, confidence {self.confidence:g}"),
            (f"found with {self.power:.0%} power", self._detectable()),
        ]
        if self.finding:
            rows.append(("finding", self.finding))
        return table_html(rows, () if self.guarantee is None else (self.guarantee,))

    def _detectable(self) -> str:
        if not math.isfinite(self.detectable_epsilon):
            return "no violation, these trials are too few"
        return (
            f"epsilon from {rounded_up(self.detectable_epsilon)}, outputs of one input alone "
            f"from probability {self.detectable_event:.1e}"
        )

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
    """Bound epsilon from below with about `trials` runs, exactly where a law is stated.

    A sound mechanism is refuted with probability at most 1 - `confidence`.
    """
    check_at_least(trials, SMALLEST_AUDIT, name="trials")
    check_confidence(confidence)
    if not audited.pairs:
        raise TacitError(f"{audited.name} offers no pair of inputs to tell apart.")
    started = time.perf_counter()
    if audited.law is None:
        pair = search_pair(audited, runs=trials // 4, progress=progress)
        found = _sampled(
            audited, pair, learn=trials // 8, count=trials // 4, level=1.0 - confidence,
            progress=progress,
        )  # fmt: skip
        rarest = max(found.detectable_event, _event_that_search_sees(audited, runs=trials // 4))
        found = replace(found, detectable_event=rarest)
    else:
        found = _exact(audited, audited.law, trials, 1.0 - confidence, progress)
    progress(3, 3, "done")
    unprotected = isinstance(audited.guarantee, Unprotected)
    refuted = unprotected or bool(found.misfit) or found.lower > audited.claim.epsilon
    return AuditResult(
        mechanism=audited.name,
        claimed_epsilon=audited.claim.epsilon,
        delta=audited.claim.delta,
        lower_bound=found.lower,
        confidence=confidence,
        trials=trials,
        verdict="refuted" if refuted else "consistent",
        tpr=found.tpr,
        fpr=found.fpr,
        n_pairs=found.n_pairs,
        seconds=time.perf_counter() - started,
        method="sampled" if audited.law is None else "exact",
        exact_epsilon=found.exact,
        detectable_epsilon=found.detectable_epsilon,
        detectable_event=found.detectable_event,
        finding=_finding(found, audited.claim.epsilon, unprotected=unprotected),
        guarantee=audited.guarantee,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    lower: float
    tpr: float
    fpr: float
    detectable_epsilon: float
    detectable_event: float
    n_pairs: int
    exact: float | None = None
    misfit: str | None = None


def _finding(found: _Found, claimed: float, *, unprotected: bool) -> str:
    if found.misfit:
        return f"the runs do not follow the stated law: {found.misfit}"
    if unprotected:
        return "nothing stands behind the nominal epsilon"
    if found.exact is not None and found.exact > claimed:
        return "the stated law itself has a larger epsilon"
    if found.lower > claimed:
        return "an event is too much more likely under one input than under the other"
    if found.exact is not None:
        return "the stated law keeps the claim, and the runs follow the law"
    return "no event was found that contradicts the claim"


def _exact(audited: Audited, law: Law, trials: int, level: float, progress: Progress) -> _Found:
    """The law's own loss, and whether the runs follow it.

    Every input of every pair is run equally often: code that is wrong for one input is wrong. Of
    vectors the law's cells show only a part of the joint distribution, so half of the runs and of
    the false alarm go to a learned test.
    """
    delta = audited.claim.delta
    pairs = _pairs_of_the_law(audited, law)
    losses = [law.loss(x, y, delta=delta) for x, y in pairs]
    worst = int(np.argmax(losses))
    pair = pairs[worst]
    event = law.event(*pair, delta=delta)
    inputs = _distinct([*pair, *(x for other in pairs for x in other)])
    share = 2 if law.joint else 1
    progress(0, 3, "comparing with the law")
    fit = check_fit(
        law,
        lambda x, count: _outputs(audited, x, count),
        inputs,
        event=event,
        claim=audited.claim,
        runs=trials // share // len(inputs),
        false_alarm=level / share,
    )
    found = _Found(
        lower=losses[worst],
        tpr=event.tpr,
        fpr=event.fpr,
        detectable_epsilon=fit.detectable_epsilon,
        detectable_event=fit.detectable_event,
        n_pairs=len(pairs),
        exact=losses[worst],
        misfit=fit.misfit,
    )
    if not law.joint and fit.misfit is None:
        return found
    sampled = _sampled(
        audited, pair, learn=trials // 16, count=trials // 8, level=level / share, progress=progress
    )
    if fit.misfit is not None:  # the law says nothing about this code: what do the runs prove?
        return replace(sampled, exact=found.exact, misfit=fit.misfit, n_pairs=found.n_pairs)
    return replace(found, lower=max(found.lower, sampled.lower))


def _pairs_of_the_law(audited: Audited, law: Law) -> Sequence[tuple[Input, Input]]:
    """All pairs of a law with finitely many inputs, else the pairs that are offered."""
    return list(combinations(law.inputs, 2)) if len(law.inputs) > 1 else audited.pairs


def _distinct(inputs: Sequence[Input]) -> list[Input]:
    """Every input once, in order; 0.0 and -0.0 are one."""
    first: dict[bytes, Input] = {}
    for x in inputs:
        first.setdefault((np.asarray(x, dtype=np.float64) + 0.0).tobytes(), x)
    return list(first.values())


def _sampled(
    audited: Audited,
    pair: tuple[Input, Input],
    *,
    learn: int,
    count: int,
    level: float,
    progress: Progress,
) -> _Found:
    """Learn two tests on `learn` runs of each input, and evaluate them on `count` others of each.

    The false alarm is split over the two tests and, for each, over its two proportions.
    """
    false_alarm = level / 4.0
    progress(1, 3, "learning a test")
    detectors = _learn(audited, pair, runs=learn, false_alarm=false_alarm, count=count)
    progress(2, 3, "counting")
    hits = [_count(audited, x, detectors, count) for x in pair]
    found = [
        _evaluated(
            audited.claim,
            tpr=hits[int(detector.swapped)][i],  # swapped: it speaks for the second input
            fpr=hits[1 - int(detector.swapped)][i],
            count=count,
            false_alarm=false_alarm,
        )
        for i, detector in enumerate(detectors)
    ]
    best = max(found, key=lambda one: one.lower)
    # The test that notices the smaller violation says what would have been noticed.
    noticed = min(one.detectable_epsilon for one in found)
    return replace(best, detectable_epsilon=noticed, n_pairs=len(audited.pairs))


def _evaluated(claim: Claim, *, tpr: int, fpr: int, count: int, false_alarm: float) -> _Found:
    lower = claim.epsilon_for(
        proportion_above(tpr, count, false_alarm=false_alarm),
        proportion_below(fpr, count, false_alarm=false_alarm),
    )
    return _Found(
        lower=lower,
        tpr=tpr / count,
        fpr=fpr / count,
        detectable_epsilon=detectable(claim, fpr / count, runs=count, false_alarm=false_alarm),
        detectable_event=detectable_event(claim, runs=count, false_alarm=false_alarm),
        n_pairs=1,
    )


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
                _learn(audited, pair, runs=each, false_alarm=_SEARCH_FALSE_ALARM)[0].promise
                for pair in pairs
            ]
            best = np.argsort(-np.array(promises), kind="stable")[:keep]  # ties: extremes first
            pairs = [pairs[i] for i in best]
    return pairs[0]


def _event_that_search_sees(audited: Audited, *, runs: int) -> float:
    """How likely outputs of one input only must be for the search to prefer their pair."""
    n_pairs = len(audited.pairs)
    if n_pairs == 1:
        return 0.0
    fewest = max(200, (runs - runs // 3) // min(n_pairs, 4) // 2)
    if n_pairs > 4:
        fewest = min(fewest, max(200, runs // 3 // n_pairs // 2))
    # Half of these runs choose the cut, by the bound that they prove.
    return detectable_event(
        audited.claim, runs=max(1, fewest // 2), false_alarm=_SEARCH_FALSE_ALARM
    )


def _learn(
    audited: Audited,
    pair: tuple[Input, Input],
    *,
    runs: int,
    false_alarm: float,
    count: int | None = None,
) -> list[Detector]:
    """Detectors for this pair; with `count`, also one for what only so many runs can prove."""
    first = _outputs(audited, pair[0], min(runs, 64))
    runs = max(64, min(runs, _LEARN_AT_MOST // first.shape[1]))
    return learn_detectors(
        _outputs(audited, pair[0], runs),
        _outputs(audited, pair[1], runs),
        claim=audited.claim,
        false_alarm=false_alarm,
        growth=1.0 if count is None else max(1.5, 2.0 * count / runs),
    )


def _count(audited: Audited, x: Input, detectors: list[Detector], runs: int) -> list[int]:
    width = _outputs(audited, x, 1).shape[1]
    chunk = max(1, _CHUNK // width)
    total = [0] * len(detectors)
    for start in range(0, runs, chunk):
        outputs = _outputs(audited, x, min(chunk, runs - start))
        total = [old + d.hits(outputs) for old, d in zip(total, detectors, strict=True)]
    return total


def _outputs(audited: Audited, x: Input, count: int) -> Floats:
    outputs = np.asarray(audited.run(x, count), dtype=np.float64)
    outputs = outputs[:, None] if outputs.ndim == 1 else outputs.reshape(len(outputs), -1)
    if len(outputs) != count or not np.all(np.isfinite(outputs)):
        raise TacitError(
            f"{audited.name} returned {len(outputs)} outputs for {count} runs, or one that is "
            "not finite; a release must always be finite."
        )
    return outputs
