"""`tacit train timefl` end to end on an embedded data set."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from command import assert_refused, tacit
from tacit.data import Dataset
from tacit.fleet.experiment import deal_out

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
        capsys, *BASE, "--clients", 10, "--rounds", 2, "--mode", "published", "--report", page
    )
    result = outcome.json
    assert result["guarantee"]["kind"] == "unprotected"
    assert result["nominal_epsilon"] == 8.0
    assert result["reidentification"] > 0.5
    assert "No privacy guarantee" in page.read_text()


@pytest.mark.seconds
def test_a_sound_page_shows_rounds_and_links(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    page = tmp_path / "run.html"
    result = tacit(capsys, *BASE, "--clients", 30, "--rounds", 4, "--report", page).json
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
