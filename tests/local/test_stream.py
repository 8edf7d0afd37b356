"""Samples in, releases out: windows where they belong, the day's budget kept, nothing lost."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from local_problems import italy, model_of, trained, trained_multivariate
from seeded import SeededNoise
from tacit.arrays import Floats
from tacit.errors import BudgetExceeded, LedgerError, TacitError
from tacit.local.day_budget import DayBudget
from tacit.local.device import Device
from tacit.local.model import LocalModel
from tacit.local.release import Release
from tacit.local.stream import Stream

LENGTH = 24


def stream_of(
    folder: Path, *, epsilon_per_day: float = 1000.0, stride: int | None = None
) -> Stream:
    budget = DayBudget.open(folder / "budget.json", epsilon_per_day=epsilon_per_day)
    return Device(model_of(trained("label"))).stream(budget, person="anna", stride=stride)


def recording(n_windows: int) -> Floats:
    return italy().X_test[:n_windows, 0].flatten()  # a copy: tests write into it


def summaries(model: LocalModel, windows: Floats) -> list[int]:
    return [int(model.head.summarise(window[None, None])[0]) for window in windows]


@pytest.mark.parametrize("stride", [1, 7, LENGTH, LENGTH + 5, 3 * LENGTH])
@pytest.mark.parametrize("pieces", [1, 5, 40])
def test_windows_are_cut_every_stride_however_samples_come(
    stride: int, pieces: int, tmp_path: Path
) -> None:
    samples, cut = recording(6), list[Floats]()
    stream = stream_of(tmp_path, stride=stride)
    for part in np.array_split(samples, pieces):
        cut += [window[0] for window in stream._cut(stream._checked(part))]
    starts = range(0, len(samples) - LENGTH + 1, stride)
    assert np.array_equal(cut, [samples[a : a + LENGTH] for a in starts])
    assert stream._kept.shape[1] < LENGTH


def test_each_window_is_one_release_of_the_model(tmp_path: Path) -> None:
    stream = stream_of(tmp_path, stride=12)
    stream.source = SeededNoise(5)
    made = stream.push(recording(4)[:50]) + stream.push(recording(4)[50:])
    windows = np.lib.stride_tricks.sliding_window_view(recording(4), LENGTH)[::12]
    noise = SeededNoise(5)
    wanted = [
        int(stream.model.randomize(np.array([own]), source=noise).values[0])
        for own in summaries(stream.model, windows)
    ]
    assert [int(release.values[0]) for release in made] == wanted
    assert all(isinstance(release, Release) and len(release) == 1 for release in made)
    assert stream.budget.spent("anna") == 2.0 * len(windows)  # overlapping windows each in full
    assert stream.model.labels(made[0])


def test_a_spent_day_is_refused_by_one_sentence_and_nothing_leaves(tmp_path: Path) -> None:
    stream = stream_of(tmp_path, epsilon_per_day=6.0)
    assert len(stream.push(recording(5))) == 3  # as many as the day allows
    assert (stream.n_windows, stream.refused) == (5, 2)
    stream.source = Forbidden()
    with pytest.raises(BudgetExceeded, match=r"has spent epsilon 6 of 6\.0") as refused:
        stream.push(recording(2))
    assert "\n" not in str(refused.value)
    assert stream.push(recording(1)[:5]) == []  # no window, nothing to refuse
    assert stream.budget.spent("anna") == 6.0
    assert stream._kept.shape[1] == 5


class Forbidden:
    """A noise source that nobody may ask."""

    def words(self, count: int) -> np.ndarray:  # type: ignore[type-arg]
        raise AssertionError("noise was drawn for a release that was refused")


class Dying:
    """The machine dies while the noise is drawn."""

    def words(self, count: int) -> np.ndarray:  # type: ignore[type-arg]
        raise KeyboardInterrupt


def test_the_debit_is_on_disk_before_the_noise_is_drawn(tmp_path: Path) -> None:
    stream = stream_of(tmp_path)
    stream.source = Dying()
    with pytest.raises(KeyboardInterrupt):
        stream.push(recording(1))
    again = DayBudget.open(tmp_path / "budget.json", epsilon_per_day=1000.0)
    assert again.spent("anna") == 2.0


def test_a_budget_that_cannot_be_read_stops_releases(tmp_path: Path) -> None:
    stream = stream_of(tmp_path)
    stream.budget.path.write_text("{}")
    stream.source = Forbidden()
    with pytest.raises(LedgerError, match="nothing was released"):
        stream.push(recording(2))


def test_bad_windows_cost_nothing_and_the_stream_goes_on(tmp_path: Path) -> None:
    stream = stream_of(tmp_path)
    samples = recording(4)
    samples[LENGTH + 3] = np.nan  # the second window
    samples[2 * LENGTH : 3 * LENGTH] = 0.7  # the third is flat
    assert len(stream.push(samples)) == 2
    assert (stream.n_windows, stream.refused) == (4, 2)
    assert stream.budget.spent("anna") == 4.0
    with pytest.raises(TacitError, match="the window row 1 is constant"):
        stream.push(np.zeros(LENGTH))
    assert len(stream.push(recording(1))) == 1


@pytest.mark.parametrize(
    ("samples", "sentence"),
    [
        (np.zeros((2, 5)), r"shape \(2, 5\)"),
        (np.zeros((1, 1, 5)), r"shape \(1, 1, 5\)"),
        (3.0, r"shape \(\)"),
        (["a", "b"], "not numbers"),
    ],
)
def test_samples_of_another_shape_change_nothing(
    samples: object, sentence: str, tmp_path: Path
) -> None:
    stream = stream_of(tmp_path)
    stream.push(recording(1)[:10])
    with pytest.raises(TacitError, match=sentence):
        stream.push(samples)
    assert len(stream.push(recording(1)[10:])) == 1
    with pytest.raises(TacitError, match="stride"):
        stream_of(tmp_path, stride=0)


def test_several_channels_stream_too(tmp_path: Path) -> None:
    classifier, X = trained_multivariate("place")
    budget = DayBudget.open(tmp_path / "budget.json", epsilon_per_day=100.0)
    stream = Device(model_of(classifier)).stream(budget, person="anna")
    made = stream.push(np.concatenate([X[0], X[1]], axis=1))
    assert len(made) == 2
    assert stream.model.places(made[0]).posterior.shape == (1, 4)
