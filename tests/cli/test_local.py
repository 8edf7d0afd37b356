"""`tacit train softshape`, `release`, `classify` and `serve` from end to end."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from command import assert_refused, tacit
from tacit.cli import local
from tacit.cli.train import softshape
from tacit.cli.train.network_settings import DIFFERENCES, changed_settings
from tacit.cli.train.scores import accuracy_interval
from tacit.errors import TacitError
from tacit.ledger import Ledger
from tacit.local.softshape.settings import PRESETS, preset_settings

Capture = pytest.CaptureFixture[str]
QUICK = ("--data", "ItalyPowerDemand", "--encoder", "kernels")


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from local_problems import trained

    folder = tmp_path_factory.mktemp("bundle")
    trained("label").save(folder)
    return folder


@pytest.mark.seconds
def test_train_reports_accuracy_beside_its_ceiling(capsys: Capture, tmp_path: Path) -> None:
    found = tacit(
        capsys, "train", "softshape", *QUICK, "--epsilon", 2, "--seed", 3, "--out",
        tmp_path / "b", "--page", tmp_path / "p.html", "--json",
    )  # fmt: skip
    assert found.code == 0
    assert "epsilon = 2 in total" in (tmp_path / "p.html").read_text(encoding="utf-8")
    result = found.json
    assert {"accuracy", "guarantee", "train_seconds", "seed", "ceiling"} <= set(result)
    assert result["seed"] == 3
    assert result["guarantee"]["epsilon"] == 2.0
    assert result["accuracy"] > 0.7
    interval = result["accuracy_interval"]
    right = round(result["accuracy"] * 1029)
    assert stats.binom.sf(right - 1, 1029, interval["low"]) == pytest.approx(0.025)
    assert stats.binom.cdf(right, 1029, interval["high"]) == pytest.approx(0.025)
    assert interval["level"] == 0.95
    # The noise may lift it above its ceiling, but never down to the commonest class.
    assert not [sentence for sentence in result["warnings"] if "commonest" in sentence]
    assert (tmp_path / "b" / "model.tacit").exists()


@pytest.mark.seconds
def test_places_are_told_by_training_and_by_classification(capsys: Capture, tmp_path: Path) -> None:
    bundle, sent = tmp_path / "b", tmp_path / "sent.json"
    command = ("train", "softshape", *QUICK, "--epsilon", 5, "--release", "place", "--seed", 0)
    told = tacit(capsys, *command, "--out", bundle, "--json").json
    assert told["accuracy"] > 0.9
    assert 0.5 < told["table_right"] <= told["place_right"] <= 1.0
    tacit(capsys, "release", bundle, "--data", "ItalyPowerDemand", "--out", sent, "--json")
    found = tacit(capsys, "classify", bundle, "--releases", sent, "--json").json
    assert found["places"]["edges"] == [0, 6, 12, 18, 24]
    posterior = np.array(found["places"]["posterior"])
    assert posterior.shape == (found["count"], 4)
    np.testing.assert_allclose(posterior.sum(axis=1), 1.0, atol=1e-5)
    # The posterior must be worth what training promised: its mode is right that often.
    from tacit.data import load_dataset
    from tacit.local.model import load_model

    model = load_model(bundle / "model.tacit")
    X = load_dataset("ItalyPowerDemand").X_test
    own = model.head.summarise(model.check_series(X)) % 4
    right = int(np.sum(posterior.argmax(axis=1) == own))
    low = stats.binom.ppf(1e-7, len(own), told["place_right"] - 0.02)
    assert right >= low
    shown = tacit(capsys, "classify", bundle, "--releases", sent).out
    assert "steps 0 to 5" in shown
    assert "steps 18 to 23" in shown


@pytest.mark.seconds
def test_train_takes_the_class_shares_that_are_expected(capsys: Capture) -> None:
    command = ("train", "softshape", *QUICK, "--epsilon", 1, "--json", "--class-shares")
    found = tacit(capsys, *command, "1=0.9,2=0.1")
    assert found.code == 0
    assert found.json["accuracy"] == pytest.approx(0.5, abs=0.01)  # everything is called "1"
    (warning,) = found.json["warnings"]
    assert "than always answering the commonest class" in warning
    assert found.err.strip() == f"tacit: {warning}"
    for wrong in ("0.9,0.1", "1=0.5,1=0.5", "1=half,2=half", ""):
        assert_refused(tacit(capsys, *command, wrong), "must look like 1=0.9,2=0.1")
    assert_refused(tacit(capsys, *command, "1=0.5,3=0.5"), "the training data have ['1', '2']")


@pytest.mark.seconds
def test_train_published_reports_leakage_and_no_guarantee(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ("train", "softshape", "--data", "ItalyPowerDemand", "--mode", "published", "--json")
    result = tacit(capsys, *command, "--preset", "tuned").json
    assert result["preset"] == "tuned"
    assert result["guarantee"]["kind"] == "unprotected"
    assert result["nominal_epsilon"] == 1.0
    assert result["leakage_measured_on"] == "training series"
    assert set(result["leakage"]) == {
        "claimed_total", "empirical_sensitivity", "realised_loss_median", "reidentification"
    }  # fmt: skip
    assert_refused(tacit(capsys, *command, "--preset", "best"), "'best'", "paper", "tuned")
    sound = tacit(capsys, "train", "softshape", "--data", "ItalyPowerDemand", "--preset", "paper")
    assert_refused(sound, "leave it out, or add --mode published")


def test_settings_of_the_published_network_are_changed_by_name() -> None:
    named = set(PRESETS["paper"]) | set(PRESETS["tuned"])
    assert set(DIFFERENCES) == named
    given = ["epochs=3", "clip=none", "kernels=5,3,3", "soft=false", "pooling=mean-max"]
    found = changed_settings("paper", given, mode="published")
    changes = {"epochs": 3, "clip": None, "kernels": (5, 3, 3), "soft": False}
    assert found == preset_settings("paper", **changes, pooling="mean-max")
    assert changed_settings("paper", [], mode="sound") is None
    for bad, words in (
        ("epochs", "key=value"), ("soft=no", "true or false"), ("epochs=true", "no true or false"),
        ("epoch=3", "unknown settings"), ("rho=much", "wrong type"), ("rho=2", "must lie in"),
    ):  # fmt: skip
        with pytest.raises(TacitError, match=words):
            changed_settings("paper", [bad], mode="published")
    with pytest.raises(TacitError, match="add --mode published"):
        changed_settings("paper", ["epochs=3"], mode="sound")


@pytest.mark.seconds
def test_published_training_is_the_paper_s_unless_asked_otherwise(capsys: Capture) -> None:
    found = tacit(capsys, "train", "softshape", "--data", "ItalyPowerDemand", "--mode", "published",
                  "--epsilon", "0.5", "--set", "epochs=2", "--json")  # fmt: skip
    assert (found.json["preset"], found.json["nominal_epsilon"]) == ("paper", 0.5)
    assert found.json["changed"] == ["epochs=2"]
    # Two patches clipped to L1 norm 1 lie at most 2 apart.
    assert 0.0 < found.json["leakage"]["empirical_sensitivity"] <= 2.0 + 1e-6


@pytest.mark.seconds
def test_classify_repeats_no_guarantee_that_the_model_does_not_give(
    capsys: Capture, bundle: Path, tmp_path: Path
) -> None:
    out = tmp_path / "releases.json"
    tacit(capsys, "release", bundle, "--data", "ItalyPowerDemand", "--out", out)
    honest = json.loads(out.read_text())
    answer = tacit(capsys, "classify", bundle, "--releases", out, "--json").json
    assert answer["guarantee"] == local.load_bundle(bundle).guarantee.to_dict()
    changed: list[dict[str, Any]] = [{"epsilon": 0.01}, {"unit": "person"}, {"assumptions": []}]
    for changes in changed:
        stated = {**honest["guarantee"], **changes}
        out.write_text(json.dumps({**honest, "guarantee": stated}))
        assert_refused(tacit(capsys, "classify", bundle, "--releases", out), "does not give")
    out.write_text(json.dumps({**honest, "guarantee": {"kind": "unprotected", "reason": "x"}}))
    assert_refused(tacit(capsys, "classify", bundle, "--releases", out), "(unprotected)")


@pytest.mark.seconds
def test_release_debits_and_classify_answers(capsys: Capture, bundle: Path, tmp_path: Path) -> None:
    out, db = tmp_path / "releases.json", tmp_path / "ledger.db"
    made = tacit(
        capsys, "release", bundle, "--data", "ItalyPowerDemand", "--out", out, "--ledger", db,
        "--json",
    ).json  # fmt: skip
    assert made["count"] == 1029
    assert made["spent"]["epsilon"] == pytest.approx(2.0 * 1029)
    assert made["accounted"] is True
    assert made["spent_per_series"] == {"epsilon": 2.0, "delta": 0.0}
    assert made["series"] == 1029
    labels = tacit(capsys, "classify", bundle, "--releases", out, "--json").json["labels"]
    assert len(labels) == 1029
    asked = ("--prevalence", "--of", "classes", "--level", 0.8, "--json")
    shares = tacit(capsys, "classify", bundle, "--releases", out, *asked).json["prevalence"]
    assert (shares["of"], shares["level"]) == ("classes", 0.8)
    assert_refused(
        tacit(capsys, "classify", bundle, "--releases", out, "--of", "classes"), "--prevalence"
    )
    again = tacit(
        capsys, "release", bundle, "--data", "ItalyPowerDemand", "--out", tmp_path / "again.json",
        "--ledger", db,
    )  # fmt: skip
    assert_refused(again, "nothing was released")
    assert not (tmp_path / "again.json").exists()
    with Ledger.open(db) as ledger:
        assert ledger.spent().epsilon == pytest.approx(2.0 * 1029)


def test_a_bad_place_for_releases_debits_nothing(
    capsys: Capture, bundle: Path, tmp_path: Path
) -> None:
    db = tmp_path / "ledger.db"
    (tmp_path / "there.json").write_text("{}")
    for out in (tmp_path / "there.json", tmp_path / "no" / "folder.json"):
        refused = tacit(
            capsys, "release", bundle, "--data", "ItalyPowerDemand", "--out", out, "--ledger", db
        )
        assert_refused(refused)
    assert not db.exists()


def test_series_of_another_shape_debit_nothing(
    capsys: Capture, bundle: Path, tmp_path: Path
) -> None:
    db = tmp_path / "ledger.db"
    refused = tacit(
        capsys, "release", bundle, "--data", "GunPoint", "--out", tmp_path / "r.json",
        "--ledger", db,
    )  # fmt: skip
    assert_refused(refused, "150 steps", "24")
    with Ledger.open(db) as ledger:
        assert ledger.spent().epsilon == 0.0


def test_damaged_bundles_and_releases_are_refused(
    capsys: Capture, bundle: Path, tmp_path: Path
) -> None:
    broken = tmp_path / "broken.tacit"
    broken.write_bytes((bundle / "model.tacit").read_bytes()[:-5])
    assert_refused(tacit(capsys, "classify", broken, "--releases", "x"), "truncated")
    assert_refused(tacit(capsys, "classify", bundle, "--releases", tmp_path / "no"), "cannot read")
    (tmp_path / "text").write_text("hello")
    assert_refused(tacit(capsys, "classify", bundle, "--releases", tmp_path / "text"), "JSON")
    assert_refused(tacit(capsys, "serve", tmp_path / "nothing"), "cannot read")


@pytest.mark.parametrize("epsilon", ["0", "-1", "nan", "inf"])
def test_bad_epsilon_is_refused(capsys: Capture, epsilon: str) -> None:
    assert_refused(tacit(capsys, "train", "softshape", *QUICK, "--epsilon", epsilon), "epsilon")


@pytest.mark.parametrize("option", ["--mode", "--release", "--encoder", "--channel"])
def test_unknown_choices_are_refused(capsys: Capture, option: str) -> None:
    refused = tacit(capsys, "train", "softshape", "--data", "ItalyPowerDemand", option, "other")
    assert_refused(refused, option.removeprefix("--"), "'other'")


def test_serve_hands_the_model_to_the_service(
    capsys: Capture, bundle: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import tacit.local.collector.server as service

    seen: dict[int, Any] = {}
    monkeypatch.setattr(service, "serve", lambda *given: seen.update(enumerate(given)))
    found = tacit(capsys, "serve", bundle, "--port", 0, "--json")
    assert found.json["guarantee"]["epsilon"] == 2.0
    model, listening = seen[0], seen[1]
    assert model.identity == local.load_bundle(bundle).identity
    assert (found.json["host"], found.json["port"]) == listening.getsockname()
    again = tacit(capsys, "serve", bundle, "--port", found.json["port"], "--json")
    listening.close()
    assert_refused(again, "cannot listen", str(found.json["port"]), "--port")


def test_no_bundle_is_overwritten(capsys: Capture, bundle: Path) -> None:
    before = (bundle / "model.tacit").read_bytes()
    again = tacit(capsys, "train", "softshape", *QUICK, "--out", bundle)
    assert_refused(again, "holds a bundle", "choose another folder")
    assert (bundle / "model.tacit").read_bytes() == before


def test_a_file_without_labels_is_released_whole(
    capsys: Capture, bundle: Path, tmp_path: Path
) -> None:
    from local_problems import italy

    X = italy().X_test[:7, 0]
    np.savez(tmp_path / "today.npz", X=X)
    np.savetxt(tmp_path / "today.csv", X, delimiter=",")
    for number, name in enumerate(("today.npz", "today.csv")):
        command = ("release", bundle, "--data", tmp_path / name)
        found = tacit(capsys, *command, "--out", tmp_path / f"{number}.json", "--json")
        assert found.json["count"] == 7
        parts = tacit(capsys, *command, "--out", tmp_path / "x.json", "--part", "test")
        assert_refused(parts, "has no test part", "leave --part out")


@pytest.mark.seconds
def test_an_empty_file_becomes_a_ledger_with_a_budget(
    capsys: Capture, bundle: Path, tmp_path: Path
) -> None:
    ledger = tmp_path / "device.db"
    ledger.touch()
    command = ("release", bundle, "--data", "ItalyPowerDemand", "--ledger", ledger, "--out")
    assert tacit(capsys, *command, tmp_path / "1.json").code == 0
    assert_refused(tacit(capsys, *command, tmp_path / "2.json"), "above the budget of 2.0")


@pytest.mark.seconds
def test_classify_merges_the_releases_of_many_devices(
    capsys: Capture, bundle: Path, tmp_path: Path
) -> None:
    one, stream = tmp_path / "one.json", tmp_path / "stream.jsonl"
    tacit(capsys, "release", bundle, "--data", "ItalyPowerDemand", "--out", one)
    whole = json.loads(one.read_text())
    devices = [
        {**whole, "id": f"{number:032x}", "values": [value]}
        for number, value in enumerate(whole["values"][:50])
    ]
    stream.write_text("".join(json.dumps(device) + "\n" for device in devices))
    found = tacit(
        capsys, "classify", bundle, "--releases", one, "--releases", stream, "--prevalence",
        "--json",
    ).json  # fmt: skip
    assert found["count"] == len(found["labels"]) == 1029 + 50
    assert found["prevalence"]["n"] == 1029 + 50
    assert found["labels"][1029:] == found["labels"][:50]
    devices[7]["model"] = "another"
    stream.write_text("".join(json.dumps(device) + "\n" for device in devices))
    refused = tacit(capsys, "classify", bundle, "--releases", stream)
    assert_refused(refused, "line 8", "model another")


@pytest.mark.seconds
def test_equal_symbols_give_shares_between_zero_and_one(
    capsys: Capture, bundle: Path, tmp_path: Path
) -> None:
    out = tmp_path / "releases.json"
    tacit(capsys, "release", bundle, "--data", "ItalyPowerDemand", "--out", out)
    out.write_text(json.dumps({**json.loads(out.read_text()), "values": [0] * 50}))
    command = ("classify", bundle, "--releases", out, "--prevalence", "--json")
    shares = tacit(capsys, *command).json["prevalence"]
    assert {"classes", "share", "low", "high", "level", "n", "of", "assumption"} <= set(shares)
    assert shares["share"] == [1.0, 0.0]
    for low, high in zip(shares["low"], shares["high"], strict=True):
        assert 0.0 <= low < high <= 1.0
    assert shares["identifiable"] == [True, True]
    assert shares["warning"] is None


@pytest.mark.seconds
def test_a_release_without_a_ledger_says_that_nothing_is_accounted(
    capsys: Capture, bundle: Path, tmp_path: Path
) -> None:
    command = ("release", bundle, "--data", "ItalyPowerDemand", "--out")
    found = tacit(capsys, *command, tmp_path / "1.json", "--json")
    assert found.json["spent"] is None
    assert found.json["accounted"] is False
    (line,) = found.err.strip().splitlines()
    assert "nothing is accounted" in line
    assert "--ledger" in line
    shown = tacit(capsys, *command, tmp_path / "2.json")
    assert "not accounted" in shown.out
    assert "nothing is accounted" in shown.err


def words_of(table: str) -> str:
    """The text of a table, without its frame and its line breaks."""
    return " ".join(table.replace("\u2502", " ").split())


@pytest.mark.seconds
def test_people_see_what_a_series_and_what_their_owner_spent(
    capsys: Capture, bundle: Path, tmp_path: Path
) -> None:
    shown = tacit(
        capsys, "release", bundle, "--data", "ItalyPowerDemand", "--out", tmp_path / "r.json",
        "--ledger", tmp_path / "device.db",
    )  # fmt: skip
    words = words_of(shown.out)
    assert "at most epsilon 2 per series; 1029 series in this ledger" in words
    assert "at most 2058 for a person who owns all of them" in words
    assert shown.err == ""


@pytest.mark.seconds
def test_people_see_a_few_labels_and_the_shares(
    capsys: Capture, bundle: Path, tmp_path: Path
) -> None:
    out = tmp_path / "r.json"
    tacit(capsys, "release", bundle, "--data", "ItalyPowerDemand", "--out", out)
    shown = tacit(capsys, "classify", bundle, "--releases", out, "--prevalence")
    assert "and 1009 more (all with --json)" in words_of(shown.out)
    assert "at least" in shown.out
    assert "1029 releases" in shown.out
    assert max(len(line) for line in shown.out.splitlines()) <= 120


def test_an_accuracy_is_compared_with_the_commonest_class_and_the_ceiling() -> None:
    class Part:
        y_test = np.array(["a"] * 60 + ["b"] * 40)

    def warnings(right: int, ceiling: float = 1.0) -> list[str]:
        measured = {
            "accuracy": right / 100,
            "accuracy_interval": accuracy_interval(right, 100),
            "ceiling": ceiling,
        }
        return softshape._accuracy_warnings(measured, Part)

    assert warnings(80) == []
    (no_better,) = warnings(60)
    assert "0.600 (0.497 to 0.697 at 95%) is no better than" in no_better
    assert "'a' (0.600)" in no_better
    (unsure,) = warnings(65)
    assert "is not shown to be better" in unsure
    (above,) = warnings(80, ceiling=0.75)
    assert "above the ceiling of 0.750, by chance" in above
    (far_above,) = warnings(90, ceiling=0.75)
    assert "which chance rarely does" in far_above


@pytest.mark.seconds
def test_a_restored_ledger_releases_nothing_where_anchors_are_kept(
    bundle: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.setenv("TACIT_ANCHORS", str(tmp_path / "elsewhere"))
    db = tmp_path / "device.db"
    tacit(capsys, "ledger", "init", "--db", db, "--per-subject-epsilon", "50")
    shutil.copy(db, tmp_path / "old.db")
    release = ("release", bundle, "--data", "ItalyPowerDemand", "--ledger", db, "--json", "--out")
    assert tacit(capsys, *release, tmp_path / "one.json").code == 0
    shutil.copy(tmp_path / "old.db", db)
    for name in ("device.db-wal", "device.db-shm"):
        (tmp_path / name).unlink(missing_ok=True)
    refused = tacit(capsys, *release, tmp_path / "two.json")
    assert_refused(refused, "restored an old copy")
    assert not (tmp_path / "two.json").exists()
