"""Pieces of a party: frames, data, programs, words for exits; and what it writes at the end."""

from __future__ import annotations

import asyncio
import json
import socket
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from silo_parties import federation, plan_of
from tacit.errors import BundleError, TacitError
from tacit.guarantee import from_dict
from tacit.silo.party import localhost
from tacit.silo.party.engine_process import explain_exit
from tacit.silo.party.frames import FrameSocket, WireError, encode, read_frame
from tacit.silo.party.localhost import local_addresses
from tacit.silo.party.mesh import clean
from tacit.silo.party.party import OwnData, program_path, read_data
from tacit.silo.party.receipts import (
    Receipt,
    read_model,
    read_receipt,
    receipt_from_dict,
    write_outcome,
)
from tacit.silo.secure.openings import Opening, summarise
from tacit.silo.stored_model import bound_to, is_bound_to


def test_addresses_differ_and_stay_ours_until_we_listen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(localhost, "_PORTS", range(19_900, 19_920))
    with local_addresses(3) as first, local_addresses(3) as second:
        drawn = [address for pair in first + second for address in pair]
        assert len(set(drawn)) == 12
        host, port = drawn[0].split(":")
        with (
            socket.create_server((host, int(port))) as server,
            socket.create_connection((host, int(port))) as client,
            server.accept()[0] as peer,
        ):
            client.sendall(b"x")
            assert peer.recv(1) == b"x"


def test_no_address_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(localhost, "_PORTS", range(19_920, 19_922))
    with pytest.raises(TacitError, match="no free port"), local_addresses(3):
        pass


@given(st.dictionaries(st.text(), st.integers() | st.text()), st.binary(max_size=2000))
def test_frames_survive_the_wire(fields: dict[str, Any], payload: bytes) -> None:
    left, right = socket.socketpair()
    with left, right:
        sent = FrameSocket(left).send({"t": "x", "fields": fields}, payload)
        header, received = FrameSocket(right).recv()
    assert (header["fields"], received) == (fields, payload)
    assert sent == len(encode({"t": "x", "fields": fields}, payload))


@pytest.mark.parametrize(
    "raw",
    [
        b"\xff" * 12,  # absurd lengths
        b"\x00\x00\x00\x02" + b"\x00" * 8 + b"[]",  # not an object
        b"\x00\x00\x00\x02" + b"\x00" * 8 + b"{}",  # no type
        b"\x00\x00\x00\x03" + b"\x00" * 8 + b"\x80\x04N",  # a pickle
    ],
)
def test_what_is_no_frame_is_refused(raw: bytes) -> None:
    left, right = socket.socketpair()
    with left, right:
        left.sendall(raw)
        left.close()
        with pytest.raises(WireError):
            FrameSocket(right).recv()

    async def read() -> None:
        reader = asyncio.StreamReader()
        reader.feed_data(raw)
        reader.feed_eof()
        await read_frame(reader)

    with pytest.raises(WireError):
        asyncio.run(read())


def test_a_cut_stream_is_the_end() -> None:
    left, right = socket.socketpair()
    with left, right:
        left.sendall(encode({"t": "x"}, b"12345678")[:-1])
        left.close()
        with pytest.raises(EOFError):
            FrameSocket(right).recv()


def test_a_plan_cannot_make_a_party_import_code() -> None:
    with pytest.raises(TacitError, match="consent"):
        program_path("os:system")
    with pytest.raises(TacitError, match="consent"):
        program_path("os:system", agreed="os:getcwd")
    assert program_path("mine:program", agreed="mine:program") == "mine:program"
    assert program_path("fedst") == "tacit.silo.fedst.program:fedst_program"


def test_the_registered_program_exists() -> None:
    from tacit.silo.party.engine_worker import find_program

    assert callable(find_program(program_path("fedst")))


def test_the_words_of_a_peer_are_made_harmless() -> None:
    assert clean("party\x1b[31m 'c'\nis gone") == "party[31m 'c'is gone"
    assert len(clean("x" * 10_000)) == 400


@pytest.mark.parametrize(
    ("code", "words", "own_fault"),
    [
        (255, "code 255", False),  # SPU after the loss of a peer
        (-9, "SIGKILL", True),
        (-11, "SIGSEGV", False),
        (-6, "SIGABRT", False),
    ],
)
def test_exits_become_words(code: int, words: str, own_fault: bool) -> None:
    reason, own = explain_exit(code)
    assert words in reason
    assert own == own_fault


def test_facts_say_counts_and_nothing_of_the_values() -> None:
    X = np.full((3, 1, 5), 123456.789)
    facts = OwnData(X=X, labels=np.array(["b", "a", "b"])).facts()
    assert (facts.count, facts.series_length, facts.classes) == (3, 5, ("a", "b"))
    assert "123456" not in json.dumps(facts.to_dict())


