"""Which `Report` a plan or a mechanism's name stands for: the one place that tells them apart."""

from __future__ import annotations

from tacit.errors import TacitError
from tacit.fleet.plan import FleetPlan
from tacit.fleet.reports.distributed import DistributedReport
from tacit.fleet.reports.privunit import PrivUnitReport
from tacit.fleet.reports.protocol import Report

REPORTS: dict[str, type[Report]] = {
    kind.settings_type.mechanism: kind for kind in (PrivUnitReport, DistributedReport)
}


def report_of(plan: FleetPlan) -> Report:
    """The mechanism of this plan."""
    return report_named(plan.mechanism)(plan)


def simulation_problem(mechanism: str, n_reports: int, *, lower: str) -> str:
    """Why a simulated run with so many reports a round keeps no guarantee; empty if it does.

    `lower` is the option that lowers the number.
    """
    most = report_named(mechanism).most_simulated
    if most is None or n_reports <= most:
        return ""
    others = " or ".join(name for name, kind in REPORTS.items() if kind.most_simulated is None)
    return (
        f"a simulated {mechanism} run with {n_reports} reports a round ends without one: their "
        f"sum is drawn at once in float64; use --mechanism {others}, or at most {most} with "
        f"{lower}."
    )


def report_named(mechanism: str) -> type[Report]:
    """The mechanism of this name."""
    try:
        return REPORTS[mechanism]
    except KeyError:
        known = " or ".join(REPORTS)
        raise TacitError(f"unknown mechanism {mechanism!r}; use {known}.") from None
