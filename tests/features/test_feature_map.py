"""The features are public: the same for everybody, bounded, and blind to the data set."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from tacit.arrays import Floats
from tacit.errors import TacitError
from tacit.features import feature_map
from tacit.features.feature_map import (
    FEATURE_VERSION,
    FeatureKind,
    _covariance,
    _sum_of_squares,
    generated_signals,
    public_features,
)

MAPS: dict[tuple[int, int, int, FeatureKind], list[float]] = {
    (9, 128, 256, "coarse"): [425.1003024232207, 1048.5208882515014],
    (3, 200, 256, "fine"): [233.69562542686404, 4664.695201043796],
    (1, 24, 8, "fine"): [32.64844539718435, 91.77344656781506],
}
GROWTH = """
from tacit.features.feature_map import public_features
def peak():  # not getrusage: its peak is inherited from the process that started this one
    return int(open("/proc/self/status").read().split("VmHWM:")[1].split()[0]) / 1024
before = peak()
public_features(n_channels=9, length=128, n_kernels=256)
print(peak() - before)
"""


def small(length: int = 24, n_channels: int = 2, seed: int = 1) -> Floats:
    features = public_features(n_channels=n_channels, length=length, n_kernels=30, seed=seed)
    X = np.random.default_rng(0).standard_normal((7, n_channels, length))
    return features.transform(X)


def test_equal_arguments_give_equal_features_and_other_seeds_others() -> None:
    first = small()
    public_features.cache_clear()
    np.testing.assert_array_equal(first, small())
    assert not np.allclose(first, small(seed=2))


def test_a_row_depends_on_its_own_series_only() -> None:
    features = public_features(n_channels=1, length=40, n_kernels=30)
    X = np.random.default_rng(0).standard_normal((300, 1, 40))
    together = features.transform(X)
    alone = np.concatenate([features.transform(X[i : i + 1]) for i in (0, 150, 299)])
    np.testing.assert_allclose(together[[0, 150, 299]], alone, atol=1e-12)


@pytest.mark.parametrize("scale", [0.0, 1.0, 1e9, -1e9])
def test_rows_have_norm_one_whatever_comes_in(scale: float) -> None:
    features = public_features(n_channels=2, length=16, n_kernels=12)
    rows = features.transform(scale * np.random.default_rng(1).standard_normal((5, 2, 16)))
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1.0)


@pytest.mark.parametrize(("n_channels", "length"), [(1, 3), (1, 8), (3, 17), (1, 3000)])
def test_odd_shapes_work(n_channels: int, length: int) -> None:
    features = public_features(n_channels=n_channels, length=length, n_kernels=10)
    rows = features.transform(np.ones((2, n_channels, length)))
    assert rows.shape == (2, features.n_features)


def test_the_proportion_is_the_share_of_steps_above_the_bias() -> None:
    from tacit.features.feature_map import _KernelBank, _proportions

    X = np.array([[[0.0, 1.0, 3.0, 2.0, 2.0, 9.0]]], dtype=np.float32)
    bank = _KernelBank(
        2, np.array([[1.0], [-1.0]], dtype=np.float32), np.array([-1.5], dtype=np.float32)
    )
    # x[t] - x[t + 2] > -1.5: -3, -1, 1, -7 -> two of four steps.
    np.testing.assert_allclose(_proportions(X, bank), [[0.5]])


@pytest.mark.seconds
def test_a_row_does_not_depend_on_the_piece_it_is_computed_in() -> None:
    features = public_features(n_channels=1, length=9000, n_kernels=5)
    X = np.random.default_rng(2).standard_normal((150, 1, 9000))  # two pieces
    halves = [features.transform(X[:70]), features.transform(X[70:])]
    np.testing.assert_allclose(features.transform(X), np.concatenate(halves), atol=1e-12)


def test_the_public_maps_are_those_of_version_2() -> None:
    """Sums from when all signals were made at once; rounded, as BLAS libraries differ."""
    assert FEATURE_VERSION == 2
    for (n_channels, length, n_kernels, kind), expected in MAPS.items():
        made = public_features(n_channels=n_channels, length=length, n_kernels=n_kernels, kind=kind)
        found = [float(np.abs(made.centre).sum()), float(np.abs(made.whitener).sum())]
        assert found == pytest.approx(expected, rel=1e-9)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_device_has_room_to_build_the_map_of_a_real_shape() -> None:
    """UCIHAR's: all generated signals at once took 109 MB."""
    done = subprocess.run(
        [sys.executable, "-c", GROWTH], capture_output=True, text=True, check=True
    )
    assert float(done.stdout) < 45.0


def test_pieces_of_generated_signals_are_those_made_at_once() -> None:
    rng = np.random.default_rng(5)
    at_once = generated_signals(300, 3, 64, rng)
    after = rng.random()
    for values in (1, 192, 5000):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(feature_map, "_PIECE_VALUES", values)
            again = np.random.default_rng(5)
            assert np.array_equal(generated_signals(300, 3, 64, again), at_once)
            assert again.random() == after


def test_the_covariance_in_place_is_that_of_numpy() -> None:
    rows = np.random.default_rng(0).standard_normal((700, 40)) * 3.0
    rows -= rows.mean(axis=0)
    assert np.allclose(_sum_of_squares(rows) / 700, rows.var(axis=0), rtol=1e-13)
    expected = np.cov(rows.T)
    assert np.allclose(_covariance(rows), expected, rtol=0.0, atol=1e-13)


def test_decorrelation_works_on_generated_signals() -> None:
    features = public_features(n_channels=1, length=32, n_kernels=16)
    X = generated_signals(2000, 1, 32, np.random.default_rng(9))
    rows = features.transform(X)
    free = rows[:, :-1] / rows[:, -1:]  # before the rows were made unit
    spectrum = np.linalg.eigvalsh(np.cov(free.T))
    assert spectrum[-1] < 2.5  # without decorrelation the largest is about 10
    assert spectrum[-1] < 40 * np.median(spectrum)


def test_other_shapes_are_refused() -> None:
    features = public_features(n_channels=1, length=10, n_kernels=4)
    with pytest.raises(TacitError, match="length 10"):
        features.transform(np.zeros((2, 1, 11)))
    with pytest.raises(TacitError, match="length"):
        public_features(n_channels=1, length=2)


def test_a_client_needs_numpy_only() -> None:
    code = (
        "import sys, tacit.fleet.learning.rounds\n"
        "heavy = {'torch', 'scipy', 'sklearn', 'aeon', 'jax', 'dp_accounting', 'pandas'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_coarse_features_keep_more_energy_in_fewer_directions() -> None:
    def shares(kind: FeatureKind) -> Floats:
        features = public_features(n_channels=3, length=64, n_kernels=40, kind=kind)
        rows = features.transform(generated_signals(300, 3, 64, np.random.default_rng(5)))
        values = np.linalg.eigvalsh(np.cov(rows.T))[::-1]
        found: Floats = values / values.sum()
        return found

    fine, coarse = shares("fine"), shares("coarse")
    assert coarse[:5].sum() > fine[:5].sum() + 0.1
