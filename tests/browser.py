"""A real browser without a window, and a local server for the files that it opens."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

from selenium import webdriver
from selenium.webdriver.chrome.service import Service

from system_packages import needed

SCRIPT_SECONDS = 200


class _Quiet(SimpleHTTPRequestHandler):
    extensions_map: ClassVar[dict[str, str]] = {  # type: ignore[misc]
        **SimpleHTTPRequestHandler.extensions_map,
        ".mjs": "text/javascript",
    }

    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address of a folder on this machine."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def chromium() -> Iterator[webdriver.Chrome]:
    """Headless Chromium, driven by its own driver."""
    options = webdriver.ChromeOptions()
    options.binary_location = needed("chromium")
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"):
        options.add_argument(argument)
    driver = webdriver.Chrome(options=options, service=Service(needed("chromedriver")))
    driver.set_script_timeout(SCRIPT_SECONDS)
    try:
        yield driver
    finally:
        driver.quit()


def evaluated(driver: webdriver.Chrome, body: str, *arguments: Any) -> Any:
    """What an asynchronous function with this body and these `arguments` returns in the page."""
    told = driver.execute_async_script(
        "const [done, given] = [arguments[arguments.length - 1], [...arguments].slice(0, -1)];"
        f"(async (...given) => {{ {body} }})(...given)"
        ".then((value) => done({ value }), (error) => done({ error: `${error}` }));",
        *arguments,
    )
    assert "error" not in told, told["error"]
    return told["value"]
