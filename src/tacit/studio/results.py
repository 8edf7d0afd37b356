"""A job's result as people read it: figures, table, pictures and its guarantee."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from tacit.guarantee import rounded_up
from tacit.report.charts import ChartType, bar_chart
from tacit.report.confusion_chart import confusion_chart
from tacit.report.look import FAMILY_COLOURS, PROTECTED, UNPROTECTED
from tacit.studio.jobs import Job

# Whom each of several guarantees of one result is for.
_WHOM = {
    "training": "For who trains",
    "release": "For each released series",
    "both": "For who trains and releases once",
}
_FAMILIES = {"softshape": "local", "fedst": "silo", "timefl": "fleet", "hybrid": "fleet"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """What a result page shows; `figures` are a few large numbers with a word each."""

    headline: str
    figures: list[tuple[str, str]]
    guarantees: list[tuple[str, dict[str, Any]]]
    charts: list[ChartType]
    warnings: list[str]
    links: list[tuple[str, str]]


def summary_of(job: Job, result: dict[str, Any]) -> Summary:
    """The summary of a training, an import or an attack; of anything else its guarantee."""
    return _MAKERS.get(job.about.get("kind", ""), _other)(job, result)


def _training(job: Job, result: dict[str, Any]) -> Summary:
    family = _FAMILIES[job.about["method"]]
    accuracy = result["accuracy"]
    charts: list[ChartType] = []
    if "confusion" in result:
        charts.append(confusion_chart(result["confusion"], colour=FAMILY_COLOURS[family]))
    if "ceiling" in result:
        charts.append(_under_the_ceiling(result, FAMILY_COLOURS[family]))
    return Summary(
        headline=f"{accuracy:.1%} of the test series get the right label",
        figures=[*_accuracy_figures(result), *_cost_figures(family, result)],
        guarantees=_guarantees(result["guarantee"]),
        charts=charts,
        warnings=[_sentence(warning) for warning in result.get("warnings", [])],
        links=_training_links(job, family, result),
    )


def _accuracy_figures(result: dict[str, Any]) -> list[tuple[str, str]]:
    figures = []
    interval = result.get("accuracy_interval")
    if interval:
        low, high = math.floor(100 * interval["low"]), math.ceil(100 * interval["high"])
        span = f"{low}% to {high}%"
        figures.append((span, f"right on series like these, at {interval['level']:.0%}"))
    if "ceiling" in result:
        figures.append((f"{result['ceiling']:.1%}", "most that any release can reach"))
    linked = result.get("reidentification") or result.get("leakage", {}).get("reidentification")
    if linked is not None:
        figures.append((f"{linked:.0%}", "of what was sent was joined to who sent it"))
    return figures


def _cost_figures(family: str, result: dict[str, Any]) -> list[tuple[str, str]]:
    if family == "silo":
        return [
            (f"{sum(result['seconds'].values()):.1f} s", "search, transform and classifier"),
            (f"{result['bytes_sent'] / 1e6:.1f} MB", "sent by the initiator"),
        ]
    if family == "fleet":
        clients = f" of {result['clients']} clients" if "clients" in result else ""
        return [(str(result["rounds"]), f"rounds{clients}")]
    return []


def _under_the_ceiling(result: dict[str, Any], colour: str) -> ChartType:
    bars = {"this model": result["accuracy"]}
    before = result.get("held_out_accuracy") or result.get("clean_accuracy")
    if before:
        bars["before the noise"] = before
    return bar_chart(
        "How often the label is right", bars, x="share of series",
        colours=[colour, FAMILY_COLOURS["none"]], x_range=(0.0, 1.0), percent=True,
        level=("ceiling", result["ceiling"]),
    )  # fmt: skip


def _training_links(job: Job, family: str, result: dict[str, Any]) -> list[tuple[str, str]]:
    model = quote(job.about.get("model", ""))
    room = job.about.get("room", "pages" if family == "silo" else "models")
    if room == "federations":
        return [(f"/federation/{model}", "What was opened, and why this class"),
                (f"/federation/{model}/model", "Download the model")]  # fmt: skip
    if room == "pages":
        return [(f"/pages/{model}", "Why this class?" if family == "silo" else "See its rounds")]
    links = [(f"/models/{model}", "Download the model")]
    if result.get("mode") == "published":
        return links
    releases = family == "local" or job.about["method"] == "hybrid"
    return [(f"/look/{model}", "Look at what leaves"), *links] if releases else links


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _attack(job: Job, result: dict[str, Any]) -> Summary:
    sound = result["sound"]
    chart = bar_chart(
        "How often the attacker names the right series",
        {
            "published": result["rate"],
            "sound": sound["rate"],
            "sound, at most": sound["bound"],
            "guessing": result["chance"],
        },
        x="share of attempts",
        colours=[UNPROTECTED, PROTECTED, PROTECTED, FAMILY_COLOURS["none"]],
        x_range=(0.0, 1.0),
        percent=True,
    )
    return Summary(
        headline=(
            f"Published: {result['rate']:.0%} of the series are re-identified. Sound: "
            f"{sound['rate']:.1%}, where guessing finds {result['chance']:.1%}"
        ),
        figures=[
            (f"{result['rate']:.0%}", "re-identified, published mechanism"),
            (f"{sound['rate']:.1%}", "re-identified, sound mechanism"),
            (f"{sound['bound']:.1%}", "is the most that its epsilon allows"),
            (f"{result['chance']:.1%}", "by guessing"),
        ],
        guarantees=[("Published", result["guarantee"]), ("Sound", sound["guarantee"])],
        charts=[chart],
        warnings=[],
        links=[],
    )


def _import(job: Job, result: dict[str, Any]) -> Summary:
    name, said = job.about["data"], job.about.get("said", "")
    return Summary(
        headline=f"{result['series']} series of {result['length']} samples",
        figures=[
            (str(result["series"]), "series"),
            (str(result["channels"]), "channels"),
            (str(len(result["classes"])), "classes"),
            *([(str(result["subjects"]), "people")] if result["subjects"] else []),
        ],
        guarantees=[],
        charts=[],
        warnings=[f"dropped: {count} ({why})" for why, count in result["dropped"].items()],
        links=[
            (f"/data/{quote(name)}", "Look at the series"),
            (f"/data/import/{quote(job.about['source'])}?{said}", "Correct it"),
        ],
    )


def _release(job: Job, result: dict[str, Any]) -> Summary:
    spent = result["spent_per_series"]
    return Summary(
        headline=f"{result['count']} series released, each once",
        figures=[
            (str(result["count"]), "releases"),
            (rounded_up(spent["epsilon"]), "epsilon spent by one series, at most"),
        ],
        guarantees=_guarantees(result["guarantee"]),
        charts=[],
        warnings=[],
        links=[(f"/budget/{quote(job.about['ledger'])}", "See the budget")],
    )


def _report(job: Job, result: dict[str, Any]) -> Summary:
    link = (f"/arena/{quote(job.about['arena'])}/report", "Open the report")
    return Summary(
        headline="The report is written", figures=[], guarantees=[], charts=[], warnings=[],
        links=[link],
    )  # fmt: skip


def _disclose(job: Job, result: dict[str, Any]) -> Summary:
    fields, unstated = len(result["fields"]), len(result["not_stated"])
    return Summary(
        headline="The disclosure is written",
        figures=[(str(fields), "fields, each with its source"), (str(unstated), "not stated")],
        guarantees=[], charts=[], warnings=[],
        links=[(f"/pages/{quote(job.about['page'])}", "Open the disclosure")],
    )  # fmt: skip


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
    return [(_WHOM.get(name, name), one) for name, one in stated.items() if "sentence" in one]


_MAKERS = {
    "train": _training,
    "attack": _attack,
    "import": _import,
    "release": _release,
    "report": _report,
    "disclose": _disclose,
}
