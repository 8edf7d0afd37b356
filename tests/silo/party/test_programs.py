"""Programs: a plan names registered ones, or those that a party agrees to."""

from __future__ import annotations

import pytest

from tacit.errors import TacitError
from tacit.silo.party.programs import PROGRAMS, load_program, program_path


def test_a_plan_cannot_make_a_party_import_code() -> None:
    with pytest.raises(TacitError, match="consent"):
        program_path("os:system")
    with pytest.raises(TacitError, match="consent"):
        program_path("os:system", agreed="os:getcwd")
    assert program_path("mine:program", agreed="mine:program") == "mine:program"
    assert program_path("fedst") == "tacit.silo.fedst.program:fedst_program"


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_registered_program_exists(name: str) -> None:
    assert callable(load_program(program_path(name)))


def test_programs_of_tests_exist_where_plans_name_them() -> None:
    assert callable(load_program("silo_programs:distances_program"))
    with pytest.raises(AttributeError):
        load_program("silo_programs:no_such_program")
