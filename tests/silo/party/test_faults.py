"""Faults on real processes: every survivor names the party at fault, in time, and leaves nothing.

Stated times: a party that never comes, `join_seconds` (5 here); one that is silent,
`silence_seconds` (10 here); everything else is noticed at once. Much is added for a loaded machine.
"""

from __future__ import annotations

import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from silo_parties import (
    SHORT,
    Federation,
    engines_of,
    environment,
    federation,
    own_series,
    processes_with,
)
from silo_relay import relay
from tacit.silo.party.folder import read_folder, split_address, write_folders
from tacit.silo.plan import Terms
from tacit.system.certificates import self_signed

pytestmark = pytest.mark.slow
SLACK = 100.0  # for starting Python on a busy machine


def test_a_party_that_never_comes_is_named(tmp_path: Path) -> None:
    with federation(tmp_path, limits=replace(SHORT, join_seconds=5.0)) as f:
        f.start("a")
        f.start("b")
        for name in ("a", "b"):
            f.assert_refused(name, "party 'c'", "5 s", within=5.0 + SLACK)


def test_a_killed_party_is_named_and_the_run_can_be_started_again(tmp_path: Path) -> None:
    with federation(tmp_path) as f:
        f.start_all()
        f.until_working("a")
        f.running["c"].kill()
        for name in ("a", "b"):
            f.assert_refused(name, "party 'c' is gone", within=SLACK)
        f.running["c"].communicate()
        assert engines_of(f.configs["c"].parent) == []  # it dies with its party
        _wait_until(lambda: not list(f.sockets_of("c").iterdir()))
        (f.configs["a"].parent / "working").unlink()
        f.start_all()
        f.until_working("a")  # the same ports and folders work again


def test_a_killed_engine_is_named(tmp_path: Path) -> None:
    with federation(tmp_path) as f:
        f.start_all()
        f.until_working("a")
        (engine,) = engines_of(f.configs["b"].parent)
        os.kill(engine, signal.SIGKILL)
        for name in ("a", "b", "c"):
            f.assert_refused(name, "party 'b'", "SIGKILL", within=SLACK)


def test_a_frozen_party_is_named(tmp_path: Path) -> None:
    with federation(tmp_path) as f:
        f.start_all()
        f.until_working("a")
        f.running["b"].send_signal(signal.SIGSTOP)
        for name in ("a", "c"):
            f.assert_refused(name, "party 'b'", "silent for 10 s", within=SLACK)
        f.running["b"].send_signal(signal.SIGCONT)
        f.assert_refused("b", "party '", within=SLACK)  # it wakes up alone


def test_a_frozen_engine_is_named(tmp_path: Path) -> None:
    with federation(tmp_path) as f:
        f.start_all()
        f.until_working("a")
        (engine,) = engines_of(f.configs["c"].parent)
        os.kill(engine, signal.SIGSTOP)
        for name in ("a", "b", "c"):
            f.assert_refused(name, "party 'c'", "stopped", within=SLACK)


def test_a_foreign_certificate_is_named(tmp_path: Path) -> None:
    with federation(tmp_path) as f:
        # A new key, as after `tacit silo renew`, whose certificate the others never got.
        home = f.configs["c"].parent
        new = self_signed("c", both_sides=True)
        new.write(key=home / "party.key", certificate=home / "party.crt")
        shutil.copy(home / "party.crt", home / "peers" / "c.crt")
        f.start_all()
        for name in ("a", "b"):
            f.assert_refused(name, "certificate", "party 'c'", within=SLACK)
        f.assert_refused("c", "certificate of 'c'", within=SLACK)


def test_the_certificate_of_a_neighbour_does_not_pass_for_ones_own(tmp_path: Path) -> None:
    with federation(tmp_path) as f:
        home, neighbour = f.configs["c"].parent, f.configs["b"].parent
        for name in ("party.key", "party.crt"):
            shutil.copy(neighbour / name, home / name)
        shutil.copy(home / "party.crt", home / "peers" / "c.crt")
        f.start("a")
        f.start("c")
        f.assert_refused("a", "certificate", "party 'c'", within=SLACK)


