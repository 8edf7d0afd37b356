"""The demonstration's page: one day, what others see of it in each family, what they learn.

It compares no accuracies: the families protect from different adversaries. Each part shows the
same day from the place where somebody curious would stand.
"""

from __future__ import annotations

import secrets
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from tacit.data import Dataset
from tacit.guarantee import Guarantee, rounded_up
from tacit.local.prevalence import estimate_prevalence
from tacit.report.charts import ChartType, Line, bar_chart, line_chart
from tacit.report.look import FAMILY_COLOURS, SERIES_COLOURS
from tacit.report.page import FurtherGuarantee, Table, Text, write_page
from tacit.report.render import draw
from tacit.report.silo_charts import match_figure

HYPOTHETICAL = 1000
_DAY = 0  # the first test series: nobody chose it
_SHARE_BITS = 64
_WHO = {
    "local": ("whoever sees the label, up to epsilon", "everybody: it gains nothing"),
    "silo": ("the first party: the model", "two of three parties could undo it"),
    "fleet": ("whoever sees the sum, up to epsilon", "the two services could undo it"),
}


class Told(Protocol):
    """What one family did."""

    @property
    def family(self) -> str:
        """Its name."""

    @property
    def accuracy(self) -> float:
        """On the test series."""

    @property
    def left(self) -> str:
        """What left the owner."""

    @property
    def guarantee(self) -> Guarantee:
        """What it promises."""

    @property
    def classifier(self) -> Any:
        """The fitted estimator."""


def write_story(path: Path, data: Dataset, runs: Sequence[Told], missing: Sequence[str]) -> Path:
    """Write the page; its pictures are drawn, so it needs no script."""
    parts = {"local": _local, "silo": _silo, "fleet": _fleet}
    blocks: list[Any] = [*_opening(data)]
    for run in runs:
        blocks += [
            *parts[run.family](run, data),
            FurtherGuarantee("What is promised", run.guarantee),
        ]
    rows = [(run.family, run.left, *_WHO[run.family]) for run in runs]
    blocks += [
        Text("", "Who sees what"),
        Table(("family", "what leaves the owner", "who learns from it", "who could collude"), rows),
    ]
    if missing:
        blocks.append(Text(f"Not installed here: {', '.join(missing)}."))
    blocks.append(
        Text(
            f"Run '{studio_command(path.parent)}': there the models of this page are ready to be "
            "looked at, attacked and opened as a device, and your own recordings can follow.",
            "Next",
        )
    )
    drawn = [draw(block) if _is_chart(block) else block for block in blocks]
    return write_page(path, title="A day of electricity, and what others learn of it", blocks=drawn)


def studio_command(folder: Path) -> str:
    """What opens the studio on the demonstration's own models."""
    return f"tacit studio --workspace {shlex.quote(str(folder))}"


def _is_chart(block: Any) -> bool:
    return not isinstance(block, (Text, Table, FurtherGuarantee))


def _opening(data: Dataset) -> list[Any]:
    return [
        Text(
            f"{data.name} holds days of electricity demand, an hour a sample. The task is to tell "
            "days of October to March from days of April to September. A household's day would "
            "say when people get up, cook and leave; so below nobody but its owner sees one. Three "
            "ways to classify it all the same follow, each with what a curious outsider gets."
        ),
        _typical_days(data),
    ]


def _typical_days(data: Dataset) -> ChartType:
    lines = [
        Line(
            f"class {label}, training mean",
            list(enumerate(data.X_train[data.y_train == label, 0].mean(axis=0).tolist())),
            colour=SERIES_COLOURS[n],
            dots=False,
        )
        for n, label in enumerate(data.classes)
    ]
    day = list(enumerate(data.X_test[_DAY, 0].tolist()))
    lines.append(Line("the day that this page follows", day, colour="#222222", width=2.6))
    return line_chart("One day, and the mean of each class", lines, x="hour", y="demand, scaled")


