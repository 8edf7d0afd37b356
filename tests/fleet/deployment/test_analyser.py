"""The analyser: what counts, what is refused, and crashes at every step of a round."""

from __future__ import annotations

import os
import secrets
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tacit.errors import BundleError, TacitError
from tacit.fleet.deployment import analyser as analyser_module
from tacit.fleet.deployment.analyser import Analyser
from tacit.fleet.deployment.analyser_state import write_inbox
from tacit.fleet.deployment.books import Books
from tacit.fleet.deployment.seal import Opener, Sealer, new_key
from tacit.fleet.deployment.shuffler import Batch, Refused
from tacit.fleet.reports.privunit import composed_epsilon, shuffled_guarantee
from tacit.guarantee import DpGuarantee
from tacit.ledger import Entry, Ledger

RUN = "run-1"
PRIVATE, PUBLIC = new_key()
DELTA = 1e-6


class MeanOfPairs:
    """A small real rule: two numbers in [-1, 1] per report, and the model walks by their mean."""

    message_bytes = 16
    helper_bytes = 0

    def initial(self) -> bytes:
        return np.zeros(2).tobytes()

    def check(self, message: bytes) -> None:
        if not np.all(np.abs(np.frombuffer(message)) <= 1.0):
            raise TacitError("outside the range of the randomizer.")

    def update(self, model: bytes, messages: list[bytes], helper_sum: bytes = b"") -> bytes:
        pairs = np.array([np.frombuffer(message) for message in messages])
        return bytes((np.frombuffer(model) + pairs.mean(axis=0)).tobytes())

    def spent(self, received: Sequence[int]) -> DpGuarantee | None:
        return shuffled_guarantee(received, local_epsilon=1.0, delta=DELTA) if received else None


def model_of(analyser: Analyser) -> list[float]:
    return [float(value) for value in np.frombuffer(analyser.state.model)]


def make(folder: Path, **changes: Any) -> Analyser:
    settings: dict[str, Any] = {
        "run": RUN,
        "rounds": 3,
        "n_min": 2,
        "epsilon": 3.0,
        "delta": DELTA,
        "private_key": PRIVATE,
        "rule": MeanOfPairs(),
        "folder": folder,
    }
    return Analyser(**(settings | changes))


def sealed(pair: tuple[float, float], round_number: int = 1, run: str = RUN) -> bytes:
    sealer = Sealer(PUBLIC, run=run, report_bytes=16)
    return sealer.seal(np.array(pair, dtype="<f8").tobytes(), round_number=round_number)


def batch(*messages: bytes, round_number: int = 1, run: str = RUN) -> Batch:
    return Batch(
        run=run,
        round_number=round_number,
        batch_id=secrets.token_hex(16),
        n_nodes=len(messages),
        messages=b"".join(messages),
    )


def good(n: int = 3, round_number: int = 1) -> Batch:
    return batch(*(sealed((0.5, -0.5), round_number) for _ in range(n)), round_number=round_number)


def entries(analyser: Analyser) -> list[Entry]:
    with Ledger.open(analyser.folder / "ledger.db", create=False) as ledger:
        return ledger.entries()


def verified(analyser: Analyser) -> bool:
    with Ledger.open(analyser.folder / "ledger.db", create=False) as ledger:
        return bool(ledger.verify())


def debits(analyser: Analyser) -> list[float]:
    return [float(e.epsilon) for e in entries(analyser) if e.subject]


def test_a_round_moves_the_model_and_is_debited(tmp_path: Path) -> None:
    analyser = make(tmp_path)
    analyser.receive(good())
    assert model_of(analyser) == [0.5, -0.5]
    assert analyser.state.next_round == 2
    status = analyser.status()
    assert status["spent"]["epsilon"] == 1.0
    assert status["history"][0]["n"] == 3
    assert verified(analyser)
    assert not (tmp_path / "inbox.npz").exists()


def test_a_run_ends_within_its_budget(tmp_path: Path) -> None:
    analyser = make(tmp_path)
    for round_number in (1, 2, 3):
        analyser.receive(good(round_number=round_number))
    assert analyser.finished
    assert analyser.status()["spent"]["epsilon"] == pytest.approx(3.0)
    with pytest.raises(Refused, match="finished"):
        analyser.receive(good(round_number=4))


