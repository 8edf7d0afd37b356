"""What a run with epsilon costs each owner's data, debited by the owner itself before it shares.

A party that runs apart keeps the budget of its own series in its own ledger, outside the run's
folder: a second run on the same series finds what the first one spent.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from tacit.errors import BudgetExceeded
from tacit.guarantee import DpGuarantee, rounded_down, rounded_up
from tacit.ledger import Ledger
from tacit.ledger.known_series import marks_of, person_of, remembered
from tacit.ledger.persons import data_key, ledger_folder, ledger_path, open_person_ledger
from tacit.silo.plan import Plan


def opened_privacy(params: Mapping[str, Any]) -> DpGuarantee | None:
    """The differential privacy of what a run under these parameters opens; None without epsilon.

    Noise drawn by the owners inside a secure computation: computational, because the shares are.
    """
    epsilon = params.get("epsilon")
    if epsilon is None:
        return None
    ordered = params.get("scope", "federated") != "local-search"
    return DpGuarantee(
        epsilon=float(epsilon),
        model="distributed",
        unit="series",
        assumptions=(
            "at least one owner other than P0 draws its noise and keeps it secret",
            "no noise exceeds 2^36, which would end the run (probability below 1e-50)",
            "computational: against adversaries that cannot break the secure computation",
            *(("the engine's information gains are exact to 2^-12",) if ordered else ()),
        ),
        not_covered=("P0's own series towards P0", "counts and classes of each party"),
    )


class DataBudget:
    """The budget of one owner's series over all runs; `debit` comes before anything is shared.

    Guarantee: when `debit` returns, the run's epsilon is on disk; when it raises, nothing left.
    Composes: runs on the same series, or on half of them, or under the same name, add up.
    Not covered: other series about the same persons under no name; P0, to whom its own are open.
    """

    def __init__(self, X: Any, *, name: str | None = None, folder: Path | None = None) -> None:
        self._folder, self._series = ledger_folder(folder), marks_of(X)
        self._name, self._key = name or "", data_key(X)

    @cached_property
    def _subject(self) -> str:
        # Looked up when something is to be paid: a run that costs nothing needs no ledger.
        return person_of(self._folder, self._series, name=self._name, otherwise=self._key)

    @property
    def path(self) -> Path:
        """Where the ledger of these series is, or would be."""
        return ledger_path(self._folder, self._subject)

    def check(self, params: Mapping[str, Any], *, rank: int) -> None:
        """Refuse what `debit` would refuse, as far as is known now; nothing is written."""
        cost = opened_privacy(params)
        if cost is None or rank == 0 or not self.path.exists():
            return
        with open_person_ledger(self.path, budget_epsilon=cost.epsilon, budget_delta=None) as own:
            if own.remaining().epsilon < cost.epsilon:
                raise self._exceeded(own, cost)

    def debit(self, plan: Plan, *, rank: int) -> DpGuarantee | None:
        """Enter what the plan costs the owner `rank`, or refuse; None if it costs nothing."""
        cost = opened_privacy(plan.params)
        if cost is None or rank == 0:
            return None
        own = open_person_ledger(self.path, budget_epsilon=cost.epsilon, budget_delta=None)
        with own, remembered(self._folder, self._subject, self._series) as series_list:
            try:
                own.debit(
                    subject=self._subject,
                    guarantee=cost,
                    purpose=f"silo run under plan {plan.fingerprint[:16]}, opened to P0",
                    subject_kind="model",
                    series_list=series_list,
                )
            except BudgetExceeded as error:
                raise self._exceeded(own, cost) from error
        return cost

    def _exceeded(self, own: Ledger, cost: DpGuarantee) -> BudgetExceeded:
        spent, left = own.spent().epsilon, own.remaining().epsilon
        return BudgetExceeded(
            f"this run needs epsilon {rounded_up(cost.epsilon)}, and "
            f"{rounded_down(left)} of this party's budget is left after "
            f"{rounded_up(spent)} in earlier runs; nothing was shared. To allow it run "
            f"'tacit ledger budget --db {self.path} --budget-epsilon "
            f'{rounded_up(spent + cost.epsilon)} --reason "another run"\'.'
        )