def _local(run: Told, data: Dataset) -> list[Any]:
    model = run.classifier.model_
    day = model.check_series(data.X_test[_DAY : _DAY + 1])
    many = model.labels(model.randomize(np.repeat(model.head.summarise(day), HYPOTHETICAL, axis=0)))
    everybody = model.randomize(model.head.summarise(model.check_series(data.X_test)))
    shares = estimate_prevalence(model, everybody)
    last = len(shares.classes) - 1
    true = float(np.mean(data.y_test == data.classes[last]))
    span = f"{shares.low[last]:.0%} and {shares.high[last]:.0%}"
    epsilon = rounded_up(model.head.epsilon)
    seen = bar_chart(
        f"What {HYPOTHETICAL} releases of this day would say",
        {f"class {name}": many.count(name) / HYPOTHETICAL for name in model.classes},
        x="share of hypothetical releases",
        colours=[FAMILY_COLOURS["local"]] * len(model.classes),
        x_range=(0.0, 1.0),
        percent=True,
    )
    return [
        Text(
            "The device classifies its own day, rolls a loaded die, and sends one symbol, once. "
            f"Whoever sees it, the server included, gets one draw from these bars. At epsilon "
            f"{epsilon} even somebody who knows all days and suspects this one moves from odds of "
            f"1:1 to {rounded_up(np.exp(model.head.epsilon), digits=2)}:1 at most.",
            "Local: one noised answer leaves the device",
        ),
        seen,
        Text(
            f"What the server learns: {len(data.y_test):,} such answers together put class "
            f"{shares.classes[last]} between {span} of the devices' answers, at 95 %. In truth "
            f"{true:.0%} of the days are of it. Read one by one, the noised answers are right in "
            f"{run.accuracy:.0%}."
        ),
    ]


def _silo(run: Told, data: Dataset) -> list[Any]:
    classifier = run.classifier
    explanation = classifier.explain(data.X_test[_DAY, 0], n_shapelets=3)
    opened = "; ".join(run.guarantee.to_dict().get("opened", ())).replace(" -> ", " → ")
    sent = classifier.history_["bytes_sent"]
    return [
        Text(
            "Three organisations hold days of their own. They cut every number into random shares "
            "and compute on those. One share of our day, which is all that another organisation "
            "holds of it, looks like this: every picture of this kind is equally likely, whatever "
            "the day.",
            "Silo: secret shares leave the organisation",
        ),
        _share(explanation.series[0]),
        Text(
            f"What they learn: {opened or 'nothing'}; the first party sent {sent / 1e6:.1f} MB. "
            "With the model it explains a new day by shapes from its own days: these drove the "
            f"decision. It is right in {run.accuracy:.0%}."
        ),
        match_figure(explanation),
    ]


def _share(series: Any) -> ChartType:
    """One of two additive shares modulo 2^64, as fixed-point numbers are shared."""
    units = [round(float(value) * 2**12) for value in series]
    masks = [secrets.randbits(_SHARE_BITS) for _ in units]
    share = [
        (unit - mask) % 2**_SHARE_BITS / 2**_SHARE_BITS
        for unit, mask in zip(units, masks, strict=True)
    ]
    line = Line("share", list(enumerate(share)), colour=FAMILY_COLOURS["silo"])
    title = "What another organisation holds of this day: one share"
    return line_chart(title, [line], x="hour", y="share, of 2^64", y_range=(0.0, 1.0), legend=False)


def _fleet(run: Told, data: Dataset) -> list[Any]:
    classifier = run.classifier
    rounds = classifier.history_
    reports = min(one.n_reports for one in rounds)
    spent = [(one.round_number, one.epsilon_spent) for one in rounds if one.epsilon_spent > 0.0]
    title = "What the sums have cost a device, round by round"
    line = Line("spent", spent, colour=FAMILY_COLOURS["fleet"])
    return [
        Text(
            "Every device trains on its own days, clips its update, adds its part of the noise and "
            "splits it into two sealed shares. Two services that do not collude see random bytes; "
            f"what comes out is the noised sum of at least {reports} updates, so nobody sees an "
            "update of one device.",
            "Fleet: a noised sum of many devices is seen",
        ),
        line_chart(title, [line], x="round", y="epsilon", y_range=(0.0, 8.4), legend=False),
        Text(
            f"What the server learns: {len(rounds)} sums, and with them a model that is right in "
            f"{run.accuracy:.0%} of new days. All sums together tell about a whole device at most "
            "what the promise says."
        ),
    ]
