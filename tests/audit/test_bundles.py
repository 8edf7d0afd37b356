"""Releases of the local family under audit: trained here, saved and loaded as a device would.

False alarm 1e-6 per audit of a sound release.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from command import assert_refused, tacit
from tacit.audit import audit, build
from tacit.audit.bundles import audited_bundle, candidate_series
from tacit.data import load_dataset
from tacit.errors import BundleError
from tacit.local.encoding.body import train_kernels
from tacit.local.estimator import DPSoftShapeClassifier
from tacit.local.model import LocalModel
from tacit.local.releases.label import fit_label
from tacit.local.softshape.settings import SoftShapeSettings


@pytest.mark.seconds
@pytest.mark.parametrize(
    "name", ["lp-channel", "local-label", "local-place", "local-vector", "local-shapes"]
)
def test_sound_is_consistent_and_ten_percent_too_little_noise_refuted(name: str) -> None:
    sound = audit(build(name), trials=200_000)
    assert sound.verdict == "consistent"
    assert sound.lower_bound > 0.99
    assert sound.method == "exact"
    twin = build(name, epsilon=1.0 / 0.9, claim=1.0)
    weak = audit(twin, trials=200_000)
    assert weak.verdict == "refuted"
    assert weak.lower_bound > 1.0


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    dataset = load_dataset("ItalyPowerDemand")
    classes, y = np.unique(dataset.y_train, return_inverse=True)
    rng = np.random.default_rng(0)
    trained = train_kernels(dataset.X_train, y, n_classes=len(classes), rng=rng)
    head = fit_label(trained.body, trained.held_out, y, epsilon=2.0, channel="optimal")
    model = LocalModel(
        head=head,
        classes=tuple(str(label) for label in classes),
        class_type="str",
        n_channels=1,
        n_timepoints=dataset.X_train.shape[2],
    ).identified()
    path = tmp_path_factory.mktemp("bundle") / "model.tacit"
    model.save(path)
    return path


def test_a_saved_bundle_is_audited_against_its_own_epsilon(bundle: Path) -> None:
    result = audit(audited_bundle(bundle), trials=1_000_000)
    assert result.claimed_epsilon == 2.0
    assert result.verdict == "consistent"
    assert result.lower_bound > 1.9
    lower = audit(audited_bundle(bundle, claim=1.8), trials=1_000_000)
    assert lower.verdict == "refuted"


def test_a_published_bundle_is_refuted_at_its_nominal_epsilon(tmp_path: Path) -> None:
    dataset = load_dataset("ItalyPowerDemand")
    published = DPSoftShapeClassifier(
        epsilon=0.5, mode="published", settings=SoftShapeSettings(steps=30), random_state=0
    )
    published.fit(dataset.X_train, dataset.y_train)
    published.save(tmp_path)
    result = audit(audited_bundle(tmp_path), trials=200_000)
    assert result.claimed_epsilon == 0.5
    assert result.verdict == "refuted"
    assert result.lower_bound > 2.0


def test_a_published_bundle_is_never_consistent_however_large_its_nominal_epsilon(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A few thousand runs prove at most about ln(1000) = 7, far below the nominal 40."""
    dataset = load_dataset("ItalyPowerDemand")
    published = DPSoftShapeClassifier(
        epsilon=40.0, mode="published", settings=SoftShapeSettings(steps=2), random_state=0
    )
    published.fit(dataset.X_train, dataset.y_train)
    published.save(tmp_path)
    found = tacit(capsys, "audit", tmp_path, "--trials", 4000, "--json").json
    assert found["verdict"] == "refuted"
    assert found["lower_bound"] < 40.0
    assert found["nominal_epsilon"] == found["claimed_epsilon"] == 40.0
    assert found["guarantee"] == published.guarantee_.to_dict()
    claimed = tacit(capsys, "audit", tmp_path, "--trials", 4000, "--claim", 90, "--json").json
    assert (claimed["claimed_epsilon"], claimed["nominal_epsilon"]) == (90.0, 40.0)
    assert claimed["verdict"] == "refuted"
    said = tacit(capsys, "audit", tmp_path, "--trials", 4000).out
    assert "No privacy guarantee" in " ".join(said.split())


def test_the_command_takes_a_file_or_its_folder(
    bundle: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for path in (bundle, bundle.parent):
        outcome = tacit(capsys, "audit", path, "--trials", 100_000, "--json")
        assert outcome.code == 0
        assert outcome.json["claimed_epsilon"] == 2.0
        assert outcome.json["verdict"] == "consistent"
        assert outcome.json["guarantee"]["kind"] == "dp"
        assert outcome.json["guarantee"]["epsilon"] == 2.0
        assert "nominal_epsilon" not in outcome.json


def test_a_damaged_or_foreign_file_is_refused(
    bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = tmp_path / "broken.tacit"
    broken.write_bytes(bundle.read_bytes()[:-10])
    assert_refused(tacit(capsys, "audit", broken), "broken.tacit")
    (tmp_path / "other.tacit").write_bytes(b"")
    with pytest.raises(BundleError, match="2 bundles"):
        audited_bundle(tmp_path)


@pytest.mark.parametrize("shape", [(1, 24), (3, 8), (1, 2)])
def test_candidate_series_are_finite_and_never_constant(shape: tuple[int, int]) -> None:
    series = candidate_series(*shape)
    assert series.shape[1:] == shape
    assert np.all(np.isfinite(series))
    assert np.all(np.ptp(series, axis=2).max(axis=1) > 0.0)