def test_another_plan_is_named_with_the_field(tmp_path: Path) -> None:
    with federation(tmp_path, k=3) as f:
        _replace_plan(f, "b", replace(f.terms, params={"k": 4}))
        f.start_all()
        f.assert_refused("a", "party 'b'", "params.k is 3 here and 4 there", within=SLACK)
        f.assert_refused("c", "party 'b'", "params.k", within=SLACK)
        f.assert_refused("b", "plan", "params.k", within=SLACK)


def _replace_plan(f: Federation, name: str, terms: Terms) -> None:
    """Give one party the configuration of other terms, with the keys it already has."""
    other = f.folder / "other"
    text = f.configs[name].read_text()
    addresses = re.findall(r'address = "([^"]*)"', text)
    made = write_folders(other, terms, addresses=addresses, limits=SHORT)
    shutil.copy(made[name], f.configs[name])


def test_another_version_is_named(tmp_path: Path) -> None:
    with federation(tmp_path) as f:
        f.start("a")
        f.start("c")
        f.start("b", prelude="import tacit._version as v; v.VERSION = '0.0.1'")
        for name in ("a", "c"):
            f.assert_refused(name, "party 'b'", "version", "tacit is", within=SLACK)
        f.assert_refused("b", "version", within=SLACK)


def test_missing_values_are_named_without_telling_where(tmp_path: Path) -> None:
    with federation(tmp_path) as f:
        X, _ = own_series(2)
        X[1, 0, 3] = np.nan
        f.start("a")
        f.start("b")
        f.start("c", data=f.data_file("c", X=X))
        for name in ("a", "b"):
            said = f.assert_refused(name, "party 'c'", "its own data", within=SLACK)
            assert "row" not in said
        f.assert_refused("c", "row 2", "step 4", within=SLACK)


def test_a_class_that_nobody_else_has_is_named(tmp_path: Path) -> None:
    with federation(tmp_path) as f:
        _, y = own_series(1)
        f.start("a")
        f.start("b", data=f.data_file("b", y=np.array(["7", *y[1:]])))
        f.start("c")
        for name in ("a", "b", "c"):
            f.assert_refused(name, "party 'b'", "'7'", "no other party", within=SLACK)


def test_a_value_that_would_overflow_is_named_only_at_home(tmp_path: Path) -> None:
    with federation(tmp_path) as f:
        X, _ = own_series(2)
        X[0, 0, 0] = 12345.0  # the program allows 100
        f.start("a")
        f.start("b")
        f.start("c", data=f.data_file("c", X=X))
        for name in ("a", "b"):
            said = f.assert_refused(name, "party 'c'", within=SLACK)
            assert "8.09" not in said
        f.assert_refused("c", "8.09", "rescale", within=SLACK)


def test_an_engines_line_that_is_cut_names_a_party_everywhere(tmp_path: Path) -> None:
    with federation(tmp_path) as f:
        address = read_folder(f.configs["b"]).peers[1].address
        with relay(split_address(address)) as line:
            text = f.configs["a"].read_text()
            f.configs["a"].write_text(text.replace(address, line.address))
            f.start_all()
            f.until_working("a")
            line.cut_engines()
            # Each end sees the other's connection close; both keep their heartbeats.
            f.assert_refused("a", "party 'b'", "connection of its engine", within=SLACK)
            f.assert_refused("b", "party 'a'", "connection of its engine", within=SLACK)
            f.assert_refused("c", "party '", "connection of its engine", within=SLACK)
        (f.configs["a"].parent / "working").unlink()
        f.configs["a"].write_text(text)
        f.start_all()
        f.until_working("a")  # by the direct way


