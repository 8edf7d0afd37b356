"""Figures and a page for an attack: the mechanism that failed beside the one that held."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit.errors import TacitError
from tacit.report.charts import FAMILY_COLOURS, Line, alt, bar_chart, line_chart, with_guarantee
from tacit.report.look import PROTECTED, UNPROTECTED
from tacit.report.page import FurtherGuarantee, Table, Text, write_page

if TYPE_CHECKING:
    from tacit.audit.attacks import AttackResult

_TITLES = {
    "pidp": "A participant recovers the initiator's shapelet from FedST's Pi_DP",
    "softshape": "One published DP-SoftShape release tells which series it came from",
    "timefl": "Shuffled published DP-TimeFL reports are linked back to their clients",
}
_RED, _GREY, _GREEN = UNPROTECTED, FAMILY_COLOURS["none"], PROTECTED


def rates_figure(result: AttackResult) -> alt.VConcatChart:
    """Success on the published mechanism, chance, success on the sound one and its bound."""
    sound = result.sound
    bars = [
        ("published", result.rate, _RED),
        ("guessing", result.chance, _GREY),
        ("sound", sound.rate, _GREEN),
        ("most the sound guarantee allows", sound.bound, "#9cc7ab"),
    ]
    chart = bar_chart(
        "How often the attack succeeds",
        {name: rate for name, rate, _ in bars},
        x="rate of success",
        colours=[colour for _, _, colour in bars],
        x_range=(0.0, 1.05),
        percent=True,
    )
    return with_guarantee(chart, result.guarantee)


def detail_figure(result: AttackResult) -> alt.VConcatChart | None:
    """What is special to one attack: the recovered shapelet, or nominal and realised loss."""
    details = result.details
    if "example" in details:
        secret, recovered = (
            list(enumerate(details["example"][key])) for key in ("secret", "recovered")
        )
        chart = line_chart(
            "Secret and recovered shapelet",
            [
                Line("secret", secret, width=6.0, dots=False, colour=_GREY),
                Line("recovered", recovered, joined=False, dots=True, colour=_RED),
            ],
            x="position",
            y="z-scored value",
        )
    elif "realised_loss_median" in details:
        names = {
            "nominal epsilon": "nominal_epsilon",
            "claimed in total": "claimed_total",
            "realised (median)": "realised_loss_median",
        }
        chart = bar_chart(
            "Privacy loss of one release",
            {name: details[key] for name, key in names.items()},
            x="nats, logarithmic",
            colours=[_RED] * len(names),
            log=True,
        )
    else:
        return None
    return with_guarantee(chart, result.guarantee)


def write_attack_page(path: Path, result: AttackResult) -> Path:
    """One page: rates, the attack's own figure, and all numbers."""
    if path.suffix.lower() not in {".html", ".htm"}:
        raise TacitError(f"{path} must end in .html; the page is written there.")
    sound = result.sound
    verdict = "stays within" if sound.within else "EXCEEDS"
    blocks: list[Any] = [
        Text(
            f"The attack succeeds in {result.rate:.1%} of runs; guessing would in "
            f"{result.chance:.2g}. On the sound mechanism ({sound.what}) it reaches "
            f"{sound.rate:.1%} in {sound.runs} runs and {verdict} the bound of {sound.bound:.3g}."
        ),
        rates_figure(result),
    ]
    detail = detail_figure(result)
    if detail is not None:
        blocks.append(detail)
    blocks += [FurtherGuarantee("The sound mechanism", sound.guarantee), _numbers(result)]
    return write_page(path, title=_TITLES[result.attack], guarantee=result.guarantee, blocks=blocks)


def _numbers(result: AttackResult) -> Table:
    short = {
        key: value
        for key, value in result.details.items()
        if not isinstance(value, dict) and not (isinstance(value, list) and len(value) > 20)
    }
    return Table(("quantity", "value"), [*short.items(), ("seconds", f"{result.seconds:.1f}")])
