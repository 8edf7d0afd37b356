"""A result as people read it: no interval is narrowed, each guarantee says for whom it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tacit.guarantee import DpGuarantee
from tacit.studio.jobs import Job
from tacit.studio.results import summary_of


def job(**about: str) -> Job:
    return Job(
        id="x", title="x", arguments=(), about=about, started=0.0, state="done", folder=Path("x")
    )


def test_an_interval_is_rounded_outwards_and_guarantees_have_names() -> None:
    promise = DpGuarantee(epsilon=2.0, model="local", unit="series").to_dict()
    result: dict[str, Any] = {
        "accuracy": 0.9,
        "accuracy_interval": {"low": 0.879, "high": 0.9201, "level": 0.95},
        "confusion": {"classes": ["a", "b"], "counts": [[9, 1], [1, 9]]},
        "guarantee": {"training": promise, "release": promise, "both": promise},
        "rounds": 4,
        "clients": 20,
    }
    made = summary_of(job(kind="train", method="hybrid", data="x", model="x"), result)
    assert made.figures[0] == ("87% to 93%", "right on series like these, at 95%")
    assert [name for name, _ in made.guarantees] == [
        "For who trains", "For each released series", "For who trains and releases once",
    ]  # fmt: skip
    assert len(made.charts) == 1, "which class is read as which"