def test_few_nodes_get_no_amplification_and_are_told_so(tmp_path: Path) -> None:
    analyser = make(tmp_path)
    assert analyser.guarantee() is None
    analyser.receive(good())
    guarantee = analyser.guarantee()
    assert guarantee is not None
    assert (guarantee.model, guarantee.epsilon, guarantee.delta) == ("local", 1.0, 0.0)
    assert "no amplification" in guarantee.assumptions[0]


def test_many_nodes_are_amplified() -> None:
    guarantee = shuffled_guarantee([1000, 900], local_epsilon=1.0, delta=DELTA)
    assert guarantee.model == "shuffle"
    assert guarantee.epsilon < 0.6
    assert guarantee.delta == DELTA
    fewer, _ = composed_epsilon([900, 900], local_epsilon=1.0, delta=DELTA)
    assert guarantee.epsilon <= fewer


def test_debits_of_amplified_rounds_add_up_to_the_composed_total(tmp_path: Path) -> None:
    """Of the rounds before the true numbers, of the last the fewest that can be released."""
    analyser = make(tmp_path, n_min=100, epsilon=3.0)
    for round_number in (1, 2):
        analyser.receive(good(200, round_number))
    guarantee = analyser.guarantee()
    assert guarantee is not None
    assert guarantee.model == "shuffle"
    spent = analyser.status()["spent"]
    paid, _ = composed_epsilon([200, 100], local_epsilon=1.0, delta=DELTA)
    assert spent["epsilon"] == pytest.approx(paid, abs=1e-9)
    assert spent["epsilon"] >= paid > guarantee.epsilon
    assert spent["delta"] == DELTA
    assert debits(analyser)[1] < debits(analyser)[0]


def test_what_counts_is_what_was_really_received(tmp_path: Path) -> None:
    stranger = Sealer(new_key()[1], run=RUN, report_bytes=16).seal(bytes(16), round_number=1)
    once = sealed((1.0, 1.0))
    bad = [
        stranger,
        once,  # a second copy of the one below
        sealed((0.1, 0.1), round_number=2),
        sealed((0.1, 0.1), run="run-2"),
        sealed((1.5, 0.0)),
        sealed((float("nan"), 0.0)),
        os.urandom(64),
    ]
    analyser = make(tmp_path)
    analyser.receive(batch(once, sealed((0.0, 0.0)), *bad))
    record = analyser.state.history[0]
    assert (record.n, record.left_out, record.released) == (2, 7, True)
    assert model_of(analyser) == [0.5, 0.5]


def test_too_few_good_reports_are_paid_for_but_not_released(tmp_path: Path) -> None:
    analyser = make(tmp_path, n_min=3)
    analyser.receive(batch(sealed((1.0, 1.0)), sealed((1.0, 1.0)), os.urandom(64)))
    record = analyser.state.history[0]
    assert (record.n, record.released) == (2, False)
    assert model_of(analyser) == [0.0, 0.0]
    assert analyser.state.next_round == 2, "the same reports are not asked for again"
    assert debits(analyser) == [1.0]


def test_a_batch_without_one_good_report_was_paid_for_before_that_showed(tmp_path: Path) -> None:
    analyser = make(tmp_path)
    analyser.receive(batch(os.urandom(64), os.urandom(64)))
    assert debits(analyser) == [1.0], "over-counted, never under-counted"
    assert analyser.guarantee() is None
    assert not analyser.finished


def test_a_batch_is_in_the_ledger_before_anything_of_it_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    analyser = make(tmp_path)
    before: list[list[float]] = []
    real = Opener.open

    def watched(self: Opener, sealed: bytes, *, round_number: int) -> bytes | None:
        before.append(debits(analyser))
        return real(self, sealed, round_number=round_number)

    monkeypatch.setattr(Opener, "open", watched)
    analyser.receive(good(3))
    assert before == [[1.0]] * 3


