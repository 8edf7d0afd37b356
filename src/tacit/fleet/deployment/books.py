"""The analyser's books: a batch is debited before it is opened, and what was seen is never lost.

How many reports of a batch are valid shows only when it is opened, and what was opened was seen. So
the debit comes first, for the fewest reports with which the round can be released, which is the
most that a released round can cost. If more are valid, the difference is not paid back; the next
debit is worked out from the true numbers and is smaller for it. If fewer are valid, nothing is
released, and what they cost beyond the debit is entered as well, past the budget if it must be:
a budget bounds what may be opened, and the ledger tells what was. So is a first delta, where so
many are valid that shuffling amplifies and the plain sum, which has none, is not the smaller one.
"""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

from tacit.errors import BudgetExceeded, LedgerError
from tacit.fleet.deployment.shuffler_state import Batch
from tacit.guarantee import DpGuarantee, round_up
from tacit.ledger import Amount, Ledger
from tacit.ledger.anchors import configured_anchor
from tacit.ledger.chain import exact, float_up

_LEAST = 1e-12  # a debit must be above 0, even where a round adds next to nothing
_ROOM = 1e-9  # of a budget that has to be raised to what was spent


class Books:
    """One run's ledger, whose entries add up to no less than the run's composed total.

    Guarantee: whenever a batch may have been opened, the ledger's sum is at least the total of all
    batches up to it with `n_min` valid reports in the last; once it was counted, with the number
    that were valid.
    Assumes: a total does not grow with more reports, which both mechanisms' bounds keep.
    """

    def __init__(self, path: Path, *, run: str, epsilon: float, delta: float) -> None:
        self._run = run
        self._epsilon, self._delta = epsilon, delta
        self._ledger = self._open(path)

    def spent(self) -> Amount:
        """What the ledger holds."""
        return self._ledger.spent()

    def is_empty(self) -> bool:
        """Whether nothing was debited yet."""
        return not any(entry.subject for entry in self._ledger.entries())

    def holds(self, batch: Batch) -> bool:
        """Whether the batch was debited, so that it may have been opened."""
        purpose = self._purpose(batch)
        return any(entry.purpose == purpose for entry in self._ledger.entries())

    def debit(self, batch: Batch, total: DpGuarantee) -> str | None:
        """Enter a batch before it is opened, once; why it must stay closed, or None.

        `total` is that of all batches up to this one, with the fewest valid reports in it.
        """
        if self.holds(batch):
            return None
        if total.epsilon > self._epsilon or total.delta > self._delta:
            return (
                f"round {batch.round_number} would bring epsilon to {round_up(total.epsilon)} at "
                f"delta {total.delta:g}, past the plan's {self._epsilon:g} at {self._delta:g}; "
                "the batch was not opened."
            )
        try:
            self._enter(total, self._purpose(batch))
        except BudgetExceeded as error:
            return f"round {batch.round_number} was not opened: {error}"
        return None

    def correct(self, batch: Batch, n: int, total: DpGuarantee) -> str | None:
        """Enter what an opened batch cost beyond its debit; why the run must stop, or None.

        `total` counts the `n` valid reports that were found.
        """
        spent = self._ledger.spent()
        # Also true after a crash that came between these entries and the checkpoint.
        past = total.epsilon > self._epsilon or total.delta > self._delta
        if total.epsilon > spent.epsilon or total.delta > spent.delta:
            purpose = f"{self._purpose(batch)}, with {n} valid reports"
            try:
                self._enter(total, purpose)
            except BudgetExceeded:
                self._raise_budgets(total, purpose)
                self._enter(total, purpose)
        if not past:
            return None
        return (
            f"round {batch.round_number} held {n} valid reports, which brings epsilon to "
            f"{round_up(total.epsilon)} at delta {total.delta:g}, past the plan's "
            f"{self._epsilon:g} at {self._delta:g}; nothing of it was released."
        )

    def close(self) -> None:
        """Close the ledger."""
        self._ledger.close()

    def _open(self, path: Path) -> Ledger:
        anchor = configured_anchor(path)
        try:
            return Ledger.open(
                path, budget_epsilon=self._epsilon, budget_delta=self._delta, anchor=anchor
            )
        except LedgerError:
            # `correct` may have raised the budgets, and recorded it; nothing else may differ.
            ledger = Ledger.open(path, create=False, anchor=anchor)
            budgets = ledger.budgets()
            epsilon, delta = budgets["budget_epsilon"], budgets["budget_delta"]
            if epsilon is None or delta is None or epsilon < self._epsilon or delta < self._delta:
                raise
            return ledger

    def _purpose(self, batch: Batch) -> str:
        return f"fleet run {self._run} round {batch.round_number} batch {batch.batch_id}"

    def _enter(self, total: DpGuarantee, purpose: str) -> None:
        # Against what the ledger holds to the last digit, so that its sum never falls below the
        # total; it adds numbers up as they are written, in decimals.
        last = self._ledger.entries()[-1]
        added = DpGuarantee(
            epsilon=max(float_up(exact(total.epsilon) - Decimal(last.total_epsilon)), _LEAST),
            delta=max(float_up(exact(total.delta) - Decimal(last.total_delta)), 0.0),
            model=total.model,
            unit="client",
            assumptions=("an increment: the entries of a run add up to its composed total",),
        )
        self._ledger.debit(
            subject=f"every client of run {self._run}",
            guarantee=added,
            purpose=purpose,
            subject_kind="client",
        )

    def _raise_budgets(self, total: DpGuarantee, purpose: str) -> None:
        spent = self._ledger.spent()
        self._ledger.change_budgets(
            reason=f"{purpose}: what was seen is entered, whatever the budget",
            budget_epsilon=max(total.epsilon, spent.epsilon, self._epsilon) * (1.0 + _ROOM) + _ROOM,
            budget_delta=max(total.delta, spent.delta, self._delta) * (1.0 + _ROOM),
        )
