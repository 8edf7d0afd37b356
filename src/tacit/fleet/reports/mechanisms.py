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


def report_named(mechanism: str) -> type[Report]:
    """The mechanism of this name."""
    try:
        return REPORTS[mechanism]
    except KeyError:
        known = " or ".join(REPORTS)
        raise TacitError(f"unknown mechanism {mechanism!r}; use {known}.") from None
