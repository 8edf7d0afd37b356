"""The programs that a plan may name, by import path: the one place where they are registered."""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tacit.errors import TacitError
from tacit.silo.party.hello import Refusal
from tacit.silo.plan import Plan
from tacit.silo.secure.session import Program

PROGRAMS = {"fedst": "tacit.silo.fedst.program:fedst_program"}
# Modules with `check_params(params)`, `check_plan(plan)` and `memory_of(plan)`.
CHECKS = {"fedst": "tacit.silo.fedst.plan_check"}


def program_path(name: str, *, agreed: str | None = None) -> str:
    """The import path of a registered program, or of one that this party agreed to.

    A plan is written by somebody else: it cannot make a party import just any code.
    """
    if name in PROGRAMS:
        return PROGRAMS[name]
    if name != agreed:
        raise Refusal(
            f"the plan names the program {name!r}; built in are {sorted(PROGRAMS)}, any other "
            f"needs this party's consent (--program {name}).",
            public="it has not agreed to the plan's program",
        )
    return name


def load_program(path: str) -> Program:
    """Import `module:function`."""
    module, _, name = path.partition(":")
    program: Program = getattr(importlib.import_module(module), name)
    return program


def check_params(name: str, params: Mapping[str, Any]) -> None:
    """Refuse settings that the program `name` does not know."""
    if name in CHECKS:
        try:
            importlib.import_module(CHECKS[name]).check_params(params)
        except TacitError as error:
            raise Refusal(str(error), public=f"its plan is not valid: {error}") from error


def check_plan(plan: Plan, *, memory_gb: float | None) -> None:
    """Refuse a plan too large for the program's arithmetic, or for this party's memory."""
    if plan.program not in CHECKS:
        return
    checks = importlib.import_module(CHECKS[plan.program])
    checks.check_plan(plan)
    needed = checks.memory_of(plan) / 1e9
    free = available_memory_gb() if memory_gb is None else memory_gb
    if free is not None and needed > free:
        raise Refusal(
            f"the plan needs about {needed:.2f} GB of memory and this party has {free:.2f} GB; "
            "agree on fewer series or candidates, or raise limits.memory_gb.",
            public=f"it has too little memory for this plan, which needs about {needed:.2f} GB",
        )


def available_memory_gb() -> float | None:
    """Memory that programs can still get, as far as the system tells."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        fields = dict(line.split(":", 1) for line in lines)
        return int(fields["MemAvailable"].split()[0]) * 1024 / 1e9
    except (OSError, KeyError, ValueError):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
