"""What a run with epsilon costs each owner's data, debited by the owner itself before it shares.

A party that runs apart keeps the budget of its own series in its own ledger, outside the run's
folder: a second run on the same series finds what the first one spent.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tacit.errors import BudgetExceeded
from tacit.guarantee import DpGuarantee, rounded_down, rounded_up
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
    Composes: runs on the same series, or under the same name, add up.
    Not covered: other series about the same persons under no name; P0, to whom its own are open.
    """

    def __init__(self, X: Any, *, name: str | None = None, folder: Path | None = None) -> None:
        self._subject = name or data_key(X)
        self.path = ledger_path(ledger_folder(folder), self._subject)

    def debit(self, plan: Plan, *, rank: int) -> DpGuarantee | None:
        """Enter what the plan costs the owner `rank`, or refuse; None if it costs nothing."""
        cost = opened_privacy(plan.params)
        if cost is None or rank == 0:
            return None
        with open_person_ledger(self.path, budget_epsilon=cost.epsilon, budget_delta=None) as own:
            try:
                own.debit(
                    subject=self._subject,
                    guarantee=cost,
                    purpose=f"silo run under plan {plan.fingerprint[:16]}, opened to P0",
                    subject_kind="model",
                )
            except BudgetExceeded as error:
                spent, left = own.spent().epsilon, own.remaining().epsilon
                raise BudgetExceeded(
                    f"the series of this party have spent epsilon {rounded_up(spent)} in all runs "
                    f"together and {rounded_down(left)} is left of their budget, too little for "
                    f"{rounded_up(cost.epsilon)}; nothing was shared, to allow it run 'tacit "
                    f"ledger budget --db {self.path} --budget-epsilon "
                    f'{rounded_up(spent + cost.epsilon)} --reason "another run"\'.'
                ) from error
        return cost
