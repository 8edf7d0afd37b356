"""Picture files of drawings: SVG always, PNG through a browser where there is one."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tacit.errors import TacitError
from tacit.report.svg import WIDTH, Drawing

_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
_ZOOM = 2


def write_pictures(folder: Path, drawings: Sequence[Drawing], *, png: bool = False) -> Path:
    """One file per drawing, numbered in the order of the page; older ones are removed."""
    browser = _browser() if png else ""
    folder.mkdir(parents=True, exist_ok=True)
    for old in (*folder.glob("[0-9][0-9]-*.svg"), *folder.glob("[0-9][0-9]-*.png")):
        old.unlink()
    for number, drawing in enumerate(drawings, start=1):
        path = folder / f"{number:02d}-{_slug(drawing.title)}.svg"
        path.write_text(drawing.svg, encoding="utf-8")
        if png:
            _rasterise(browser, path)
    return folder


def _slug(title: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:60]


def _browser() -> str:
    for name in _BROWSERS:
        found = shutil.which(name)
        if found:
            return found
    raise TacitError(
        "PNG pictures need Chrome or Chromium on the PATH; install one, or use the SVG files, "
        "which are written without --png."
    )


def _rasterise(browser: str, path: Path) -> None:
    height = float(re.search(r'viewBox="0 0 \S+ (\d+)"', path.read_text(encoding="utf-8"))[1])  # type: ignore[index]
    target = path.with_suffix(".png")
    words = [
        browser,
        "--headless",
        "--disable-gpu",
        "--hide-scrollbars",
        f"--force-device-scale-factor={_ZOOM}",
        f"--window-size={WIDTH:.0f},{height:.0f}",
        f"--screenshot={target.resolve()}",
        path.resolve().as_uri(),
    ]
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        words.insert(1, "--no-sandbox")  # Chrome refuses its sandbox to the superuser
    try:
        subprocess.run(words, check=True, capture_output=True, timeout=60)
    except subprocess.SubprocessError as error:
        raise TacitError(f"{Path(browser).name} could not draw {target.name}.") from error
    if not target.exists():
        raise TacitError(f"{Path(browser).name} wrote no {target.name}; use the SVG files.")
