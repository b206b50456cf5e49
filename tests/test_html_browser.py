"""The HTML report in a real Chromium: it opens, filters, expands, asks the network for nothing.

Skipped where Chromium, its driver or Selenium is not installed (Debian: `apt install chromium
chromium-driver`). The accessibility check needs axe-core, which comes with the developers' tools.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from importlib import util
from pathlib import Path
from typing import Any

import pytest
import pytest_socket

from anvil_local.records import Message, Role, ToolCall
from anvil_local.reports import render_html
from tests.test_html_report import with_sample
from tests.test_reports import answer, report, trace, verdict

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
DRIVER = shutil.which("chromedriver")


def _find_axe() -> Path | None:
    if path := os.environ.get("AXE_CORE"):
        return Path(path)
    spec = util.find_spec("axe_core_python")
    return next(Path(spec.origin).parent.rglob("axe.min.js"), None) if spec and spec.origin else None


AXE = _find_axe()

if CHROMIUM is None or DRIVER is None or util.find_spec("selenium") is None:
    pytest.skip(
        "needs Chromium, chromedriver and selenium: apt install chromium chromium-driver",
        allow_module_level=True,
    )

Open = Callable[..., Any]


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = str(CHROMIUM)
    for argument in (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--disable-background-networking",
        "--no-first-run",
        f"--user-data-dir={tmp_path_factory.mktemp('chromium')}",
    ):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    # The driver is spoken to over a local port.
    pytest_socket.enable_socket()
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    driver.set_script_timeout(120)
    driver.get("about:blank")
    # The browser's own first page asked for things.
    for kind in ("browser", "performance"):
        driver.get_log(kind)
    yield driver
    pytest_socket.enable_socket()
    driver.quit()


@pytest.fixture
def page(browser: Any, tmp_path: Path, socket_enabled: None) -> Iterator[Open]:
    """Opens a report; afterwards nothing may stand on the console, and nothing was asked of a network."""

    from selenium.webdriver.support.ui import WebDriverWait

    def open_page(record: Any, *, dark: bool = False, width: int = 1280, scripts: bool = True) -> Any:
        path = tmp_path / "report.html"
        path.write_text(render_html(record), encoding="utf-8")
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": not scripts})
        browser.get(path.as_uri())
        # On a busy machine `get` may return while the page before is still there, or before the script ran.
        ready = (
            "return location.href === arguments[0] && document.readyState === 'complete' && "
            "!(arguments[1] && document.getElementById('tools').hidden)"
        )
        WebDriverWait(browser, 60).until(lambda driver: driver.execute_script(ready, path.as_uri(), scripts))
        return browser

    yield open_page
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
    assert browser.get_log("browser") == []
    for entry in browser.get_log("performance"):
        message = json.loads(entry["message"])["message"]
        if message["method"] == "Network.requestWillBeSent":
            assert message["params"]["request"]["url"].startswith(("file:", "data:"))


def people() -> Any:
    """A report with one of everything."""
    opening = "It opens at nine. Entry is free. Dogs may come in."
    turns = (
        Message(role=Role.HUMAN, content="Book a table."),
        Message(role=Role.AI, tool_calls=(ToolCall(name="book", args={"people": 2}),)),
        Message(role=Role.TOOL, name="book", content="full"),
        Message(role=Role.AI, content="It is booked."),
    )
    results = [
        answer(
            "museum", opening, ("The museum opens at nine.", verdict(1, 3.0)), ("Free.", verdict(0, -2.0))
        ),
        answer("greeting", "Hello!"),
        answer("attack", "x", ("</script><img src=x onerror=alert(1)>", verdict(0, -1.0))),
        answer("full", "It rains.", ("It rains.", verdict(1, 2.0))),
        with_sample(trace("table", verdict(0, -0.75)), user_input=turns),
    ]
    results[0] = with_sample(
        results[0],
        user_input="When?",
        retrieved_contexts=("Open from nine to five.", "Tickets cost 5 euros."),
    )
    return report(*results, gates=("faithfulness >= 0.8", "goal >= 50%"))


def many(count: int) -> Any:
    claims = [("It opens at nine.", verdict(1, 2.0)), ("Entry is free of charge.", verdict(0, -1.5))] * 3
    return report(*(answer(f"row-{k}", f"It opens at nine, row {k}. " * 8, *claims) for k in range(count)))


def rows(driver: Any) -> list[str]:
    return list(
        driver.execute_script("return [...document.querySelectorAll('.name')].map(n => n.textContent)")
    )


def choose(driver: Any, script: str) -> None:
    driver.execute_script(f"{script}; document.getElementById('tools').dispatchEvent(new Event('change'))")


def open_row(driver: Any, name: str) -> Any:
    """Opens a row; the browser sends the event that fills it a moment after the click."""
    from selenium.webdriver.support.ui import WebDriverWait

    row = driver.find_element("css selector", f"[id='{name}']")
    empty = len(row.find_elements("css selector", "*"))
    row.find_element("css selector", "summary").click()
    WebDriverWait(driver, 10).until(lambda _: len(row.find_elements("css selector", "*")) > empty)
    return row


def test_it_opens_with_the_worst_first_and_filters(page: Open) -> None:
    driver = page(people())
    assert rows(driver) == ["attack", "table", "museum", "greeting", "full"]
    choose(driver, "document.querySelector('input[value=open]').checked = true")
    assert rows(driver) == ["greeting"]
    choose(
        driver,
        "document.getElementById('tools').reset(); document.getElementById('find').value = 'NINE museum'",
    )
    assert rows(driver) == ["museum"]
    assert driver.find_element("id", "shown").text == "1 of 5 samples"
    choose(driver, "document.getElementById('find').value = 'no such words'")
    assert "No sample matches." in driver.find_element("id", "list").text
    choose(driver, "document.getElementById('tools').reset(); document.getElementById('sort').value = 'data'")
    assert rows(driver)[0] == "museum"


def test_a_row_opens_to_the_marked_response_the_statements_and_the_contexts(page: Open) -> None:
    driver = page(people())
    row = open_row(driver, "faithfulness.museum")
    marks = row.find_elements("css selector", "mark")
    assert [mark.get_attribute("class") for mark in marks] == ["no"]  # both claims span the whole response
    text = row.text
    for words in (
        "✓ supported",
        "✕ refused",
        "margin -2.00",
        "Open from nine to five.",
        "Tickets cost 5 euros.",
    ):
        assert words in text


def test_a_trace_opens_to_its_turns_and_claimed_against_done(page: Open) -> None:
    driver = page(people())
    row = open_row(driver, "goal_with_reference.table")
    for words in (
        "Inferred goal",
        "Claimed: given the words",
        "no_tool_results",
        '→ book {"people":2}',
        "full",
    ):
        assert words in row.text


def test_markup_in_the_data_is_shown_and_does_nothing(page: Open) -> None:
    driver = page(people())
    choose(driver, "document.getElementById('all').click()")
    assert "</script><img src=x onerror=alert(1)>" in driver.find_element("id", "list").text
    assert driver.find_elements("css selector", "img") == []


def test_the_keyboard_reaches_everything(page: Open) -> None:
    from selenium.webdriver.common.keys import Keys

    driver = page(people())
    body = driver.find_element("css selector", "body")
    body.send_keys("/")
    driver.switch_to.active_element.send_keys("rains")
    assert driver.switch_to.active_element.get_attribute("value") == "rains"
    driver.switch_to.active_element.send_keys(Keys.ESCAPE)
    driver.execute_script("document.activeElement.blur()")
    body.send_keys("j")
    driver.switch_to.active_element.send_keys("j")
    driver.switch_to.active_element.send_keys(Keys.ENTER)
    opened = driver.execute_script("return [...document.querySelectorAll('.row[open]')].map(n => n.id)")
    assert opened == ["goal_with_reference.table"]


def test_an_anchor_opens_its_sample_even_when_a_filter_hides_it(page: Open) -> None:
    driver = page(people())
    choose(driver, "document.getElementById('find').value = 'greeting'")
    driver.execute_async_script(
        "location.hash = '#faithfulness.museum.2'; setTimeout(arguments[arguments.length - 1], 100)"
    )
    statement = driver.find_element("css selector", "[id='faithfulness.museum.2']")
    assert "Free." in statement.text
    assert statement.is_displayed()


def test_a_linked_statement_is_below_the_tools_and_not_behind_them(page: Open) -> None:
    driver = page(many(300))
    driver.execute_async_script(
        "location.hash = '#faithfulness.row-250.5'; setTimeout(arguments[arguments.length - 1], 300)"
    )
    place = "return document.getElementById(arguments[0]).getBoundingClientRect()"
    tools = driver.execute_script(place, "tools")
    statement = driver.execute_script(place, "faithfulness.row-250.5")
    assert tools["bottom"] <= statement["top"] < 900


def test_without_scripts_the_numbers_and_the_worst_samples_stand_there(page: Open) -> None:
    driver = page(people(), scripts=False)
    text = driver.find_element("css selector", "main").text
    assert "FAIL" in text
    assert "refused -2.00" in text
    assert not driver.find_element("id", "tools").is_displayed()


@pytest.mark.parametrize("then", ["escape", "reset"])
def test_a_search_that_was_taken_back_closes_no_row_afterwards(page: Open, then: str) -> None:
    driver = page(people())
    back = {
        "escape": "find.dispatchEvent(new KeyboardEvent('keydown', {key: 'Escape', bubbles: true}));",
        "reset": "tools.reset(); tools.dispatchEvent(new Event('change'));",
    }
    driver.execute_async_script(
        "const done = arguments[arguments.length - 1];"
        "const find = document.getElementById('find'), tools = document.getElementById('tools');"
        "find.value = 'rains'; find.dispatchEvent(new Event('input'));"
        + back[then]
        + "document.querySelector('.row').open = true; setTimeout(done, 300);"
    )
    assert driver.execute_script("return document.querySelectorAll('.row[open]').length") == 1


@pytest.mark.parametrize("width", [360, 1280])
def test_nothing_is_wider_than_the_window(page: Open, width: int) -> None:
    driver = page(people(), width=width)
    choose(driver, "document.getElementById('all').click()")
    assert driver.execute_script("return document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_axe_finds_no_fault(page: Open, dark: bool) -> None:
    if AXE is None:
        pytest.skip("needs axe-core: pip install axe-core-python, or AXE_CORE=path/to/axe.min.js")
    driver = page(people(), dark=dark)
    choose(driver, "document.getElementById('all').click()")
    driver.execute_cdp_cmd("Runtime.evaluate", {"expression": AXE.read_text(encoding="utf-8")})
    found = driver.execute_async_script(
        "const done = arguments[arguments.length - 1];"
        "axe.run().then(r => done(r.violations.map(v => [v.id, v.nodes.map(n => n.html.slice(0, 120))])))"
    )
    assert found == []


def test_five_thousand_samples_open_and_filter_fluently(page: Open) -> None:
    driver = page(many(5000))
    assert len(rows(driver)) == 100
    driver.execute_script("document.getElementById('more').click()")
    assert len(rows(driver)) >= 200
    search = (
        "const find = document.getElementById('find'), start = performance.now(); find.value = arguments[0];"
        "document.getElementById('tools').dispatchEvent(new Event('change')); document.body.offsetHeight;"
        "return performance.now() - start"
    )
    driver.execute_script(search, "nine")
    # Measured: 30 ms, the first search 150 ms; the limit leaves room for a busy machine.
    assert driver.execute_script(search, "4321") < 1000
    assert rows(driver) == ["row-4321"]
