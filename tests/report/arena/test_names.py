"""Names of rows: plain, and different for different settings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tacit.arena.store import read_records
from tacit.report.arena.names import plainly_named

CURRENT = Path(__file__).parents[3] / "results" / "current"


def named(*tasks: tuple[str, dict[str, Any]]) -> list[str]:
    records = [{"task": {"method": method, "options": options}} for method, options in tasks]
    return [record["task"]["method"] for record in plainly_named(records)]


def test_only_what_differs_is_told() -> None:
    shared = {"baselines": True, "n_clients": 100}
    assert named(
        ("timefl", {**shared, "mechanism": "privunit", "split": "iid"}),
        ("timefl", {**shared, "mechanism": "distributed", "split": "subject"}),
        ("quant", {"total": True}),
    ) == ["DP-TimeFL, privunit, iid", "DP-TimeFL, distributed, by person", "quant"]


def test_settings_that_would_share_a_name_keep_their_options() -> None:
    assert named(("m", {"quality": "f"}), ("m", {"quality": "F"}), ("m", {"quality": "ig"})) == [
        "m, F",
        "m, quality F",
        "m, information gain",
    ]
    assert named(("m", {"mechanism": "iid"}), ("m", {"split": "iid"})) == [
        "m (mechanism=iid)",
        "m (split=iid)",
    ]


def test_the_settings_of_the_broadest_suite_have_names_of_their_own() -> None:
    records = read_records(CURRENT / "fleet-breadth")
    names = {record["task"]["method"] for record in plainly_named(records)}
    assert len(names) == 12
    assert "DP-TimeFL, distributed, by person, 1000 clients" in names
    assert all("=" not in name for name in names)
