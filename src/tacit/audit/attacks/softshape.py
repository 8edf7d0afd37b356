"""DP-SoftShape as published: one release tells which of 100 series it came from.

The attacker knows the public model and 100 candidate series, sees one release, and names the
likeliest candidate. Against the sound release of the same data the same attacker (with the true
likelihoods of that release, which are public) is held to e**epsilon / (e**epsilon + 99).

The nominal epsilon can also be gamed: with an attention bias of +6 the published network starts
with scores near 1, so almost no noise, and classifies well at "epsilon = 0.01".
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.arrays import Codes, Floats
from tacit.audit.attacks.result import AttackResult, SoundCheck, best_guess_rate
from tacit.audit.bounds import proportion_above
from tacit.data import load_dataset
from tacit.errors import TacitError, check_at_least, check_epsilon
from tacit.guarantee import rounded_up
from tacit.noise import SYSTEM_NOISE, NoiseSource, uniform
from tacit.system.extras import needs
from tacit.system.progress import Progress, silent

if TYPE_CHECKING:
    from tacit.local.releases.label import LabelHead
    from tacit.local.releases.place import PlaceHead

_FALSE_ALARM = 1e-6
_SOUND_REPEATS = 200  # releases of each candidate by the sound mechanism


def attack_softshape(
    *,
    data: str = "GunPoint",
    epsilon: float = 0.1,
    n_candidates: int = 100,
    seed: int = 0,
    trick: bool = True,
    preset: str = "tuned",
    model_file: Path | None = None,
    first: int = 0,
    source: NoiseSource = SYSTEM_NOISE,
    progress: Progress = silent,
) -> AttackResult:
    """Train the published model, attack one release of each candidate, then the sound release.

    `preset`: of the published network; the clip of `paper` leaves less to see in one release.
    `model_file` names the sound model to attack, at whose epsilon the published one is trained;
    without it one is trained at `epsilon`. Candidates are test series from `first` on, and again
    from the beginning.
    """
    needs("networks", "torch", what="attacking published DP-SoftShape")
    from tacit.local.softshape.leakage import initialisation_trick, measure_leakage
    from tacit.local.softshape.published import train_published
    from tacit.local.softshape.settings import preset_settings

    settings = preset_settings(preset)
    check_epsilon(epsilon)
    check_at_least(n_candidates, 2, name="n_candidates")
    started = time.perf_counter()
    dataset = load_dataset(data)
    classes, y = np.unique(dataset.y_train, return_inverse=True)
    if not 0 <= first < len(dataset.X_test):
        raise TacitError(f"series {first} is not there; {data} has 0 to {len(dataset.X_test) - 1}.")
    candidates = np.roll(dataset.X_test, -first, axis=0)[:n_candidates]
    if len(candidates) < 2:
        raise TacitError(f"{data} has {len(candidates)} test series; the attack needs 2.")
    opened = None if model_file is None else _symbol_head(model_file, candidates)
    if opened is not None:
        epsilon = float(opened.epsilon)
    progress(0, 4, "training the published model")
    model = train_published(
        dataset.X_train, y, len(classes), epsilon=epsilon, settings=settings, seed=seed
    )
    progress(1, 4, "attacking its releases")
    leakage = measure_leakage(
        model, candidates, epsilon=epsilon, source=source, n_series=len(candidates)
    )
    named = round(leakage["reidentification"] * len(candidates))

    def count(hits: int, runs: int) -> None:
        progress(2, 4, f"published {named} of {len(candidates)}; sound {hits} of {runs}")

    count(0, 0)
    head = opened or _trained_head(dataset.X_train, y, epsilon=epsilon, seed=seed)
    sound = attack_symbols(head, candidates, epsilon=epsilon, source=source, count=count)
    details: dict[str, Any] = {
        "data": data,
        "preset": preset,
        "nominal_epsilon": epsilon,
        "n_candidates": len(candidates),
        "nominal_bound": best_guess_rate(epsilon, len(candidates)),
        **leakage,
    }
    if trick:
        progress(3, 4, "the initialisation trick")
        codes = np.searchsorted(classes, dataset.y_test)
        details["initialisation_trick"] = initialisation_trick(
            dataset.X_train,
            y,
            dataset.X_test,
            codes,
            n_classes=len(classes),
            settings=settings,
            seed=seed,
            source=source,
        )
    progress(4, 4, "done")
    hits = round(leakage["reidentification"] * len(candidates))
    proved = proportion_above(hits, len(candidates), false_alarm=_FALSE_ALARM)
    return AttackResult(
        attack="softshape",
        succeeded=proved > details["nominal_bound"],
        rate=hits / len(candidates),
        chance=1.0 / len(candidates),
        seconds=time.perf_counter() - started,
        guarantee=model.guarantee,
        sound=sound,
        details=details,
    )


def attack_symbols(
    head: LabelHead | PlaceHead,
    candidates: Floats,
    *,
    epsilon: float,
    source: NoiseSource = SYSTEM_NOISE,
    count: Callable[[int, int], None] = lambda hits, runs: None,
) -> SoundCheck:
    """Re-identify from the symbols that `head` releases; `count` hears hits and tries so far."""
    from tacit.local.release import local_guarantee

    own = head.summarise(candidates)
    table = head.channel[own]  # (candidate, symbol): the likelihood of each symbol
    hits = 0
    for done in range(1, _SOUND_REPEATS + 1):
        released = head.randomize(own, source=source)
        named = name_likeliest(table[:, released].T, source=source)
        hits += int(np.count_nonzero(named == np.arange(len(candidates))))
        count(hits, done * len(candidates))
    return SoundCheck.of(
        hits=hits,
        runs=_SOUND_REPEATS * len(candidates),
        bound=best_guess_rate(epsilon, len(candidates)),
        what=f"{head.kind} releases at epsilon = {rounded_up(epsilon)} in total",
        guarantee=local_guarantee(epsilon, assumptions=head.assumptions),
        false_alarm=_FALSE_ALARM,
    )


def _trained_head(X_train: Floats, y_codes: Codes, *, epsilon: float, seed: int) -> LabelHead:
    from tacit.local.encoding.body import train_kernels
    from tacit.local.releases.label import fit_label

    n_classes, rng = int(y_codes.max()) + 1, np.random.default_rng(seed)
    trained = train_kernels(X_train, y_codes, n_classes=n_classes, rng=rng)
    return fit_label(trained.body, trained.held_out, y_codes, epsilon=epsilon, channel="krr")


def _symbol_head(path: Path, series: Floats) -> LabelHead | PlaceHead:
    """What a model on disk releases, if that is symbols and it reads such series."""
    from tacit.local.model import load_model
    from tacit.local.releases.label import LabelHead
    from tacit.local.releases.place import PlaceHead

    model = load_model(path / "model.tacit" if path.is_dir() else path)
    if not isinstance(model.head, LabelHead | PlaceHead):
        raise TacitError(
            f"{path.name} releases a {model.head.kind}; give a model that releases labels or "
            "places."
        )
    model.check_series(series)
    return model.head


def name_likeliest(likelihoods: Floats, *, source: NoiseSource) -> Codes:
    """For each row the candidate of largest likelihood; ties are broken uniformly."""
    best = likelihoods.max(axis=1, keepdims=True)
    lot = np.where(likelihoods >= best, uniform(likelihoods.shape, source=source), 0.0)
    return np.asarray(lot.argmax(axis=1))
