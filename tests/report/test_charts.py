"""The kinds of charts: every value is drawn where it belongs, and nothing needs a browser."""

from __future__ import annotations

import math
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
import vl_convert

from drawn import layers, lines, rows
from tacit.guarantee import DpGuarantee
from tacit.report.charts import Line, alt, bar_chart, line_chart, scatter_chart, with_guarantee
from tacit.report.comparison_charts import box_chart, dot_chart, rank_chart
from tacit.report.render import draw, embed, to_svg, write_pictures

SVG = "{http://www.w3.org/2000/svg}"
GUARANTEE = DpGuarantee(epsilon=8.0, delta=1e-5, model="shuffle", unit="client")


def places(chart: Any) -> dict[str, tuple[float, float]]:
    """Where in the picture the dots and bars are, by their tooltip."""
    found = {}
    for node in ElementTree.fromstring(to_svg(chart)).iter(f"{SVG}path"):
        title = node.find(f"{SVG}title")
        if title is not None:
            x, y = re.findall(r"-?[\d.]+", node.get("transform", "") or node.get("d", ""))[:2]
            found[str(title.text)] = (float(x), float(y))
    return found


def words(chart: Any) -> list[str]:
    """The texts of the picture, in order."""
    drawn = ElementTree.fromstring(to_svg(chart))
    return ["".join(node.itertext()) for node in drawn.iter(f"{SVG}text")]


def test_lines_put_values_where_they_belong() -> None:
    points = [(1.0, 0.0), (10.0, 1.0), (100.0, 1.0)]
    chart = line_chart("t", {"a": points}, x="x", y="y", log_x=True)
    (x1, y1), (x2, y2), (x3, y3) = places(chart).values()
    assert x2 - x1 == pytest.approx(x3 - x2, abs=0.1), "equal factors are equal distances"
    assert x1 < x2
    assert y1 > y2, "larger values are higher up"
    assert y2 == y3


def test_a_gap_is_left_where_a_value_is_missing() -> None:
    values = np.array([1.0, np.nan, np.inf, 2.0], dtype=np.float32)
    chart = line_chart("t", {"a": list(enumerate(values))}, x="x", y="y")
    assert lines(chart) == {"a": ([0, 1, 2, 3], [1.0, None, None, 2.0])}
    assert len(places(chart)) == 2
    logarithmic = line_chart("t", {"a": [(0, 0.0), (1, 1e-9)]}, x="x", y="y", log_y=True)
    assert lines(logarithmic)["a"][1] == [None, 1e-9]
    assert len(places(logarithmic)) == 1


def test_a_chart_without_values_is_empty() -> None:
    empty: list[dict[str, list[tuple[float, float]]]] = [{}, {"a": []}]
    for lines_of in empty:
        assert "t" in words(line_chart("t", lines_of, x="x", y="y", log_y=True))


def test_lines_of_one_name_stay_two_lines_of_one_colour() -> None:
    pair = [Line("a", [(0, 0), (1, 1)]), Line("a", [(0, 5), (1, 6)]), Line("b", [(0, 2), (1, 2)])]
    drawn = ElementTree.fromstring(to_svg(line_chart("t", pair, x="x", y="y")))
    paths = [(path.get("d", ""), path.get("stroke")) for path in drawn.iter(f"{SVG}path")]
    found = [stroke for path, stroke in paths if "L" in path and "Z" not in path]
    assert len(found) == 3, "dots and the legend's symbols are closed"
    assert len(set(found)) == 2


def test_a_long_series_is_drawn_whole() -> None:
    line = Line("a", [(n, math.sin(n)) for n in range(20_000)], dots=False)
    chart = line_chart("t", [line], x="x", y="y")
    assert len(rows(chart, "line")) == 20_000
    assert to_svg(chart).count("L") >= 19_999


def test_boxes_show_quartiles_and_every_value() -> None:
    group = [(float(value), f"set {value}") for value in (1, 2, 3, 4, 100)]
    chart = box_chart("<b>", {"m": group}, x="seconds", log=True)
    box = {"name": "m", "least": 1, "first": 2, "median": 3, "third": 4, "most": 100}
    assert [found for mark, found in layers(chart) if mark != "point"] == [[box]] * 3
    assert list(places(chart)) == ["set 1: 1.000", "set 2: 2.000", "set 3: 3.000", "set 4: 4.000",
                                   "set 100: 100.000"]  # fmt: skip
    assert "&lt;b&gt;" in to_svg(chart)
    assert not places(box_chart("t", {"m": group}, x="seconds", log=True, dots=False))