def test_a_full_drive_at_the_initiator_ends_the_run_everywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Bytecode written under the limit would stay truncated for later runs.
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    with federation(tmp_path, program="distances_program", k=3, length=5) as f:
        f.start("a")
        f.start("b")
        _wait_until(lambda: engines_of(f.configs["a"].parent))
        full = (100, 100)  # bytes of any file that the party, not its engine, writes from now on
        resource.prlimit(f.running["a"].pid, resource.RLIMIT_FSIZE, full)
        f.start("c")
        for name in "abc":
            said = f.assert_refused(name, "party 'a' cannot write its result", within=SLACK)
            assert "File too large" in said
            assert [p.name for p in f.configs[name].parent.glob("out/*")] == ["engine.log"]
            assert list(f.configs[name].parent.glob("out/.*")) == []
        f.start_all()
        assert [f.end(name, within=SLACK)[0] for name in "abc"] == [0, 0, 0]


def test_a_plan_changed_by_one_party_alone_is_explained_to_the_others(tmp_path: Path) -> None:
    with federation(tmp_path, k=3) as f:
        text = f.configs["b"].read_text()
        f.configs["b"].write_text(text.replace("k = 3", "k = 4"))
        f.start_all()
        for name in "ac":
            f.assert_refused(name, "party 'b' cannot take part", "fingerprint", within=SLACK)
        f.assert_refused("b", "the plan has the fingerprint", "--accept", within=SLACK)


def test_other_lengths_and_channels_are_named_everywhere(tmp_path: Path) -> None:
    X, _ = own_series(1)
    for folder, wrong, words in (
        ("length", X[:, :, :-1], "length 11 with 1 channel"),
        ("channels", np.repeat(X, 2, axis=1), "length 12 with 2 channel"),
    ):
        with federation(tmp_path / folder) as f:
            (tmp_path / folder).mkdir(exist_ok=True)
            f.start("a")
            f.start("b", data=f.data_file("b", X=wrong))
            f.start("c")
            for name in "abc":
                f.assert_refused(name, "party 'b' has series", words, within=SLACK)


def test_a_port_in_use_is_explained_to_the_others(tmp_path: Path) -> None:
    with federation(tmp_path) as f:
        place = split_address(read_folder(f.configs["b"]).peers[1].address)
        with socket.create_server(place):
            f.start_all()
            # b goes once it has told the others, which then go too, and does not wait for them.
            f.assert_refused("b", "cannot listen", within=SLACK / 2)
            for name in "ac":
                words = ("party 'b' cannot take part", "cannot listen at its address")
                f.assert_refused(name, *words, within=SLACK)


def test_parties_end_with_the_process_that_started_them(tmp_path: Path) -> None:
    mark = f"TACIT_TEST_MARK={tmp_path}"
    code = (
        "from silo_parties import plan_of\n"
        "from tacit.silo.party.localhost import run_federation\n"
        "plan, inputs = plan_of('slow_program', 3)\n"
        "run_federation(plan, inputs)\n"
    )
    variables = {**environment(), **dict([mark.split("=", 1)]), "TMPDIR": str(tmp_path)}
    parent = subprocess.Popen([sys.executable, "-c", code], env=variables)
    try:
        _wait_until(lambda: list(tmp_path.glob("tacit-silo-*/parties/*/working")))
    finally:
        parent.kill()
        parent.wait()
    _wait_until(lambda: processes_with(mark) == [])


def _wait_until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + SLACK
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_a_party_whose_budget_is_spent_stops_before_it_shares(tmp_path: Path) -> None:
    """Only it says why: what its ledger holds is not for the others."""
    with federation(tmp_path) as f:
        prelude = (
            "import tacit.silo.party.data_budget as s\n"
            "from tacit.errors import BudgetExceeded\n"
            "def refuse(self, plan, *, rank):\n"
            "    raise BudgetExceeded('the series have spent epsilon 2 of 2')\n"
            "s.DataBudget.debit = refuse"
        )
        f.start("a")
        f.start("b", prelude=prelude)
        f.start("c")
        f.assert_refused("b", "spent epsilon 2 of 2", within=SLACK)
        for name in ("a", "c"):
            said = f.assert_refused(name, "party 'b' cannot take part", within=SLACK)
            assert "epsilon" not in said
