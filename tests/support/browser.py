"""A headless Chromium that shows a page of a file: what it logs, what it asks the network for, and what it shows."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

_BROWSERS = ("chromium", "chromium-browser", "google-chrome")
_GET = "on Debian and Ubuntu: apt-get install chromium chromium-driver; selenium comes with pip install -e '.[test]'"
_FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars")


class Browser:
    """A browser with one page. ``driver``: selenium's."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver

    def command(self, name: str, **options: Any) -> Any:
        """Send a command of the DevTools protocol."""
        return self.driver.execute_cdp_cmd(name, options)

    def run(self, script: str, *arguments: Any) -> Any:
        """Return what a script returns."""
        return self.driver.execute_script(script, *arguments)

    def open(self, page: Path, width: int = 1100, scheme: str = "light", medium: str = "") -> None:
        """Show a file."""
        self.resize(width)
        self.command(
            "Emulation.setEmulatedMedia", media=medium, features=[{"name": "prefers-color-scheme", "value": scheme}]
        )
        self.driver.get("about:blank")
        self.logged()
        self.requests()
        self.driver.get(page.as_uri())

    def resize(self, width: int, height: int = 900) -> None:
        """Make the page as wide as this."""
        self.command(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False
        )

    def logged(self) -> list[str]:
        """Return what was logged since the last call: errors, warnings, violations of the policy."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def requests(self) -> list[str]:
        """Return the addresses that were asked for since the last call."""
        events = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        return [event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"]

    def texts(self, selector: str) -> list[str]:
        """Return the texts of elements, shown or not."""
        return list(self.run("return [...document.querySelectorAll(arguments[0])].map(e => e.textContent)", selector))

    def box(self, selector: str) -> Mapping[str, float]:
        """Return where an element stands."""
        return dict(self.run("return document.querySelector(arguments[0]).getBoundingClientRect().toJSON()", selector))


@contextmanager
def open_browser() -> Iterator[Browser]:
    """Yield a browser; where there is none, the test is skipped and says how to get it."""
    found = next((path for name in _BROWSERS if (path := shutil.which(name))), None)
    driver = shutil.which("chromedriver")
    try:
        from selenium import webdriver
        from selenium.webdriver.chrome.service import Service
    except ImportError:
        pytest.skip(f"there is no selenium to drive a browser; {_GET}")
    if found is None or driver is None:
        pytest.skip(f"there is no {'Chromium' if found is None else 'chromedriver'} to show pages; {_GET}")
    options = webdriver.ChromeOptions()
    options.binary_location = found
    for flag in _FLAGS:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    started = webdriver.Chrome(options=options, service=Service(driver))
    try:
        yield Browser(started)
    finally:
        started.quit()