def amplified(*counts: int) -> float:
    return composed_epsilon(counts, local_epsilon=1.0, delta=DELTA)[0]


def test_an_opened_batch_that_overspends_is_in_the_ledger_all_the_same(tmp_path: Path) -> None:
    """The plan allows two rounds of 200; the second holds five that do not open."""
    budget = amplified(200, 200) + 1e-9
    analyser = make(tmp_path, n_min=200, epsilon=budget)
    analyser.receive(good(200))
    sealed_ones = [sealed((0.5, -0.5), 2) for _ in range(195)]
    analyser.receive(batch(*sealed_ones, *(os.urandom(64) for _ in range(5)), round_number=2))
    record = analyser.state.history[1]
    assert (record.n, record.released) == (195, False)
    assert model_of(analyser) == [0.5, -0.5]
    for _ in range(2):  # and a restart reads the same
        status = analyser.status()
        assert amplified(200, 195) > budget
        assert amplified(200, 195) <= status["spent"]["epsilon"] < amplified(200, 195) + 1e-6
        assert "held 195 valid reports" in status["stopped"]
        assert status["guarantee"]["epsilon"] <= status["spent"]["epsilon"]
        assert verified(analyser)
        analyser.close()
        analyser = make(tmp_path, n_min=200, epsilon=budget)
    reasons = [entry.purpose for entry in entries(analyser) if entry.kind == "budget"]
    assert len(reasons) == 1
    assert "whatever the budget" in reasons[0]