def test_ranks_are_sorted_and_equals_are_joined() -> None:
    ranks = {"poor": 2.8, "good": 1.2, "worse": 2.9}
    chart = rank_chart("t", ranks, difference=0.5, groups=[["worse", "poor"], ["good"]])
    assert [word for word in words(chart) if word in ranks] == ["good", "poor", "worse"]
    ruler, *bars = [found[0] for mark, found in layers(chart) if mark == "rule"]
    assert (ruler["start"], ruler["end"]) == (1.0, 1.5)
    assert bars == [{"name": "poor", "last": "worse"}, {"name": "good", "last": "good"}]
    at = places(chart)
    assert at["good: 1.20"][0] < at["poor: 2.80"][0] < at["worse: 2.90"][0]


def test_dots_of_one_case_share_a_row() -> None:
    cases = {"a case": {"paper": 0.5, "ours": 0.75}, "another": {"ours": 1.0}}
    at = places(dot_chart("t", cases, x="accuracy"))
    (x1, y1), (x2, y2), (x3, y3) = at.values()
    assert list(at) == ["a case, paper: 0.500", "a case, ours: 0.750", "another, ours: 1.000"]
    assert x2 - x1 == pytest.approx(x3 - x2, abs=0.1)
    assert y1 == y2 < y3


def test_long_names_that_begin_and_end_alike_keep_their_rows() -> None:
    names = [f"a name that is far too long ({n}) for the room beside a row" for n in range(3)]
    at = places(dot_chart("t", {name: {"ours": 0.5} for name in names}, x="accuracy"))
    assert len({y for _, y in at.values()}) == 3
    told = words(dot_chart("t", {name: {"ours": 0.5} for name in names}, x="accuracy"))
    whole = {"".join(word.split()) for word in told}
    assert {"".join(name.split()) for name in names} <= whole, "no name is shortened"


def painted(chart: Any) -> dict[str, tuple[str, str]]:
    """Colour and shape of every dot, by its series."""
    found = {}
    for node in ElementTree.fromstring(to_svg(chart)).iter(f"{SVG}path"):
        title = node.find(f"{SVG}title")
        if title is not None:
            series = str(title.text).removeprefix("case, ").rsplit(": ", 1)[0]
            found[series.removesuffix(", a")] = (node.get("fill", ""), node.get("d", ""))
    return found


def test_a_method_has_one_colour_and_one_shape_in_every_figure() -> None:
    one = dot_chart("t", {"case": {"paper": 0.5, "ours": 0.7}}, x="x")
    two = dot_chart("t", {"case": {"ours": 0.5, "new": 0.6, "paper": 0.7}}, x="x")
    first, second = painted(one), painted(two)
    assert {name: second[name] for name in first} == first
    assert len({colour for colour, _ in second.values()}) == 3
    assert len({shape for _, shape in second.values()}) == 3
    cloud = [(0.5, 0.5, "a")]
    clouds = scatter_chart("t", {"new": cloud, "FedST": cloud, "rocket": cloud}, x="x", y="y")
    other = line_chart("t", {"rocket": [(0, 1), (1, 2)], "FedST": [(0, 2), (1, 3)]}, x="x", y="y")
    here, there = painted(clouds), painted(other)
    assert {name: look[0] for name, look in here.items() if name != "new"} == {
        name: look[0] for name, look in there.items()
    }


def test_more_series_than_colours_are_all_drawn() -> None:
    names = [*"abcdefghijklmn", "rocket", "rocket, again"]
    chart = line_chart("t", {name: [(0, n), (1, n)] for n, name in enumerate(names)}, x="x", y="y")
    found = painted(chart)
    assert list(found) == names
    assert len({colour for colour, _ in found.values()}) == 12


def test_equal_accuracies_lie_on_the_diagonal() -> None:
    cloud = {"m": [(0.2, 0.2, "one"), (0.8, 0.8, "two"), (0.8, 0.2, "three")]}
    chart = scatter_chart("t", cloud, x="x", y="y", diagonal=True)
    (x1, y1), (x2, y2), _ = places(chart).values()
    assert x2 - x1 == pytest.approx(y1 - y2, abs=0.1)
    low, high = rows(chart, "line")
    assert low["x"] == low["y"] < high["x"] == high["y"]


