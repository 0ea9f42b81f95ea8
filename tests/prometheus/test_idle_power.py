"""The idle power of a node: that of a minute before the run in which it was idle, given, or read anew."""

from __future__ import annotations

import time
from collections.abc import Mapping

import pytest

from prometheus.fake_server import Answer, FakePrometheus, success
from prometheus.test_meter import NOW, gauge, meter, node_exporter, refusal


def report_busy(server: FakePrometheus, share: str, instance: str = "db1:9100") -> None:
    """Let the server have node_cpu_seconds_total of a node, too."""

    def busy(endpoint: str, parameters: Mapping[str, str]) -> Answer | None:
        if "node_cpu_seconds_total" not in parameters["query"]:
            return None
        return success({"resultType": "vector", "result": [{"metric": {"instance": instance}, "value": [NOW, share]}]})

    server.override = busy


def test_the_idle_power_is_that_of_the_last_minute_if_the_node_was_idle(server: FakePrometheus) -> None:
    now = time.time()
    watts = [90.0] * 140 + [20.0] * 80  # the load ended more than a minute ago
    energy = [(now - 219 + number, sum(watts[:number])) for number in range(220)]
    server.add("node_rapl_package_joules_total", energy, index="0", instance="db1:9100")
    report_busy(server, "0.02")
    one = meter(server)
    assert one.idle_watts is not None
    assert dict(one.idle_watts) == {"db1/package-0": pytest.approx(20.0)}


@pytest.mark.parametrize("node", ["db1:9100", "db2:9100"])
def test_the_power_of_a_node_that_was_busy_or_may_have_been_is_no_idle_power(server: FakePrometheus, node: str) -> None:
    node_exporter(server)
    assert meter(server).idle_watts is None
    report_busy(server, "0.4" if node == "db1:9100" else "0.0", node)
    assert meter(server).idle_watts is None


def test_an_accelerators_idle_power_is_read_anew(server: FakePrometheus) -> None:
    server.add("DCGM_FI_DEV_POWER_USAGE", gauge(70), gpu="0", Hostname="g1", instance="g1:9400")
    report_busy(server, "0.0", "g1:9400")
    assert meter(server, source="dcgm").idle_watts is None


def test_the_idle_power_can_be_given_or_read_anew(server: FakePrometheus) -> None:
    node_exporter(server)
    report_busy(server, "0.0")
    one = meter(server, idle_watts={"db1/package-0": 12})
    assert one.idle_watts == {"db1/package-0": 12.0}
    assert meter(server, idle_seconds=0).idle_watts is None
    said = "`idle_watts` names db2/package-0, but the domains are db1/dram-0, db1/package-0"
    assert said in refusal(server, idle_watts={"db2/package-0": 12})


def test_idle_power_that_was_scraped_once_is_not_known(server: FakePrometheus) -> None:
    server.add("node_rapl_package_joules_total", [(time.time() - 1, 50.0)], index="0", instance="db1:9100")
    report_busy(server, "0.0")
    assert meter(server).idle_watts is None
