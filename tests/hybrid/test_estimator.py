"""`DPHybridClassifier`: aeon's contract and ours, both guarantees, files, ledger and devices."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from command import assert_refused, tacit
from contract import aeon_contract, check_tacit_classifier, toy_problem
from fleet_localhost import free_ports
from tacit import DPHybridClassifier, DPTimeFLClassifier
from tacit.data import load_dataset
from tacit.errors import BudgetExceeded, BundleError, TacitError
from tacit.fleet.deployment.analyser_state import AnalyserRound, AnalyserState
from tacit.fleet.deployment.config import read_run
from tacit.fleet.deployment.setup import FleetRequest, Hosts, set_up
from tacit.fleet.learning.head import HeadModel
from tacit.fleet.learning.learner import Learner, model_to_bytes
from tacit.ledger import Ledger
from tacit.local.bundle import read_bundle, write_bundle
from tacit.local.device import Device
from tacit.local.estimator import DPSoftShapeClassifier
from tacit.local.prevalence import estimate_prevalence

FALSE_ALARM = 1e-6


def small(**changes: Any) -> DPHybridClassifier:
    settings: dict[str, Any] = {
        "n_clients": 4,
        "mechanism": "privunit",
        "n_rounds": 3,
        "n_kernels": 20,
        "release_epsilon": 40.0,
        "random_state": 0,
    }
    return DPHybridClassifier(**(settings | changes))


@aeon_contract(small())
def test_aeon_contract(check: Any) -> None:
    check()


def test_tacit_contract() -> None:
    check_tacit_classifier(small)


@pytest.fixture(scope="module")
def fitted() -> DPHybridClassifier:
    X, y = toy_problem(n_series=120)
    owners = np.arange(len(y)) // 6
    classifier = DPHybridClassifier(
        epsilon=8.0, release_epsilon=3.0, n_rounds=20, n_kernels=40, random_state=0
    )
    classifier.fit(X, y, client=owners)
    return classifier


def test_it_is_trained_by_the_clients_that_it_was_given(fitted: DPHybridClassifier) -> None:
    assert {record.n_reports for record in fitted.history_} == {20}
    X, y = toy_problem(n_series=200)
    assert np.mean(fitted.device_labels(X) == y) > 0.8  # measured: 1.0; guessing reaches 0.5


def test_the_trainings_guarantee_is_the_fleets(fitted: DPHybridClassifier) -> None:
    training, release = fitted.training_guarantee_, fitted.guarantee_
    assert training.unit == "client"
    assert training.epsilon <= 8.0
    assert training.delta == 1e-5
    assert (release.model, release.unit) == ("local", "series")
    assert (release.epsilon, release.delta) == (3.0, 0.0)


def test_who_trains_and_releases_gets_the_sum(fitted: DPHybridClassifier) -> None:
    both = fitted.composed_guarantee(4)
    assert both.epsilon >= fitted.training_guarantee_.epsilon + 12.0 - 1e-12
    assert both.delta == fitted.training_guarantee_.delta
    assert both.unit == "person"


def test_labels_are_kept_as_often_as_the_channel_says(fitted: DPHybridClassifier) -> None:
    from scipy import stats

    X, _ = toy_problem(n_series=1)
    many = np.repeat(X, 20_000, axis=0)
    kept = np.count_nonzero(fitted.predict(many) == fitted.device_labels(X)[0])
    rate = float(np.exp(3.0) / (np.exp(3.0) + 1.0))
    assert stats.binomtest(int(kept), len(many), rate).pvalue > FALSE_ALARM
    assert stats.binomtest(int(kept), len(many), rate * 0.98).pvalue < FALSE_ALARM


def test_a_saved_classifier_is_the_same_and_carries_both(
    fitted: DPHybridClassifier, tmp_path: Path
) -> None:
    fitted.save(tmp_path / "bundle")
    loaded = DPHybridClassifier.load(tmp_path / "bundle")
    assert loaded.guarantee_ == fitted.guarantee_
    assert loaded.training_guarantee_ == fitted.training_guarantee_
    assert loaded.recognition == pytest.approx(fitted.recognition)
    X, _ = toy_problem(n_series=30)
    np.testing.assert_array_equal(loaded.device_labels(X), fitted.device_labels(X))
    release = fitted.release(X)
    np.testing.assert_array_equal(loaded.classify(release), fitted.classify(release))


@pytest.mark.seconds
def test_a_device_needs_numpy_alone(fitted: DPHybridClassifier, tmp_path: Path) -> None:
    fitted.export_device(tmp_path / "device.tacit")
    X, _ = toy_problem(n_series=2)
    np.save(tmp_path / "series.npy", X)
    code = (
        "import sys, json, numpy as np\n"
        "from tacit.local.device import Device\n"
        f"device = Device.load({str(tmp_path / 'device.tacit')!r})\n"
        f"made = device.release(np.load({str(tmp_path / 'series.npy')!r}))\n"
        "heavy = {'scipy', 'sklearn', 'aeon', 'torch', 'numba', 'dp_accounting'}\n"
        "found = heavy & {name.split('.')[0] for name in sys.modules}\n"
        "print(json.dumps([len(made), sorted(found)]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    assert json.loads(done.stdout) == [2, []]


def test_a_release_is_debited_and_refused_past_the_budget(
    fitted: DPHybridClassifier, tmp_path: Path
) -> None:
    X, _ = toy_problem(n_series=2)
    with Ledger.open(tmp_path / "l.db", per_subject_epsilon=3.0) as ledger:
        fitted.release(X[:1], ledger=ledger)
        with pytest.raises(BudgetExceeded):
            fitted.release(X[:1], ledger=ledger)
        assert ledger.spent().epsilon == 3.0


def test_a_fleets_model_file_becomes_a_classifier(tmp_path: Path) -> None:
    X, y = toy_problem()
    fleet = DPTimeFLClassifier(n_clients=4, n_rounds=3, n_kernels=20, random_state=0)
    fleet.fit(X, y)
    fleet.save(tmp_path / "fleet.model")
    made = DPHybridClassifier.from_fleet(tmp_path / "fleet.model", release_epsilon=40.0)
    assert made.training_guarantee_ == fleet.guarantee_
    np.testing.assert_array_equal(made.device_labels(X), fleet.predict(X))
    assert made.predict(X[:3]).shape == (3,)


@pytest.mark.parametrize("mechanism", ["privunit", "distributed"])
def test_a_deployed_fleet_becomes_a_bundle(
    mechanism: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """From the analyser's folder to a released label, with both guarantees on the way."""
    folder = tmp_path / "fleet"
    data = load_dataset("ItalyPowerDemand")
    request = FleetRequest(
        n_nodes=3, rounds=2, epsilon=8.0, delta=1e-5, n_min=3, n_kernels=8,
        round_seconds=4.0, mechanism=mechanism,
    )  # fmt: skip
    set_up(folder, data, request, Hosts(port=free_ports(19)), seed=0)
    out = tmp_path / "bundle"
    call = ("--release-epsilon", 5, "--out", out, "--json")
    assert_refused(tacit(capsys, "fleet", "export", folder, *call), "run the fleet first")
    assert not out.exists()
    fleet = read_run(folder / "plan.toml")
    learner = Learner(fleet.plan)
    shape = (len(fleet.plan.classes) - 1, fleet.plan.n_features)
    average = np.random.default_rng(0).standard_normal(shape)
    head = HeadModel(average, average, average, 1, 1)
    done = AnalyserRound(
        round_number=1, batch_id="0" * 32, n=3, left_out=0, released=True, epsilon=4.0
    )
    state = AnalyserState(model=model_to_bytes(head), next_round=2, history=(done,))
    (folder / "analyser" / "state").mkdir(parents=True, exist_ok=True)
    (folder / "analyser" / "state" / "checkpoint.npz").write_bytes(state.to_bytes(fleet.run))
    made = tacit(capsys, "fleet", "export", folder / "analyser", *call)
    assert made.code == 0, made.err
    stated = learner.spent([3])
    assert stated is not None
    assert made.json["guarantee"]["training"] == stated.to_dict()
    assert made.json["guarantee"]["release"]["epsilon"] == 5.0
    assert made.json["guarantee"]["both"]["unit"] == "person"
    loaded = DPHybridClassifier.load(out)
    assert loaded.training_guarantee_ == stated
    labels = learner.predict(state.model, data.X_test[:20])
    np.testing.assert_array_equal(loaded.device_labels(data.X_test[:20]), labels)
    releases = tmp_path / "releases.json"
    sent = tacit(capsys, "release", out, "--data", "ItalyPowerDemand", "--out", releases, "--json")
    assert sent.json["training"] == stated.to_dict()
    assert_refused(tacit(capsys, "fleet", "export", folder, *call), "holds a bundle")


