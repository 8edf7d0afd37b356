"""`tacit silo`: folders for organisations, and refusals of bad input."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from command import assert_refused, tacit
from silo_parties import shared_cache
from tacit.cli.app import run
from tacit.cli.silo_init import assign_addresses
from tacit.data import load_dataset, split_parties
from tacit.errors import TacitError
from tacit.silo.fedst.settings import settings_from
from tacit.silo.party.folder import read_folder
from tacit.silo.party.localhost import local_addresses

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def _one_cache(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(shared_cache(tmp_path_factory)))


def test_init_writes_one_folder_per_organisation(capsys: Capture, tmp_path: Path) -> None:
    done = tacit(
        capsys, "silo", "init", tmp_path / "f", "--parties", "north,south,west",
        "--hosts", "n.example,s.example,w.example", "--candidates", 40, "--json",
    )  # fmt: skip
    assert done.code == 0
    assert set(done.json["parties"]) == {"north", "south", "west"}
    loaded = [read_folder(Path(p["config"])) for p in done.json["parties"].values()]
    assert {c.terms.fingerprint for c in loaded} == {done.json["fingerprint"]}
    assert [p.address for p in loaded[0].peers] == [f"{h}.example:9100" for h in "nsw"]
    assert loaded[0].terms.params["n_candidates"] == 40
    assert loaded[0].terms.protocol == "ABY3"


@pytest.mark.parametrize(
    ("asked", "kinds"),
    [
        ("all", ("shapelets", "intervals", "dictionary")),
        ("dictionary,shapelets", ("shapelets", "dictionary")),
        (None, ("shapelets",)),
    ],
)
def test_init_writes_the_kinds_of_features(
    capsys: Capture, tmp_path: Path, asked: str | None, kinds: tuple[str, ...]
) -> None:
    more = () if asked is None else ("--features", asked)
    done = tacit(capsys, "silo", "init", tmp_path / "f", "--parties", "a,b,c", *more, "--json")
    for party in done.json["parties"].values():
        assert settings_from(read_folder(Path(party["config"])).terms.params).features == kinds


def test_two_organisations_get_the_protocol_for_two(capsys: Capture, tmp_path: Path) -> None:
    done = tacit(capsys, "silo", "init", tmp_path / "f", "--parties", "a,b", "--json")
    config = read_folder(Path(done.json["parties"]["b"]["config"]))
    assert config.terms.protocol == "CHEETAH"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--parties", "a"), "at least 2"),
        (("--parties", "a,a,b"), "must differ"),
        (("--parties", "a,b,../c"), "name"),
        (("--parties", "a,b,c", "--quality", "magic"), "quality"),
        (("--parties", "a,b,c", "--features", "colours"), "features must be some of"),
        (("--parties", "a,b,c", "--features", "shapelets,"), "features must be some of"),
        (("--parties", "a,b,c", "--shapelets", 0), "n_shapelets"),
        (("--parties", "a,b,c", "--candidates", -3), "n_candidates"),
        (("--parties", "a,b,c", "--join-seconds", "nan"), "join_seconds"),
        (("--parties", "a,b,c", "--silence-seconds", 0), "silence_seconds"),
        (("--parties", "a,b,c", "--time-contract", "inf"), "time_contract"),
        (("--parties", "a,b,c", "--hosts", "x,y"), "--hosts"),
        (("--parties", "a,b,c", "--port", 65535), "--port"),
    ],
)
def test_impossible_federations_are_refused(
    capsys: Capture, tmp_path: Path, options: tuple[object, ...], words: str
) -> None:
    assert_refused(tacit(capsys, "silo", "init", tmp_path / "f", *options), words)
    assert not (tmp_path / "f").exists()


def test_show_and_renew(capsys: Capture, tmp_path: Path) -> None:
    done = tacit(capsys, "silo", "init", tmp_path / "f", "--parties", "a,b,c", "--json")
    config = done.json["parties"]["b"]["config"]
    before = tacit(capsys, "silo", "show", config, "--json").json
    assert before["fingerprint"] == done.json["fingerprint"]
    assert before["certificates"]["b"] == done.json["parties"]["b"]["certificate"]
    renewed = tacit(capsys, "silo", "renew", config, "--json").json
    after = tacit(capsys, "silo", "show", config, "--json").json
    assert after["certificates"]["b"] == renewed["sha256"] != before["certificates"]["b"]
    assert after["certificates"]["a"] == before["certificates"]["a"]
    assert (tmp_path / "f" / "b" / "party.key").stat().st_mode & 0o777 == 0o600


def test_a_party_without_configuration_or_data_is_refused(capsys: Capture, tmp_path: Path) -> None:
    assert_refused(tacit(capsys, "silo", "party", tmp_path / "none.toml"), "none.toml")
    done = tacit(
        capsys, "silo", "init", tmp_path / "f", "--parties", "a,b,c", "--json",
        "--join-seconds", 1, "--port", 20000 + secrets.randbelow(10000),
    )  # fmt: skip
    config = done.json["parties"]["a"]["config"]
    assert_refused(tacit(capsys, "silo", "party", config), "--data")
    assert_refused(tacit(capsys, "silo", "check", config), "--data")
    assert_refused(tacit(capsys, "silo", "party", config, "--log-format", "xml"), "--log-format")


def test_a_refused_party_leaves_the_last_result_where_it_is(
    capsys: Capture, tmp_path: Path
) -> None:
    done = tacit(
        capsys, "silo", "init", tmp_path / "f", "--parties", "a,b,c", "--json",
        "--join-seconds", 1, "--port", 20000 + secrets.randbelow(10000),
    )  # fmt: skip
    config = Path(done.json["parties"]["a"]["config"])
    out = read_folder(config).out
    out.mkdir(parents=True, exist_ok=True)
    for name in ("model.safetensors", "receipt.json"):
        (out / name).write_text(name)
    assert_refused(tacit(capsys, "silo", "party", config), "--data")
    for name in ("model.safetensors", "receipt.json"):
        assert (out / name).read_text() == name


def test_ports_go_up_only_where_hosts_repeat() -> None:
    assert assign_addresses("h", n_parties=2, port=10) == ["h:10", "h:11"]
    assert assign_addresses("h,g,h", n_parties=3, port=10) == ["h:10", "g:10", "h:11"]
    with pytest.raises(TacitError, match="--port"):
        assign_addresses("h", n_parties=2, port=0)


def test_a_plan_is_shown_changed_and_accepted(capsys: Capture, tmp_path: Path) -> None:
    done = tacit(capsys, "silo", "init", tmp_path / "f", "--parties", "a,b,c", "--json")
    configs = {name: Path(p["config"]) for name, p in done.json["parties"].items()}
    shown = tacit(capsys, "silo", "plan", configs["a"], "--json").json
    assert shown["fingerprint"] == done.json["fingerprint"]
    assert shown["agreed"] is True
    changes = (
        "--set", "n_candidates=40", "--set", "initiator=b", "--set", "series_length=24",
        "--set", "n_channels=2", "--set", "features=shapelets,dictionary",
    )  # fmt: skip
    prints = {
        tacit(capsys, "silo", "plan", config, *changes, "--json").json["fingerprint"]
        for config in configs.values()
    }
    (fingerprint,) = prints
    assert len(fingerprint) == 64
    assert fingerprint != done.json["fingerprint"]
    for name, config in configs.items():
        folder = read_folder(config)
        assert folder.terms.fingerprint == fingerprint
        assert folder.terms.params["n_candidates"] == 40
        assert folder.terms.parties == tuple(p.name for p in folder.peers) == ("b", "a", "c")
        assert folder.terms.series_length == 24
        assert folder.terms.n_channels == 2
        assert settings_from(folder.terms.params).features == ("shapelets", "dictionary")
        assert folder.rank == ("b", "a", "c").index(name)
    # People get one setting a line and the fingerprint whole.
    printed = tacit(capsys, "silo", "plan", configs["a"]).out
    assert f"fingerprint {fingerprint}\n" in printed
    assert "n_candidates" in printed
    # Edited by hand: the whole fingerprint is shown, and a run is refused until it is accepted.
    text = configs["a"].read_text().replace("n_candidates = 40", "n_candidates = 41")
    configs["a"].write_text(text)
    edited = tacit(capsys, "silo", "plan", configs["a"], "--json").json
    assert edited["agreed"] is False
    assert "--accept" in tacit(capsys, "silo", "plan", configs["a"]).out
    assert_refused(tacit(capsys, "silo", "show", configs["a"]), edited["fingerprint"], "--accept")
    accepted = tacit(capsys, "silo", "plan", configs["a"], "--accept", "--json").json
    assert accepted["fingerprint"] == edited["fingerprint"]
    assert read_folder(configs["a"]).terms.params["n_candidates"] == 41


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("n_candidates", "key=value"),
        ("=3", "key=value"),
        ("n_candidates=0", "n_candidates"),
        ("n_candidates=many", "n_candidates"),
        ("colour=red", "colour"),
        ("quality=magic", "quality"),
        ("features=colours", "features must be some of"),
        ("n_channels=0", "n_channels"),
        ("series_length=-3", "series_length"),
        ("initiator=z", "initiator"),
        ("penalty=NaN", "finite"),
    ],
)
def test_impossible_changes_leave_the_plan_alone(
    capsys: Capture, tmp_path: Path, change: str, words: str
) -> None:
    done = tacit(capsys, "silo", "init", tmp_path / "f", "--parties", "a,b,c", "--json")
    config = Path(done.json["parties"]["a"]["config"])
    before = config.read_bytes()
    assert_refused(tacit(capsys, "silo", "plan", config, "--set", change), words)
    assert config.read_bytes() == before


def test_any_owner_can_be_the_initiator(capsys: Capture, tmp_path: Path) -> None:
    done = tacit(
        capsys, "silo", "init", tmp_path / "f", "--parties", "a,b,c", "--initiator", "b",
        "--hosts", "x,y,z", "--json",
    )  # fmt: skip
    assert done.json["initiator"] == "b"
    folder = read_folder(Path(done.json["parties"]["b"]["config"]))
    assert folder.rank == 0
    assert [(p.name, p.address) for p in folder.peers] == [
        ("b", "y:9100"), ("a", "x:9100"), ("c", "z:9100"),
    ]  # fmt: skip
    wrong = tacit(capsys, "silo", "init", tmp_path / "g", "--parties", "a,b,c", "--initiator", "d")
    assert_refused(wrong, "initiator", "'d'")


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Three organisations that trained on real processes; the second of them is the initiator."""
    folder = tmp_path_factory.mktemp("trained")
    arguments = [
        "silo", "init", str(folder / "f"), "--parties", "a,b,c", "--initiator", "b",
        "--classifier", "logistic", "--candidates", "3", "--shapelets", "2",
        "--join-seconds", "180", "--silence-seconds", "60",
    ]  # fmt: skip
    assert run(arguments) == 0
    dataset = load_dataset("ItalyPowerDemand")
    owners = split_parties(dataset.y_train, n_parties=3, rng=np.random.default_rng(0))
    cache = {**os.environ, "XDG_CACHE_HOME": str(shared_cache(tmp_path_factory))}
    with local_addresses(3) as addresses:
        running = {}
        for rank, name in enumerate("abc"):
            config = folder / "f" / name / "party.toml"
            text = config.read_text()
            for old, new in zip(range(9100, 9103), addresses, strict=True):
                text = text.replace(f"127.0.0.1:{old}", new)
            config.write_text(text)
            assert run(["silo", "plan", str(config), "--set", "n_steps=20"]) == 0
            data = folder / f"{name}.npz"
            np.savez(data, X=dataset.X_train[owners == rank], y=dataset.y_train[owners == rank])
            command = [sys.executable, "-m", "tacit", "silo", "party", str(config), "--json"]
            command += ["--data", str(data), "--log-format", "json"]
            running[name] = subprocess.Popen(command, stdout=-1, stderr=-1, env=cache)
        said = {name: process.communicate(timeout=400) for name, process in running.items()}
    np.savez(folder / "new.npz", X=dataset.X_test[:200], y=dataset.y_test[:200])
    return {"folder": folder, "said": said, "dataset": dataset}


