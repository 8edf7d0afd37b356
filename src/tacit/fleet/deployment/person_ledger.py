"""One budget per person across runs: a node's ledger is keyed by whom or what it protects.

It lives outside the run's folder, so that a second run on the same data finds what the first one
spent. Its budget is what the first run was allowed; a second run adds up and is refused past it,
until the owner raises it (`tacit ledger budget`), which the ledger records with the reason.

A node that names no person is keyed by the series it holds, in any order; data that grew or were
given another name are recognised by the series that were counted before. Give `person` in node.toml
wherever more than half of the data change from one run to the next.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

from tacit.errors import BudgetExceeded, LedgerError
from tacit.fleet.reports.protocol import NodeBudget
from tacit.guarantee import DpGuarantee, rounded_down, rounded_up
from tacit.ledger import Entry
from tacit.ledger.chain import exact, float_up
from tacit.ledger.known_series import Marks, remembered
from tacit.ledger.persons import ledger_path, open_person_ledger


class PersonLedger:
    """What one person's reports have cost, and what those of the present run may.

    Guarantee: a run debits at most its own plan's budget, and all runs together at most the
    ledger's, which the first run fixed. Rounds of several runs add up basically.
    Assumes: the data of one person go under one name, or keep half of their series.
    Not covered: the same person's data on another machine; a folder of ledgers that was deleted or
    restored, unless TACIT_ANCHORS names a place where their anchors are kept.
    """

    def __init__(
        self, folder: Path, *, person: str, run: str, budget: NodeBudget, series: Marks
    ) -> None:
        self.path = ledger_path(folder, person)
        self._series = series
        self._person, self._run, self._budget = person, run, budget
        self._ledger = open_person_ledger(
            self.path, budget_epsilon=budget.epsilon, budget_delta=budget.delta
        )

    def debited(self, round_number: int) -> bool:
        """Whether the round's report has been paid for."""
        purpose = self._purpose(round_number)
        return any(entry.purpose == purpose for entry in self._of_run())

    def debit(self, round_number: int, cost: Callable[[int], DpGuarantee]) -> None:
        """Enter the round before its report leaves; `cost(k)` is that of the run's k-th report."""
        earlier = self._of_run()
        self._check_plan(earlier, cost)
        wanted = cost(len(earlier) + 1)
        self._check_run(earlier, wanted)
        with remembered(self.path.parent, self._person, self._series) as series_list:
            try:
                self._ledger.debit(
                    subject=self._person,
                    guarantee=wanted,
                    purpose=self._purpose(round_number),
                    subject_kind="client",
                    series_list=series_list,
                )
            except BudgetExceeded as error:
                raise BudgetExceeded(self._refusal(wanted)) from error

    def check_room(self, cost: Callable[[int], DpGuarantee]) -> None:
        """Refuse to join where the person's budget has no room for the run's next report."""
        if self._of_run():
            return  # it has joined already; its debits refuse by themselves
        wanted, left = cost(1), self._ledger.remaining()
        if wanted.epsilon > left.epsilon or wanted.delta > left.delta:
            raise BudgetExceeded(self._refusal(wanted))

    def spent(self) -> float:
        """Epsilon debited so far, over all runs."""
        return self._ledger.spent().epsilon

    def spent_in_run(self) -> float:
        """Epsilon debited for this run."""
        return float_up(sum((Decimal(entry.epsilon) for entry in self._of_run()), Decimal(0)))

    def close(self) -> None:
        """Close the ledger."""
        self._ledger.close()

    def _of_run(self) -> list[Entry]:
        beginning = f"fleet run {self._run} round "
        entries = self._ledger.entries(self._person)
        return [entry for entry in entries if entry.purpose.startswith(beginning)]

    def _purpose(self, round_number: int) -> str:
        return f"fleet run {self._run} round {round_number}"

    def _check_plan(self, earlier: list[Entry], cost: Callable[[int], DpGuarantee]) -> None:
        """A later report costs less than a first one, but only under the plan of the first."""
        for number, entry in enumerate(earlier, start=1):
            stated = cost(number)
            if (Decimal(entry.epsilon), Decimal(entry.delta)) != (
                exact(stated.epsilon),
                exact(stated.delta),
            ):
                raise LedgerError(
                    f"report {number} of run {self._run} was debited under another plan; nothing "
                    "was sent, ask for a plan of 'tacit fleet next-run', which names a new run."
                )

    def _check_run(self, earlier: list[Entry], wanted: DpGuarantee) -> None:
        epsilon = sum((Decimal(entry.epsilon) for entry in earlier), exact(wanted.epsilon))
        delta = sum((Decimal(entry.delta) for entry in earlier), exact(wanted.delta))
        limit = self._budget
        if epsilon > exact(limit.epsilon) or (
            limit.delta is not None and delta > exact(limit.delta)
        ):
            raise BudgetExceeded(
                f"the plan of run {self._run} allows this node the budget of epsilon "
                f"{rounded_up(limit.epsilon)}, and another report would pass it; nothing was sent."
            )

    def _refusal(self, wanted: DpGuarantee) -> str:
        left = rounded_down(self._ledger.remaining().epsilon)
        total = float_up(exact(self.spent()) + exact(self._budget.epsilon))
        delta = ""
        if wanted.delta > self._ledger.remaining().delta:
            needed = exact(self._ledger.spent().delta) + exact(self._budget.delta or wanted.delta)
            delta = f" --budget-delta {rounded_up(float_up(needed))}"
        return (
            f"the data of this node have spent epsilon {rounded_up(self.spent())} in all runs "
            f"together and {left} is left of their budget, too little for a report of epsilon "
            f"{rounded_up(wanted.epsilon)}, which was not made; to allow it run "
            f"'tacit ledger budget "
            f"--db {self.path} --budget-epsilon {rounded_up(total)}{delta} "
            '--reason "another run"\'.'
        )
