"""A browser."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Return the machine's Chromium."""
    api = pytest.importorskip("playwright.sync_api")
    path = shutil.which("chromium") or shutil.which("google-chrome")
    if path is None:
        pytest.skip("there is no Chromium; run: .ci/install Chromium chromium fonts-dejavu-core")
    with api.sync_playwright() as tools:
        started = tools.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield started
        started.close()
