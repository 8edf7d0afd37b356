"""Write the table of broken mechanisms in docs/guarantees/audits.md from audits that are run.

python tests/audit/broken_table.py [NAME ...]

Runs the rows named, or all, which takes minutes. The column "before" is history and stays.
"""

from __future__ import annotations

import importlib.util
import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.audit import Audited, AuditResult, audit, build
from tacit.audit.bounds import DpClaim
from tacit.audit.finite_laws import channel_law
from tacit.audit.laws import Law, PrivUnitLaw
from tacit.audit.pairs import symbol_pairs
from tacit.mechanisms import calibrate_privunit, krr_matrix, randomize_symbols
from tacit.noise import SYSTEM_NOISE

PAGE = Path(__file__).parents[2] / "docs" / "guarantees" / "audits.md"
HEAD = (
    "| mechanism | claim | true ε | before | now | detectable ε | detectable event | with the law |"
)
TRIALS = 1_000_000
NO_LAW = "no law stated"


@dataclass(frozen=True)
class Row:
    """One mechanism, or several that differ in which input they betray; the worst is shown."""

    claim: float
    epsilon: float
    audited: tuple[Audited, ...]
    laws: tuple[Law, ...] = ()


def rows() -> dict[str, Row]:
    """By the name in the table: all of BROKEN, and three that laws and float64 hid."""
    broken = _test_module().BROKEN
    found = {
        name: Row(
            claim=one.claim,
            epsilon=one.epsilon,
            audited=(Audited(name, DpClaim(epsilon=one.claim), one.run, one.pairs),),
            laws=_laws_of(name, one.claim),
        )
        for name, one in broken.items()
    }
    claim, channel = DpClaim(epsilon=1.0), channel_law(krr_matrix(4, 1.0))
    raw = tuple(Audited("raw", claim, _raw(symbol), symbol_pairs(4)) for symbol in range(4))
    privunit = build("privunit")
    assert privunit.law is not None
    dense = next(x for pair in privunit.pairs for x in pair if np.all(x))
    constant = tuple(
        replace(privunit, run=_constant_at(privunit, one), law=None)
        for one in (np.zeros(8), np.eye(8)[0], dense)
    )
    return {
        **found,
        "float64 Laplace (`float-laplace`)": Row(1.0, math.inf, (build("float-laplace"),)),
        "4-RR with one symbol raw, each of the four": Row(1.0, math.inf, raw, (channel,)),
        "PrivUnitG (d = 8) constant at one input: zero, an axis or dense": Row(
            1.0, math.inf, constant, (privunit.law,)
        ),
    }


def cells(name: str, row: Row, before: str) -> list[str]:
    """One line of the table."""
    results = [audit(one, trials=TRIALS) for one in row.audited]
    worst = min(results, key=lambda one: (one.verdict == "refuted", one.lower_bound))
    with_law = [
        audit(replace(one, law=law), trials=TRIALS) for law in row.laws for one in row.audited
    ]
    return [
        name, f"{row.claim:g}", "∞" if math.isinf(row.epsilon) else f"{row.epsilon:.3f}", before,
        f"{max(0.0, worst.lower_bound):.3f} {worst.verdict}", f"{worst.detectable_epsilon:.3f}",
        f"{worst.detectable_event:.1e}", _told(with_law),
    ]  # fmt: skip


def table() -> Iterator[list[str]]:
    """The cells of the lines that stand in the page."""
    text = PAGE.read_text(encoding="utf-8")
    for line in text[text.index(HEAD) :].splitlines()[2:]:
        if not line.startswith("|"):
            return
        yield [cell.strip() for cell in line.strip("|").split("|")]


def _told(results: list[AuditResult]) -> str:
    if not results:
        return NO_LAW
    if any(one.verdict != "refuted" for one in results):
        return "consistent"
    endless = math.isinf(results[0].exact_epsilon or 0.0)
    return "refuted: loss ∞" if endless else "refuted: misfit"


def _laws_of(name: str, claim: float) -> tuple[Law, ...]:
    if name.startswith("zero cell"):
        p = float(name.split()[-1])
        return (
            channel_law(
                np.array([[0.5, 0.25, 0.25 - p, p], [0.25, 0.5, 0.25, 0], [0.25, 0.25, 0.5 - p, p]])
            ),
        )
    if name.startswith("PrivUnitG"):
        dimension = 40 if "float32" in name else 8
        return (PrivUnitLaw(calibrate_privunit(epsilon=claim, dimension=dimension)),)
    return ()


def _raw(symbol: int) -> Any:
    def run(x: int, n: int) -> NDArray[Any]:
        if x == symbol:
            return np.full(n, x)
        return randomize_symbols(np.full(n, x), n_symbols=4, epsilon=1.0, source=SYSTEM_NOISE)

    return run


def _constant_at(audited: Audited, one: NDArray[Any]) -> Any:
    output = np.asarray(audited.run(one, 1))

    def run(x: Any, n: int) -> NDArray[Any]:
        if np.array_equal(x, one):
            return np.repeat(output, n, axis=0)
        return audited.run(x, n)

    return run


def _test_module() -> Any:
    path = Path(__file__).with_name("test_broken.py")
    spec = importlib.util.spec_from_file_location("broken", path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules["broken"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main(names: list[str]) -> None:
    """Run every audit and write the table in its place."""
    stands = {line[0]: line for line in table()}
    lines = []
    for name, row in rows().items():
        line = stands.get(name, [name, "", "", "not run"])
        if name not in stands or not names or name in names:
            line = cells(name, row, line[3])
            print(line, flush=True)
        lines.append(f"| {' | '.join(line)} |")
    text = PAGE.read_text(encoding="utf-8")
    start = text.index("\n", text.index("|---", text.index(HEAD))) + 1
    old = text[start:]
    after = old[len("".join(x for x in old.splitlines(True) if x.startswith("|"))) :]
    PAGE.write_text(text[:start] + "\n".join(lines) + "\n" + after, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
