"""The engine on real processes gives the integers of its plaintext twin, and opens what it says."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import silo_programs
from silo_parties import environment, plan_of, processes_with
from tacit.errors import TacitError
from tacit.silo import plan
from tacit.silo.fedst import program
from tacit.silo.party.localhost import FederationResult, run_federation
from tacit.silo.plan import Plan
from tacit.silo.secure import spu_session
from tacit.silo.secure.compiler import Compiler, cache_key, check_oblivious, family_sources
from tacit.silo.secure.jax_x64 import enable_x64
from tacit.silo.secure.plain_session import run_plain
from tacit.silo.secure.session import LocalInputs, ProgramResult, Session, Shared, check_share


@pytest.fixture(autouse=True)
def _programs_on_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", environment()["PYTHONPATH"])


@pytest.mark.slow
@pytest.mark.parametrize("n_parties", [2, 3, 5])
def test_secure_equals_plaintext_bit_for_bit(n_parties: int) -> None:
    plan, inputs = plan_of("distances_program", n_parties, k=3, length=5)
    secure = run_federation(plan, inputs)
    results, sessions = run_plain(silo_programs.distances_program, plan, inputs)
    expected = results[0].arrays["distances"]
    assert np.array_equal(secure.arrays["distances"], expected)
    assert expected.shape == (sum(plan.counts), 3)
    assert secure.info["stop"] == 7
    _check_openings(secure, plan, sessions[0].opened)
    _check_shares_only(secure, plan)


def _check_openings(secure: FederationResult, plan: Plan, declared: Sequence[object]) -> None:
    for receipt in secure.receipts:
        assert list(receipt.opened) == list(declared)
        assert receipt.guarantee.opened == ("the number seven -> all parties", "distances -> a")
        assert receipt.guarantee.n_parties == plan.n_parties
        assert receipt.plan == plan


def _check_shares_only(secure: FederationResult, plan: Plan) -> None:
    """Owners beyond the computing ones send their shares and take no part in the computation."""
    for rank, receipt in enumerate(secure.receipts):
        steps = {t["step"]: t for t in receipt.traffic}
        assert ("minimum_distances" in steps) == (rank < plan.n_computing)
        sent = steps[f"share series of {plan.parties[rank]}"]["messages_sent"]
        assert sent == plan.n_computing - (rank < plan.n_computing)
        if rank >= plan.n_computing:
            received = {t["step"] for t in receipt.traffic if t["messages_received"]}
            assert received == {"announce the number seven", "barrier"}
            assert not any(t["bytes_received"] for t in receipt.traffic)


@pytest.mark.slow
def test_code_that_differs_between_parties_is_not_run() -> None:
    plan, inputs = plan_of("diverging_program", 3)
    with pytest.raises(TacitError, match="the code of 'shift_by' at the initiator differs"):
        run_federation(plan, inputs)


@pytest.mark.slow
def test_protocols_whose_source_differs_between_parties_are_not_run() -> None:
    plan, inputs = plan_of("other_protocols_program", 3)
    with pytest.raises(TacitError, match="the code of 'sorted_low_bits' at the initiator differs"):
        run_federation(plan, inputs)


@pytest.mark.slow
def test_a_program_that_sorts_is_refused_on_all_sides() -> None:
    plan, inputs = plan_of("sorting_program", 3)
    with pytest.raises(TacitError, match="sort, which may open secret values"):
        run_federation(plan, inputs)


@pytest.mark.slow
def test_who_sent_a_share_of_another_shape_is_named() -> None:
    plan, inputs = plan_of("misshapen_program", 3)
    with pytest.raises(TacitError, match="party 'b' sent a share whose type or shape differs"):
        run_federation(plan, inputs)


@pytest.mark.slow
def test_an_opening_that_one_party_altered_ends_the_run() -> None:
    plan, inputs = plan_of("lying_program", 3)
    with pytest.raises(TacitError, match="party 'c' sent an opening whose words differ"):
        run_federation(plan, inputs)


def test_what_opens_values_is_refused() -> None:
    check_oblivious("%1 = pphlo.add %0 : !pphlo.secret<i64>", name="f")
    check_oblivious("pphlo.custom_call @spu.prefer_a(%0)", name="f")
    for bad in ("pphlo.sort", "pphlo.custom_call @spu.reveal(%0)", "pphlo.rng", "pphlo.new_thing"):
        with pytest.raises(TacitError, match="may open"):
            check_oblivious(f"%1 = {bad} %0", name="f")
    at = "%1 = pphlo.dynamic_update_slice %a, %b, %c : (tensor<4xi64>, tensor<1xi64>, {}) -> x"
    check_oblivious(at.format("tensor<i32>"), name="f")
    with pytest.raises(TacitError, match="secret index"):
        check_oblivious(at.format("tensor<!pphlo.secret<i32>>"), name="f")


HANDLES = [Shared("x", (3, 4), "int64")]


def test_the_cache_key_depends_on_everything_that_the_code_depends_on() -> None:
    base = cache_key(silo_programs.double, HANDLES, {"k": 1})
    others = [
        cache_key(silo_programs.sort_rows, HANDLES, {"k": 1}),
        cache_key(silo_programs.double, [Shared("x", (3, 5), "int64")], {"k": 1}),
        cache_key(silo_programs.double, [Shared("x", (3, 4), "int32")], {"k": 1}),
        cache_key(silo_programs.double, HANDLES, {"k": 2}),
    ]
    assert len({base, *others}) == 5
    assert cache_key(silo_programs.double, [Shared("y", (3, 4), "int64")], {"k": 1}) == base
    with pytest.raises(TacitError, match="module level"):
        cache_key(lambda x: x, HANDLES, {})


def test_the_cache_key_counts_every_source_of_the_family() -> None:
    counted = set(family_sources())
    for module in (plan, program, spu_session):
        assert Path(str(module.__file__)) in counted


def test_compiled_code_is_kept_on_disk_and_damage_is_noticed(tmp_path: Path) -> None:
    with enable_x64():
        first = Compiler(tmp_path)
        made = first.get(silo_programs.double, HANDLES, {})
        assert first.get(silo_programs.double, HANDLES, {}) is made
        second = Compiler(tmp_path)
        assert second.get(silo_programs.double, HANDLES, {}) == made
        assert (first.compiled, second.compiled) == (1, 0)
        (file,) = tmp_path.glob("*.json")
        file.write_text(file.read_text().replace("pphlo.multiply", "pphlo.add"))
        third = Compiler(tmp_path)
        assert third.get(silo_programs.double, HANDLES, {}) == made
        assert third.compiled == 1


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (np.array([1, 2], dtype=np.int64), "agreed shape"),
        (np.array([1, 2, 3], dtype=np.int32), "agreed type"),
        (np.array([1, 2, 2**62 + 1], dtype=np.int64), "above"),
        (np.array([1, 2, -(2**63)], dtype=np.int64), "above"),
        (None, "agreed shape"),
    ],
)
def test_what_the_ring_would_distort_is_not_shared(value: object, words: str) -> None:
    with pytest.raises(TacitError, match=words):
        check_share("x", value, mine=True, shape=(3,), dtype="int64", limit=None)  # type: ignore[arg-type]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_missing_and_infinite_values_are_not_shared(bad: float) -> None:
    value = np.array([0.0, bad])
    with pytest.raises(TacitError, match="NaN or infinity"):
        check_share("x", value, mine=True, shape=(2,), dtype="float64", limit=None)


def test_the_limit_is_the_last_value_that_passes() -> None:
    for value, good in ((7, True), (-7, True), (8, False), (-8, False)):
        array = np.array([value])
        if good:
            assert (
                check_share("x", array, mine=True, shape=(1,), dtype="int64", limit=7) is not None
            )
        else:
            with pytest.raises(TacitError, match="above the 7"):
                check_share("x", array, mine=True, shape=(1,), dtype="int64", limit=7)


def test_only_the_owner_passes_a_value() -> None:
    with pytest.raises(TacitError, match="only the owner"):
        check_share("x", np.zeros(1), mine=False, shape=(1,), dtype="float64", limit=None)


def diverging_program(session: Session, inputs: LocalInputs, plan: Plan) -> ProgramResult:
    """Branches on private data, which the shapes of its messages would show."""
    shape = (3,) if inputs.X[0, 0, 0] > 0.2 else (4,)
    value = np.zeros(shape, dtype=np.int64) if session.rank == 0 else None
    session.share("x", value, owner=0, shape=shape)
    return ProgramResult()


def test_a_program_that_branches_on_private_data_is_caught_in_plaintext() -> None:
    plan, inputs = plan_of("diverging", 3)
    assert len({i.X[0, 0, 0] > 0.2 for i in inputs}) == 2
    with pytest.raises(TacitError, match="diverge"):
        run_plain(diverging_program, plan, inputs)


def test_an_error_at_one_owner_ends_the_plaintext_twin() -> None:
    plan, inputs = plan_of("distances_program", 3, k=3, length=5)
    big = [*inputs[:2], LocalInputs(X=inputs[2].X * 1e6, y=inputs[2].y)]
    with pytest.raises(TacitError, match="rescale"):
        run_plain(silo_programs.distances_program, plan, big)


def test_the_number_of_inputs_must_fit_the_plan() -> None:
    plan, inputs = plan_of("distances_program", 3, k=3, length=5)
    with pytest.raises(TacitError, match="got 2 inputs"):
        run_federation(plan, inputs[:2])


@pytest.mark.seconds
def test_a_failed_run_leaves_no_process_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = f"TACIT_TEST_MARK={tmp_path}"
    monkeypatch.setenv(*mark.split("=", 1))
    plan, inputs = plan_of("no_such_program", 3)
    with pytest.raises(TacitError, match="party '"):
        run_federation(plan, inputs)
    assert processes_with(mark) == []


def test_an_error_of_the_engine_is_told_by_its_first_line_with_words() -> None:
    from tacit.silo.party.engine_worker import _first_line

    assert _first_line(RuntimeError("what: \n\t[channel.cc:1] timeout\nstack")) == (
        "[channel.cc:1] timeout"
    )
    assert _first_line(RuntimeError("")) == "RuntimeError"
