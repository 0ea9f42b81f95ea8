"""The store, the server, the node and the controllers under test, each with a folder of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from emulated.katib_world import World, world
from emulated.node_cluster import NodeCluster, node_cluster
from emulated.served import Served, served
from katib_emulation.objects import NAMESPACES, Store


@pytest.fixture
def store() -> Iterator[Store]:
    store = Store()
    store.create(NAMESPACES, {"metadata": {"name": "ns"}})
    yield store
    store.close()


@pytest.fixture
def api() -> Iterator[Served]:
    with served() as running:
        yield running


@pytest.fixture
def katib() -> Iterator[World]:
    with world() as made:
        yield made


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[NodeCluster]:
    """A node of this test's folder, to which it gives Jobs."""
    with node_cluster(tmp_path) as running:
        yield running
