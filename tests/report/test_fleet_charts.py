"""The fleet's charts carry their guarantee and show what they are given."""

from __future__ import annotations

from pathlib import Path

from drawn import caption, lines, rows
from tacit.guarantee import DpGuarantee, Unprotected
from tacit.report import fleet_charts as fleet
from tacit.report.page import Text

SOUND = DpGuarantee(epsilon=8.0, delta=1e-5, model="shuffle", unit="client")
NONE = Unprotected(reason="reports are linked", nominal_epsilon=8.0)


def test_every_figure_carries_the_guarantee_and_its_points() -> None:
    spent = fleet.epsilon_per_round([None, 1.0, None, 2.0], SOUND)
    assert lines(spent) == {"epsilon": ([2, 4], [1.0, 2.0])}
    rounds = fleet.accuracy_per_round({"privunit": [0.5, 0.7], "FedAvg": [0.6, 0.9]}, SOUND)
    assert list(lines(rounds)) == ["privunit", "FedAvg"]
    clients = fleet.accuracy_against("clients", {"privunit": {1000: 0.9, 100: 0.8}}, SOUND)
    assert lines(clients) == {"privunit": ([100, 1000], [0.8, 0.9])}
    linked = fleet.linkability({"published": 1.0, "sound": 0.02}, chance=0.01, guarantee=NONE)
    assert [row["value"] for row in rows(linked, "bar")] == [1.0, 0.02]
    for figure, guarantee in ((spent, SOUND), (rounds, SOUND), (clients, SOUND), (linked, NONE)):
        assert figure.usermeta["guarantee"] == guarantee.to_dict()
        assert caption(figure) == guarantee.sentence


def test_a_page_about_a_run(tmp_path: Path) -> None:
    result = {
        "guarantee": SOUND,
        "accuracy": 0.9,
        "baselines": {"fedavg": 0.95},
        "mode": "sound",
        "mechanism": "privunit",
        "accuracy_per_round": [0.5, 0.8, 0.9],
        "reidentification": 0.02,
        "epsilon_per_round": [None, 4.0, 8.0],
        "data": "UCIHAR",
        "clients": 100,
        "rounds": 3,
        "n_test": 1000,
    }
    page = fleet.write_run_page(tmp_path / "run.html", result)
    text = page.read_text()
    assert "UCIHAR, 100 clients" in text
    assert "95.0%" in text
    assert "90.0% of 1,000 test series get the right label, after 3 rounds" in text
    assert "differential privacy with epsilon = 8" in text


def _published(method: str, epsilon: float, accuracy: float, seed: int) -> dict[str, object]:
    return {
        "data": "UCIHAR",
        "clients": 100,
        "seed": seed,
        "method": method,
        "nominal_epsilon": epsilon,
        "accuracy": accuracy,
        "accuracy_per_round": [0.5, accuracy],
        "nominal_delta_per_round": [0.0, 0.0] if method == "fedavg" else [0.01, 0.02],
        "reidentification": None if method == "fedavg" else 1.0,
        "chance": 0.025,
    }


def test_the_benchmark_page_draws_means_over_seeds_and_keeps_the_two_modes_apart(
    tmp_path: Path,
) -> None:
    published = [_published("dptimefl", 8.0, value, seed) for seed, value in enumerate((0.8, 0.9))]
    published.append(_published("fedavg", 100.0, 0.95, 0))
    sound = [
        {
            "data": "UCIHAR",
            "split": "subject",
            "clients": 100,
            "mechanism": "privunit",
            "accuracy": 0.9,
            "fedavg": 0.95,
            "accuracy_per_round": [0.6, 0.9],
            "epsilon_per_round": [None, 8.0],
            "reidentification": 0.02,
            "chance": 0.01,
            "guarantee": SOUND.to_dict(),
        }
    ]
    blocks = fleet.benchmark_blocks(published, sound)
    figures = {b.description: b for b in blocks if not isinstance(b, Text)}
    rounds = figures["UCIHAR, N = 100: accuracy per round (Fig. 3 and 4)"]
    assert {name: round(y[-1], 6) for name, (_, y) in lines(rounds).items()} == {
        'DP-TimeFL "8"': 0.85,
        "FedAvg": 0.95,
    }
    assert rounds.usermeta["guarantee"]["kind"] == "unprotected"
    spent = figures["N = 100: epsilon spent per round (Fig. 6)"]
    assert lines(spent) == {"privunit": ([2], [8.0])}
    assert spent.usermeta["guarantee"]["epsilon"] == SOUND.epsilon
    linked = figures["Reports joined to their senders, N = 100"]
    assert [row["value"] for row in rows(linked, "bar")] == [1.0, 0.02]
    page = fleet.write_benchmark_page(tmp_path / "all.html", published=published, sound=sound)
    assert "with a guarantee, split subject" in page.read_text()
    assert fleet.benchmark_blocks([], []) == []
