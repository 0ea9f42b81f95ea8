"""One limit for reading the kubeconfig and for all of deploy's questions, whatever hangs: a program, DNS, the server."""

from __future__ import annotations

import socket
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from adapters.katib.fake_api import write_kubeconfig
from tuneoff.errors import InfrastructureError
from tuneoff_adapters.katib.checks import katib_needs
from tuneoff_adapters.katib.options import KatibOptions
from tuneoff_adapters.kubernetes.checks import CHECK_SECONDS, SLACK_SECONDS, reach
from tuneoff_adapters.kubernetes.connection import Connection
from tuneoff_adapters.kubernetes.kubeconfig import LOADING_SECONDS

TOLD_SECONDS = 15.0  # what the documentation promises


@pytest.fixture
def silent_dns(gate: threading.Event, monkeypatch: pytest.MonkeyPatch) -> None:
    def look_up(*arguments: Any, **options: Any) -> Any:
        gate.wait(60.0)
        raise socket.gaierror("no answer")

    monkeypatch.setattr(socket, "getaddrinfo", look_up)


def refusal(connect: Any, within_seconds: float) -> tuple[str, float]:
    """Return why the cluster cannot be used, and after how many seconds that was known."""
    start = time.monotonic()
    with pytest.raises(InfrastructureError) as caught:
        reach(connect, katib_needs(KatibOptions(), is_listed=True), "tuneoff-x", within_seconds)
    assert "\n" not in str(caught.value)
    return str(caught.value), time.monotonic() - start


@pytest.mark.slow
def test_name_that_is_never_resolved_is_given_up_in_one_line(silent_dns: None, tmp_path: Path) -> None:
    kubeconfig = write_kubeconfig(tmp_path / "kubeconfig", "https://cluster.example:6443")
    text, seconds = refusal(lambda: Connection(kubeconfig), 3.0)
    assert "the API server at https://cluster.example:6443 cannot be reached" in text
    assert "DNS" in text
    assert seconds < 3.0 + SLACK_SECONDS + 2.0  # with room for a busy machine


@pytest.mark.slow
def test_reading_the_kubeconfig_takes_from_the_servers_time(silent_dns: None, tmp_path: Path) -> None:
    kubeconfig = write_kubeconfig(tmp_path / "kubeconfig", "https://cluster.example:6443")

    def connect() -> Connection:
        time.sleep(2.0)  # a credential program
        return Connection(kubeconfig)

    _, seconds = refusal(connect, 3.0)
    assert 2.0 < seconds < 3.0 + SLACK_SECONDS + 2.0


def test_the_limit_leaves_the_command_time_to_start() -> None:
    assert LOADING_SECONDS + SLACK_SECONDS < CHECK_SECONDS + SLACK_SECONDS < TOLD_SECONDS
