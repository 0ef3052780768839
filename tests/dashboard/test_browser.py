"""The pages in a real browser: loaded, filled, filtered, without an error."""

import pytest
from tests.real.process import until

PAGES = {
    "Log": "Could it have fired?",
    "Compare": "Every arm against the baseline",
    "Live": "of the file",
    "Seven items": "signal liveness",
    "Terminology": "Search the terms",
    "Experiments": "Goodput of offered",
}


@pytest.fixture
def at(start, browser):
    """Opens a dashboard's first page."""

    def opened(path, width=1280):
        served = start(path)
        assert served.url, served.lines
        browser.set_window_size(width, 1400)
        browser.get_log("browser")
        browser.get(served.url)
        return browser

    return opened


def text(browser):
    """All that is written on the page."""
    return browser.find_element("tag name", "body").text


def shows(browser, words, seconds=60):
    """Waits for words on a page whose scripts have ended."""
    from selenium.common.exceptions import StaleElementReferenceException

    def there():
        try:
            busy = browser.find_elements("css selector", "[data-testid=stStatusWidget]")
            return words in text(browser) and not busy
        except StaleElementReferenceException:
            return False

    return until(there, seconds)


def goes(browser, title):
    """Follows a link of the list of pages, which a narrow window folds away."""
    found = browser.find_elements("css selector", "[data-testid=stSidebarNavLink]")
    (link,) = (
        one for one in found if one.get_attribute("textContent").strip() == title
    )
    browser.execute_script("arguments[0].click()", link)


def errors(browser):
    """What the console calls severe."""
    return [one for one in browser.get_log("browser") if one["level"] == "SEVERE"]


@pytest.mark.parametrize("width", [1280, 700])
def test_every_page_loads_and_is_filled(at, demo, width):
    """By the links a person follows, and the console stays clean."""
    browser = at(demo, width)
    assert shows(browser, "Goodput of offered"), text(browser)
    for title, words in PAGES.items():
        goes(browser, title)
        assert shows(browser, words), (title, text(browser))
        assert "Traceback" not in text(browser)
        wide = browser.execute_script(
            "return document.documentElement.scrollWidth - window.innerWidth"
        )
        assert wide <= 0, title
    assert errors(browser) == []


def test_tables_and_plots_are_drawn(at, demo):
    """Each has a size, and a plot has marks."""
    browser = at(demo / "demo" / "queue_depth" / "r1.jsonl")
    assert shows(browser, "Goodput of offered"), text(browser)
    goes(browser, "Log")
    assert shows(browser, "decisions match"), text(browser)
    tables = browser.find_elements("css selector", "[data-testid=stDataFrame]")
    assert any(one.size["height"] > 60 for one in tables)

    def drawn():
        plots = "[data-testid=stVegaLiteChart] :is(svg, canvas)"
        found = browser.find_elements("css selector", plots)
        return any(one.size["height"] > 40 for one in found)

    assert until(drawn, 30)
    assert errors(browser) == []


def test_a_search_leaves_what_matches(at, demo):
    """The list of terms shrinks to the word that is typed."""
    from selenium.webdriver.common.keys import Keys

    browser = at(demo)
    assert shows(browser, "Goodput of offered"), text(browser)
    goes(browser, "Terminology")
    assert shows(browser, "Numbers"), text(browser)
    field = browser.find_element("css selector", "input[type=text]")
    field.send_keys("minimum detectable", Keys.ENTER)
    assert until(lambda: "Faults of the instrument" not in text(browser), 30)
    assert "MDE" in text(browser)


@pytest.mark.parametrize("what", ["empty", "broken"])
def test_nothing_to_show_is_said(at, tmp_path, what):
    """A sentence in place of a trace, on every page that reads."""
    folder = tmp_path / "logs"
    folder.mkdir()
    if what == "broken":
        (folder / "a.jsonl").write_bytes(b"\x00\xff{]")
    browser = at(folder)
    words = "no logs in this folder" if what == "empty" else "no records"
    assert shows(browser, words), text(browser)
    for title in ("Log", "Compare", "Seven items"):
        goes(browser, title)
        assert shows(browser, words), (title, text(browser))
        assert "Traceback" not in text(browser)
    assert errors(browser) == []
