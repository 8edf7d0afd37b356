"""A person at a browser: what the studio's browser tests do with a page, and its network log."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from system_packages import needed

SIZES = {"desktop": (1280, 900), "phone": (390, 844)}
_OURS = ("data:", "blob:", "about:", "chrome")


@contextmanager
def open_browser() -> Iterator[Any]:
    """A real Chromium without a window that notes every request."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = needed("chromium")
    options.set_capability("goog:loggingPrefs", {"performance": "ALL", "browser": "ALL"})
    for word in (
        "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run",
        "--disable-background-networking", "--disable-component-update", "--disable-sync",
    ):  # fmt: skip
        options.add_argument(word)
    driver = webdriver.Chrome(
        options=options, service=webdriver.ChromeService(needed("chromedriver"))
    )
    driver.set_page_load_timeout(120)
    try:
        yield driver
    finally:
        driver.quit()


class Page:
    """What a person does with a page, with patience for a busy machine."""

    def __init__(self, driver: Any, size: str = "desktop") -> None:
        self.driver = driver
        width, height = SIZES[size]
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        driver.get_log("performance")  # what came before is not this test's
        driver.get_log("browser")
        self._requests: list[dict[str, Any]] = []

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

    def click_when_ready(self, css: str) -> None:
        self.wait(lambda driver: self.find(css).is_enabled())
        self.click(css)

    def choose(self, css: str, value: str) -> None:
        script = (
            "const [list, value] = arguments; list.value = value;"
            "list.dispatchEvent(new Event('input')); list.dispatchEvent(new Event('change'));"
        )
        self.driver.execute_script(script, self.find(css), value)

    def follow(self, link: str) -> None:
        found = self.wait(lambda driver: driver.find_elements("link text", link))[0]
        before = self.driver.current_url
        self.driver.execute_script("arguments[0].click()", found)
        self.wait(lambda driver: driver.current_url != before)

    def wait_for(self, part: str) -> None:
        self.wait(lambda driver: part in driver.current_url)

    def wait_for_text(self, text: str, css: str = "main") -> None:
        self.wait(lambda driver: text in driver.find_element("css selector", css).text)

    def wait_for_charts(self, n: int) -> None:
        self.wait(lambda driver: len(driver.find_elements("css selector", ".chart svg")) >= n)

    def overflow(self) -> int:
        script = "return document.documentElement.scrollWidth - window.innerWidth"
        return max(0, int(self.driver.execute_script(script)))

    def requests(self) -> list[dict[str, Any]]:
        """Every request of this page so far, as the browser's own log has it."""
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                self._requests.append(message["params"]["request"])
        assert self._requests
        return self._requests

    def foreign_requests(self, address: str) -> list[str]:
        """Every address that the browser asked for, but ours and those inside the page."""
        asked = [str(request["url"]) for request in self.requests()]
        return [url for url in asked if not url.startswith((address, *_OURS))]

    def complaints(self) -> list[str]:
        return [entry["message"] for entry in self.driver.get_log("browser")]
