"""Intervals and words: values by definition, levels that read back, and the same run in shares."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from silo_parties import environment
from silo_problems import owners, plan_for
from tacit.errors import TacitError
from tacit.silo import FedSTClassifier
from tacit.silo.fedst.candidates import choose_encoding, encode
from tacit.silo.fedst.classifiers.standard import standard_from
from tacit.silo.fedst.dictionary import LETTERS, Word, all_words, first_place, word_values
from tacit.silo.fedst.intervals import STATISTICS, Interval, draw_intervals, interval_values
from tacit.silo.fedst.parameters import public_parameters
from tacit.silo.fedst.plaintext import fit_pooled
from tacit.silo.fedst.program import fedst_program
from tacit.silo.fedst.public_features import count_items, public_features
from tacit.silo.fedst.settings import FEATURES, Settings, feature_kinds, settings_from
from tacit.silo.party.localhost import run_federation
from tacit.silo.plan import Plan
from tacit.silo.secure.plain_session import run_plain

N = 40
X = np.random.default_rng(0).normal(size=(6, N)).cumsum(axis=1)
X = (X - X.mean(axis=1, keepdims=True)) / X.std(axis=1, keepdims=True)


def test_statistics_are_what_they_are_called() -> None:
    found = interval_values(X, [Interval("series", 5, 10, name) for name in STATISTICS])
    part = X[2, 5:15]
    slope = np.polyfit(np.arange(10), part, 1)[0]
    low, high = np.quantile(part, [0.25, 0.75])
    expected = [part.mean(), part.std(), 10 * slope, np.median(part), high - low]
    np.testing.assert_allclose(found[:, 2], [*expected, part.min(), part.max()])
    difference = interval_values(X, [Interval("differences", 3, 4, "mean")])
    np.testing.assert_allclose(difference[0], (X[:, 7] - X[:, 3]) / 4)
    energy = interval_values(X, [Interval("spectrum", 1, 20, "maximum")])
    np.testing.assert_allclose(energy[0], np.abs(np.fft.fft(X))[:, 1:21].max(axis=1) / N**0.5)


@pytest.mark.parametrize("length", [2, 3, 7, 150])
def test_intervals_are_public_and_lie_in_the_series(length: int) -> None:
    found = draw_intervals(series_length=length, n_intervals=40, seed=3)
    assert found == draw_intervals(series_length=length, n_intervals=40, seed=3)
    if length > 3:
        assert found != draw_intervals(series_length=length, n_intervals=40, seed=4)
    assert len(found) == 40 * len(STATISTICS)
    values = interval_values(np.random.default_rng(1).normal(size=(5, length)), found)
    assert np.isfinite(values).all()
    assert np.isfinite(interval_values(np.zeros((2, length)), found)).all()


def test_words_are_counted_by_definition() -> None:
    """One series, window by window, letter by letter."""
    word_of = []
    for start in range(N - 8 + 1):
        window = X[0, start : start + 8]
        window = (window - window.mean()) / window.std()
        means = window.reshape(4, 2).mean(axis=1)
        word_of.append("".join(LETTERS[int(np.sum(m > [-0.67449, 0.0, 0.67449]))] for m in means))
    begins = [w for i, w in enumerate(word_of) if i == 0 or word_of[i - 1] != w]
    words = [w for w in all_words(series_length=N) if w.window == 8]
    values = word_values(X, words)
    for word, value in zip(words, values[:, 0], strict=True):
        assert value**2 == pytest.approx(begins.count(word.letters))
    assert first_place(X[0], Word(8, word_of[3])) == word_of.index(word_of[3])
    absent = next(w for w in words if w.letters not in word_of)
    assert first_place(X[0], absent) == -1
    assert all_words(series_length=3) == ()


def test_items_look_at_their_own_channel() -> None:
    encoding = choose_encoding(series_length=N, normalise=True)
    settings = Settings(features=("intervals", "dictionary"), n_intervals=12)
    features = public_features(settings, encoding, n_channels=2)
    here = np.array([item.channel for item in features.items])
    assert (np.bincount(here[: 12 * len(STATISTICS)]) == 6 * len(STATISTICS)).all()
    assert {item.channel for item in features.items if isinstance(item, Word)} == {0, 1}
    cube = encode(np.stack([X, np.roll(X, 7, axis=0)], axis=1), encoding)
    changed = cube.copy()
    changed[:, 1] = cube[::-1, 1]
    same = (features.values(cube) == features.values(changed)).all(axis=1)
    assert same[here == 0].all()
    assert not same[(here == 1) & (np.arange(len(here)) < 84)].all()
    last = len(features.items) - 1
    assert features.describe(last).endswith(", channel 1")
    place, values = features.place(0, cube[0])
    start = features.items[0].start  # type: ignore[union-attr]
    assert place == start
    scale = 2.0**encoding.fraction_bits
    np.testing.assert_array_equal(values, cube[0, 0, start : start + len(values)] / scale)


@pytest.mark.parametrize("length", [1, 3, 7, 150])
@pytest.mark.parametrize("kinds", [("intervals",), ("dictionary",), FEATURES])
def test_items_are_counted_without_making_them(length: int, kinds: tuple[str, ...]) -> None:
    settings = Settings(features=kinds, n_intervals=7)
    encoding = choose_encoding(series_length=length, normalise=True)
    made = public_features(settings, encoding, n_channels=2)
    assert count_items(settings, series_length=length, n_channels=2) == len(made.items)
    assert public_features(settings, encoding, n_channels=2) is made


def test_levels_fit_the_ring_and_read_back() -> None:
    encoding = choose_encoding(series_length=N, normalise=True)
    features = public_features(Settings(features=FEATURES, n_intervals=6), encoding)
    encoded = encode(X[:, None], encoding)
    levels = features.levels(encoded)
    assert levels.min() >= 0
    assert levels.max() < 2**20
    roots = np.sqrt(levels)
    assert np.array_equal(roots, np.rint(roots))
    precision = np.array([np.diff(i.limits(N))[0] for i in features.items])[:, None] / 1023
    assert (np.abs(features.natural(levels) - features.values(encoded)) <= 0.51 * precision).all()


def test_a_rare_word_is_divided_by_one_occurrence_at_least() -> None:
    """A word that P0's series hold almost never would else drown all other features."""
    encoding = choose_encoding(series_length=N, normalise=True)
    features = public_features(Settings(features=FEATURES, n_intervals=6), encoding)
    least = features.least_deviations()
    words = np.array([isinstance(item, Word) for item in features.items])
    assert (least[~words] == 0.0).all()
    np.testing.assert_allclose(least[words], 1023 / np.sqrt(N))
    once = np.array([[0, 0, 0, 0], [0, 0, 0, round(1023 / np.sqrt(N)) ** 2]])
    roots = np.array([0.0, 4 * 1023 / np.sqrt(N)])
    assert standard_from(once[:, :3]).apply(once)[3, 1] == 8.0  # clipped: no deviation at P0
    assert standard_from(once[:, :3], roots).apply(once)[3, 1] == pytest.approx(1.0, abs=0.01)


