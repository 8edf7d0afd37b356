"""Empirical lower bounds on epsilon, and attacks on the published mechanisms.

`audit(build("krr", epsilon=1.0))` bounds the epsilon of a mechanism from below by running it;
`audit_training` bounds that of a training from a single run with canaries, `audit_fleet` that of
a sound fleet by name.
"""

from __future__ import annotations

from tacit.audit.engine import Audited, AuditResult, audit
from tacit.audit.onerun import audit_training, one_run_lower_bound
from tacit.audit.registry import build, mechanism_names
from tacit.audit.trainings import audit_fleet, training_names

__all__ = [
    "AuditResult",
    "Audited",
    "audit",
    "audit_fleet",
    "audit_training",
    "build",
    "mechanism_names",
    "one_run_lower_bound",
    "training_names",
]