@pytest.mark.parametrize("when", ["_raise_budgets", "_enter", "checkpoint"])
def test_a_crash_while_an_overspent_batch_is_entered_is_made_good(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    """After the step named: the budgets raised, the entry made, the checkpoint not yet written."""
    settings: dict[str, Any] = {"n_min": 200, "epsilon": amplified(200) + 1e-9}
    analyser = make(tmp_path, **settings)
    with monkeypatch.context() as patch:
        if when == "checkpoint":
            patch.setattr(analyser_module, "write_atomic", cut)
        else:
            real, calls = getattr(Books, when), []

            def then_cut(self: Books, *arguments: Any) -> None:
                real(self, *arguments)
                calls.append(when)
                if when == "_raise_budgets" or len(calls) == 2:  # the first entry is the debit
                    raise PowerCut

            patch.setattr(Books, when, then_cut)
        sealed_ones = [sealed((0.5, -0.5)) for _ in range(195)]
        with pytest.raises(PowerCut):
            analyser.receive(batch(*sealed_ones, *(os.urandom(64) for _ in range(5))))
    restarted = make(tmp_path, **settings)
    restarted.work()
    assert "held 195 valid reports" in restarted.status()["stopped"]
    assert amplified(195) <= restarted.status()["spent"]["epsilon"] < amplified(195) + 1e-6
    assert len(debits(restarted)) == 2
    assert verified(restarted)


def test_too_few_valid_reports_within_the_budget_go_on(tmp_path: Path) -> None:
    analyser = make(tmp_path, n_min=200, epsilon=3.0)
    sealed_ones = [sealed((0.5, -0.5)) for _ in range(195)]
    analyser.receive(batch(*sealed_ones, *(os.urandom(64) for _ in range(5))))
    assert not analyser.finished
    assert analyser.status()["spent"]["epsilon"] >= amplified(195)
    assert len(debits(analyser)) == 2
    analyser.receive(good(200, 2))
    assert analyser.state.history[1].released
    assert analyser.status()["spent"]["epsilon"] >= amplified(195, 200)


def test_a_batch_below_the_least_number_is_refused_unopened(tmp_path: Path) -> None:
    analyser = make(tmp_path, n_min=3)
    with pytest.raises(Refused, match="3 reports or more, got 2"):
        analyser.receive(good(2))
    assert debits(analyser) == []


@pytest.mark.parametrize(
    "batch_id", ["", "x", "0" * 31, "0" * 33, "G" * 32, "A" * 32, f"{'0' * 31} ", "1 batch 2 n=3"]
)
def test_a_batch_id_of_another_form_is_refused(tmp_path: Path, batch_id: str) -> None:
    analyser = make(tmp_path)
    with pytest.raises(Refused) as caught:
        analyser.receive(replace(good(), batch_id=batch_id))
    assert caught.value.code == "wrong-batch"
    assert debits(analyser) == []


def test_an_opened_batch_that_fails_counts_with_what_was_paid_for_it(tmp_path: Path) -> None:
    analyser = make(tmp_path, rule=Faulty())
    analyser.receive(good())
    assert debits(analyser) == [1.0]
    assert [record.n for record in analyser.state.history] == [2]
    guarantee = analyser.guarantee()
    assert guarantee is not None
    assert guarantee.epsilon <= analyser.status()["spent"]["epsilon"]


def test_a_batch_past_the_budget_is_not_opened(tmp_path: Path) -> None:
    analyser = make(tmp_path, epsilon=1.5)
    analyser.receive(good())
    analyser.receive(good(round_number=2))
    assert analyser.finished
    assert "past the plan's 1.5" in analyser.status()["stopped"]
    assert model_of(analyser) == [0.5, -0.5]
    assert debits(analyser) == [1.0]
    assert make(tmp_path, epsilon=1.5).finished, "and it stays stopped"


@pytest.mark.parametrize(
    ("changes", "code"),
    [({"round_number": 2}, "wrong-round"), ({"run": "run-2"}, "wrong-run")],
)
def test_a_batch_for_another_round_or_run_is_refused(
    tmp_path: Path, changes: dict[str, Any], code: str
) -> None:
    analyser = make(tmp_path)
    with pytest.raises(Refused) as caught:
        analyser.receive(batch(sealed((0, 0)), sealed((0, 0)), **changes))
    assert caught.value.code == code
    assert debits(analyser) == []


@pytest.mark.parametrize("messages", [(), (b"short",), (bytes(65), bytes(64))])
def test_a_batch_that_does_not_divide_is_refused(tmp_path: Path, messages: tuple[bytes]) -> None:
    with pytest.raises(Refused, match="64 bytes"):
        make(tmp_path).receive(batch(*messages))


def test_a_batch_delivered_twice_counts_once(tmp_path: Path) -> None:
    analyser = make(tmp_path)
    delivered = good()
    analyser.receive(delivered)
    analyser.receive(delivered)
    assert debits(analyser) == [1.0]
    assert model_of(analyser) == [0.5, -0.5]


class PowerCut(BaseException):
    pass


def cut(*_: object, **__: object) -> None:
    raise PowerCut


CRASHES = {
    "before the inbox is written": ("write_inbox", None),
    "after the inbox, before the debit": (None, "_outcome"),
    "after the debit, before opening": (None, "_open"),
    "after the debit and opening, before the model": (None, "_updated"),
    "after the debit and opening, before the checkpoint": ("write_atomic", None),
}


@pytest.mark.parametrize("when", CRASHES)
def test_a_crash_neither_spends_twice_nor_forgets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    function, method = CRASHES[when]
    delivered = good()
    analyser = make(tmp_path)
    with monkeypatch.context() as patch:
        if function:
            patch.setattr(analyser_module, function, cut)
        else:
            assert method is not None
            patch.setattr(Analyser, method, cut)
        with pytest.raises(PowerCut):
            analyser.receive(delivered)
    spent_before = debits(analyser)
    assert spent_before == ([1.0] if "after the debit" in when else [])
    analyser.close()

    restarted = make(tmp_path)
    restarted.work()
    restarted.receive(delivered)  # the shuffler holds the batch until it is acknowledged
    assert debits(restarted) == [1.0]
    assert model_of(restarted) == [0.5, -0.5]
    assert restarted.state.next_round == 2
    assert verified(restarted)
    restarted.receive(good(round_number=2))
    assert debits(restarted) == [1.0, 1.0]


def test_a_crash_after_the_checkpoint_leaves_an_inbox_that_is_ignored(tmp_path: Path) -> None:
    analyser = make(tmp_path)
    delivered = good()
    analyser.receive(delivered)
    # As if the machine had died before it was deleted.
    write_inbox(analyser.folder / "inbox.npz", delivered)
    analyser.close()
    restarted = make(tmp_path)
    assert debits(restarted) == [1.0]
    assert restarted.state.next_round == 2
    assert not (tmp_path / "inbox.npz").exists()


def test_a_lost_or_broken_checkpoint_is_not_taken_for_a_new_run(tmp_path: Path) -> None:
    analyser = make(tmp_path)
    analyser.receive(good())
    analyser.close()
    path = tmp_path / "checkpoint.npz"
    whole = path.read_bytes()
    for broken in (whole[: len(whole) // 2], b"", b"not a checkpoint"):
        path.write_bytes(broken)
        with pytest.raises(BundleError, match="whole checkpoint"):
            make(tmp_path)
    path.unlink()
    with pytest.raises(BundleError, match="spend the budget again"):
        make(tmp_path)
    path.write_bytes(whole)
    with pytest.raises(BundleError, match="belongs to run run-1"):
        make(tmp_path, run="run-9")


# What goes wrong ends in a sentence: no error leaves a batch that fails again at every start.


class Faulty(MeanOfPairs):
    def update(self, model: bytes, messages: list[bytes], helper_sum: bytes = b"") -> bytes:
        raise ZeroDivisionError(f"quoting {messages[0]!r}")


class Unaccountable(MeanOfPairs):
    def spent(self, received: Sequence[int]) -> DpGuarantee | None:
        if received:
            raise TacitError("delta = 0.001 is not below 1/n.")
        return None


@pytest.mark.parametrize("rule", [Faulty(), Unaccountable()])
def test_an_error_stops_the_run_with_a_reason_and_wedges_nothing(
    tmp_path: Path, rule: MeanOfPairs
) -> None:
    analyser = make(tmp_path, rule=rule)
    delivered = good()
    analyser.receive(delivered)
    for _ in range(2):
        stopped = analyser.status()["stopped"]
        assert "round 1 could not be processed" in stopped
        assert "quoting" not in stopped, "the status is public"
        assert analyser.finished
        assert not analyser.processing
        assert model_of(analyser) == [0.0, 0.0]
        with pytest.raises(Refused, match="finished"):
            analyser.receive(good())
        analyser.close()
        analyser = make(tmp_path, rule=rule)


def test_more_reports_than_one_over_delta_are_accounted_all_the_same(tmp_path: Path) -> None:
    class Coarse(MeanOfPairs):
        def spent(self, received: Sequence[int]) -> DpGuarantee | None:
            if not received:
                return None
            return shuffled_guarantee(received, local_epsilon=1.0, delta=1e-2)

    analyser = make(tmp_path, n_min=90, delta=1e-2, rule=Coarse())
    analyser.receive(good(110))
    guarantee = analyser.guarantee()
    assert guarantee is not None
    assert guarantee.model == "shuffle"
    assert analyser.state.history[0].released


def test_a_batch_on_disk_that_cannot_be_read_stops_the_run(tmp_path: Path) -> None:
    make(tmp_path).close()
    (tmp_path / "inbox.npz").write_bytes(b"damaged")
    for _ in range(2):
        analyser = make(tmp_path)
        assert "cannot be read" in analyser.status()["stopped"]


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_disk_that_fails_for_a_while_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(analyser_module, "_RETRY_SECONDS", 0.01)
    analyser = make(tmp_path)
    analyser.take(good())

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(analyser_module, "write_atomic", full)
        analyser.work_in_background()
        wait_for(lambda: analyser.status()["trouble"] is not None)
        assert analyser.status()["processing"]
        assert not analyser.finished
    wait_for(lambda: not analyser.processing)
    wait_for(lambda: analyser.status()["trouble"] is None)
    assert debits(analyser) == [1.0], "debited once, however often it was tried"
    assert model_of(analyser) == [0.5, -0.5]


class Slow(MeanOfPairs):
    """Opens nothing until it is told to."""

    def __init__(self) -> None:
        self.go, self.began, self.accounted = threading.Event(), threading.Event(), 0

    def check(self, message: bytes) -> None:
        self.began.set()
        assert self.go.wait(20)

    def spent(self, received: Sequence[int]) -> DpGuarantee | None:
        self.accounted += 1
        return super().spent(received)


def test_a_batch_is_taken_before_it_is_opened_and_no_other_meanwhile(tmp_path: Path) -> None:
    slow = Slow()
    analyser = make(tmp_path, rule=slow)
    first = good()
    analyser.take(first)
    analyser.work_in_background()
    assert slow.began.wait(20)
    assert (tmp_path / "inbox.npz").exists()
    busy = analyser.processing  # a name of its own: mypy takes a property for a constant
    assert busy
    assert analyser.knows(first.batch_id)
    analyser.take(first)  # delivered again: it is in
    with pytest.raises(Refused) as caught:
        analyser.take(good())
    assert caught.value.code == "busy"
    slow.go.set()
    wait_for(lambda: not analyser.processing)
    assert analyser.state.next_round == 2
    assert analyser.last_batch == first.batch_id
    analyser.take(first)
    assert not analyser.processing
    analyser.close()


def test_closing_leaves_the_batch_for_the_next_start(tmp_path: Path) -> None:
    slow = Slow()
    analyser = make(tmp_path, rule=slow)
    analyser.take(good(50))
    analyser.work_in_background()
    assert slow.began.wait(20)
    closing = threading.Thread(target=analyser.close)
    closing.start()
    wait_for(analyser._closing.is_set)
    slow.go.set()
    closing.join(20)
    assert analyser.state.stopped is None
    assert analyser.state.next_round == 1
    restarted = make(tmp_path)
    assert restarted.processing
    restarted.work()
    assert restarted.state.history[0].n == 50


def test_asking_for_the_status_costs_no_accounting(tmp_path: Path) -> None:
    slow = Slow()
    slow.go.set()
    analyser = make(tmp_path, rule=slow)
    analyser.receive(good())
    before = slow.accounted
    statuses = [analyser.status() for _ in range(20)]
    assert slow.accounted == before
    assert statuses[0]["guarantee"]["epsilon"] == 1.0


def test_nothing_in_the_status_names_a_node(tmp_path: Path) -> None:
    analyser = make(tmp_path)
    analyser.receive(good())
    assert set(analyser.status()["history"][0]) == {
        "round_number",
        "batch_id",
        "n",
        "left_out",
        "released",
        "epsilon",
    }


def test_debits_add_up_to_no_less_than_the_total_to_the_last_digit(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for run in range(10):
        books = Books(tmp_path / f"{run}.db", run="r", epsilon=100.0, delta=0.5)
        epsilon, delta = 0.0, 0.0
        for number in range(1, 9):
            epsilon, delta = epsilon + float(rng.random()), delta + 1e-6 * float(rng.random())
            total = DpGuarantee(epsilon=epsilon, delta=delta, model="shuffle", unit="client")
            sent = Batch(
                run="r", round_number=number, batch_id=f"{number:032x}", n_nodes=2, messages=b""
            )
            assert books.debit(sent, total) is None
            assert epsilon <= books.spent().epsilon < epsilon + 1e-12
            assert delta <= books.spent().delta < delta + 1e-18


def test_a_large_batch_after_small_ones_costs_a_first_delta_and_is_released(tmp_path: Path) -> None:
    """Three rounds at the plan's whole epsilon; only in the last one does shuffling amplify."""
    analyser = make(tmp_path)
    for number, count in ((1, 2), (2, 2), (3, 1500)):
        analyser.receive(good(count, round_number=number))
    history = [(record.n, record.released) for record in analyser.state.history]
    assert history == [(2, True), (2, True), (1500, True)]
    assert analyser.state.stopped is None
    found = analyser.guarantee()
    assert found is not None
    spent = analyser.status()["spent"]
    assert found.epsilon <= spent["epsilon"] < 3.0 + 1e-6
    assert found.delta <= spent["delta"]


def test_what_a_kill_left_half_written_is_deleted(tmp_path: Path) -> None:
    make(tmp_path).close()
    orphan = tmp_path / ".inbox.npz.3bf032a2"
    orphan.write_bytes(b"sealed")
    make(tmp_path).close()
    assert not orphan.exists()