@pytest.mark.parametrize(
    ("asked", "kinds"),
    [
        ("all", FEATURES),
        (("all",), FEATURES),
        (("dictionary", "shapelets"), (FEATURES[0], FEATURES[2])),
    ],
)
def test_kinds_are_named_alone_together_or_all(asked: object, kinds: tuple[str, ...]) -> None:
    assert feature_kinds(asked) == kinds
    assert settings_from({"features": asked}).features == kinds


@pytest.mark.parametrize("wrong", ["colours", (), ("intervals", "intervals"), ("all", "intervals")])
def test_unknown_kinds_are_refused(wrong: object) -> None:
    with pytest.raises(TacitError, match="features must be some of"):
        settings_from({"features": wrong})


def test_what_cannot_be_computed_or_is_not_proved_is_refused() -> None:
    with pytest.raises(TacitError, match="too short for features dictionary"):
        public_parameters(
            Settings(features=("dictionary",)), counts=(3, 3, 3), n_classes=2, series_length=5
        )
    with pytest.raises(TacitError, match="epsilon is offered for shapelets only"):
        Settings(features=FEATURES, epsilon=1.0, classifier="forest", scope="local-search")


SOME = {"n_intervals": 3, "n_shapelets": 8, "classifier": "ridge"}


@pytest.mark.seconds
@pytest.mark.parametrize(
    ("features", "params"),
    [
        (FEATURES, {}),
        (("intervals",), {"classifier": "forest"}),
        (FEATURES, {"scope": "local-search"}),
        (("dictionary",), {"quality": "ig"}),
    ],
)
def test_the_twin_of_all_owners_equals_the_pooled_one(
    features: tuple[str, ...], params: dict[str, object]
) -> None:
    inputs = owners(9, 7, 8)
    plan = plan_for(inputs, **(SOME | params), features=features)
    twin, sessions = run_plain(fedst_program, plan, inputs)
    pooled = fit_pooled(settings_from(plan.params), inputs, n_classes=3)
    assert set(pooled.arrays) == set(twin[0].arrays)
    for name, array in pooled.arrays.items():
        np.testing.assert_array_equal(array, twin[0].arrays[name], err_msg=name)
    assert ("shapelets" in features) == bool((pooled.arrays["item"] < 0).any())
    if params.get("scope") != "local-search":
        assert sessions[0].opened[0].what == "feature indices"


