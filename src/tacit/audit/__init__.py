"""Audits: lower bounds on epsilon, exact where a law is stated; attacks on published mechanisms.

`audit(build("krr", epsilon=1.0))` computes the privacy loss of the law that a mechanism states and
runs it to see whether it follows that law; without a law the runs bound epsilon from below;
`audit_training` bounds that of a training from a single run with canaries, `audit_fleet` that of
a sound fleet by name.
"""

from __future__ import annotations

from tacit.audit.engine import Audited, AuditResult, audit
from tacit.audit.onerun import audit_training, one_run_lower_bound
from tacit.audit.registry import build, demonstration_names, mechanism_names
from tacit.audit.trainings import audit_fleet, training_names

__all__ = [
    "AuditResult",
    "Audited",
    "audit",
    "audit_fleet",
    "audit_training",
    "build",
    "demonstration_names",
    "mechanism_names",
    "one_run_lower_bound",
    "training_names",
]
