"""The option of `make fuzz`."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--count", type=int, help="fuzzed cases of each kind; 0: 10 000 files, 2 000 folders, 1 000 bundles, 300 hostile ones"
    )
