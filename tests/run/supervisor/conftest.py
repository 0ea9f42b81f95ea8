"""A process that waits, to be watched."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

ALLOCATE = "import sys; block = bytearray(80_000_000); print('up', flush=True); sys.stdin.read()"


@pytest.fixture
def process() -> Iterator[subprocess.Popen[str]]:
    child = subprocess.Popen([sys.executable, "-c", ALLOCATE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    child.stdout.readline()
    yield child
    child.kill()
    child.communicate()
