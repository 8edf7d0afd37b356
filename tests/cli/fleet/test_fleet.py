"""`tacit fleet`: what `init` writes, who may read it, and one sentence for everything wrong."""

from __future__ import annotations

import stat
from pathlib import Path

import numpy as np
import pytest

from command import assert_refused, tacit
from tacit.cli.fleet.status import draw_status, shown
from tacit.fleet.deployment import setup
from tacit.fleet.deployment.batches.registry import Registry
from tacit.fleet.deployment.batches.signatures import public_half
from tacit.fleet.deployment.config import (
    AnalyserConfig,
    NodeConfig,
    ServerConfig,
    ShufflerConfig,
    read_config,
    read_run,
)
from tacit.fleet.deployment.keys import node_identity
from tacit.fleet.deployment.seal import Opener, Sealer

Capture = pytest.CaptureFixture[str]
SMALL = ("--data", "ItalyPowerDemand", "--kernels", 8)


@pytest.fixture
def folder(tmp_path: Path, capsys: Capture) -> Path:
    target = tmp_path / "fleet"
    outcome = tacit(capsys, "fleet", "init", target, *SMALL, "--nodes", 3, "--n-min", 2, "--json")
    assert outcome.code == 0, outcome.err
    assert outcome.json["local_epsilon"] == 3.999999
    assert outcome.json["epsilon"] == 8.0
    return target


def test_init_writes_a_whole_fleet_that_fits_together(folder: Path) -> None:
    fleet = read_run(folder / "plan.toml")
    shuffler = read_config(folder / "shuffler" / "shuffler.toml", ShufflerConfig)
    analyser = read_config(folder / "analyser" / "analyser.toml", AnalyserConfig)
    server = read_config(folder / "server" / "server.toml", ServerConfig)
    known_nodes = Registry.read(shuffler.nodes)
    names = list(known_nodes.nodes())
    assert names == ["node-1", "node-2", "node-3"]
    assert len(Registry.read(analyser.nodes)) == 0, "a shuffler's analyser knows nobody"
    for name in names:
        node = read_config(folder / "nodes" / name / "node.toml", NodeConfig)
        assert read_run(node.plan) == fleet
        assert public_half(node.signing_key.read_bytes()) == known_nodes.key_of(name)
        assert (server.node_keys / f"{name}.pub").exists()
        assert node.shuffler_url == server.shuffler_url
    for config in (shuffler, analyser, server):
        assert read_run(config.plan) == fleet
    known = analyser.shuffler_certificate.read_bytes()
    assert known == shuffler.client_certificate.read_bytes()
    sealed = Sealer(fleet.public_key, run=fleet.run, report_bytes=4).seal(b"abcd", round_number=1)
    opener = Opener(analyser.sealing_key.read_bytes(), run=fleet.run)
    assert opener.open(sealed, round_number=1) == b"abcd"
    helper = Sealer(fleet.helper_key, run=fleet.run, report_bytes=4, reader="helper")
    own = Opener(shuffler.sealing_key.read_bytes(), run=fleet.run, reader="helper")
    assert own.open(helper.seal(b"abcd", round_number=1), round_number=1) == b"abcd"


def test_two_servers_know_the_same_nodes(tmp_path: Path, capsys: Capture) -> None:
    folder = tmp_path / "fleet"
    two = ("--nodes", 3, "--mechanism", "distributed", "--json")
    outcome = tacit(capsys, "fleet", "init", folder, *SMALL, *two)
    assert outcome.code == 0, outcome.err
    lists = [(folder / part / "nodes.txt").read_bytes() for part in ("shuffler", "analyser")]
    assert lists[0] == lists[1]
    assert len(Registry.read(folder / "analyser" / "nodes.txt")) == 3


