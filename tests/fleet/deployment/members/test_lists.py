"""Nodes that join or are revoked: each service decides for itself, and follows its list."""

from __future__ import annotations

from pathlib import Path

import pytest

from fleet_localhost import LocalFleet
from tacit.errors import TacitError
from tacit.fleet.deployment.batches.registry import Registry
from tacit.fleet.deployment.batches.signatures import new_signing_key, public_half
from tacit.fleet.deployment.config import NodeConfig, read_config, read_run
from tacit.fleet.deployment.members.lists import admit, new_node, revoke


@pytest.fixture
def fleet(tmp_path: Path) -> LocalFleet:
    return LocalFleet(
        tmp_path / "fleet",
        rounds=2,
        n_kernels=4,
        mechanism="distributed",
        n_min=3,
        most_nodes=4,
    )


def test_a_node_joins_with_keys_of_its_own(fleet: LocalFleet) -> None:
    folder = fleet.folder / "nodes" / "node-9"
    key, identity = new_node(folder, name="node-9", like=fleet.folder / "nodes" / "node-1")
    config = read_config(folder / "node.toml", NodeConfig)
    assert config.name == "node-9"
    assert public_half(config.signing_key.read_bytes()) == key
    assert (folder / "identity.pub").read_bytes() == identity
    assert read_run(config.plan) == fleet.fleet
    other = fleet.node("node-1")
    assert config.signing_key.read_bytes() != other.signing_key.read_bytes()
    assert config.identity is not None
    assert other.identity is not None
    assert config.identity.read_bytes() != other.identity.read_bytes()
    assert not config.data.exists(), "its series are its own"
    assert not config.state.exists(), "and so is its ledger"
    for part in ("shuffler", "analyser"):
        registry = Registry.read(fleet.folder / part / "nodes.txt")
        assert registry.key_of("node-9") is None, "nobody admits it but the service itself"
        assert admit(fleet.folder / part, "node-9", key.hex()) == 4
        registry.refresh()
        assert registry.key_of("node-9") == key


def test_no_more_join_than_the_plan_was_calibrated_for(fleet: LocalFleet) -> None:
    shuffler = fleet.folder / "shuffler"
    admit(shuffler, "node-4", new_signing_key()[1].hex())
    with pytest.raises(TacitError, match="calibrated for 4 nodes"):
        admit(shuffler, "node-5", new_signing_key()[1].hex())


def test_a_revoked_node_is_gone_and_its_place_is_free(fleet: LocalFleet) -> None:
    shuffler = fleet.folder / "shuffler"
    with pytest.raises(TacitError, match="only 2 nodes are left and a round needs 3"):
        revoke(shuffler, "node-3")
    admit(shuffler, "node-4", new_signing_key()[1].hex())
    assert revoke(shuffler, "node-3") == 3
    assert Registry.read(shuffler / "nodes.txt").key_of("node-3") is None
    with pytest.raises(TacitError, match="knows no node 'node-3'"):
        revoke(shuffler, "node-3")


def test_bad_names_keys_and_folders_are_refused(fleet: LocalFleet, tmp_path: Path) -> None:
    shuffler, key = fleet.folder / "shuffler", new_signing_key()[1].hex()
    known = Registry.read(shuffler / "nodes.txt").nodes()
    for name, wrong, words in (
        ("a b", key, "a node's name"),
        ("node-4", "5f0c", "hex digits"),
        ("node-4", "x" * 64, "hex digits"),
        ("node-1", key, "already knows"),
        ("node-4", known["node-1"].hex(), "already knows"),
    ):
        with pytest.raises(TacitError, match=words):
            admit(shuffler, name, wrong)
    with pytest.raises(TacitError, match="neither a shuffler's nor an analyser's"):
        admit(tmp_path / "nowhere", "node-4", key)
    with pytest.raises(TacitError, match="not empty"):
        new_node(shuffler, name="node-4", like=fleet.folder / "nodes" / "node-1")
    assert Registry.read(shuffler / "nodes.txt").nodes() == known
