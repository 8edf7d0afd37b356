"""The journey in a real browser: file, data, plan, train, look, on desktop and phone size."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from local_problems import model_of, trained
from studio_browser import SIZES, Page, open_browser
from studio_server import Studio, running_studio
from system_packages import needed

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("studio")]


@pytest.fixture(scope="module")
def studio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studio]:
    needed("chromium")
    with running_studio(tmp_path_factory.mktemp("workspace")) as running:
        yield running


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wide table of two kinds of waves, as a user might have it."""
    rng = np.random.default_rng(0)
    steps = np.arange(60)
    lines = ["who,label," + ",".join(f"t{n}" for n in steps)]
    for n in range(60):
        slow = n % 2 == 0
        wave = np.sin(steps / (8.0 if slow else 3.0) + rng.uniform(0, 6)) + rng.normal(0, 0.1, 60)
        values = ",".join(f"{value:.4f}" for value in wave)
        lines.append(f"p{n // 2 % 5},{'slow' if slow else 'fast'},{values}")
    path = tmp_path_factory.mktemp("files") / "waves.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="module")
def driver() -> Iterator[Any]:
    with open_browser() as opened:
        yield opened


@pytest.mark.parametrize("size", SIZES)
def test_from_a_file_to_what_leaves(
    studio: Studio, recordings: Path, driver: Any, size: str
) -> None:
    page = Page(driver, size)
    page.driver.get(studio.url)
    assert page.text("h1") == "Who may see what?"
    for answer in ("device", "yes", "population"):
        page.click(f"input[value={answer}]")
    assert page.text("#answer").startswith("Local")
    assert page.find("#answer a").get_attribute("href").endswith("/plan")

    page.follow("Data")
    page.find("#file").send_keys(str(recordings))
    page.wait_for("/data/import/")
    assert "Read as" in page.text("#columns")
    page.choose("select[data-column=who]", "person")
    page.wait_for("subject=who")
    page.wait_for_text("5 people")
    page.click("#import button")
    page.wait_for_text("Look at the series")
    page.follow("Look at the series")
    assert "fast" in page.text("main")
    page.wait_for_charts(2)

    page.follow("Plan a budget")
    before = page.text("#odds")
    page.driver.execute_script(
        "const s = document.getElementById('epsilon'); s.value = 18;"
        "s.dispatchEvent(new Event('input'));"
    )
    assert page.text("#odds") != before
    assert page.text("#clients").isdigit()
    assert page.text("section.silo table").count(" MB") == 3
    page.follow("Train with this budget")
    page.click("main button")
    page.wait_for_text("get the right label")
    assert "PROTECTED" in page.text(".guarantee").upper()
    assert page.text("pre").startswith("tacit train softshape --data ")
    page.wait_for_charts(2)
    assert "read as" in page.text(".chart")
    assert page.find("a[href^='/models/']").text == "Download the model"

    page.follow("Look at what leaves")
    page.wait_for_charts(2)
    assert "Its device would send" in page.text("main")
    assert page.overflow() == 0, "nothing is wider than the screen"
    here = page.driver.current_url
    page.click("form[data-post='/attack'] button")
    page.wait_for_text("re-identified")
    assert "PROTECTED" in page.text("main").upper()
    page.driver.get(here)
    page.click("form[data-post='/release'] button")
    page.wait_for_text("released, each once")

    page.follow("Device")
    page.click("main button")
    page.wait_for("/device#")
    release_one_window(page, example=str(list(SIZES).index(size)))
    page.driver.get(f"{studio.address}/population")
    page.click("main li a")
    page.wait_for_text("releases counted")
    assert page.find("main svg").is_displayed()
    assert page.overflow() == 0
    page.follow("Budget")
    page.click("main li a")
    page.wait_for_text("intact")
    assert page.text("h1") == "No subject has spent more than epsilon 7 of 7"
    page.click("tbody a")
    page.wait_for_text("What was released of one subject")
    assert page.overflow() == 0
    assert page.foreign_requests(studio.address) == []
    assert page.complaints() == []


