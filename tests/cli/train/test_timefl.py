"""`tacit train timefl` end to end on an embedded data set."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from command import assert_refused, tacit
from tacit.data import Dataset
from tacit.errors import TacitError
from tacit.fleet.experiment import deal_out
from tacit.fleet.reports.privunit import PrivUnitReport

BASE = ("train", "timefl", "--data", "ItalyPowerDemand", "--json")


@pytest.mark.parametrize("mechanism", ["privunit", "distributed"])
def test_the_contract_of_the_command(capsys: pytest.CaptureFixture[str], mechanism: str) -> None:
    outcome = tacit(
        capsys, *BASE, "--clients", 30, "--rounds", 4, "--mechanism", mechanism, "--baselines"
    )
    assert outcome.code == 0, outcome.err
    result = outcome.json
    assert 0.4 < result["accuracy"] <= 1.0
    assert result["guarantee"]["kind"] == "dp"
    assert result["guarantee"]["epsilon"] <= 8.0
    assert result["rounds"] == 4
    assert set(result["baselines"]) == {"fedavg", "central_dp"}
    assert result["evaluated_on"] == "the published test split"


def test_published_mode_says_what_it_is(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    page = tmp_path / "run.html"
    outcome = tacit(
        capsys, *BASE, "--clients", 10, "--rounds", 2, "--mode", "published", "--page", page,
        "--preset", "tuned",
    )  # fmt: skip
    result = outcome.json
    assert result["guarantee"]["kind"] == "unprotected"
    assert result["nominal_epsilon"] == 8.0
    assert result["reidentification"] > 0.5
    assert (result["preset"], result["ended_by"]) == ("tuned", "rounds")
    assert "No privacy guarantee" in page.read_text()


def test_published_settings_can_be_given_one_by_one(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--clients", 10, "--mode", "published", "--epochs", 1, "--network", "light",
             "--clip-norm", 1.5, "--delay", 3, "--delta", 0.01, "--rounds", 12,
             "--baselines")  # fmt: skip
    result = tacit(capsys, *BASE, *words).json
    assert (result["ended_by"], result["preset"]) == ("delta", "paper")
    assert result["nominal_delta"] <= 0.01
    assert result["stopped"].endswith("would pass its limit 0.01")
    assert set(result["baselines"]) == {"fedavg", "central_dp"}


@pytest.mark.seconds
def test_a_sound_page_shows_rounds_and_links(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    page = tmp_path / "run.html"
    result = tacit(capsys, *BASE, "--clients", 30, "--rounds", 4, "--page", page).json
    assert len(result["accuracy_per_round"]) == 4
    assert result["accuracy_per_round"][-1] == result["accuracy"]
    assert 0.0 <= result["reidentification"] < 0.7  # the published mode is near 1
    assert "joined to their senders" in page.read_text()


def test_checkpoint_and_resume(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "c.npz"
    options = ("--clients", 30, "--rounds", 4, "--checkpoint", file)
    first = tacit(capsys, *BASE, *options).json
    again = tacit(capsys, *BASE, *options, "--resume").json
    assert again["guarantee"]["epsilon"] == first["guarantee"]["epsilon"]
    assert again["accuracy"] == first["accuracy"]
    assert_refused(tacit(capsys, *BASE, *options, "--resume", "--seed", 1), "dealt")


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (("--epsilon", "nan"), "epsilon"),
        (("--epsilon", "0"), "epsilon"),
        (("--delta", "1"), "delta"),
        (("--delta", "0.5", "--clients", "30"), "delta"),
        (("--k", "nan"), "k must"),
        (("--clients", "0"), "clients"),
        (("--clients", "100000"), "clients"),
        (("--rounds", "0"), "rounds"),
        (("--mode", "x"), "--mode"),
        (("--preset", "x"), "--preset"),
        (("--network", "x"), "--network"),
        (("--preset", "tuned"), "--mode published"),
        (("--epochs", "5"), "--mode published"),
        (("--delay", "5"), "--mode published"),
        (("--batch-size", "5"), "--mode published"),
        (("--mode", "published", "--epochs", "0"), "epochs"),
        (("--mode", "published", "--batch-size", "0"), "batch size"),
        (("--mode", "published", "--clip-norm", "-1"), "clip norm"),
        (("--mode", "published", "--delay", "1", "--delay", "2", "--clients", "30"), "T_i"),
        (("--mechanism", "x"), "--mechanism"),
        (("--split", "x"), "--split"),
        (("--split", "subject"), "subject"),
        (("--resume",), "--checkpoint"),
        (("--clients-per-round", "1"), "clients per round"),
    ],
)
def test_bad_values_are_refused_in_one_sentence(
    capsys: pytest.CaptureFixture[str], options: tuple[str, ...], word: str
) -> None:
    assert_refused(tacit(capsys, *BASE, *options), word)


def people(*, overlap: bool) -> Dataset:
    rng = np.random.default_rng(0)
    y = np.array(["a", "b"] * 30)
    train, test = np.repeat(np.arange(6), 10), np.repeat(np.arange(6, 12), 10)
    parts: dict[str, Any] = {
        f"X_{side}": rng.standard_normal((60, 1, 12)) for side in ("train", "test")
    }
    return Dataset(
        name="people",
        y_train=y,
        y_test=y,
        classes=("a", "b"),
        subject_train=train,
        subject_test=train if overlap else test,
        **parts,
    )


def test_a_subject_split_holds_out_whole_persons() -> None:
    apart = deal_out(people(overlap=False), split="subject", n_clients=6, seed=0)
    assert apart.how == "the published held-out persons"
    assert len(apart.y_test) == 60
    pooled = deal_out(people(overlap=True), split="subject", n_clients=4, seed=0)
    assert pooled.how == "2 of 6 persons, held out"
    assert len(pooled.y_test) == 40
    assert not {bytes(x) for x in pooled.X_train} & {bytes(x) for x in pooled.X_test}


@pytest.mark.parametrize("split", ["iid", "dirichlet"])
def test_other_splits_pool_persons_and_hold_out_a_stratified_fifth(split: Any) -> None:
    deal = deal_out(people(overlap=False), split=split, n_clients=10, seed=1)
    assert len(deal.y_test) == 24
    assert np.count_nonzero(deal.y_test == "a") == 12
    assert set(deal.client) == set(range(10))


def test_a_run_that_ends_without_a_guarantee_says_so_before_it_trains(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def trained(*_: Any, **__: Any) -> None:
        raise TacitError("it began to train")

    monkeypatch.setattr(PrivUnitReport, "most_simulated", 10)
    monkeypatch.setattr("tacit.fleet.estimator.DPTimeFLClassifier._fit", trained)
    asked = (*BASE, "--clients", 20, "--mechanism")
    said = tacit(capsys, *asked, "privunit").err
    assert said.startswith("tacit: this run will state no guarantee")
    assert "20 reports a round" in said
    assert said.index("at most 10 with --clients-per-round") < said.index("it began to train")
    for words in (("privunit", "--clients-per-round", 10), ("distributed",)):
        said = tacit(capsys, *asked, *words).err
        assert "it began to train" in said
        assert "no guarantee" not in said


def test_a_model_that_could_not_be_saved_is_refused_before_it_is_trained(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    many = (*BASE, "--clients", 2400, "--mechanism", "privunit")
    assert_refused(tacit(capsys, *many, "--out", tmp_path / "m"), "2400 reports a round")
    hybrid = ("train", "hybrid", "--data", "ItalyPowerDemand", "--clients", 2400)
    assert_refused(tacit(capsys, *hybrid, "--mechanism", "privunit"), "a hybrid needs a guarantee")
