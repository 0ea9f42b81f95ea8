"""The meter against a server with each exporter's own metrics: what is counted, under which name, and what is refused."""

from __future__ import annotations

import itertools
import json
import os
import re
import time
from collections import defaultdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from prometheus.fake_server import FakePrometheus
from tuneoff.cli.main import main
from tuneoff.meter import MeterError
from tuneoff.record.samples.reader import DomainEnergy
from tuneoff_meters.prometheus.meter import PrometheusMeter

NOW = time.time()


@pytest.fixture(autouse=True)
def _now() -> None:
    """Let the series end now: since they were collected, tests of a busy machine may have waited for minutes."""
    global NOW
    NOW = time.time()


POWERCAP = "/sys/class/powercap/"


def counter(watts: float, *, first: float = 1000.0, every: float = 1.0, since: float = 200.0) -> list[tuple[float, float]]:
    """Return a counter that is scraped until 20 s after now, so that no test has to wait."""
    count = int((since + 20) / every)
    return [(NOW - since + number * every, first + watts * every * number) for number in range(count)]


def gauge(value: float) -> list[tuple[float, float]]:
    return [(moment, value) for moment, _ in counter(0)]


def node_exporter(server: FakePrometheus, instance: str = "db1:9100", watts: float = 50.0) -> None:
    """Add what node_exporter says of a host with a package and its parts, seen in two ways."""
    zones = [("package", "intel-rapl:0", 1.0), ("core", "intel-rapl:0:0", 0.5), ("dram", "intel-rapl:0:1", 0.1)]
    zones += [("psys", "intel-rapl:1", 3.0), ("package", "intel-rapl-mmio:0", 1.0)]
    for zone, folder, share in zones:
        labels = {"index": "0", "path": POWERCAP + folder, "instance": instance, "job": "node"}
        server.add(f"node_rapl_{zone}_joules_total", counter(share * watts), **labels)


def meter(server: FakePrometheus, **options: Any) -> PrometheusMeter:
    return PrometheusMeter({"url": server.url, **options})


def window(seconds: float = 100.0) -> tuple[int, int]:
    """Return the start and the end of a run that has ended 5 s ago, in ns."""
    return int((NOW - 5 - seconds) * 1e9), int((NOW - 5) * 1e9)


def collected(one: PrometheusMeter) -> dict[str, float]:
    """Return the joules of each domain in the window, as the reader of samples does."""
    domains: dict[str, DomainEnergy] = defaultdict(DomainEnergy)
    for sample in one.collect(*window()):
        domains[sample.domain].take(sample)
    return {name: round(domain.series().energy(*window()), 1) for name, domain in domains.items()}


