"""The page of `watch --serve` in a browser: it follows the folder, asks no other host, and shows hostile names as text."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from builders.live_folders import Folder
from tuneoff.tell.live.server import LiveServer, serving
from tuneoff.tell.live.site import Site, rendered
from tuneoff.tell.live.watcher import Watcher

pytestmark = pytest.mark.slow

HOSTILE = "<script>document.title='taken'</script>\x1b[2J"


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    folder = Folder(tmp_path / "results")
    folder.write_plan(name=HOSTILE)
    folder.take()
    return folder


@pytest.fixture
def server(folder: Folder) -> Iterator[LiveServer]:
    with serving(Site(Watcher(folder.path), rendered), "127.0.0.1", 0) as made:
        yield made


def open_page(browser: Any, url: str, **options: Any) -> tuple[Any, list[str]]:
    """Return the open page and what goes wrong on it: console messages, errors, requests to other hosts."""
    page = browser.new_context(**options).new_page()
    problems: list[str] = []
    page.on("console", lambda message: problems.append(message.text))
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on(
        "request",
        lambda request: None if request.url.startswith((url.partition("?")[0], "data:")) else problems.append(request.url),
    )
    page.goto(url)
    return page, problems


def shows(page: Any, selector: str, text: str) -> None:
    """Wait until an element has a text; the page's policy forbids what evaluates strings in it."""
    from playwright.sync_api import expect

    expect(page.locator(selector)).to_contain_text(text, timeout=20_000)


def test_the_page_follows_the_matrix_and_keeps_open_what_the_reader_opened(
    browser: Any, server: LiveServer, folder: Folder
) -> None:
    page, problems = open_page(browser, server.url)
    assert page.text_content("#ended") == "0 of 6 runs ended"
    assert page.title().startswith("0 of 6 runs ended · ")  # a tab in the background tells how far the matrix is
    page.click("#runs summary")
    running = folder.begin("serial", 0)
    running.trial("1", value=0.25)
    shows(page, "#run-incumbent", "0.25")
    folder.end("serial", 0, "failed", execution="9")
    shows(page, "#ended", "1 failed")
    shows(page, ".runs .status.failed", "failed")
    assert page.get_attribute("#runs", "open") is not None
    assert page.get_attribute("#figures", "open") is None
    assert "serial random seed 0: failed" in page.text_content("#live")
    assert page.title().startswith("1 of 6 runs ended")
    assert problems == []


def test_the_output_of_a_run_comes_as_it_is_printed_and_is_searched(browser: Any, server: LiveServer, folder: Folder) -> None:
    running = folder.begin("serial", 0)
    running.write()
    log = running.folder / "log.txt"
    log.write_bytes(b"epoch 1\n<img src=x onerror=alert(1)>\x1b[2J\n")
    page, problems = open_page(browser, server.url)
    page.click("#output summary")
    shows(page, "#output-text", "<img src=x onerror=alert(1)>\\x1b[2J")
    assert page.locator("#output-text img").count() == 0
    with log.open("ab") as file:
        file.write(b"needle 2\n")
    shows(page, "#output-text", "needle 2")
    page.fill("#output-find", "NEEDLE")
    shows(page, "#output-state", "1 line found")
    assert page.text_content("#output-text") == "needle 2"
    folder.end("serial", 0, execution="9")  # the page loads anew, and keeps what was chosen
    shows(page, "#ended", "1 of 6")
    shows(page, "#output-text", "needle 2")
    assert "only reads" in page.text_content("#output")
    assert problems == []


def test_a_server_that_is_gone_is_said_to_be(browser: Any, folder: Folder) -> None:
    with serving(Site(Watcher(folder.path), rendered), "127.0.0.1", 0) as server:
        page, _ = open_page(browser, server.url)
        assert not page.is_visible("#connection")
    page.wait_for_selector("#connection", state="visible", timeout=20_000)


def test_hostile_names_are_text_and_their_scripts_do_not_run(browser: Any, server: LiveServer) -> None:
    page, problems = open_page(browser, server.url)
    assert HOSTILE.replace("\x1b", "\\x1b") in page.text_content("header.top")
    assert "<script>" in page.title()
    assert page.evaluate("document.scripts.length") == 1
    assert problems == []
    with page.expect_event("console"):  # planted: the policy refuses it, and says so
        page.evaluate("document.body.insertAdjacentHTML('beforeend', '<img src=/x onerror=\"document.title=1\">')")
    assert problems != []


@pytest.mark.parametrize("width", [320])
def test_the_page_is_no_wider_than_the_screen(browser: Any, tmp_path: Path, width: int) -> None:
    folder = Folder(tmp_path / "wide", ("a-long-name-of-an-adapter", "b"), seeds=60)
    folder.take()
    folder.end("b", 3, "failed")
    folder.begin("a-long-name-of-an-adapter", 0).trial("1", value=0.25)
    with serving(Site(Watcher(folder.path), rendered), "127.0.0.1", 0) as server:
        page, _ = open_page(browser, server.url, viewport={"width": width, "height": 700})
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_without_script_the_state_is_there(browser: Any, server: LiveServer) -> None:
    page, _ = open_page(browser, server.url, java_script_enabled=False)
    assert page.text_content("#ended") == "0 of 6 runs ended"
    assert page.locator(".runs tbody tr").count() == 6


def test_the_token_does_not_stay_in_the_address(browser: Any, folder: Folder) -> None:
    with serving(Site(Watcher(folder.path), rendered), "0.0.0.0", 0) as server:
        url = server.url.replace(server.url.partition("//")[2].partition(":")[0], "127.0.0.1", 1)
        page, problems = open_page(browser, url)
        assert "token" not in page.url
        folder.end("serial", 0)
        shows(page, "#ended", "1 of 6")  # by the cookie
        page.click("#runs summary")
        page.click("text=run.json")
        assert '"status": "done"' in page.text_content("body") or '"status":"done"' in page.text_content("body")
        assert problems == []
