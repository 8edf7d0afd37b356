from __future__ import annotations

import re
from pathlib import Path

import pytest

from tacit.errors import TacitError
from tacit.guarantee import DpGuarantee, Unprotected
from tacit.report.figure import new_figure, save_picture, with_guarantee
from tacit.report.page import Promise, Table, Text, write_page

LOCAL = DpGuarantee(epsilon=0.5000001, model="local", unit="series", assumptions=("ideal <noise>",))


def test_a_page_is_one_file_without_a_network(tmp_path: Path) -> None:
    figure = new_figure("Accuracy", x="epsilon", y="accuracy")
    figure.add_scatter(x=[1, 2], y=[0.5, 0.9])
    page = write_page(
        tmp_path / "new" / "page.html",
        title="A <title>",
        guarantee=LOCAL,
        blocks=[Text("Some text", "Heading"), Table(["a"], [["<b>"]]), figure, figure],
    )
    text = page.read_text()
    assert "A &lt;title&gt;" in text
    assert "&lt;b&gt;" in text
    assert "0.50001" in text
    assert "ideal &lt;noise&gt;" in text
    assert not re.search(r"<(script|link|img)[^>]+(src|href)=[\"']?http", text)
    assert [file.name for file in page.parent.iterdir()] == ["page.html"]
    assert text.count("Plotly.newPlot(") == 2
    assert len(text) < 8_000_000, "the script of the library must be there once"


def test_a_page_cannot_exist_without_a_guarantee(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="guarantee"):
        write_page(tmp_path / "p.html", title="t", blocks=[Text("x")])
    write_page(
        tmp_path / "p.html", title="t", blocks=[Promise("a", Unprotected(reason="plaintext"))]
    )


def test_a_figure_carries_its_guarantee(tmp_path: Path) -> None:
    figure = with_guarantee(new_figure("t", x="x", y="y"), LOCAL)
    assert "epsilon = 0.50001" in figure.layout.annotations[0].text.replace("<br>", " ")
    assert figure.layout.meta["guarantee"]["epsilon"] == LOCAL.epsilon
    assert "0.50001" in save_picture(figure, tmp_path / "f.html").read_text()
    with pytest.raises(TacitError, match=r"\.html, \.png or \.svg"):
        save_picture(figure, tmp_path / "f.gif")
