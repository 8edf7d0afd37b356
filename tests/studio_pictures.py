"""Take a picture of every page of the studio, at two widths, light and dark.

    python tests/studio_pictures.py FOLDER

The pictures are to be looked at one by one; `--docs` renews those in docs/pictures as well.
"""

from __future__ import annotations

import argparse
import base64
import io
import tempfile
from pathlib import Path
from typing import Any

from studio_browser import SIZES, Page, open_browser
from studio_server import Studio, running_studio
from studio_stores import PAGES, fill_workspace

ROOT = Path(__file__).parent.parent
PICTURES = ROOT / "docs" / "pictures"
MORE = ("/plan/ItalyPowerDemand", "/look/italy?index=3", "/nowhere")
# What the docs show: picture, page, width, and how much of its height.
DOCS = (
    ("studio-start", "/", 1280, 900),
    ("studio-look", "/look/italy?index=3", 1280, 1000),
    ("studio-population", "/population/hospital?budget=2500", 1280, 900),
    ("studio-device", "/collect/hospital/device", 390, 1400),
)


def picture(driver: Any, *, height: int | None = None) -> bytes:
    """The page as a PNG, whole or its upper part."""
    size = driver.execute_cdp_cmd("Page.getLayoutMetrics", {})["cssContentSize"]
    clip = {"x": 0, "y": 0, "width": size["width"], "height": height or size["height"], "scale": 1}
    asked = {"format": "png", "captureBeyondViewport": True, "clip": clip}
    return base64.b64decode(driver.execute_cdp_cmd("Page.captureScreenshot", asked)["data"])


def few_colours(png: bytes) -> Any:
    """A third of the bytes: 256 colours of its own, none farther off than the eye can see."""
    from PIL import Image

    whole = Image.open(io.BytesIO(png)).convert("RGB")
    return whole.quantize(256, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)


def drawn(driver: Any, address: str) -> None:
    """Open a page and wait for its charts, its dry run and its plan."""
    from selenium.webdriver.support.ui import WebDriverWait

    driver.get(address)
    waiting = (
        "return document.getElementById('live') || document.querySelector('#tried')?.innerText"
        ".includes('trying it out') || [...document.querySelectorAll('.chart')]"
        ".some((chart) => !chart.querySelector('svg'))"
    )
    WebDriverWait(driver, 240).until(lambda it: not it.execute_script(waiting))


def take_all(studio: Studio, folder: Path) -> None:
    """Every page, both sizes, both schemes."""
    pages = [path for path in (*PAGES, *MORE) if not path.endswith(".js")]
    with open_browser() as driver:
        driver.get(studio.url)
        for size in SIZES:
            Page(driver, size)
            for scheme in ("light", "dark"):
                wanted = [{"name": "prefers-color-scheme", "value": scheme}]
                driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": wanted})
                for path in pages:
                    drawn(driver, studio.address + path)
                    name = "-".join(word for word in path.split("?")[0].split("/") if word)
                    file = folder / f"{name or 'start'}-{size}-{scheme}.png"
                    file.write_bytes(picture(driver))


def randomise(page: Page) -> None:
    """What somebody does on a device before they decide whether to send it."""
    page.wait(lambda driver: len(page.find("#example").find_elements("css selector", "*")) > 1)
    page.choose("#example", "0")
    page.click_when_ready("#randomise")
    page.wait(lambda driver: page.find("#made").is_displayed())
    page.driver.execute_script("window.scrollTo(0, 0)")


def renew_docs(studio: Studio) -> None:
    """The pictures that the docs show, light."""
    with open_browser() as driver:
        driver.get(studio.url)
        for name, path, width, height in DOCS:
            metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
            driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
            drawn(driver, studio.address + path)
            if name == "studio-device":
                randomise(Page(driver, "phone"))
            small = PICTURES / f"{name}.png"
            few_colours(picture(driver, height=height)).save(small, optimize=True)


def main() -> None:
    """Make a workspace, open the studio on it, and take the pictures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--docs", action="store_true", help="renew docs/pictures too")
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as made:
        workspace = Path(made) / "my-project"
        workspace.mkdir()
        fill_workspace(workspace)
        with running_studio(workspace) as studio:
            take_all(studio, asked.folder)
            if asked.docs:
                renew_docs(studio)


if __name__ == "__main__":
    main()
