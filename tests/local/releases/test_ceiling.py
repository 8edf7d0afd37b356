"""On no set does a sound release exceed what the linear program allows any release.

For a fixed test set every release is right with some probability p_i, and the mean of the p_i is at
most the ceiling for the test set's class shares. The number of right answers in independent
releases is then no larger, in the tail, than binomial with the ceiling (Hoeffding, 1956), also when
each series is released many times.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from scipy import stats

from tacit.arrays import Codes, Floats
from tacit.data import load_dataset
from tacit.data.dataset import Dataset
from tacit.local.encoding.body import TrainedBody, train_kernels
from tacit.local.releases.channel import accuracy_ceiling
from tacit.local.releases.label import LabelHead, fit_label
from tacit.local.releases.place import PlaceHead, fit_place
from tacit.local.releases.shapes import ShapesHead, fit_shapes
from tacit.local.releases.vector import VectorHead, fit_vector
from tacit.mechanisms import krr_matrix, randomize_through_channel
from tacit.noise import SYSTEM_NOISE
from tacit.system.progress import silent

FALSE_ALARM = 1e-8  # per check; 18 of them
SETS = ["GunPoint", "ItalyPowerDemand", "ArrowHead", "OSULeaf", "BasicMotions"]
EPSILONS = [0.3, 1.0, 3.0, 8.0]
RELEASES = 200_000  # sampled per label check
DRAWS = 40


@cache
def problem(name: str) -> tuple[Dataset, Codes, Codes]:
    data = load_dataset(name)
    classes, y = np.unique(data.y_train, return_inverse=True)
    return data, y, np.searchsorted(classes, data.y_test)


@cache
def body_of(name: str) -> tuple[TrainedBody, Floats]:
    """Trained kernels and the device's labels of the test series."""
    data, y, _ = problem(name)
    rng = np.random.default_rng(0)
    trained = train_kernels(data.X_train, y, n_classes=len(np.unique(y)), rng=rng)
    return trained, trained.body.posterior(data.X_test).argmax(axis=1)


def ceiling_of(name: str, epsilon: float) -> float:
    return accuracy_ceiling(np.bincount(problem(name)[2]), epsilon=epsilon)


def exceeds(right: int, n: int, ceiling: float) -> bool:
    return bool(stats.binom.sf(right - 1, n, ceiling) < FALSE_ALARM)


def label_head(name: str, epsilon: float) -> LabelHead:
    trained, _ = body_of(name)
    return fit_label(
        trained.body, trained.held_out, problem(name)[1], epsilon=epsilon, channel="optimal"
    )


@pytest.mark.seconds
@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_expected_label_accuracy_is_at_most_the_ceiling(name: str, epsilon: float) -> None:
    """Without chance: the mean over the test series of the channel's weight of the true class."""
    head, (_, own) = label_head(name, epsilon), body_of(name)
    expected = head.channel[own, problem(name)[2]].mean()
    assert expected <= ceiling_of(name, epsilon) + 1e-7  # the solver's tolerance


@pytest.mark.parametrize("name", SETS)
def test_expected_accuracy_notices_a_tenth_more_epsilon(name: str) -> None:
    """A perfect classifier behind k-RR at 1.1 epsilon is above the ceiling of epsilon."""
    y_test = problem(name)[2]
    stronger = krr_matrix(int(y_test.max()) + 1, 3.3)
    # OSULeaf's classes are not equally common, so its ceiling is not that of k-RR.
    assert stronger[y_test, y_test].mean() > ceiling_of(name, 3.0) + 1e-3


@pytest.mark.seconds
@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("epsilon", [1.0, 3.0])
def test_no_sampled_label_release_exceeds_the_ceiling(name: str, epsilon: float) -> None:
    head, (_, own), y_test = label_head(name, epsilon), body_of(name), problem(name)[2]
    times = RELEASES // len(y_test)
    sent = head.decide(head.randomize(np.tile(own, times), source=SYSTEM_NOISE))
    right = int(np.count_nonzero(sent == np.tile(y_test, times)))
    assert not exceeds(right, len(sent), ceiling_of(name, epsilon))


@cache
def place_head(name: str, epsilon: float) -> tuple[PlaceHead, Codes]:
    """A trained head and the device's pairs of the test series."""
    (data, y, _), (trained, _) = problem(name), body_of(name)
    rng = np.random.default_rng(0)
    head = fit_place(trained.body, trained.held_out, data.X_train, y, epsilon=epsilon, rng=rng)
    return head, head.summarise(data.X_test)


@pytest.mark.seconds
@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("epsilon", [1.0, 3.0])
def test_expected_place_accuracy_is_at_most_the_ceiling(name: str, epsilon: float) -> None:
    """Without chance, as for the label: the weight of all pairs of the true class."""
    (head, own), y_test = place_head(name, epsilon), problem(name)[2]
    by_class = head.channel.reshape(len(head.channel), -1, head.n_places).sum(axis=2)
    assert by_class[own, y_test].mean() <= ceiling_of(name, epsilon) + 1e-7


@pytest.mark.seconds
@pytest.mark.parametrize("name", ["ArrowHead", "BasicMotions"])
def test_no_sampled_place_release_exceeds_the_ceiling(name: str) -> None:
    (head, own), y_test = place_head(name, 1.0), problem(name)[2]
    times = RELEASES // len(y_test)
    sent = head.decide(head.randomize(np.tile(own, times), source=SYSTEM_NOISE))
    right = int(np.count_nonzero(sent == np.tile(y_test, times)))
    assert not exceeds(right, len(sent), ceiling_of(name, 1.0))


@pytest.mark.parametrize("name", ["GunPoint", "ItalyPowerDemand", "BasicMotions"])
def test_the_sampled_check_notices_a_tenth_more_epsilon(name: str) -> None:
    """Sampled with the true class: 14 or more standard deviations above, 5.6 are needed."""
    y_test = problem(name)[2]
    channel = krr_matrix(int(y_test.max()) + 1, 1.1)
    truth = np.tile(y_test, RELEASES // len(y_test))
    sent = randomize_through_channel(truth, channel=channel, source=SYSTEM_NOISE)
    right = int(np.count_nonzero(sent == truth))
    assert exceeds(right, len(truth), ceiling_of(name, 1.0))


@pytest.mark.seconds
@pytest.mark.parametrize("name", ["ArrowHead", "BasicMotions"])
@pytest.mark.parametrize("release", ["vector", "shapes"])
def test_no_noisy_vector_exceeds_the_ceiling(name: str, release: str) -> None:
    data, y, y_test = problem(name)
    rng = np.random.default_rng(0)
    head: VectorHead | ShapesHead
    if release == "shapes":
        n_classes = int(y.max()) + 1
        head = fit_shapes(
            data.X_train, y, n_classes=n_classes, epsilon=1.0, rng=rng, progress=silent
        )
    else:
        trained, _ = body_of(name)
        head = fit_vector(trained.body, trained.held_out, y, epsilon=1.0, rng=rng, progress=silent)
    summary = head.summarise(data.X_test)
    right = sum(
        int(np.count_nonzero(head.decide(head.randomize(summary, source=SYSTEM_NOISE)) == y_test))
        for _ in range(DRAWS)
    )
    assert not exceeds(right, DRAWS * len(y_test), ceiling_of(name, 1.0))