@pytest.mark.slow
def test_three_organisations_train_and_the_initiator_gets_the_model(
    trained: dict[str, Any],
) -> None:
    results = {name: json.loads(out) for name, (out, _) in trained["said"].items()}
    assert results["a"]["guarantee"]["opened"] == ["shapelet indices -> b", "logistic weights -> b"]
    assert [results[name]["model"] is None for name in "abc"] == [True, False, True]
    # What was compared over the telephone, beside that of the plan with everybody's counts.
    agreed = read_folder(trained["folder"] / "f" / "a" / "party.toml").terms.fingerprint
    assert {result["agreed_fingerprint"] for result in results.values()} == {agreed}
    assert len({result["fingerprint"] for result in results.values()} - {agreed}) == 1


@pytest.mark.slow
def test_every_terminal_can_log_lines_of_json(trained: dict[str, Any]) -> None:
    for name, (_, err) in trained["said"].items():
        lines = [json.loads(line) for line in err.decode().splitlines()]
        assert {(line["party"], line["level"]) for line in lines} == {(name, "info")}
        events = [line["event"] for line in lines]
        assert [e for e in events if e != "progress"] == ["waiting", "joined", "agreed", "finished"]
        steps = [line for line in lines if line["event"] == "progress"]
        assert steps[-1]["done"] == steps[-1]["total"]
        assert "training (logistic)" in steps[-1]["message"]
        assert "candidates" in steps[0]["message"]
        assert "left" in steps[0]["message"]
        assert steps[-1]["engine_bytes_sent"] > 0