def test_formats_without_public_features_are_refused(
    fitted: DPHybridClassifier, tmp_path: Path
) -> None:
    fitted.export_device(tmp_path / "device.tacit", format="npz")
    assert Device.load(tmp_path / "device.tacit").guarantee == fitted.guarantee_
    for format in ("web", "c"):
        with pytest.raises(TacitError, match="export it with format 'npz'") as refusal:
            fitted.export_device(tmp_path / format, format=format)
        assert "\n" not in str(refusal.value)
        assert not (tmp_path / format).exists()
    with pytest.raises(TacitError, match="format must be one of"):
        fitted.export_device(tmp_path / "x", format="tflite")  # type: ignore[arg-type]


def test_prevalence_says_that_the_rate_was_stated(fitted: DPHybridClassifier) -> None:
    X, _ = toy_problem(n_series=40)
    shares = estimate_prevalence(fitted.model_, fitted.release(X), of="classes")
    assert "was stated, not measured" in shares.assumption


def test_nothing_is_trained_where_the_release_cannot_be(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = toy_problem()

    def never(*_: Any, **__: Any) -> None:
        raise AssertionError("the fleet was trained")

    monkeypatch.setattr(DPTimeFLClassifier, "_fit", never)
    with pytest.raises(TacitError, match="release_epsilon must be"):
        small(release_epsilon=0.0).fit(X, y)
    with pytest.raises(TacitError, match="recognition must lie"):
        small(recognition=1.0).fit(X, y)


def test_a_bundle_of_shown_series_is_no_hybrid(tmp_path: Path) -> None:
    X, y = toy_problem()
    DPSoftShapeClassifier(2.0, random_state=0).fit(X, y).save(tmp_path)
    with pytest.raises(TacitError, match="was trained on shown series"):
        DPHybridClassifier.load(tmp_path)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"training": {"kind": "unprotected", "reason": "none"}}, "not one per client"),
        ({"training": None}, "lacks"),
        ({"feature_version": 1}, "version 1 of the public features"),
        ({"drop": True}, "does not have"),
    ],
)
def test_an_altered_bundle_is_refused(
    fitted: DPHybridClassifier, tmp_path: Path, change: dict[str, Any], words: str
) -> None:
    """Someone who writes a fitting checksum still cannot make the file promise other things."""
    fitted.export_device(tmp_path / "d.tacit")
    arrays, values = read_bundle(tmp_path / "d.tacit")
    if "feature_version" in change:
        values["body"]["encoder_values"] |= change
    elif "drop" in change:
        del values["training"]  # the release's guarantee speaks of it
    else:
        values |= change
    write_bundle(tmp_path / "e.tacit", arrays, values)
    with pytest.raises(BundleError, match=words):
        Device.load(tmp_path / "e.tacit")