def refusal(server: FakePrometheus, **options: Any) -> str:
    with pytest.raises(MeterError) as caught:
        meter(server, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_package_and_dram_of_node_exporter_are_counted_and_nothing_twice(server: FakePrometheus) -> None:
    node_exporter(server)
    one = meter(server)
    assert one.collects
    assert one.description.kind == "measured"
    assert one.description.domains == ("db1/dram-0", "db1/package-0")
    assert one.description.source == f"Prometheus {server.url}: node_exporter, db1"
    assert collected(one) == {"db1/package-0": 5000.0, "db1/dram-0": 500.0}


def test_dies_and_the_zone_label_are_read_too(server: FakePrometheus, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "uname", lambda: SimpleNamespace(nodename="a"))
    server.add("node_rapl_package_1_die_0_joules_total", counter(10), index="0", path=f"{POWERCAP}intel-rapl:1", instance="a:1")
    for zone, folder in (("package-0-die-0", "intel-rapl:0"), ("core", "intel-rapl:0:0"), ("dram", "intel-rapl:0:1")):
        server.add("node_rapl_joules_total", counter(5), index="1", path=POWERCAP + folder, rapl_zone=zone, instance="b:1")
    assert meter(server).description.domains == ("a/package-1-die-0", "b/dram-1", "b/package-0-die-0")


def test_samples_lie_at_the_scrapes_and_not_at_the_steps(server: FakePrometheus) -> None:
    server.add("node_rapl_package_joules_total", counter(40, every=15, since=290), index="0", instance="a:9100")
    one = meter(server, wait_seconds=0)
    assert one.description.longest_gap_seconds == pytest.approx(37.5)
    assert one.description.source.endswith(": node_exporter, a, scraped every 15 s")
    found = one.collect(*window())
    assert {round((later.t - earlier.t) / 1e9, 2) for earlier, later in itertools.pairwise(found)} == {15.0}
    assert collected(one)["a/package-0"] == pytest.approx(4000, rel=0.16)  # one scrape may be to come
    assert round((found[0].t / 1e9 - NOW + 290) / 15, 2).is_integer()


def test_nodes_are_kept_apart_and_can_be_chosen_with_or_without_the_port(
    server: FakePrometheus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "uname", lambda: SimpleNamespace(nodename="db1"))
    node_exporter(server, "db1:9100", 50)
    node_exporter(server, "db2.example:9100", 20)
    assert collected(meter(server)) == {
        "db1/package-0": 5000.0,
        "db1/dram-0": 500.0,
        "db2.example/package-0": 2000.0,
        "db2.example/dram-0": 200.0,
    }
    assert "2 nodes" not in meter(server, nodes="db1").description.source
    assert meter(server, nodes="db1").description.domains == ("db1/dram-0", "db1/package-0")
    assert meter(server, nodes=["db2.example:9100"]).description.domains == ("db2.example/dram-0", "db2.example/package-0")
    assert "but not of nodes db3; known: db1, db2.example" in refusal(server, nodes="db3")
    server.add("node_rapl_package_joules_total", counter(50), index="0", instance="10.0.0.7:9100", node="worker-1")
    assert meter(server, node_label="node", nodes="worker-1").description.domains == ("worker-1/package-0",)


def test_two_exporters_at_one_address_are_told_apart_by_their_ports(
    server: FakePrometheus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "uname", lambda: SimpleNamespace(nodename="localhost:9100"))
    node_exporter(server, "localhost:9100", 50)
    node_exporter(server, "localhost:9101", 20)
    assert collected(meter(server))["localhost:9101/package-0"] == 2000.0


def test_scaphandres_gauge_is_power(server: FakePrometheus) -> None:
    server.add("scaph_host_power_microwatts", gauge(41.5e6), instance="a:8080")
    server.add("scaph_host_energy_microjoules", counter(1e9), instance="a:8080")  # wraps part by part
    assert collected(meter(server, source="scaphandre")) == {"a/node": 4150.0}


def test_dcgms_energy_counter_is_taken_before_its_power_and_labels_may_change(server: FakePrometheus) -> None:
    gpu = {"Hostname": "g1", "UUID": "GPU-1", "gpu": "0", "instance": "10.0.0.9:9400"}
    energy = counter(250_000)  # mJ
    server.add("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", energy[:150], **gpu)
    server.add("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", energy[150:], **gpu, pod="trial-7")  # the pod came, the counter stayed
    server.add("DCGM_FI_DEV_POWER_USAGE", gauge(249), **gpu)
    server.add("DCGM_FI_DEV_POWER_USAGE", gauge(70), **{**gpu, "gpu": "1", "UUID": "GPU-2"})  # has no energy counter
    assert collected(meter(server, source="dcgm")) == {"g1/gpu-0": 25000.0, "g1/gpu-1": 7000.0}


def test_own_promql_is_estimated_unless_it_is_said_to_be_measured(server: FakePrometheus) -> None:
    server.add("plug_energy_kwh_total", counter(90 / 3.6e6), instance="plug1")
    domains = {"wall": {"query": "plug_energy_kwh_total", "unit": "kilowatt_hours"}}
    assert meter(server, domains=domains).description.kind == "estimated"
    one = meter(server, domains=domains, kind="measured")
    assert one.description.kind == "measured"
    assert collected(one) == {"plug1/wall": 9000.0}
    server.add("plug_energy_kwh_total", counter(1), instance="plug1", outlet="2")
    text = refusal(server, domains=domains)
    assert "domain 'plug1/wall' must give one series per node, but gives 2; sum them: sum by (instance) (plug_energy" in text


def test_a_restart_of_a_counter_is_no_negative_energy_and_is_told(server: FakePrometheus) -> None:
    energy = counter(50)
    fallen = energy[:150] + [(moment, value - energy[149][1]) for moment, value in energy[150:]]
    server.add("node_rapl_package_joules_total", fallen, index="0", instance="a:9100")
    one = meter(server)
    assert collected(one) == {"a/package-0": 5000.0}
    assert one.problems == ["a/package-0: 1 restarts of the counter; what it lost before each is not counted"]


def test_a_partial_answer_is_told(server: FakePrometheus) -> None:
    """Thanos and the like answer with what they have, and a warning for each store that did not."""
    node_exporter(server)
    one = meter(server, wait_seconds=0)
    server.warnings = ("store node-7: connection refused",)
    one.collect(*window())
    told = f"Prometheus at {server.url} warns that a part may be missing: store node-7: connection refused"
    assert one.problems == [told]
    server.warnings = ()
    one.collect(*window())
    assert not any("warns" in problem for problem in one.problems)  # negative control


def test_more_than_a_selector_is_evaluated_at_steps_and_never_at_too_many(server: FakePrometheus) -> None:
    server.add("plug_watts", [(NOW - 70_000 + 20 * number, 50.0) for number in range(3_501)], instance="a:9100")
    one = meter(server, domains={"wall": {"query": "sum by (instance) (plug_watts) # all", "unit": "watts"}}, wait_seconds=0)
    found = one.collect(*window(60_000))
    assert {sample.watts for sample in found} == {50.0}
    assert 9_000 < len(found) <= 10_001
    assert server.queries[-1].startswith("(\nsum by (instance) (plug_watts) # all\n)[600")


def test_the_idle_power_can_be_given_else_it_is_read(server: FakePrometheus) -> None:
    node_exporter(server)
    assert meter(server).idle_watts is None
    assert meter(server, idle_watts={"db1/package-0": 12}).idle_watts == {"db1/package-0": 12.0}
    said = "`idle_watts` names db2/package-0, but the domains are db1/dram-0, db1/package-0"
    assert said in refusal(server, idle_watts={"db2/package-0": 12})


def test_a_server_without_such_metrics_names_the_source_that_has_some(server: FakePrometheus) -> None:
    assert "has no node_exporter metrics: none of node_rapl_package_joules_total" in refusal(server)
    assert "scraped; a virtual machine has none, and to read /sys/class/powercap takes root" in refusal(server)
    assert "a virtual machine" not in refusal(server, source="dcgm")
    server.add("scaph_host_power_microwatts", gauge(41.5e6), instance="a:8080")
    assert refusal(server) == (
        f"Prometheus at {server.url} has no node_exporter metrics, but has those of scaphandre; set `source: scaphandre`"
    )


def test_this_host_is_found_among_nodes_that_are_named_by_their_addresses(
    server: FakePrometheus, monkeypatch: pytest.MonkeyPatch
) -> None:
    for address, watts, name in (("10.0.0.5:9100", 50, "worker-1"), ("10.0.0.6:9100", 20, "worker-2")):
        node_exporter(server, address, watts)
        server.add("node_uname_info", counter(0), instance=address, nodename=name)
    monkeypatch.setattr(os, "uname", lambda: SimpleNamespace(nodename="worker-2"))
    expected = {"10.0.0.5/package-0": 5000.0, "10.0.0.5/dram-0": 500.0, "worker-2/package-0": 2000.0, "worker-2/dram-0": 200.0}
    one = meter(server)
    assert one.description.domains == tuple(sorted(expected))
    assert collected(one) == expected
    monkeypatch.setattr(os, "uname", lambda: SimpleNamespace(nodename="laptop"))
    said = "one of the nodes must be this host, laptop, but they are 10.0.0.5, 10.0.0.6; let `node_label` name hosts, or `nodes`"
    assert said in refusal(server)
    assert set(collected(meter(server, nodes="10.0.0.6"))) == {"10.0.0.6/package-0", "10.0.0.6/dram-0"}  # one is this host


def test_a_clock_that_is_far_off_is_refused_and_a_small_offset_is_corrected(server: FakePrometheus) -> None:
    server.clock_ahead = -30.0
    # by as much less as the answer takes
    assert re.search(r"must agree within 5 s, but differ by -(30\.0|2\d\.\d) s; synchronize both \(NTP\)", refusal(server))
    server.clock_ahead = 2.0
    stamped = [(moment + 2.0, 0.0 if moment < NOW - 50 else 100.0) for moment, _ in counter(0)]  # by the server's clock
    server.add("node_rapl_package_joules_total", stamped, index="0", instance="a:9100")
    samples = meter(server, wait_seconds=0).collect(int((NOW - 100) * 1e9), int(NOW * 1e9))
    assert next(sample for sample in samples if sample.joules).t / 1e9 == pytest.approx(NOW - 50, abs=0.1)
    assert samples[-1].t / 1e9 > NOW - 1.1, "up to the present of the server"


def test_a_window_without_samples_is_an_error_of_its_own(server: FakePrometheus) -> None:
    server.add("node_rapl_package_joules_total", counter(50)[:100], index="0", instance="a:9100")  # the node went down
    one = meter(server, wait_seconds=0)
    with pytest.raises(MeterError, match=r"has no node_exporter samples of the run's 50 s; see its page /targets"):
        one.collect(*window(50))


def test_a_server_that_is_not_there_ends_the_command_before_anything_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url = "http://127.0.0.1:1"
    file = tmp_path / "metered.yaml"
    power = {"meter": "prometheus", "options": {"url": url}}
    space, budget = {"x": {"type": "float", "low": 0.0, "high": 1.0}}, {"trials": 1, "epochs_per_trial": 1}
    matrix = {
        "name": "metered",
        "workload": "null",
        "search_space": space,
        "budget": budget,
        "adapters": ["serial"],
        "power": power,
    }
    file.write_text(json.dumps(matrix))  # JSON is YAML
    assert main(["compare", str(file), "--output", str(tmp_path / "results")]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert f"Prometheus must be reachable at {url}, but: Connection refused" in line
    assert not list(tmp_path.glob("results/runs/*"))
