"""The device runtime: NumPy alone, the same releases as the trainer, and debit before release."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from local_problems import italy, model_of, trained, trained_multivariate
from seeded import SeededNoise
from tacit.arrays import Floats
from tacit.data import validate
from tacit.errors import BudgetExceeded, BundleError, TacitError
from tacit.ledger import Ledger
from tacit.local.bundle import read_bundle, write_bundle
from tacit.local.device import Device, content_subject
from tacit.local.model import load_model
from tacit.local.release import KINDS, SYMBOL_KINDS, Kind

FALSE_ALARM = 1e-6


def device_of(kind: Kind, folder: Path, epsilon: float = 2.0) -> Device:
    path = folder / f"{kind}.tacit"
    trained(kind, epsilon).export_device(path)
    return Device.load(path)


@pytest.mark.seconds
@pytest.mark.parametrize("kind", KINDS)
def test_the_device_computes_what_the_trainer_computes(kind: Kind, tmp_path: Path) -> None:
    device, X = device_of(kind, tmp_path), italy().X_test[:50]
    there = model_of(trained(kind)).head.summarise(X)
    np.testing.assert_allclose(device.model.head.summarise(X), there, rtol=1e-5, atol=1e-5)
    # One row at a time the float32 products may be summed in another order.
    rows = np.concatenate([device.model.head.summarise(X[i : i + 1]) for i in range(50)])
    np.testing.assert_allclose(rows, there, rtol=1e-3, atol=1e-3)
    assert device.guarantee == trained(kind).guarantee_


@pytest.mark.seconds
@pytest.mark.parametrize("kind", KINDS)
def test_equal_words_make_equal_releases(kind: Kind, tmp_path: Path) -> None:
    device, X = device_of(kind, tmp_path), italy().X_test[:20]
    here = device.release(X, source=SeededNoise(3)).values
    there = trained(kind).release(X, source=SeededNoise(3)).values
    np.testing.assert_allclose(here, there, rtol=1e-5, atol=1e-5)


def two_sample_p_value(first: Device, second: Device, kind: Kind, n: int = 4000) -> float:
    """One series released n times by each; a chi-square or Kolmogorov-Smirnov p-value."""
    X = italy().X_test[:1]

    def values(device: Device) -> NDArray[Any]:
        summary = np.repeat(device.model.head.summarise(X), n, axis=0)
        return device.model.randomize(summary).values

    a, b = values(first), values(second)
    if kind in SYMBOL_KINDS:
        n_symbols = len(first.model.head.channel)  # type: ignore[union-attr]
        table = np.array([np.bincount(part, minlength=n_symbols) for part in (a, b)]) + 1
        return float(stats.chi2_contingency(table).pvalue)
    return min(
        float(stats.ks_2samp(a[:, j], b[:, j]).pvalue) * a.shape[1] for j in range(a.shape[1])
    )


@pytest.mark.parametrize("kind", KINDS)
def test_device_and_estimator_release_alike(kind: Kind, tmp_path: Path) -> None:
    """False alarm 1e-6; the twin below notices another budget."""
    here = device_of(kind, tmp_path)
    assert two_sample_p_value(here, Device(model_of(trained(kind))), kind) > FALSE_ALARM


@pytest.mark.parametrize("kind", ["label", "place", "vector"])
def test_the_comparison_notices_another_epsilon(kind: Kind, tmp_path: Path) -> None:
    here, other = device_of(kind, tmp_path), device_of(kind, tmp_path, 3.0)
    assert two_sample_p_value(here, other, kind, n=8000) < FALSE_ALARM


@pytest.mark.parametrize("kind", KINDS)
def test_several_channels_survive_the_bundle(kind: Kind, tmp_path: Path) -> None:
    classifier, X = trained_multivariate(kind)
    classifier.export_device(tmp_path / "m.tacit")
    device = Device.load(tmp_path / "m.tacit")
    there = model_of(classifier).head.summarise(X)
    np.testing.assert_allclose(device.model.head.summarise(X), there, atol=1e-5)
    one = device.release(X[0])  # (channels, T): one series
    assert len(one) == 1
    assert set(device.classify(device.release(X))) <= {"a", "b", "c"}


def test_one_series_is_released_once_within_its_budget(tmp_path: Path) -> None:
    device, X = device_of("label", tmp_path), italy().X_test
    with Ledger.open(tmp_path / "l.db", per_subject_epsilon=2.0) as ledger:
        device.release(X[0, 0], ledger=ledger)
        with pytest.raises(BudgetExceeded):
            device.release(X[0, 0], ledger=ledger)
        device.release(X[1, 0], ledger=ledger)  # another series has its own account
        assert ledger.spent().epsilon == pytest.approx(4.0)
        assert ledger.spent(content_subject(X[0])).epsilon == pytest.approx(2.0)


def test_a_batch_is_debited_all_or_none(tmp_path: Path) -> None:
    device, X = device_of("label", tmp_path), italy().X_test
    with Ledger.open(tmp_path / "l.db", per_subject_epsilon=2.0) as ledger:
        with pytest.raises(BudgetExceeded):  # the same series twice in one batch
            device.release(np.stack([X[0], X[1], X[0]]), ledger=ledger)
        assert ledger.spent().epsilon == 0.0
        device.release(X[:3], ledger=ledger, subject=["a", "b", "c"])
        with pytest.raises(TacitError, match="2 subjects for 3 series"):
            device.release(X[:3], ledger=ledger, subject=["a", "b"])


def test_content_names_follow_the_values_only() -> None:
    row = np.array([[0.0, 1.5, -2.0]])
    assert content_subject(row) == content_subject(np.array([[-0.0, 1.5, -2.0]]))
    assert content_subject(row) == content_subject(row[:, ::1].copy(order="F"))
    assert content_subject(row) != content_subject(row + 1e-9)
    assert content_subject(row) != content_subject(row.reshape(3, 1))


BAD: dict[str, Callable[[Floats], NDArray[Any]]] = {
    "NaN": lambda x: np.where(np.arange(24) == 3, np.nan, x),
    "infinite": lambda x: np.where(np.arange(24) == 3, np.inf, x),
    "short": lambda x: x[:-1],
    "channels": lambda x: np.stack([x, x])[None],
    "constant": lambda x: np.full(24, 0.5),
    "empty": lambda x: np.zeros((0, 1, 24)),
    "huge": lambda x: x * 1e15,
    "text": lambda x: np.array(["a"] * 24),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("fault", BAD)
def test_bad_series_release_and_debit_nothing(kind: Kind, fault: str, tmp_path: Path) -> None:
    device, words = device_of(kind, tmp_path), Counting()
    with Ledger.open(tmp_path / "l.db", per_subject_epsilon=2.0) as ledger:
        with pytest.raises(TacitError) as refused:
            device.release(BAD[fault](italy().X_test[0, 0]), ledger=ledger, source=words)
        assert ledger.spent().epsilon == 0.0
    assert words.drawn == 0
    assert "\n" not in str(refused.value)


def test_a_series_is_checked_once_per_release(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    device, X = device_of("label", tmp_path), italy().X_test[:3]
    check, seen = validate._refuse_bad_values, list[str]()

    def count(cube: Floats, where: str) -> None:
        seen.append(where)
        check(cube, where)

    monkeypatch.setattr(validate, "_refuse_bad_values", count)
    device.release(X)
    trained("label").release(X)
    assert seen == ["the series", "X"]


def test_several_channels_in_two_axes_are_one_series_to_a_device_alone(tmp_path: Path) -> None:
    """The estimator reads (n, T), as every aeon classifier does."""
    classifier, X = trained_multivariate("label")
    with pytest.raises(TacitError, match="1 channels"):
        classifier.release(X[0])
    assert len(Device(model_of(classifier)).release(X[0])) == 1


class Counting:
    """A noise source that counts; a refused release must not have drawn."""

    drawn = 0

    def words(self, count: int) -> NDArray[np.uint64]:
        self.drawn += count
        return SeededNoise(0).words(count)


@pytest.mark.parametrize("place", [0.02, 0.3, 0.7, 0.99])
def test_a_tampered_device_file_is_refused(place: float, tmp_path: Path) -> None:
    device_of("label", tmp_path)
    path = tmp_path / "label.tacit"
    data = bytearray(path.read_bytes())
    data[int(place * len(data))] ^= 0x10
    path.write_bytes(bytes(data))
    with pytest.raises(BundleError):
        Device.load(path)


@pytest.mark.parametrize("kind", SYMBOL_KINDS)
def test_the_runtime_loads_numpy_alone(kind: Kind, tmp_path: Path) -> None:
    device_of(kind, tmp_path)
    code = (
        "import sys, numpy as np\n"
        "from tacit.local.device import Device\n"
        f"device = Device.load({str(tmp_path / f'{kind}.tacit')!r})\n"
        "device.classify(device.release(np.sin(np.arange(24.0))))\n"
        "heavy = {'torch', 'scipy', 'aeon', 'sklearn', 'pandas', 'numba', 'safetensors'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "[]"


def test_a_bundle_may_word_its_guarantee_otherwise_but_not_state_another(tmp_path: Path) -> None:
    file = tmp_path / "model.tacit"
    trained("label").export_device(file)
    arrays, values = read_bundle(file)
    stated = values["guarantee"]
    write_bundle(file, arrays, {**values, "guarantee": {**stated, "sentence": "In other words."}})
    assert load_model(file).guarantee == trained("label").guarantee_
    write_bundle(file, arrays, {**values, "guarantee": {**stated, "epsilon": 0.01}})
    with pytest.raises(BundleError, match="does not have"):
        load_model(file)
