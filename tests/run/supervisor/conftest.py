"""A process that waits, to be watched."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest

from builders.waiting_processes import waiting

ALLOCATE = "import sys; block = bytearray(80_000_000); print('up', flush=True); sys.stdin.read()"


@pytest.fixture
def process() -> Iterator[subprocess.Popen[str]]:
    with waiting(ALLOCATE) as child:
        yield child
