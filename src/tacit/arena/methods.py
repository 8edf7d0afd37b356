"""Every method of the comparison by name, as one function of task and data."""

from __future__ import annotations

import difflib

from tacit.arena.families import FAMILIES
from tacit.arena.fleet.rivals import FLEET_METHODS
from tacit.arena.outcome import Method, Outcome
from tacit.arena.rivals import RIVALS, run_rival
from tacit.arena.task import Task
from tacit.data import load_dataset
from tacit.errors import TacitError

METHODS: dict[str, Method] = {
    **dict.fromkeys(RIVALS, run_rival),
    **FAMILIES,
    **FLEET_METHODS,
}


def run_method(task: Task) -> Outcome:
    """Load the data and run the task's method on it."""
    return method_named(task.method)(task, load_dataset(task.data))


def method_names() -> list[str]:
    """The names that a task may have as its method."""
    return sorted(METHODS)


def method_named(name: str) -> Method:
    """The function behind a name; a mistyped one gets a suggestion."""
    if name not in METHODS:
        near = difflib.get_close_matches(name, METHODS, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else f"; known: {', '.join(method_names())}."
        raise TacitError(f"there is no method {name!r}{hint}")
    return METHODS[name]