def test_a_missing_data_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TacitError, match="no data file"):
        read_data(tmp_path / "none.npz")


def test_openings_are_listed_once_each_with_their_owner() -> None:
    opened = [
        Opening(what="indices", to=0),
        Opening(what="splits", to=0),
        Opening(what="splits", to=0),
        Opening(what="stop", to=-1),
    ]
    assert summarise(opened, ("a", "b")) == ("indices -> a", "splits -> a", "stop -> all parties")


def _receipt() -> Receipt:
    plan, _ = plan_of("distances_program", 3, k=3, length=5)
    return Receipt(
        party="b",
        plan=plan,
        info={"n": 1},
        opened=(Opening(what="indices", to=0),),
        bytes_sent=10,
        rounds=2,
        seconds=0.5,
    )


def test_receipts_read_back_and_carry_their_guarantee(tmp_path: Path) -> None:
    write_outcome(tmp_path, _receipt(), None)
    assert read_receipt(tmp_path) == _receipt()
    plain = json.loads((tmp_path / "receipt.json").read_text())
    assert from_dict(plain["guarantee"]) == _receipt().guarantee
    assert plain["guarantee"]["opened"] == ["indices -> a"]
    assert plain["fingerprint"] == _receipt().plan.fingerprint
    assert not (tmp_path / "model.safetensors").exists()


def test_damaged_outcomes_are_refused(tmp_path: Path) -> None:
    write_outcome(tmp_path, _receipt(), b"not a model")
    with pytest.raises(BundleError):
        read_model(tmp_path)
    (tmp_path / "receipt.json").write_text("{")
    with pytest.raises(BundleError):
        read_receipt(tmp_path)
    with pytest.raises(BundleError, match="not a receipt"):
        receipt_from_dict({"party": "a"})


def test_a_model_knows_its_series_by_a_salted_hash(tmp_path: Path) -> None:
    from safetensors.numpy import save

    X = np.random.default_rng(0).normal(size=(3, 1, 5))
    model = save({"series": np.arange(4)})
    first, second = bound_to(model, X), bound_to(model, X)
    assert first != second  # nobody can compare two runs, or look a hash up
    write_outcome(tmp_path, _receipt(), first)
    assert read_model(tmp_path)["series"].tolist() == [0, 1, 2, 3]
    assert is_bound_to(tmp_path / "model.safetensors", X)
    assert not is_bound_to(tmp_path / "model.safetensors", X.reshape(3, 5, 1))
    assert not is_bound_to(tmp_path / "model.safetensors", np.nextafter(X, 9.0))
    write_outcome(tmp_path, _receipt(), model)  # no hash at all
    assert not is_bound_to(tmp_path / "model.safetensors", X)


@pytest.mark.slow
def test_the_initiator_ends_with_the_model_and_the_others_with_a_receipt(tmp_path: Path) -> None:
    with federation(tmp_path, program="distances_program", k=3, length=5) as f:
        f.start_all()
        results = {}
        for name in ("a", "b", "c"):
            code, out, err = f.end(name, within=60.0)
            assert code == 0, err
            results[name] = json.loads(out)
        assert read_model(f.configs["a"].parent / "out")["distances"].shape == (15, 3)
        assert [results[name]["model"] is not None for name in "abc"] == [True, False, False]
        assert len({results[name]["fingerprint"] for name in "abc"}) == 1
        for name in "abc":
            out_folder = f.configs[name].parent / "out"
            assert read_receipt(out_folder).guarantee.to_dict() == results[name]["guarantee"]
            assert "own_series" not in (out_folder / "receipt.json").read_text()
            assert (out_folder / "model.safetensors").exists() == (name == "a")
            assert (out_folder / "receipt.json").stat().st_mode & 0o777 == 0o600


def test_a_receipt_claims_no_channels_that_a_run_did_not_have() -> None:
    claimed = _receipt().guarantee.assumptions
    assert any("TLS 1.3" in text for text in claimed)
    assert any("firewall" in text for text in claimed)
    plain = replace(_receipt(), tls=False).guarantee.assumptions
    assert not any("TLS" in text for text in plain)
    assert any("no channel is protected" in text for text in plain)


def test_every_part_of_a_large_frame_is_a_sign_of_life() -> None:
    async def story() -> int:
        reader, signs = asyncio.StreamReader(), []
        frame = encode({"t": "mail"}, bytes(10**6))
        reading = asyncio.create_task(read_frame(reader, heard=lambda: signs.append(1)))
        for start in range(0, len(frame), 10**5):
            reader.feed_data(frame[start : start + 10**5])
            await asyncio.sleep(0.001)
        _, payload = await reading
        assert payload == bytes(10**6)
        return len(signs)

    assert asyncio.run(story()) >= 10