def release_one_window(page: Page, *, example: str) -> str:
    """From an example to the collector's thanks; returns the bytes that the page announced."""
    page.wait(lambda driver: len(page.find("#example").find_elements("css selector", "*")) > 1)
    page.choose("#example", example)
    assert page.find("#window-drawn").is_displayed()
    assert not page.find("#send").is_enabled()
    page.click_when_ready("#randomise")
    page.wait(lambda driver: page.text("#bytes"))
    announced = page.text("#bytes")
    assert page.text("#size").startswith(f"Exactly these {len(announced)} bytes")
    assert page.overflow() == 0
    assert not page.find("#send").is_enabled(), "consent comes first"
    page.click_when_ready("#consent")
    page.click_when_ready("#send")
    page.wait_for_text("Sent and counted: 1 stored", "#outcome")
    return announced


@pytest.fixture(scope="module")
def waves(studio: Studio) -> str:
    """A model on real data in the workspace, without a training by hand."""
    name = "ready"
    folder = studio.workspace / "models" / name
    folder.mkdir()
    model_of(trained("label", 2.0, "krr")).save(folder / "model.tacit")
    return name


class TestDevice:
    def opened(self, studio: Studio, driver: Any, model: str) -> Page:
        page = Page(driver, "phone")
        page.driver.get(studio.url)
        page.driver.get(f"{studio.address}/device")
        page.click(f"form[data-post='/device/{model}'] button")
        page.wait_for("/device#")
        return page

    def test_nothing_but_the_release_leaves(self, studio: Studio, driver: Any, waves: str) -> None:
        page = self.opened(studio, driver, waves)
        before = len(page.requests())
        announced = release_one_window(page, example="0")
        sent = page.requests()[before:]
        assert {request["method"] for request in sent} == {"GET", "POST"}
        posted = [request for request in sent if request["method"] == "POST"]
        assert [request["postData"] for request in posted[1:]] == [announced]
        enrolment = json.loads(posted[0]["postData"])
        assert set(enrolment) == {"code", "public_key"}
        release = json.loads(announced)
        assert set(release) == {"model", "kind", "windows", "values"}
        assert release["values"] in ([0], [1])
        base = f"{studio.address}/collect/{waves}"
        assert [request["url"] for request in posted] == [
            f"{base}/api/devices", f"{base}/api/releases"
        ]  # fmt: skip
        # What is only asked for has nothing of the window in its address.
        asked = {request["url"] for request in sent if request["method"] == "GET"}
        files = ("device", "device/page.js", "device/device.mjs", "device/examples.json")
        known = {f"{base}/{file}" for file in (*files, "api/collector")}
        assert asked <= known | {"data:,"}, asked - known
        assert page.foreign_requests(studio.address) == []

    def test_a_second_release_of_a_window_is_refused(
        self, studio: Studio, driver: Any, waves: str
    ) -> None:
        page = self.opened(studio, driver, waves)
        release_one_window(page, example="1")
        page.choose("#example", "1")
        page.click_when_ready("#randomise")
        page.wait_for_text("released already", "#refused")
        assert "bad" in str(page.find("#refused").get_attribute("class"))
        assert not page.find("#consent").is_enabled()

    def test_files_and_the_motion_sensor(
        self, studio: Studio, driver: Any, waves: str, tmp_path: Path
    ) -> None:
        page = self.opened(studio, driver, waves)
        file = tmp_path / "window.csv"
        file.write_text("value\n" + "\n".join(str(n % 7) for n in range(48)) + "\n")
        page.find("#window-file").send_keys(str(file))
        page.wait_for_text("resampled from 48 to 24", "#window-state")
        (tmp_path / "two.csv").write_text("1,2\n3,x\n" * 24)
        page.find("#window-file").send_keys(str(tmp_path / "two.csv"))
        page.wait_for_text("channels", "#window-state")
        page.driver.execute_script(
            "let n = 0; setInterval(() => dispatchEvent(new DeviceMotionEvent('devicemotion', {"
            "accelerationIncludingGravity: {x: Math.sin(n++), y: 1, z: 9}})), 20)"
        )
        page.click("#motion")
        page.wait_for_text("5 s of motion", "#window-state")
        page.click_when_ready("#randomise")
        page.wait(lambda driver: page.text("#bytes"))
