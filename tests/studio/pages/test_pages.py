"""Every page in a real browser: readable, labelled, within the screen, and from nowhere else."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from studio_browser import SIZES, Page, open_browser
from studio_server import Studio, running_studio
from studio_stores import PAGES, fill_workspace
from system_packages import needed
from tacit.studio.access import entrance
from tacit.studio.workspace import open_workspace

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("studio")]
EVIL = "</script><img src=x onerror=document.title='owned'>"
SHOWN = [path for path in PAGES if not path.endswith(".js")]
# Text and what is behind it, as drawn; WCAG 2.1 asks for 4.5, and for 3 where letters are large.
FAINT = """
const linear = (v) => v / 255 <= .03928 ? v / 255 / 12.92 : ((v / 255 + .055) / 1.055) ** 2.4;
const light = ([r, g, b]) => .2126 * linear(r) + .7152 * linear(g) + .0722 * linear(b);
const parse = (text) => (text.match(/[\\d.]+/g) ?? [0, 0, 0, 0]).map(Number);
const behind = (e) => {
  for (; e; e = e.parentElement) {
    const c = parse(getComputedStyle(e).backgroundColor);
    if (c.length < 4 || c[3] > 0) return c.slice(0, 3);
  }
  return [255, 255, 255];
};
const found = [];
for (const e of document.querySelectorAll("body *")) {
  const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
  const silent = ["SCRIPT", "STYLE", "TITLE", "OPTION"].includes(e.tagName);
  if (!own || silent || e.disabled || !e.checkVisibility()) continue;
  const style = getComputedStyle(e);
  const front = parse(e.namespaceURI.endsWith("svg") ? style.fill : style.color).slice(0, 3);
  const [a, b] = [light(front), light(behind(e))].sort((x, y) => y - x);
  const size = parseFloat(style.fontSize);
  const large = size >= 24 || (size >= 18.66 && style.fontWeight >= 600);
  const enough = (a + .05) / (b + .05) >= (large ? 3 : 4.5);
  if (!enough) found.push(e.textContent.trim().slice(0, 40) + " " + style.color);
}
return found;
"""
NAMELESS = """
const all = "input:not([type=hidden]), select, button, a[href], summary, progress, "
  + "svg[role=img], figure.chart";
const named = (e) => e.labels?.length || e.getAttribute("aria-label") || e.textContent.trim()
  || e.querySelector("[aria-label]");
const seen = [...document.querySelectorAll(all)].filter((e) => e.checkVisibility());
return seen.filter((e) => !named(e)).map((e) => e.outerHTML);
"""


@pytest.fixture(scope="module")
def studio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studio]:
    needed("chromium")
    workspace = tmp_path_factory.mktemp("workspace")
    fill_workspace(workspace)
    rng = np.random.default_rng(0)
    parts = {"X_train": (8, 1, 30), "X_test": (4, 1, 30)}
    labels = {"y_train": np.array([EVIL, "b"] * 4), "y_test": np.array([EVIL, "b"] * 2)}
    drawn = {name: rng.normal(size=shape) for name, shape in parts.items()}
    np.savez(workspace / "data" / "evil.npz", **drawn, **labels)
    with running_studio(workspace) as running:
        yield running


@pytest.fixture(scope="module")
def driver() -> Iterator[Any]:
    with open_browser() as opened:
        yield opened


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_are_readable_and_labelled(
    studio: Studio, driver: Any, size: str, scheme: str
) -> None:
    page = Page(driver, size)
    wanted = [{"name": "prefers-color-scheme", "value": scheme}]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": wanted})
    driver.get(studio.url)
    for path in SHOWN:
        check_page(page, studio.address + path)
    assert page.foreign_requests(studio.address) == []
    assert page.complaints() == []
    check_page(page, f"{studio.address}/nowhere")  # a refusal; the browser complains of its 404


def check_page(page: Page, address: str) -> None:
    """Readable, labelled, within the screen, with one heading above all."""
    driver = page.driver
    driver.get(address)
    assert driver.execute_script(FAINT) == [], address
    assert driver.execute_script(NAMELESS) == [], address
    assert page.overflow() == 0, address
    heads = driver.execute_script("return document.querySelectorAll('h1').length")
    assert heads == 1, address
    assert driver.execute_script("return document.documentElement.lang") == "en"


@pytest.mark.parametrize("path", ["/jobs/trained", "/budget/device.db/disclosure?subject=series 1"])
def test_a_page_can_be_printed(studio: Studio, driver: Any, path: str) -> None:
    """On paper there is nothing to click, the guarantee stays, and nothing is cut off."""
    page = Page(driver)
    driver.get(studio.url)
    driver.get(studio.address + path)
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    metrics = {"width": 718, "height": 1000, "deviceScaleFactor": 1, "mobile": False}  # A4
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    try:
        clickable = driver.find_elements("css selector", "nav, button, form, .actions, .removal")
        assert not [one.text for one in clickable if one.is_displayed()]
        assert page.find(".guarantee").is_displayed()
        assert page.overflow() == 0
        assert driver.execute_script(FAINT) == []
    finally:
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def test_the_page_that_the_command_opens_leads_in(studio: Studio, driver: Any) -> None:
    """A file on disk: another site to the browser, which then keeps strict cookies back."""
    with entrance(open_workspace(studio.workspace), studio.url) as file:
        driver.delete_all_cookies()
        driver.get(file.as_uri())
        page = Page(driver)
        page.wait_for_text("Who may see what?", "body")
    assert driver.current_url == f"{studio.address}/"


def test_a_page_can_be_used_by_keyboard(studio: Studio, driver: Any) -> None:
    from selenium.webdriver.common.keys import Keys

    page = Page(driver)
    driver.get(studio.url)
    body = page.find("body")
    body.send_keys(Keys.TAB)
    assert driver.switch_to.active_element.text == "To the content", "first of all"
    driver.get(f"{studio.address}/plan/GunPoint")
    before = page.text("#odds")
    page.find("#epsilon").send_keys(Keys.ARROW_RIGHT)
    assert page.text("#odds") != before
    page.find("#epsilon").send_keys(Keys.HOME)
    assert page.text("#epsilon-shown") == "0.1"
    assert page.text("#odds") == "1.2:1", "e to the power of 0.1 is 1.105: at most is not 1.1"
    marked = "return document.querySelector('.chart > div').view?.signal('chosen')"
    page.wait(lambda d: d.execute_script(marked) == float(page.text("#epsilon-shown")))
    driver.get(f"{studio.address}/arena/quick")
    head = page.find("th button")
    head.send_keys(Keys.ENTER)
    assert page.find("th").get_attribute("aria-sort") == "ascending"


def test_a_script_in_a_class_name_does_nothing(studio: Studio, driver: Any) -> None:
    page = Page(driver)
    driver.get(studio.url)
    for path in ("/data/evil", "/plan/evil"):
        driver.get(studio.address + path)
        page.wait_for_charts(1)
        assert driver.title != "owned"
        assert driver.find_elements("css selector", "img") == []
    driver.get(f"{studio.address}/data/evil")
    page.wait_for_charts(2)
    assert "onerror" in page.text("main"), "the name is shown"
