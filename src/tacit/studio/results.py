"""A job's result as people read it: figures, table, pictures and its guarantee."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tacit.report.charts import alt, bar_chart
from tacit.report.look import FAMILY_COLOURS, PROTECTED, UNPROTECTED
from tacit.studio.jobs import Job

_FAMILIES = {"softshape": "local", "fedst": "silo", "timefl": "fleet", "hybrid": "fleet"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """What a result page shows; `figures` are a few large numbers with a word each."""

    headline: str
    figures: list[tuple[str, str]]
    guarantees: list[tuple[str, dict[str, Any]]]
    charts: list[alt.LayerChart]
    warnings: list[str]
    links: list[tuple[str, str]]


def summary_of(job: Job, result: dict[str, Any]) -> Summary:
    """The summary of a training, an import or an attack; of anything else its guarantee."""
    makers = {"train": _training, "attack": _attack, "import": _import}
    return makers.get(job.about.get("kind", ""), _other)(job, result)


def _training(job: Job, result: dict[str, Any]) -> Summary:
    family = _FAMILIES[job.about["method"]]
    accuracy, interval = result["accuracy"], result.get("accuracy_interval")
    figures = [(f"{accuracy:.1%}", "right on test series")]
    if interval:
        span = f"{interval['low']:.0%} to {interval['high']:.0%}"
        figures.append((span, f"interval at {interval['level']:.0%}"))
    if "ceiling" in result:
        figures.append((f"{result['ceiling']:.1%}", "most that any release can reach"))
    bars = {"this model": accuracy}
    if result.get("held_out_accuracy"):
        bars["before the noise"] = result["held_out_accuracy"]
    if "ceiling" in result:
        bars["ceiling"] = result["ceiling"]
    colours = [FAMILY_COLOURS[family]] + [FAMILY_COLOURS["none"]] * (len(bars) - 1)
    chart = bar_chart(
        "How often the label is right", bars, x="share of series", colours=colours,
        x_range=(0.0, 1.0), percent=True,
    )  # fmt: skip
    model = job.about.get("model")
    links = [(f"/look/{model}", "Look at what leaves")] if model and family == "local" else []
    return Summary(
        headline=f"{job.title}: {accuracy:.1%} of the test series get the right label",
        figures=figures,
        guarantees=_guarantees(result["guarantee"]),
        charts=[chart],
        warnings=list(result.get("warnings", [])),
        links=links,
    )


def _attack(job: Job, result: dict[str, Any]) -> Summary:
    sound = result["sound"]
    chart = bar_chart(
        "How often the attacker names the right series",
        {"published": result["rate"], "guessing": result["chance"], "sound": sound["rate"]},
        x="share of attempts",
        colours=[UNPROTECTED, FAMILY_COLOURS["none"], PROTECTED],
        x_range=(0.0, 1.05),
        percent=True,
        level=("sound bound", sound["bound"]),
    )
    return Summary(
        headline=(
            f"Published: {result['rate']:.0%} re-identified. Sound: {sound['rate']:.1%}, "
            f"and never more than {sound['bound']:.1%}"
        ),
        figures=[
            (f"{result['rate']:.0%}", "published mechanism"),
            (f"{sound['rate']:.1%}", "sound mechanism"),
            (f"{result['chance']:.1%}", "guessing"),
        ],
        guarantees=[("Published", result["guarantee"]), ("Sound", sound["guarantee"])],
        charts=[chart],
        warnings=[],
        links=[],
    )


def _import(job: Job, result: dict[str, Any]) -> Summary:
    name = job.about["data"]
    return Summary(
        headline=f"{result['series']} series of {result['length']} samples",
        figures=[
            (str(result["series"]), "series"),
            (str(result["channels"]), "channels"),
            (str(len(result["classes"])), "classes"),
            (str(result["subjects"]), "persons"),
        ],
        guarantees=[],
        charts=[],
        warnings=[f"dropped: {count} ({why})" for why, count in result["dropped"].items()],
        links=[(f"/data/{name}", "Look at the series")],
    )


def _other(job: Job, result: dict[str, Any]) -> Summary:
    return Summary(
        headline=job.title,
        figures=[],
        guarantees=_guarantees(result["guarantee"]) if "guarantee" in result else [],
        charts=[],
        warnings=[],
        links=[],
    )


def _guarantees(stated: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    if "sentence" in stated:
        return [("", stated)]
    return [(name, inner) for name, inner in stated.items() if "sentence" in inner]
