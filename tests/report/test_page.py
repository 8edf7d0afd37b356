from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from drawn import caption
from tacit.guarantee import DpGuarantee, MpcGuarantee, Unprotected
from tacit.report.charts import bar_chart, line_chart, with_guarantee
from tacit.report.look import guarantee_html
from tacit.report.page import FurtherGuarantee, Table, Text, write_page
from tacit.report.render import draw

LOCAL = DpGuarantee(epsilon=0.5000001, model="local", unit="series", assumptions=("ideal <noise>",))
EVIL = "</script><script>alert('x')</script><img src=x onerror=alert(1)>"


def chart(title: str = "Accuracy"):  # type: ignore[no-untyped-def]
    return line_chart(title, {"a": [(1.0, 0.5), (2.0, 0.9)]}, x="epsilon", y="accuracy")


def test_a_page_is_one_file_without_a_network(tmp_path: Path) -> None:
    page = write_page(
        tmp_path / "new" / "page.html",
        title="A <title>",
        guarantee=LOCAL,
        blocks=[Text("Some text", "Heading"), Table(["a"], [["<b>"]]), chart(), chart("Again")],
    )
    text = page.read_text()
    assert "A &lt;title&gt;" in text
    assert "&lt;b&gt;" in text
    assert "0.50001" in text
    assert "ideal &lt;noise&gt;" in text
    assert not re.search(r"<(script|link|img)[^>]+(src|href)=[\"']?http", text)
    assert "default-src 'none'" in text, "the browser refuses every request"
    assert [file.name for file in page.parent.iterdir()] == ["page.html"]
    assert text.count('<figure class="chart"') == 2
    assert text.count('<script type="module">') == 1
    assert len(text) < 1_000_000, "the script of the library must be there once"


def test_a_page_of_pictures_has_no_script(tmp_path: Path) -> None:
    page = write_page(
        tmp_path / "page.html", title="t", guarantee=LOCAL, blocks=[draw(chart()), draw(chart())]
    )
    text = page.read_text()
    assert "<script" not in text
    assert "script-src" not in text
    assert text.count("<svg ") == 2
    assert len(text) < 30_000


def test_a_wide_table_names_its_cells_on_a_phone(tmp_path: Path) -> None:
    wide = Table(["first", EVIL, 'a "b"\\', *"cdef"], [["123456"] * 7])
    narrow = Table(["a", "b"], [["1", "2"]])
    long = Table([f"n{place}" for place in range(7)], [["123456"] * 7] * 30)
    blocks = [wide, narrow, wide, long]
    page = write_page(tmp_path / "p.html", title="t", guarantee=LOCAL, blocks=blocks)
    text = page.read_text()
    (style,) = re.findall("<style>(.*?)</style>", text, flags=re.DOTALL)
    names = re.findall(r"\.(t[0-9a-f]{8}) td:nth-child\((\d)\)::before\{content:\"(.*?)\"\}", style)
    assert [int(place) for _, place, _ in names] == [1, 2, 3, 4, 5, 6, 7], "once for both tables"
    read = [re.sub(r"\\([0-9a-f]{6})", lambda c: chr(int(c[1], 16)), name) for *_, name in names]
    assert read == list(wide.columns)
    assert text.count(f'<div class="wide-table stack {names[0][0]}">') == 2
    assert text.count('<div class="wide-table">') == 1, "a long one stays a table"
    assert text.count("<table>") == 4
    assert not re.search("<(script|img)", text)


def test_what_goes_to_whom_is_told_with_an_arrow() -> None:
    opened = MpcGuarantee(
        n_parties=3, max_corrupt=1, adversary="passive", protocol="ABY3", opened=("labels -> P0",)
    )
    assert "labels -> P0" in opened.sentence
    shown = guarantee_html(opened)
    assert "labels → P0" in shown
    assert "-&gt;" not in shown


def test_a_page_cannot_exist_without_a_guarantee(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="guarantee"):
        write_page(tmp_path / "p.html", title="t", blocks=[Text("x")])
    write_page(
        tmp_path / "p.html",
        title="t",
        blocks=[FurtherGuarantee("a", Unprotected(reason="plaintext"))],
    )


def test_a_page_says_its_guarantee_once(tmp_path: Path) -> None:
    """Another guarantee than the page's stays under its chart."""
    other = Unprotected(reason="plaintext")
    blocks = [with_guarantee(chart(), LOCAL), with_guarantee(chart(), other)]
    page = write_page(tmp_path / "p.html", title="t", guarantee=LOCAL, blocks=blocks)
    drawn = re.findall(r'<script type="application/json">(.*?)</script>', page.read_text(), re.S)
    bare, captioned = (json.loads(text) for text in drawn)
    assert "title" not in bare
    assert bare["usermeta"] == {"guarantee": LOCAL.to_dict()}
    assert "plaintext" in " ".join(captioned["title"]["text"])


def test_a_chart_carries_its_guarantee() -> None:
    figure = with_guarantee(chart(), LOCAL)
    assert "epsilon = 0.50001" in caption(figure)
    assert figure.usermeta["guarantee"]["epsilon"] == LOCAL.epsilon
    drawn = " ".join("".join(ElementTree.fromstring(draw(figure).svg).itertext()).split())
    assert "epsilon = 0.50001" in drawn


def test_labels_from_data_stay_text(tmp_path: Path) -> None:
    figures = [
        line_chart(EVIL, {EVIL: [(0.0, 1.0), (1.0, 2.0)]}, x=EVIL, y=EVIL, level=(EVIL, 1.5)),
        bar_chart(EVIL, {EVIL: 0.5}, x=EVIL, colours=["#000000"], notes=[EVIL]),
    ]
    page = write_page(tmp_path / "live.html", title=EVIL, guarantee=LOCAL, blocks=figures)
    text = page.read_text()
    scripts = re.findall(r"<script\b[^>]*>(.*?)</script>", text, flags=re.DOTALL)
    assert len(scripts) == 3, "two charts and the library; a label opened or ended none"
    for data in scripts[:2]:
        assert json.loads(data)["description"] == EVIL
    assert "<img" not in re.sub(r"<script\b.*?</script>", "", text, flags=re.DOTALL)
    static = write_page(
        tmp_path / "static.html", title=EVIL, guarantee=LOCAL, blocks=[draw(f) for f in figures]
    )
    assert not re.search("<(script|img)", static.read_text())
    for figure in figures:
        parts = {node.tag.split("}")[1] for node in ElementTree.fromstring(draw(figure).svg).iter()}
        assert parts <= {"svg", "rect", "g", "path", "line", "text", "tspan", "title"}
