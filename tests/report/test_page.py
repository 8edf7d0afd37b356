from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from drawn import caption
from tacit.guarantee import DpGuarantee, Unprotected
from tacit.report.charts import bar_chart, line_chart, with_guarantee
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


def test_a_page_cannot_exist_without_a_guarantee(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="guarantee"):
        write_page(tmp_path / "p.html", title="t", blocks=[Text("x")])
    write_page(
        tmp_path / "p.html",
        title="t",
        blocks=[FurtherGuarantee("a", Unprotected(reason="plaintext"))],
    )


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