def used_by_people(folder: Path) -> tuple[Any, ...]:
    out = folder / "f" / "b" / "out"
    return ("silo", "classify", out, "--own", folder / "b.npz", "--data", folder / "new.npz")


@pytest.mark.slow
def test_the_initiator_classifies_with_probabilities_and_a_page(
    capsys: Capture, trained: dict[str, Any], tmp_path: Path
) -> None:
    folder, dataset = trained["folder"], trained["dataset"]
    used = tacit(
        capsys, "silo", "classify", folder / "f" / "b" / "out", "--own", folder / "b.npz",
        "--data", folder / "new.npz", "--page", tmp_path / "page.html", "--json",
    )  # fmt: skip
    labels = np.array(used.json["labels"])
    assert used.json["accuracy"] == float((labels == dataset.y_test[:200]).mean())
    probabilities = np.array(used.json["probabilities"])
    assert probabilities.shape == (200, 2)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0, atol=1e-5)
    assert (np.array(used.json["classes"])[probabilities.argmax(axis=1)] == labels).all()
    assert used.json["guarantee"] == json.loads(trained["said"]["b"][0])["guarantee"]
    assert "Every series" in (tmp_path / "page.html").read_text()
    other = tacit(
        capsys, "silo", "classify", folder / "f" / "b" / "out", "--own", folder / "a.npz",
        "--data", folder / "new.npz",
    )  # fmt: skip
    assert_refused(other, "other series")
    shown = tacit(capsys, *used_by_people(folder))
    assert f"accuracy {used.json['accuracy']:.4f}" in shown.out


@pytest.mark.slow
def test_the_initiator_explains_a_series(
    capsys: Capture, trained: dict[str, Any], tmp_path: Path
) -> None:
    folder = trained["folder"]
    asked = (
        "silo", "explain", folder / "f" / "b" / "out", "--own", folder / "b.npz",
        "--data", folder / "new.npz",
    )  # fmt: skip
    page = tmp_path / "why.html"
    found = tacit(capsys, *asked, "--index", 3, "--page", page, "--json").json
    used = tacit(capsys, "silo", "classify", *asked[2:], "--json").json
    assert found["label"] == used["labels"][3]
    assert len(found["shapelets"]) == 2
    assert sum(match["influence"] for match in found["shapelets"]) == pytest.approx(1.0)
    own = np.load(folder / "b.npz")["X"]
    first = found["shapelets"][0]
    z = (own[first["series"], 0] - own[first["series"], 0].mean()) / own[first["series"], 0].std()
    cut = z[first["start"] : first["start"] + len(first["values"])]
    np.testing.assert_allclose(first["values"], cut, atol=2e-3)
    assert f"why &#x27;{found['label']}&#x27;" in page.read_text()
    assert_refused(tacit(capsys, *asked, "--index", 200), "--index must be below 200")
