"""Take the screenshots of docs/screenshots: `python tests/tell/page/take_screenshots.py REPORT.html FOLDER`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

CHROMIUM = "/usr/bin/chromium"
SHOTS: dict[str, dict[str, Any]] = {
    "light": {"viewport": {"width": 1280, "height": 900}, "color_scheme": "light"},
    "dark": {"viewport": {"width": 1280, "height": 900}, "color_scheme": "dark"},
    "phone": {"viewport": {"width": 360, "height": 1400}, "color_scheme": "light"},
    "print": {"viewport": {"width": 703, "height": 1031}, "color_scheme": "light"},  # a page of A4, portrait
}
FROM = {"dark": "#frameworks"}  # where a shot begins, if not at the top


def main(report: Path, folder: Path) -> None:
    from playwright.sync_api import sync_playwright

    folder.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as tools:
        browser = tools.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for name, options in SHOTS.items():
            page = browser.new_page(**options)
            page.goto(report.resolve().as_uri())
            if name == "print":
                page.emulate_media(media="print")
            if name in FROM:
                page.locator(FROM[name]).evaluate("(one) => one.scrollIntoView({ behavior: 'instant' })")
            page.screenshot(path=folder / f"{name}.png")
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
