"""The programs that a plan may name, by import path: the one place where they are registered."""

from __future__ import annotations

import importlib

from tacit.errors import TacitError
from tacit.silo.secure.session import Program

PROGRAMS = {"fedst": "tacit.silo.fedst.program:fedst_program"}


def program_path(name: str, *, agreed: str | None = None) -> str:
    """The import path of a registered program, or of one that this party agreed to.

    A plan is written by somebody else: it cannot make a party import just any code.
    """
    if name in PROGRAMS:
        return PROGRAMS[name]
    if name != agreed:
        raise TacitError(
            f"the plan names the program {name!r}; built in are {sorted(PROGRAMS)}, any other "
            f"needs this party's consent (--program {name})."
        )
    return name


def load_program(path: str) -> Program:
    """Import `module:function`."""
    module, _, name = path.partition(":")
    program: Program = getattr(importlib.import_module(module), name)
    return program