def test_a_fleet_whose_batch_nobody_would_take_is_not_made(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found out when the plan is made, not when the first round is full."""
    monkeypatch.setattr(setup, "LARGEST_BATCH", 100)
    refused = tacit(capsys, "fleet", "init", tmp_path / "fleet", *SMALL, "--nodes", 3)
    assert_refused(refused, "a batch of 3 nodes")
    assert not (tmp_path / "fleet").exists()


def test_three_hosts_for_three_organisations(tmp_path: Path, capsys: Capture) -> None:
    folder = tmp_path / "fleet"
    hosts = ("--host", "a.org", "--shuffler-host", "b.org", "--analyser-host", "10.0.0.3")
    outcome = tacit(capsys, "fleet", "init", folder, *SMALL, "--nodes", 3, *hosts, "--json")
    assert outcome.code == 0, outcome.err
    node = read_config(folder / "nodes" / "node-1" / "node.toml", NodeConfig)
    shuffler = read_config(folder / "shuffler" / "shuffler.toml", ShufflerConfig)
    server = read_config(folder / "server" / "server.toml", ServerConfig)
    analyser = read_config(folder / "analyser" / "analyser.toml", AnalyserConfig)
    assert node.server == "a.org:9440"
    assert node.shuffler_url == server.shuffler_url == "https://b.org:9441"
    assert shuffler.analyser_url == "https://10.0.0.3:9442"
    assert server.analyser_url == "https://10.0.0.3:9443"
    assert node.server_certificate is not None
    # Each side holds the very certificates that it talks to, and there is nobody above them.
    for copy, of in (
        (node.server_certificate, server),
        (node.shuffler_certificate, shuffler),
        (server.shuffler_certificate, shuffler),
        (server.analyser_certificate, analyser),
        (shuffler.analyser_certificate, analyser),
    ):
        assert copy.read_bytes() == of.certificate.read_bytes()
    assert {path.name for path in folder.iterdir()} == {
        *("plan.toml", "shuffler", "analyser", "server", "nodes"),
    }
    wrong = tacit(
        capsys, "fleet", "init", tmp_path / "no", *SMALL, "--server-host", "a b", "--json"
    )
    assert_refused(wrong, "a b")


def test_private_files_are_private_and_in_one_place(folder: Path) -> None:
    private = [
        path
        for path in folder.rglob("*")
        if path.suffix == ".key" or path.name in ("identity", "data.npz")
    ]
    assert len(private) == 6 + 3 * 3
    for path in private:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
    contents = [path.read_bytes() for path in private]
    assert len(set(contents)) == len(contents), "no key is shared by two parts"
    for part in ("analyser", "shuffler"):
        mine = folder / part / "sealing.key"
        sealing = mine.read_bytes()
        others = [path for path in folder.rglob("*") if path.is_file() and path != mine]
        assert not any(
            sealing in p.read_bytes() or sealing.hex() in p.read_text("latin-1") for p in others
        )


def test_two_fleets_share_no_key(folder: Path, tmp_path: Path, capsys: Capture) -> None:
    other = tmp_path / "other"
    assert tacit(capsys, "fleet", "init", other, *SMALL, "--nodes", 3, "--json").code == 0
    for name in ("analyser/sealing.key", "shuffler/sealing.key", "nodes/node-1/identity"):
        assert (folder / name).read_bytes() != (other / name).read_bytes()
    assert read_run(folder / "plan.toml").run != read_run(other / "plan.toml").run


def test_many_nodes_get_a_larger_local_epsilon_by_amplification(
    tmp_path: Path, capsys: Capture
) -> None:
    found = tacit(
        capsys, "fleet", "init", tmp_path / "many", *SMALL, "--nodes", 60, "--rounds", 10,
        "--epsilon", 2, "--json",
    ).json  # fmt: skip
    assert found["n_min"] == 60
    assert found["local_epsilon"] > 0.3 > 2 / 10


def test_init_never_overwrites(folder: Path, capsys: Capture) -> None:
    before = (folder / "analyser" / "sealing.key").read_bytes()
    assert_refused(tacit(capsys, "fleet", "init", folder, *SMALL), "not empty")
    assert (folder / "analyser" / "sealing.key").read_bytes() == before


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (("--nodes", 1), "nodes"),
        (("--nodes", 10**6), "port"),
        (("--nodes", 100), "use at most 67"),
        (("--nodes", 3, "--n-min", 4), "n_min"),
        (("--nodes", 3, "--n-min", 1), "n_min"),
        (("--rounds", 0), "rounds"),
        (("--epsilon", "nan"), "epsilon"),
        (("--epsilon", 0), "epsilon"),
        (("--epsilon", "inf"), "epsilon"),
        (("--delta", 1), "delta"),
        (("--delta", -1e-5), "delta"),
        (("--round-seconds", 0), "round-seconds"),
        (("--round-seconds", "nan"), "round-seconds"),
        (("--port", 80), "port"),
        (("--kernels", 0), "kernels"),
        (("--mechanism", "magic"), "magic"),
        (("--host", "not a host"), "host"),
    ],
)
def test_bad_requests_are_refused_and_leave_nothing(
    tmp_path: Path, capsys: Capture, options: tuple[object, ...], word: str
) -> None:
    target = tmp_path / "bad"
    assert_refused(tacit(capsys, "fleet", "init", target, *SMALL, *options), word)
    assert not target.exists()


@pytest.mark.parametrize("part", ["shuffler", "analyser", "server", "node"])
def test_a_missing_or_foreign_configuration_is_refused(
    part: str, tmp_path: Path, capsys: Capture
) -> None:
    assert_refused(tacit(capsys, "fleet", part, tmp_path / "no.toml", "--json"), "cannot read")
    wrong = tmp_path / "wrong.toml"
    wrong.write_text("a = 1\n")
    assert_refused(tacit(capsys, "fleet", part, wrong, "--json"), "unknown key 'a'")
    wrong.write_text("not toml")
    assert_refused(tacit(capsys, "fleet", part, wrong, "--json"), "not valid TOML")
    wrong.write_bytes(b"\xff\xfe")
    assert_refused(tacit(capsys, "fleet", part, wrong, "--json"), "not valid TOML")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('host = "127.0.0.1"\n', "", "lacks the key 'host'"),
        ("port = 9441", 'port = "9441"', "port must be"),
        ("port = 9441", "port = true", "port must be"),
        ('plan = "plan.toml"', 'plan = "gone.toml"', "cannot read"),
        ('nodes = "nodes.txt"', 'nodes = "gone.txt"', "cannot read"),
    ],
)
def test_a_damaged_configuration_names_what_is_wrong(
    folder: Path, capsys: Capture, old: str, new: str, words: str
) -> None:
    path = folder / "shuffler" / "shuffler.toml"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    outcome = tacit(capsys, "fleet", "shuffler", path)
    assert outcome.code == 2
    assert words in outcome.err


def test_a_damaged_plan_is_refused(folder: Path, capsys: Capture) -> None:
    path = folder / "server" / "plan.toml"
    text = path.read_text()
    for old, new in (
        ("epsilon = 8.0", "epsilon = -8.0"),
        ("n_min = 2", "n_min = 1"),
        ("analyser_key = ", 'analyser_key = "00" #'),
        ("[plan.settings]", "[plan.other]"),
    ):
        assert old in text
        path.write_text(text.replace(old, new, 1))
        outcome = tacit(capsys, "fleet", "server", folder / "server" / "server.toml")
        assert_refused(outcome)


def test_status_without_services_says_what_to_start(folder: Path, capsys: Capture) -> None:
    config = folder / "server" / "server.toml"
    text = config.read_text()
    config.write_text(text.replace(":9443", ":9"))  # a port where nothing listens
    assert_refused(tacit(capsys, "fleet", "status", folder), "tacit fleet analyser")
    assert_refused(tacit(capsys, "fleet", "status", folder / "server"), "tacit fleet analyser")


@pytest.mark.parametrize("part", ["shuffler", "analyser"])
def test_who_holds_one_service_is_told_to_start_it(
    folder: Path, capsys: Capture, part: str
) -> None:
    config = folder / part / f"{part}.toml"
    text = config.read_text()
    for port in ("9441", "9443"):
        text = text.replace(f"port = {port}", "port = 9")
    config.write_text(text)
    refused = tacit(capsys, "fleet", "status", folder / part)
    assert_refused(refused, f"tacit fleet {part}", "https://127.0.0.1:9")


def test_up_wants_a_fleet(tmp_path: Path, capsys: Capture) -> None:
    assert_refused(tacit(capsys, "fleet", "up", tmp_path), "tacit fleet init")


@pytest.mark.parametrize(
    "command", ["", "init", "shuffler", "analyser", "server", "node", "status", "up"]
)
def test_every_command_has_help_with_an_example(command: str, capsys: Capture) -> None:
    arguments = ("fleet", command, "--help") if command else ("fleet", "--help")
    outcome = tacit(capsys, *arguments)
    assert outcome.code == 0
    assert "tacit fleet" in outcome.out


def test_a_saved_model_classifies_new_series(tmp_path: Path, capsys: Capture) -> None:
    from tacit.data import load_dataset

    data, model = load_dataset("ItalyPowerDemand"), tmp_path / "model"
    train = ("train", "timefl", "--data", "ItalyPowerDemand", "--clients", 40, "--rounds", 2)
    assert tacit(capsys, *train, "--out", model).code == 0
    np.savez(tmp_path / "new.npz", X=data.X_test[:9])
    np.savez(tmp_path / "known.npz", X=data.X_test[:9], y=data.y_test[:9])
    found = tacit(capsys, "fleet", "classify", model, "--data", tmp_path / "new.npz", "--json").json
    assert set(found["labels"]) <= set(data.classes)
    assert found["accuracy"] is None
    assert found["guarantee"]["epsilon"] <= 8.0
    known = ("fleet", "classify", model, "--data", tmp_path / "known.npz", "--json")
    right = np.mean(np.array(found["labels"]) == data.y_test[:9])
    assert tacit(capsys, *known).json["accuracy"] == right
    assert_refused(tacit(capsys, *train, "--mode", "published", "--out", model), "sound model")


def test_a_fleet_without_a_round_has_no_model_yet(
    folder: Path, tmp_path: Path, capsys: Capture
) -> None:
    np.savez(tmp_path / "new.npz", X=np.zeros((1, 1, 24)))
    classify = ("fleet", "classify", folder, "--data", tmp_path / "new.npz")
    assert_refused(tacit(capsys, *classify), "checkpoint")


@pytest.mark.seconds
def test_who_belongs_to_a_fleet_changes_by_commands(tmp_path: Path, capsys: Capture) -> None:
    folder, plan = tmp_path / "fleet", tmp_path / "next.toml"
    more = ("--nodes", 3, "--n-min", 2, "--most-nodes", 4, "--mechanism", "distributed")
    assert tacit(capsys, "fleet", "init", folder, *SMALL, *more, "--json").code == 0
    invited = tacit(capsys, "fleet", "invite", folder / "shuffler", "--name", "new", "--json").json
    assert invited["code"].startswith("tacit-")
    gone = tacit(capsys, "fleet", "revoke", folder / "shuffler", "--name", "node-3", "--json").json
    assert gone["nodes"] == 2
    made = tacit(capsys, "fleet", "renew", folder / "analyser", "--json").json
    assert (made["in_use"], Path(made["certificates"][0]).exists()) == (False, True)
    trusted = ("--service", "analyser", "--certificate", made["certificates"][0], "--json")
    assert tacit(capsys, "fleet", "trust", folder / "shuffler", *trusted).json["new"]
    assert tacit(capsys, "fleet", "renew", folder / "analyser", "--switch", "--json").json["in_use"]
    key = tacit(capsys, "fleet", "renew", folder / "analyser", "--sealing", "--json").json["key"]
    planned = ("--rounds", 3, "--analyser-key", key, "--out", plan, "--json")
    assert tacit(capsys, "fleet", "next-run", folder, *planned).json["rounds"] == 3
    taken = tacit(capsys, "fleet", "take-plan", folder, plan, "--json").json["taken"]
    assert len(taken) == 6
    assert read_run(folder / "plan.toml").analyser_key == key
    server, node = folder / "server", folder / "nodes" / "node-1"
    identity = tacit(capsys, "fleet", "renew", node, "--identity", "--json").json["identity"]
    known = ("--name", "node-1", "--signing-key", identity, "--renewed", "--json")
    assert tacit(capsys, "fleet", "admit", server, *known).json["nodes"] == 3
    used = tacit(capsys, "fleet", "renew", node, "--identity", "--switch", "--json").json
    assert Path(used["in_use"]).name == "identity"
    new = ("--name", "new", "--signing-key", node_identity()[1].decode(), "--json")
    assert tacit(capsys, "fleet", "admit", server, *new).json["nodes"] == 4
    gone = tacit(capsys, "fleet", "revoke", server, "--name", "new", "--json").json
    assert gone["nodes"] == 3

    for words, said in (
        (("renew", node, "--switch"), "in one step"),
        (("renew", node, "--identity", "--switch"), "no next identity"),
        (("renew", folder / "shuffler", "--identity"), "is for nodes"),
        (("admit", folder / "shuffler", *known), "is for the server"),
        (("renew", tmp_path), "is not the folder"),
        (("renew", folder / "shuffler", "--switch"), "no next certificate"),
        (("join", tmp_path / "x", "--invitation", "nonsense"), "not a whole code"),
        (("join", tmp_path / "x", "--invitation", invited["code"]), "does not answer"),
        (("join", tmp_path / "x", "--invitation", "c", "--server", "a:1"), "--server-certificate"),
        (("leave", node), "does not answer"),
        (("admit", folder / "server", "--name", "x", "--signing-key", "y"), "an identity is"),
    ):
        assert_refused(tacit(capsys, "fleet", *words, "--json"), said)


def test_the_status_is_a_table(capsys: Capture) -> None:
    rounds = [
        {"round_number": i, "n": 3, "left_out": 0, "released": i == 1, "epsilon": 2.00001 * i}
        for i in (1, 2)
    ]
    shuffler = {"round": 3, "received": None, "n_min": 2, "trouble": None, "enough_reports": False}
    draw_status(
        {
            "run": "r1",
            "round": 3,
            "rounds": 4,
            "finished": False,
            "stopped": None,
            "processing": False,
            "trouble": "the share helper has not sent its sum for 7 s",
            "spent": {"epsilon": 4.00002, "delta": 0.0},
            "guarantee": None,
            "history": rounds,
            "shuffler": shuffler,
        }
    )
    drawn = capsys.readouterr().out
    for words in (
        "round 3 of 4",
        "too few of at least 2 reports",
        "epsilon 4.0001",
        "has not sent its",
    ):
        assert words in drawn
    assert "left out" in drawn
    assert "2.0001" in drawn, "what is shown is rounded up"
    draw_status({"shuffler": {**shuffler, "run": "r1", "finished": False, "forwarded": 2}})
    drawn = capsys.readouterr().out
    assert "rounds forwarded: 2" in drawn
    assert "too few of at least 2 reports" in drawn


def test_figures_need_an_address(folder: Path, capsys: Capture) -> None:
    starts = (
        ("server", folder / "server" / "server.toml"),
        ("node", folder / "nodes" / "node-1" / "node.toml", "--transport", "https"),
    )
    for words in starts:
        outcome = tacit(capsys, "fleet", *words, "--metrics", "9444", "--json")
        assert outcome.code == 2
        assert "tacit: --metrics must look like 127.0.0.1:9444, got '9444'." in outcome.err


def test_a_finished_run_is_in_its_last_round() -> None:
    assert shown({"round": 3, "rounds": 2, "finished": True})["round"] == 2
    assert shown({"round": 1, "rounds": 2, "finished": False})["round"] == 1
