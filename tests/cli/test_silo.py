"""`tacit silo`: folders for organisations, and refusals of bad input."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from command import assert_refused, tacit
from silo_parties import shared_cache
from tacit.cli.silo import assign_addresses
from tacit.data import load_dataset, split_parties
from tacit.errors import TacitError
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
    assert [p.control for p in loaded[0].peers] == [f"{h}.example:9100" for h in "nsw"]
    assert loaded[0].terms.params["n_candidates"] == 40
    assert loaded[0].terms.protocol == "ABY3"


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
    done = tacit(capsys, "silo", "init", tmp_path / "f", "--parties", "a,b,c", "--json")
    config = done.json["parties"]["a"]["config"]
    assert_refused(tacit(capsys, "silo", "party", config), "--data")


def test_ports_go_up_only_where_hosts_repeat() -> None:
    assert assign_addresses("h", n_parties=2, port=10) == [("h:10", "h:11"), ("h:12", "h:13")]
    assert assign_addresses("h,g,h", n_parties=3, port=10) == [
        ("h:10", "h:11"),
        ("g:10", "g:11"),
        ("h:12", "h:13"),
    ]
    with pytest.raises(TacitError, match="--port"):
        assign_addresses("h", n_parties=2, port=0)


def _with_fewer_steps(config: Path, *, n_steps: int) -> str:
    """The fingerprint of the plan after the organisations agreed on fewer steps."""
    terms = read_folder(config).terms
    return replace(terms, params={**terms.params, "n_steps": n_steps}).fingerprint


@pytest.mark.slow
def test_three_organisations_train_and_the_first_one_classifies(
    capsys: Capture, tmp_path: Path
) -> None:
    done = tacit(
        capsys, "silo", "init", tmp_path / "f", "--parties", "a,b,c", "--classifier", "logistic",
        "--candidates", 3, "--shapelets", 2, "--json",
    )  # fmt: skip
    agreed = _with_fewer_steps(Path(done.json["parties"]["a"]["config"]), n_steps=20)
    dataset = load_dataset("ItalyPowerDemand")
    owners = split_parties(dataset.y_train, n_parties=3, rng=np.random.default_rng(0))
    with local_addresses(3) as addresses:
        free = [address for both in addresses for address in both]
        running = {}
        for rank, (name, party) in enumerate(done.json["parties"].items()):
            config = Path(party["config"])
            text = config.read_text().replace("n_steps = 300", "n_steps = 20")
            text = text.replace(done.json["fingerprint"], agreed)
            for old, new in zip(range(9100, 9106), free, strict=True):
                text = text.replace(f"127.0.0.1:{old}", new)
            config.write_text(text)
            data = tmp_path / f"{name}.npz"
            np.savez(data, X=dataset.X_train[owners == rank], y=dataset.y_train[owners == rank])
            command = [sys.executable, "-m", "tacit", "silo", "party", str(config)]
            running[name] = subprocess.Popen([*command, "--data", str(data), "--json"], stdout=-1)
        outputs = {name: process.communicate(timeout=120)[0] for name, process in running.items()}
    results = {name: json.loads(out) for name, out in outputs.items()}
    assert results["a"]["guarantee"]["opened"] == ["shapelet indices -> a", "logistic weights -> a"]
    assert [results[name]["model"] is None for name in "abc"] == [False, True, True]

    np.savez(tmp_path / "new.npz", X=dataset.X_test[:200], y=dataset.y_test[:200])
    out = tmp_path / "f" / "a" / "out"
    used = tacit(
        capsys, "silo", "classify", out, "--own", tmp_path / "a.npz",
        "--data", tmp_path / "new.npz", "--json",
    )  # fmt: skip
    labels = np.array(used.json["labels"])
    assert set(labels) <= set(dataset.classes)
    assert used.json["accuracy"] == float((labels == dataset.y_test[:200]).mean())
    assert used.json["guarantee"] == results["a"]["guarantee"]
    other = tacit(
        capsys, "silo", "classify", out, "--own", tmp_path / "b.npz", "--data", tmp_path / "new.npz"
    )
    assert_refused(other, "other series")
