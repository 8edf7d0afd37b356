"""Figures 3 to 5 of the DP-SoftShape paper, drawn from small records."""

from __future__ import annotations

from typing import Any

from tacit.report.arena.softshape_figures import figure_blocks
from tacit.report.charts import title_of
from tacit.report.page import Table

ALPHA = [0.9, 0.2, 0.5]


def picture(data: str, method: str = "softshape-picture", **options: Any) -> dict[str, Any]:
    details: dict[str, Any] = {
        "plane": [[0.0, 1.0], [1.0, 0.0], [2.0, 2.0]],
        "labels": ["a", "b", "a"],
        "silhouette": 0.25,
    }
    if method == "softshape-picture":
        details |= {
            "series": [[0.0, 1.0, 0.0, 1.0, 0.0, 1.0]], "patch_starts": [0, 2, 4],
            "patch_length": 2, "alpha": ALPHA, "noise_scale": [1.0, 8.0, 5.0],
            "routing": [[0.9, None, 0.4], [0.1, None, 0.6]],
        }  # fmt: skip
    task = {"data": data, "method": method, "options": options, "epsilon": 0.1, "seed": 0}
    return {"task": task, "accuracy": 0.5, "details": details}


def test_every_figure_is_drawn_for_both_presets_and_the_rival() -> None:
    records = [
        picture(data, **options)
        for data in ("CBF", "SyntheticControl", "Trace")
        for options in ({"preset": "paper"}, {})
    ]
    records.append(picture("SyntheticControl", "inceptiontime-picture", n_updates=3))
    _, blocks = figure_blocks(records)
    titles = [title_of(block) for block in blocks[1:] if not isinstance(block, Table)]
    assert [title[:6] for title in titles] == ["Fig. 3", "Fig. 3", "Fig. 4", "Fig. 5", "Fig. 5"]
    assert [title.rsplit(" ", 1)[1] for title in titles[:2]] == ["paper", "tuned"]
    (table,) = [block for block in blocks if isinstance(block, Table)]
    names = ["DP-SoftShape, preset paper", "DP-SoftShape, preset tuned"]
    assert [row[0] for row in table.rows] == [*names, "InceptionTime, input noise"]
    assert table.rows[0][1:] == ("0.500", "0.250")


def test_what_was_not_run_is_not_drawn() -> None:
    _, blocks = figure_blocks([picture("CBF", preset="paper")])
    assert len(blocks) == 2
