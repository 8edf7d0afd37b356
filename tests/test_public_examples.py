"""Every public name explains itself with a short example, which runs."""

from __future__ import annotations

import doctest
from typing import Any

import pytest

import tacit

NAMES = [name for name in tacit.__all__ if name != "__version__"]
pytestmark = pytest.mark.seconds


def example_of(thing: Any) -> doctest.DocTest:
    """The lines of its own docstring that begin with `>>>`."""
    return doctest.DocTestParser().get_doctest(thing.__doc__ or "", {}, "example", None, 0)


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=[pytest.mark.silo] if n == "FedSTClassifier" else []) for n in NAMES],
)
def test_the_example_of_a_public_name_runs(name: str) -> None:
    example = example_of(getattr(tacit, name))
    assert example.examples, f"the docstring of tacit.{name} has no example"
    assert any(name in line.source for line in example.examples)
    said: list[str] = []
    outcome = doctest.DocTestRunner(verbose=False).run(example, out=said.append)
    assert outcome.failed == 0, "".join(said)


def test_the_check_of_examples_notices_a_wrong_answer() -> None:
    wrong = doctest.DocTestParser().get_doctest(">>> 1 + 1\n3\n", {}, "wrong", None, 0)
    assert doctest.DocTestRunner(verbose=False).run(wrong, out=lambda _: None).failed == 1
