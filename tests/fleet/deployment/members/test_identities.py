"""Flower identities at the server: entered, renewed in two steps, revoked for good."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization

from fleet_localhost import LocalFleet
from tacit.errors import TacitError
from tacit.fleet.deployment.keys import node_identity
from tacit.fleet.deployment.members.identities import (
    admit_to_server,
    prepare_identity,
    revoke_at_server,
    switch_identity,
)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return LocalFleet(tmp_path_factory.mktemp("identities") / "fleet", n_kernels=4).folder


@pytest.fixture
def folder(written: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(written, tmp_path / "fleet"))


def public_of(private: Path) -> list[str]:
    key = serialization.load_ssh_private_key(private.read_bytes(), None).public_key()
    encoding, form = serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
    return key.public_bytes(encoding, form).decode().split()


def test_an_identity_is_renewed_in_two_steps(folder: Path) -> None:
    server, node = folder / "server", folder / "nodes" / "node-1"
    known = server / "node_keys" / "node-1.pub"
    before, key = known.read_text(), (node / "identity").read_bytes()
    new = prepare_identity(node)
    assert prepare_identity(node) == new, "asked twice it is the one that was handed over"
    assert (node / "identity").read_bytes() == key, "not in use yet"
    count = len(list(known.parent.glob("*.pub")))
    assert admit_to_server(server, "node-1", new, renewed=True) == count
    assert known.read_text() == new != before
    assert switch_identity(node) == node / "identity"
    assert public_of(node / "identity") == new.split()[:2]
    assert (node / "identity").stat().st_mode & 0o077 == 0
    assert (node / "identity.pub").read_text() == new
    assert not list(node.glob("identity-next*"))
    with pytest.raises(TacitError, match="holds no next identity"):
        switch_identity(node)
    with pytest.raises(TacitError, match="was revoked"):
        admit_to_server(server, "node-1", before + " other comment", renewed=True)


def test_a_switch_that_was_cut_short_goes_on(folder: Path) -> None:
    node = folder / "nodes" / "node-1"
    new = prepare_identity(node)
    (node / "identity-next").replace(node / "identity")  # and then the power went
    switch_identity(node)
    assert public_of(node / "identity") == new.split()[:2]
    assert (node / "identity.pub").read_text() == new


def test_a_revoked_identity_is_gone_for_good(folder: Path) -> None:
    server = folder / "server"
    known = server / "node_keys" / "node-2.pub"
    identity, count = known.read_text(), len(list(known.parent.glob("*.pub")))
    assert revoke_at_server(server, "node-2") == count - 1
    assert not known.exists()
    with pytest.raises(TacitError, match="knows no node 'node-2'"):
        revoke_at_server(server, "node-2")
    with pytest.raises(TacitError, match="was revoked"):
        admit_to_server(server, "node-9", identity)
    assert admit_to_server(server, "node-2", node_identity()[1].decode()) == count


def test_wrong_identities_and_names_are_refused(folder: Path) -> None:
    server, other = folder / "server", node_identity()[1].decode()
    mine = (server / "node_keys" / "node-1.pub").read_text()
    for name, identity, renewed, words in (
        ("node-1", other, False, "already knows a node"),
        ("node-9", other, True, "knows no node 'node-9'"),
        ("node-1", mine, True, "knows this identity already"),
        ("node-9", mine, False, "knows this identity already"),
        ("node-9", "5f0c", False, "an identity is a line"),
        ("../node", other, False, "a node's name"),
    ):
        with pytest.raises(TacitError, match=words):
            admit_to_server(server, name, identity, renewed=renewed)
    node = folder / "nodes" / "node-1"
    text = (node / "node.toml").read_text().splitlines()
    flower = ("identity", "server", "runtime_port")
    light = [line for line in text if not line.startswith(flower)]
    (node / "node.toml").write_text("\n".join(light) + "\n")
    with pytest.raises(TacitError, match="node without Flower"):
        prepare_identity(node)
