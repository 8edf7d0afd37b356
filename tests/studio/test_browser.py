"""The journey in a real browser: file, data, plan, train, look, on desktop and phone size."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from studio_server import Studio, running_studio
from system_packages import needed

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("studio")]
SIZES = {"desktop": (1280, 900), "phone": (390, 844)}


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
    lines = ["label," + ",".join(f"t{n}" for n in steps)]
    for n in range(60):
        slow = n % 2 == 0
        wave = np.sin(steps / (8.0 if slow else 3.0) + rng.uniform(0, 6)) + rng.normal(0, 0.1, 60)
        lines.append(("slow," if slow else "fast,") + ",".join(f"{value:.4f}" for value in wave))
    path = tmp_path_factory.mktemp("files") / "waves.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def browser() -> Iterator[Callable[[int, int], Any]]:
    from selenium import webdriver

    opened: list[Any] = []

    def open_browser(width: int, height: int) -> Any:
        options = webdriver.ChromeOptions()
        options.binary_location = needed("chromium")
        options.set_capability("goog:loggingPrefs", {"performance": "ALL", "browser": "ALL"})
        for word in (
            "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run",
            "--disable-background-networking", "--disable-component-update", "--disable-sync",
        ):  # fmt: skip
            options.add_argument(word)
        service = webdriver.ChromeService(needed("chromedriver"))
        driver = webdriver.Chrome(options=options, service=service)
        driver.set_page_load_timeout(120)
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        opened.append(driver)
        return driver

    yield open_browser
    for driver in opened:
        driver.quit()


@pytest.mark.parametrize("size", SIZES)
def test_from_a_file_to_what_leaves(
    studio: Studio, recordings: Path, browser: Callable[[int, int], Any], size: str
) -> None:
    page = Page(browser(*SIZES[size]))
    page.driver.get(studio.url)
    assert page.text("h1") == "Who may see what?"
    page.click("input[value=device]")
    assert page.text("#answer").startswith("Local")

    page.follow("Data")
    page.find("#file").send_keys(str(recordings))
    page.wait_for("/data/import/")
    page.click("main button")
    page.wait_for_text("Look at the series")
    page.follow("Look at the series")
    assert "fast" in page.text("main")
    page.wait_for_charts(2)

    page.follow("Plan a budget")
    before = page.text("#odds")
    page.driver.execute_script(
        "const s = document.getElementById('epsilon'); s.value = 22;"
        "s.dispatchEvent(new Event('input'));"
    )
    assert page.text("#odds") != before
    page.follow("Train with this budget")
    page.click("main button")
    page.wait_for_text("get the right label")
    assert "PROTECTED" in page.text(".guarantee").upper()
    assert page.text("pre").startswith("tacit train softshape --data ")

    page.follow("Look at what leaves")
    page.wait_for_charts(2)
    assert "Its device would send" in page.text("main")
    assert page.overflow() == 0, "nothing is wider than the screen"
    assert page.foreign_requests(studio.address) == []
    assert page.complaints() == []


class Page:
    """What a person does with a page, with patience for a busy machine."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver

    def wait(self, condition: Callable[[Any], Any]) -> Any:
        from selenium.common.exceptions import StaleElementReferenceException
        from selenium.webdriver.support.ui import WebDriverWait

        ignored = [StaleElementReferenceException]
        return WebDriverWait(self.driver, 240, ignored_exceptions=ignored).until(condition)

    def find(self, css: str) -> Any:
        return self.wait(lambda driver: driver.find_elements("css selector", css))[0]

    def text(self, css: str) -> str:
        return str(self.find(css).text)

    def click(self, css: str) -> None:
        self.driver.execute_script("arguments[0].click()", self.find(css))

    def follow(self, link: str) -> None:
        found = self.wait(lambda driver: driver.find_elements("link text", link))[0]
        before = self.driver.current_url
        self.driver.execute_script("arguments[0].click()", found)
        self.wait(lambda driver: driver.current_url != before)

    def wait_for(self, part: str) -> None:
        self.wait(lambda driver: part in driver.current_url)

    def wait_for_text(self, text: str) -> None:
        self.wait(lambda driver: text in driver.find_element("css selector", "main").text)

    def wait_for_charts(self, n: int) -> None:
        self.wait(lambda driver: len(driver.find_elements("css selector", ".chart svg")) >= n)

    def overflow(self) -> int:
        script = "return document.documentElement.scrollWidth - window.innerWidth"
        return max(0, int(self.driver.execute_script(script)))

    def foreign_requests(self, address: str) -> list[str]:
        """Every address that the browser asked for, but ours and those inside the page."""
        asked = []
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                asked.append(str(message["params"]["request"]["url"]))
        assert asked
        ours = (address, "data:", "blob:", "about:", "chrome")
        return [url for url in asked if not url.startswith(ours)]

    def complaints(self) -> list[str]:
        return [entry["message"] for entry in self.driver.get_log("browser")]