@pytest.mark.seconds
@pytest.mark.parametrize("n_channels", [1, 2])
def test_secure_features_equal_plaintext_bit_for_bit(n_channels: int) -> None:
    inputs = owners(9, 7, 8, n_channels=n_channels)
    plan = plan_for(inputs, **SOME, features=FEATURES)
    secure = run_federation(plan, inputs)
    pooled = fit_pooled(settings_from(plan.params), inputs, n_classes=3)
    for name, array in pooled.arrays.items():
        np.testing.assert_array_equal(array, secure.arrays[name], err_msg=name)
    opened = ("feature indices -> P0", "ridge weights -> P0")
    assert secure.receipts[0].guarantee.opened == opened


@pytest.mark.parametrize("quality", ["f", "ig"])
@pytest.mark.parametrize("features", [FEATURES, ("dictionary",)])
def test_items_that_are_sent_twice_give_the_same_model(
    monkeypatch: pytest.MonkeyPatch, features: tuple[str, ...], quality: str
) -> None:
    inputs = owners(9, 7, 8)
    plan = plan_for(inputs, **SOME, features=features, quality=quality)
    kept, _ = run_plain(fedst_program, plan, inputs)
    for name in ("KEPT_VALUES", "BLOCK_VALUES"):
        monkeypatch.setattr(f"tacit.silo.fedst.transform.{name}", 400)
    twice, _ = run_plain(fedst_program, plan, inputs)
    for name, array in kept[0].arrays.items():
        np.testing.assert_array_equal(array, twice[0].arrays[name], err_msg=name)


@pytest.mark.seconds
@pytest.mark.parametrize("counts", [(9, 7, 8), (9, 15)])
def test_items_that_are_sent_twice_in_shares_equal_plaintext(
    monkeypatch: pytest.MonkeyPatch, counts: tuple[int, ...]
) -> None:
    monkeypatch.setenv("PYTHONPATH", environment()["PYTHONPATH"])
    inputs = owners(*counts)
    plan = plan_for(inputs, **SOME, features=FEATURES)
    program = replace(plan, program="silo_programs:forgetful_program")
    secure = run_federation(program, inputs)
    pooled = fit_pooled(settings_from(plan.params), inputs, n_classes=3)
    for name, array in pooled.arrays.items():
        np.testing.assert_array_equal(array, secure.arrays[name], err_msg=name)
    steps = [step["step"] for step in secure.receipts[0].traffic]
    assert steps.count("share features") == 2 * len(counts) * -(-pooled_items(plan) // (400 // 24))


def pooled_items(plan: Plan) -> int:
    length = plan.series_length
    return count_items(settings_from(plan.params), series_length=length)


@pytest.mark.seconds
@pytest.mark.parametrize(
    ("features", "kind"), [(("shapelets", "intervals"), "interval"), ("dictionary", "word")]
)
def test_an_explanation_names_intervals_and_words(
    features: str | tuple[str, ...], kind: str
) -> None:
    y = np.array(["a", "b"] * 15)
    rng = np.random.default_rng(5)
    series = rng.normal(size=(30, N)) + np.where(y == "a", 3.0, 0.0)[:, None] * (np.arange(N) > 25)
    model = FedSTClassifier(
        scope="global", features=features, n_candidates=20, n_shapelets=20, random_state=0
    ).fit(series, y)
    found = model.explain(series[0], n_shapelets=30)
    assert kind in {m.kind for m in found.matches}
    assert sum(m.influence for m in found.matches) == pytest.approx(1.0)
    named = next(m for m in found.matches if m.kind == kind)
    assert ("word " if kind == "word" else " of the ") in named.description
    assert named.series == -1
    assert set(named.class_distances) == {"a", "b"}
    assert len(model.shapelets_) == sum(m.kind == "shapelet" for m in found.matches)
    assert (model.predict(series) == y).mean() > 0.8
