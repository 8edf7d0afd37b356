"""What `tacit fleet status` asks, and how it is drawn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tacit.cli.common import print_table


def asked(folder: Path) -> dict[str, Any]:
    """What the services say that this folder knows."""
    from tacit.fleet.deployment.config import (
        AnalyserConfig,
        ServerConfig,
        ShufflerConfig,
        read_config,
    )
    from tacit.fleet.deployment.run import analyser_status, own_status, shuffler_status

    if (folder / "shuffler.toml").exists():
        return {"shuffler": own_status(read_config(folder / "shuffler.toml", ShufflerConfig))}
    if (folder / "analyser.toml").exists():
        own = own_status(read_config(folder / "analyser.toml", AnalyserConfig))
        return {**shown(own), "shuffler": None}
    inner = folder / "server" / "server.toml"
    config = read_config(inner if inner.exists() else folder / "server.toml", ServerConfig)
    return {**shown(analyser_status(config)), "shuffler": shuffler_status(config)}


def shown(status: dict[str, Any]) -> dict[str, Any]:
    """The services name the next round; to a reader a run of two rounds ends in its second."""
    return {**status, "round": min(status["round"], status["rounds"])}


def draw_status(status: dict[str, Any]) -> None:
    """Where the run stands, and below it one line for every round."""
    from tacit.guarantee import rounded_up

    shuffler = status["shuffler"]
    if "history" not in status:  # what a shuffler knows by itself
        state = "finished" if shuffler["finished"] else f"rounds forwarded: {shuffler['forwarded']}"
        rows = [("run", shuffler["run"]), ("state", state), ("shuffler", _collected(shuffler))]
        print_table([*rows, ("trouble", shuffler["trouble"] or "none")])
        return
    guarantee = status["guarantee"]
    now = f"round {status['round']}"
    done = f"finished after {len(status['history'])}"
    state = f"{done if status['finished'] else now} of {status['rounds']}"
    spent = status["spent"]
    trouble = status["trouble"] or (shuffler or {}).get("trouble") or status["stopped"] or "none"
    rows = [
        ("run", status["run"]),
        ("state", state),
        ("shuffler", "not asked" if shuffler is None else _collected(shuffler)),
        ("analyser", "at work on a batch" if status["processing"] else "waiting for a batch"),
        ("spent", f"epsilon {rounded_up(spent['epsilon'])}, delta {spent['delta']:.3g}"),
        ("guarantee", "nothing released yet" if guarantee is None else guarantee["sentence"]),
        ("trouble", trouble),
    ]
    print_table(rows)
    history = [
        (
            record["round_number"],
            record["n"],
            record["left_out"],
            "yes" if record["released"] else "no",
            rounded_up(record["epsilon"]),
        )
        for record in status["history"]
    ]
    if history:
        columns = ("round", "reports", "left out", "released", "epsilon so far")
        print_table(history, columns=columns, title="rounds")


def _collected(shuffler: dict[str, Any]) -> str:
    """How far the open round is, as far as the shuffler tells."""
    if shuffler["round"] is None:
        return "closed"
    few = "enough" if shuffler["enough_reports"] else "too few"
    count = few if shuffler["received"] is None else shuffler["received"]
    return f"{count} of at least {shuffler['n_min']} reports"
