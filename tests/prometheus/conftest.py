"""A made-up server, and those of the tests against the real Prometheus: started together, as each takes up its targets late."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack

import pytest

from prometheus.fake_server import FakePrometheus, serving
from prometheus.real_servers import Server, ending, start_prometheus

Take = Callable[[str], Server]

TARGETS: Mapping[str, list[dict[str, str]]] = {  # the labels of what each server scrapes
    "two nodes": [{"instance": "node-a:9100"}, {"instance": "node-b:9100"}],
    "run": [{"instance": "node-a"}],
}


@pytest.fixture(scope="session")
def take(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Take]:
    """Return a function that gives each server once, to be used by one test alone."""
    folder = tmp_path_factory.mktemp("servers")
    with ExitStack() as stack:
        left: dict[str, Server] = {}
        for name, targets in TARGETS.items():
            left[name] = start_prometheus(folder / name.replace(" ", "-"), targets)
            stack.enter_context(ending(left[name].process))
        yield left.pop


@pytest.fixture
def server() -> Iterator[FakePrometheus]:
    with serving(FakePrometheus()) as fake:
        yield fake
