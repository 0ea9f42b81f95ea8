"""The two worked examples of the metrics' definition as folders of an execution: events, power samples, accounting."""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from builders.event_logs import BOOT, SECOND, T0, example_a, example_b, ns
from tuneoff.base.layout import EVENTS, SAMPLES
from tuneoff.experiment.accounting.declared import Accounting, Intensity, Prices, write_accounting
from tuneoff.experiment.spec import RunSpec
from tuneoff.record.samples.schema import Coefficients, Header, Line, PowerSample, ProcessUsage, UsageSample

WALL = 1_700_000_000 * SECOND  # the wall clock at second 0 of a log
TICKS_BEFORE = ns(500)  # CPU time of the host before the run
Points = Sequence[tuple[float, float]]  # (second, CPU seconds used so far), linear in between, nothing before, the last after


def write_example(folder: Path, name: Literal["A", "B"]) -> RunSpec:
    """Write events/*.jsonl, power.jsonl and accounting.json of an example into a folder, and return its run's specification."""
    log, spec = example_a() if name == "A" else example_b()
    log.save(folder / EVENTS)
    write_samples(folder, samples_a() if name == "A" else samples_b())
    write_accounting(folder, accounting_a() if name == "A" else accounting_b())
    return spec


def write_samples(folder: Path, lines: Iterable[Line]) -> Path:
    """Write lines as a run's `power.jsonl`."""
    path = folder / SAMPLES
    path.write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in lines))
    return path


def header(meter: str, kind: Literal["measured", "estimated"], **more: object) -> Header:
    """Return the header of samples that were taken on the log's host."""
    fields: dict[str, object] = {
        "version": 1,
        "host": "h",
        "boot_id": BOOT,
        "execution_id": "run1-abc",
        "anchor_monotonic_ns": T0,
        "anchor_wall_ns": WALL,
        "anchor_width_ns": 400,
        "meter": meter,
        "kind": kind,
        "source": meter,
        "interval_ns": SECOND,
        "cpus": 2,
        "supervisor": f"h:99:{T0 - ns(3)}",
        **more,
    }
    return msgspec.convert(fields, Header)


WORKERS_A: dict[int, Points] = {101: ((12, 0), (162, 150)), 102: ((12, 0), (72, 60))}  # CPU seconds by pid: one a second


def samples_a() -> list[Line]:
    """Return the samples of a counter of the node: 30 W at idle, 25 W more for each slot that is busy."""
    lines: list[Line] = [
        header("command", "measured", source="a meter of the node", domains=("node",), idle_watts={"node": 30.0})
    ]
    for second in range(-1, 178):
        cpu = {pid: used(points, second) for pid, points in WORKERS_A.items()}
        joules = 30.0 * (second + 1) + 25.0 * sum(cpu.values())
        workers = [_usage(pid, 12, 100, seconds) for pid, seconds in cpu.items() if second >= 12]
        coordinator = _usage(100, -1, 99, 0.0)
        t, busy_ns = T0 + ns(second), TICKS_BEFORE + ns(sum(cpu.values()))
        lines.append(PowerSample(t=t, domain="node", joules=joules))
        lines.append(UsageSample(t=t, busy_ns=busy_ns, processes=(coordinator, *workers)))
    return lines


def accounting_a() -> Accounting:
    """200 g/kWh before second 112, 400 from then on; 0.10 USD per slot hour."""
    return Accounting(
        intensity=Intensity(
            kind="series",
            values=(200.0, 400.0),
            times=(WALL, WALL + ns(112)),
            end=WALL + ns(176),
            source="worked example A",
            date="2023-11-14",
        ),
        prices=Prices(
            name="example-a",
            source="worked example A",
            date="2023-11-14",
            usd_per_vcpu_hour=0.10,
            usd_per_gb_hour=0.0,
            assumed_gb_per_vcpu=1.0,
        ),
    )


COEFFICIENTS_B = Coefficients(
    joules_per_cpu_second=20.0,
    watts_per_core=5.0,
    low=(10.0, 2.5),
    high=(40.0, 10.0),
    cpu="worked example B",
    source="worked example B, 2023-11-14",
)
PROCESSES_B: dict[tuple[int, float], Points] = {  # (pid, start): CPU seconds; the coordinator's children in order of their ends
    (102, 6): ((6, 0), (8, 1.0), (9, 1.5)),
    (101, 6): ((6, 0), (8, 1.0), (28, 18.2), (29, 18.5)),
    (103, 10): ((10, 0), (12, 1.2), (32, 20.2), (33, 20.5)),
    (104, 30): ((30, 0), (32, 1.5), (40, 9.5), (43, 12.0)),
    (200, 44): ((44, 0), (48, 2.0)),  # the test's process
}
COORDINATOR_B: Points = ((-1, 0), (0, 0.5), (52, 3.5))


def samples_b() -> list[Line]:
    """CPU time of the tree every second; the coordinator waits for each of its processes within a second of its end."""
    lines: list[Line] = [header("model", "estimated", source="model: worked example B", coefficients=COEFFICIENTS_B)]
    for second in range(-1, 54):
        coordinator_children = sum(points[-1][1] for points in PROCESSES_B.values() if points[-1][0] < second)
        usages = [_usage(100, -1, 99, used(COORDINATOR_B, second), children=coordinator_children, name="python")]
        gone = []
        for (pid, start), points in PROCESSES_B.items():
            if start <= second <= points[-1][0]:
                usages.append(_usage(pid, start, 100, used(points, second), name="python"))
            elif points[-1][0] < second <= points[-1][0] + 1:
                gone.append((pid, T0 + ns(start)))
        tree = used(COORDINATOR_B, second) + sum(used(points, second) for points in PROCESSES_B.values())
        own, other = 0.002 * (second + 1), 0.01 * (second + 1)
        lines.append(
            UsageSample(
                t=T0 + ns(second),
                busy_ns=TICKS_BEFORE + ns(tree + own + other),
                own_cpu_ns=ns(own),
                processes=tuple(usages),
                gone=tuple(gone),
                rss_bytes=100_000_000 * len(usages),
            )
        )
    return lines


def accounting_b() -> Accounting:
    """0.06 USD per vCPU hour and 0.01 per GB hour; no carbon intensity."""
    return Accounting(
        intensity_reason="the example has none",
        prices=Prices(
            name="example-b", source="worked example B", date="2023-11-14", usd_per_vcpu_hour=0.06, usd_per_gb_hour=0.01
        ),
    )


def used(points: Points, second: float) -> float:
    """Return the CPU seconds used up to a second."""
    index = bisect.bisect_right([point[0] for point in points], second)
    if index == 0:
        return 0.0
    if index == len(points):
        return points[-1][1]
    (before, low), (after, high) = points[index - 1], points[index]
    return low + (high - low) * (second - before) / (after - before)


def _usage(pid: int, start: float, parent: int, cpu: float, *, children: float = 0.0, name: str | None = None) -> ProcessUsage:
    return ProcessUsage(pid, T0 + ns(start), parent, ns(cpu), ns(children), 100_000_000, None, name)
