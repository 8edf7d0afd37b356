"""A fleet's run as the studio shows it: its rounds, what they cost, and how its services are.

The services are asked; where the analyser does not answer and its folder is here, its checkpoint
tells what was reached.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tacit.errors import TacitError
from tacit.fleet.deployment.analyser_state import AnalyserState, analyser_config
from tacit.fleet.deployment.config import (
    RunDescription,
    ServerConfig,
    read_config,
    read_run,
)
from tacit.guarantee import rounded_up
from tacit.report.charts import FAMILY_COLOURS, ChartType, Line, line_chart

_ASKED_SECONDS = 2.0
GOOD, BUSY, BAD, UNKNOWN = "good", "busy", "bad", "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """What one batch came to."""

    number: int
    reports: int
    left_out: int
    epsilon: str
    released: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    """One part of the fleet: how it is, in a word and a sentence."""

    name: str
    health: str
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetRun:
    """Everything that the page shows."""

    planned: int
    nodes: int
    n_min: int
    budget: str
    rounds: list[Round]
    spent: str
    roles: list[Role]
    guarantee: dict[str, Any] | None
    finished: bool
    charts: list[ChartType]
    received: str | None  # in the round that is open, in so far as the shuffler says it

    @property
    def state(self) -> str:
        """Changes with every round and with the health of every role: then the page is new."""
        health = " ".join(role.health for role in self.roles)
        return f"{len(self.rounds)} {self.finished} {health}"


def is_fleet(folder: Path) -> bool:
    """Whether a folder is a fleet's, or its server's."""
    return _server_file(folder) is not None


def fleet_run(folder: Path) -> FleetRun:
    """Where the run stands now."""
    from tacit.fleet.deployment.run import analyser_status, shuffler_status

    file = _server_file(folder)
    assert file is not None
    config = read_config(file, ServerConfig)
    description = read_run(config.plan)
    with ThreadPoolExecutor(max_workers=2) as threads:  # a page waits for the slower one alone
        answers = threads.map(lambda ask: _asked(ask, config), (analyser_status, shuffler_status))
        (analyser, silent), (shuffler, hushed) = answers
    stored = _checkpoint(folder, description) if analyser is None else None
    rounds = _rounds((analyser or stored or {}).get("history", []))
    plan = description.plan
    nodes = len(list(config.node_keys.glob("*.pub")))
    finished = bool((analyser or {}).get("finished")) or len(rounds) >= plan.n_rounds
    return FleetRun(
        planned=plan.n_rounds,
        nodes=nodes,
        n_min=plan.n_min,
        budget=rounded_up(plan.epsilon),
        rounds=rounds,
        spent=rounds[-1].epsilon if rounds else "0",
        roles=[
            analyser_role(analyser, silent, stored=stored is not None, finished=finished),
            shuffler_role(shuffler, hushed, plan.n_rounds),
            _nodes_role(rounds, nodes),
        ],
        guarantee=(analyser or {}).get("guarantee"),
        finished=finished,
        charts=_charts(rounds, planned=plan.n_rounds, budget=plan.epsilon),
        received=None if shuffler is None or finished else _received(shuffler),
    )


def _asked(status: Any, config: ServerConfig) -> tuple[dict[str, Any] | None, str]:
    try:
        return status(config, timeout_seconds=_ASKED_SECONDS), ""
    except TacitError as error:
        return None, str(error)


def _received(shuffler: dict[str, Any]) -> str:
    if shuffler["received"] is not None:  # to its operator's address only
        return str(shuffler["received"])
    return "enough" if shuffler["enough_reports"] else "too few yet"


def _checkpoint(folder: Path, description: RunDescription) -> dict[str, Any] | None:
    """What the analyser reached, from its own folder; None where that is elsewhere or new."""
    try:
        path = analyser_config(folder).state / "checkpoint.npz"
        return AnalyserState.read(path, run=description.run).public() if path.is_file() else None
    except TacitError:
        return None


def _rounds(history: list[dict[str, Any]]) -> list[Round]:
    return [
        Round(
            number=int(one["round_number"]),
            reports=int(one["n"]),
            left_out=int(one["left_out"]),
            epsilon=rounded_up(float(one["epsilon"])),
            released=bool(one["released"]),
        )
        for one in history
    ]


def analyser_role(
    said: dict[str, Any] | None, silent: str, *, stored: bool, finished: bool
) -> Role:
    """How the analyser is, by its own status; `silent` is why there is none."""
    if said is None:
        if stored and finished:
            return Role(name="Analyser", health=GOOD, sentence="is stopped; its run is finished.")
        rest = " What is shown is its checkpoint." if stored else ""
        return Role(name="Analyser", health=UNKNOWN, sentence=f"{silent}{rest}")
    if said["trouble"] or said["stopped"]:
        return Role(name="Analyser", health=BAD, sentence=str(said["trouble"] or said["stopped"]))
    if finished:
        return Role(name="Analyser", health=GOOD, sentence="has finished and serves the model.")
    if said["processing"]:
        return Role(name="Analyser", health=BUSY, sentence="is opening a batch.")
    return Role(name="Analyser", health=GOOD, sentence="answers and waits for a batch.")


def shuffler_role(said: dict[str, Any] | None, silent: str, planned: int) -> Role:
    """How the shuffler is, likewise."""
    if said is None:
        return Role(name="Shuffler", health=UNKNOWN, sentence=silent)
    if said["trouble"]:
        return Role(name="Shuffler", health=BAD, sentence=str(said["trouble"]))
    if said["finished"] or said["round"] > planned:
        return Role(name="Shuffler", health=GOOD, sentence="has forwarded the last round.")
    sentence = f"collects round {said['round']} of {planned}."
    return Role(name="Shuffler", health=GOOD, sentence=sentence)


def _nodes_role(rounds: list[Round], nodes: int) -> Role:
    if not rounds:
        return Role(name="Nodes", health=UNKNOWN, sentence=f"{nodes} may report; none has so far.")
    last = rounds[-1]
    all_in = last.reports >= nodes
    rest = "" if all_in else f", {nodes - last.reports} did not"
    sentence = f"{last.reports} of {nodes} reported in round {last.number}{rest}."
    return Role(name="Nodes", health=GOOD if all_in else BUSY, sentence=sentence)


def _charts(rounds: list[Round], *, planned: int, budget: float) -> list[ChartType]:
    if not rounds:
        return []
    colour = FAMILY_COLOURS["fleet"]
    most = max(one.reports for one in rounds)
    reports = [(float(one.number), float(one.reports)) for one in rounds]
    spent = [(float(one.number), float(one.epsilon)) for one in rounds]
    return [
        line_chart(
            "Reports that counted, per round",
            [Line("reports", reports, colour=colour, dots=True)],
            x=f"round of {planned}", y="reports", y_range=(0.0, 1.1 * most),
            legend=False, counted=True,
        ),
        line_chart(
            "Epsilon spent by a client so far",
            [Line("epsilon", spent, colour=colour, dots=True)],
            x=f"round of {planned}", y="epsilon", y_range=(0.0, 1.1 * max(budget, spent[-1][1])),
            level=("budget of the plan", budget), legend=False, counted=True,
        ),
    ]  # fmt: skip


def _server_file(folder: Path) -> Path | None:
    places = (folder / "server" / "server.toml", folder / "server.toml")
    return next((place for place in places if place.is_file()), None)
