# ruff: noqa: INP001  a script, not a package
"""Takes the pictures of the dashboard that are in the docs.

    python tools/screenshots.py [FOLDER]

It runs the demo, whose engine is simulated, starts the dashboard on what that left, and
goes through the pages in a headless Chromium at two widths. Those of the wide window go
to docs/img, all of them to FOLDER when one is given. Chromium and chromedriver must be
on the PATH, as Debian's packages put them there.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

from selenium import webdriver

PROGRAM = (sys.executable, "-c", "from admitperf.cli import main; main()")
DOCS = Path(__file__).parents[1] / "docs" / "img"
PAGES = {
    "Experiments": "Goodput of offered",
    "Log": "decisions match",
    "Compare": "Every arm against the baseline",
    "Seven items": "signal liveness",
    "Terminology": "Search the terms",
}
"""Each page with words that stand on it once it is there."""
WIDTHS = (1280, 700)
HEIGHT = 1500
LONGEST_WAIT_S = 60
SETTLES_S = 3
"""Plots are drawn after the words are there."""


def chromium() -> Any:  # noqa: ANN401  a driver of Selenium's
    """A headless browser."""
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for flag in ("headless", "no-sandbox", "disable-gpu", "hide-scrollbars"):
        options.add_argument(f"--{flag}")
    return webdriver.Chrome(
        options, webdriver.ChromeService(shutil.which("chromedriver"))
    )


def shows(browser: Any, words: str) -> None:  # noqa: ANN401
    """Waits for words on the page.

    Raises:
        TimeoutError: they are not there in time.
    """
    pause = threading.Event()
    for _ in range(LONGEST_WAIT_S * 5):
        if words in browser.find_element("tag name", "body").text:
            pause.wait(SETTLES_S)
            return
        pause.wait(0.2)
    raise TimeoutError(f"no {words!r} on the page")


def goes(browser: Any, title: str) -> None:  # noqa: ANN401
    """Follows a link of the list of pages."""
    for link in browser.find_elements("css selector", "[data-testid=stSidebarNavLink]"):
        if link.get_attribute("textContent").strip() == title:
            browser.execute_script("arguments[0].click()", link)


def take(url: str, out: Path) -> None:
    """A picture of each page at each width."""
    browser = chromium()
    try:
        for width in WIDTHS:
            browser.set_window_size(width, HEIGHT)
            browser.get(url)
            shows(browser, PAGES["Experiments"])
            for title, words in PAGES.items():
                goes(browser, title)
                shows(browser, words)
                name = f"dashboard-{title.lower().replace(' ', '-')}-{width}.png"
                browser.save_screenshot(str(out / name))
    finally:
        browser.quit()


def serve(logs: Path, out: Path) -> None:
    """Runs the dashboard for as long as pictures are taken."""
    child = subprocess.Popen(
        [*PROGRAM, "dashboard", "demo"],
        cwd=logs,
        env={**os.environ, "ADMITPERF_CACHE": str(logs / "cache")},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        said = child.stdout.readline() if child.stdout else ""
        take(said.split()[2], out)
    finally:
        child.terminate()
        child.wait(timeout=30)


def main() -> None:
    """Everything, in a folder that is gone afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        logs = Path(folder)
        out = Path(sys.argv[1]) if sys.argv[1:] else logs / "pictures"
        out.mkdir(parents=True, exist_ok=True)
        subprocess.run(
            [*PROGRAM, "demo", "-o", "demo"],
            cwd=logs,
            check=True,
            stdout=subprocess.DEVNULL,
        )
        serve(logs, out)
        DOCS.mkdir(exist_ok=True)
        for title in PAGES:
            name = f"dashboard-{title.lower().replace(' ', '-')}"
            shutil.copy(out / f"{name}-{WIDTHS[0]}.png", DOCS / f"{name}.png")


if __name__ == "__main__":
    main()