def test_bars_start_at_zero_and_name_their_values() -> None:
    bars = {"long": 1.0, "short": 0.25, "none": 0.0}
    chart = bar_chart(
        "t", bars, x="x", colours=["#111111"] * 3, percent=True, level=("chance", 0.5)
    )
    assert [row["value"] for row in rows(chart, "bar")] == [1.0, 0.25, 0.0]
    assert {"100.0%", "25.0%", "chance"} <= set(words(chart))
    widths = [
        float(re.findall(r"h(-?[\d.]+)v", node.get("d", ""))[0])
        for node in ElementTree.fromstring(to_svg(chart)).iter(f"{SVG}path")
        if node.find(f"{SVG}title") is not None
    ]
    assert sorted(widths) == pytest.approx([0.0, max(widths) / 4, max(widths)], abs=0.1)
    logarithmic = bar_chart("t", {"a": 0.0, "b": 10.0}, x="x", colours=["#111111"] * 2, log=True)
    assert [row["value"] for row in rows(logarithmic, "bar")] == [None, 10.0]
    to_svg(logarithmic)


def test_a_picture_is_as_wide_as_it_says_and_holds_title_and_caption() -> None:
    title = "A title that is much longer than one line of the chart and goes on and on and on"
    chart = with_guarantee(line_chart(title, {"a": [(0, 1), (1, 2)]}, x="x", y="y"), GUARANTEE)
    drawn = ElementTree.fromstring(to_svg(chart))
    assert 360 < float(drawn.get("width", "0")) < 410
    texts = " ".join(" ".join(node.itertext()) for node in drawn.iter(f"{SVG}text"))
    assert title in texts
    assert GUARANTEE.sentence in texts
    assert drawn.get("aria-label") == title


@pytest.mark.seconds
def test_picture_files(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    chart = with_guarantee(line_chart("t", {"a": [(0, 1), (1, 2)]}, x="x", y="y"), GUARANTEE)
    assert "Shuffle differential" in embed(chart)
    write_pictures(tmp_path, [draw(chart)], png=True)
    svg = tmp_path / "01-t.svg"
    assert ElementTree.parse(svg).getroot().tag == f"{SVG}svg"
    png = svg.with_suffix(".png").read_bytes()
    assert png.startswith(b"\x89PNG")
    assert int.from_bytes(png[16:20], "big") == pytest.approx(2 * _width(svg), abs=1)
    assert capfd.readouterr() == ("", ""), "the converter prints no warning"


def _width(svg: Path) -> float:
    return float(ElementTree.parse(svg).getroot().get("width", "0"))


def test_the_converter_may_not_fetch_anything() -> None:
    elsewhere = alt.Chart(alt.UrlData("http://127.0.0.1:9/rows.json"), description="t")
    with pytest.raises(ValueError, match="not allowed"):
        to_svg(elsewhere.mark_point().encode(x="x:Q"))


@pytest.mark.seconds
@pytest.mark.parametrize("package", ["altair", "vl_convert"])
def test_a_missing_package_is_one_sentence(package: str) -> None:
    code = f"""
import sys
sys.modules["{package}"] = None
from tacit.cli.app import run
sys.exit(run(["train", "softshape", "--data", "none", "--epsilon", "1", "--page", "p.html"]))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 2
    expected = f"needs {package}, which is not installed; type: pip install 'tacit-ts[charts]'"
    assert expected in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr


def test_what_is_counted_has_whole_numbers_below_it() -> None:
    def ticks(n: int) -> list[int]:
        points = {"reports": [(float(at), 5.0) for at in range(1, n + 1)]}
        chart = line_chart("t", points, x="round", y="reports", counted=True).to_dict()
        found: list[int] = chart["layer"][0]["encoding"]["x"]["axis"]["values"]
        return found

    assert ticks(1) == [1]
    assert ticks(3) == [1, 2, 3]
    assert ticks(20) == [1, 5, 9, 13, 17]


def test_a_legend_of_dashed_and_dotted_lines_is_one_of_lines() -> None:
    """Shapes that shared its field made blots of the dashes, and the browser complained."""
    lines = [Line("a", [(1.0, 1.0)]), Line("b", [(1.0, 2.0)], dashed=True, dots=False)]
    chart = line_chart("t", lines, x="x", y="y").to_dict()
    (legend,) = vl_convert.vegalite_to_vega(chart)["legends"]
    assert (legend["symbolType"], legend["strokeDash"]) == ("stroke", "strokeDash")
    assert "shape" not in legend


def test_a_line_does_not_cross_the_number_of_a_bar() -> None:
    bars = {"short": 0.3, "just below": 0.84, "above": 0.97}
    chart = bar_chart("t", bars, x="x", colours=["red"] * 3, x_range=(0.0, 1.0),
                      level=("ceiling", 0.88))  # fmt: skip
    assert [row["end"] for row in rows(chart, "bar")] == [0.3, 0.88, 0.97]
