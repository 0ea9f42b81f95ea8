"""A made-up server."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from prometheus.fake_server import FakePrometheus, serving


@pytest.fixture
def server() -> Iterator[FakePrometheus]:
    with serving(FakePrometheus()) as fake:
        yield fake
