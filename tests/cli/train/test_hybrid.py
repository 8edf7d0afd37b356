"""`tacit train hybrid`, and the bundle it writes in the commands of the local family."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from command import assert_refused, tacit

TRAIN = (
    "train", "hybrid", "--data", "ItalyPowerDemand", "--clients", "20", "--rounds", "20",
    "--epsilon", "8", "--delta", "1e-5", "--release-epsilon", "5",
)  # fmt: skip


@pytest.mark.seconds
def test_train_release_classify_and_audit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bundle, releases = tmp_path / "bundle", tmp_path / "r.json"
    trained = tacit(capsys, *TRAIN, "--out", bundle, "--json").json
    assert {"accuracy", "clean_accuracy", "guarantee"} <= set(trained)
    promised = trained["guarantee"]
    assert promised["training"]["unit"] == "client"
    assert promised["training"]["epsilon"] <= 8.0
    assert promised["release"]["epsilon"] == 5.0
    assert promised["release"]["delta"] == 0.0
    assert promised["both"]["epsilon"] >= promised["training"]["epsilon"] + 5.0
    # Of 1029 labels 7 are changed on average; more than 30 by chance in less than 1 of 10^9 runs.
    assert abs(trained["accuracy"] - trained["clean_accuracy"]) <= 30 / trained["n_test"]
    interval = trained["accuracy_interval"]
    assert interval["low"] < trained["accuracy"] < interval["high"]
    counts = np.array(trained["confusion"]["counts"])
    assert counts.sum() == trained["n_test"]
    assert np.trace(counts) == round(trained["accuracy"] * trained["n_test"])
    assert trained["clean_accuracy"] > 0.7  # measured 0.92; guessing reaches 0.5

    made = tacit(
        capsys, "release", bundle, "--data", "ItalyPowerDemand", "--out", releases, "--ledger",
        tmp_path / "l.db", "--json",
    ).json  # fmt: skip
    assert made["spent_per_series"]["epsilon"] == 5.0
    assert made["training"] == promised["training"]
    found = tacit(capsys, "classify", bundle, "--releases", releases, "--json").json
    assert found["count"] == made["count"]
    assert found["training"] == promised["training"]
    verdict = tacit(capsys, "audit", bundle, "--trials", "20000", "--json").json
    assert verdict["verdict"] == "consistent"
    assert verdict["claimed_epsilon"] == 5.0
    wrong = tacit(capsys, "audit", bundle, "--trials", "20000", "--claim", "4.5", "--json").json
    assert wrong["verdict"] == "refuted"

    assert_refused(tacit(capsys, *TRAIN, "--out", bundle, "--json"), "holds a bundle")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--release-epsilon", "0"), "release-epsilon must be"),
        (("--epsilon", "nan"), "epsilon must be"),
        (("--recognition", "1.5"), "recognition must lie"),
        (("--mechanism", "gaussian"), "'privunit', 'distributed'"),
        (("--split", "random"), "'iid', 'subject', 'dirichlet'"),
        (("--split", "subject"), "needs a person per series"),
        (("--clients", "1"), "clients must be"),
    ],
)
def test_bad_input_is_one_sentence(
    options: tuple[str, ...], words: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert_refused(tacit(capsys, *TRAIN, *options, "--out", tmp_path / "b", "--json"), words)
    assert not (tmp_path / "b").exists()


def test_people_get_both_promises(capsys: pytest.CaptureFixture[str]) -> None:
    shown = tacit(capsys, *TRAIN, "--rounds", "2")
    assert "training clients" in shown.out
    assert "released series" in shown.out
    with pytest.raises(json.JSONDecodeError):
        json.loads(shown.out)
