"""Random runs of which every process's CPU time is known exactly, so that the truth about their energy is known too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec
from hypothesis import strategies as st

from builders.event_logs import T0, Log, Writer, ns
from builders.specs import make_spec
from builders.worked_examples import header, used
from tuneoff.experiment.accounting.declared import Accounting, Intensity, Prices
from tuneoff.experiment.spec import RunSpec, Workers
from tuneoff.measure.attribution.account import EnergyAccount, energy_account
from tuneoff.measure.attribution.pieces import joules
from tuneoff.measure.derived import with_metrics
from tuneoff.record.derive import derive
from tuneoff.record.events import schema
from tuneoff.record.metric_value import MetricValue
from tuneoff.record.run_record import RunRecord
from tuneoff.record.samples.reader import Evidence, Samples
from tuneoff.record.samples.schema import Coefficients, EnergySeries, ProcessUsage, UsageSample

HOST_CPUS = 4
JOULES_PER_CPU_SECOND, WATTS_PER_CORE = 20.0, 5.0
IDLE_WATTS = WATTS_PER_CORE * HOST_CPUS
COEFFICIENTS = Coefficients(
    joules_per_cpu_second=JOULES_PER_CPU_SECOND,
    watts_per_core=WATTS_PER_CORE,
    low=(10.0, 2.5),
    high=(40.0, 10.0),
    cpu="simulated",
    source="simulated, 2026",
)
PLANNED = 3


@dataclass
class Simulated:
    """A process: its CPU curve in seconds, from its start to its exit."""

    writer: Writer
    points: list[tuple[float, float]]

    @property
    def at(self) -> float:
        return self.points[-1][0]

    @property
    def cpu(self) -> float:
        return self.points[-1][1]

    def go(self, seconds: float, rate: float) -> float:
        """Use CPU for some seconds and return the CPU seconds used so far."""
        if seconds > 0:
            self.points.append((self.at + seconds, self.cpu + seconds * rate))
        return self.cpu


@dataclass
class Simulation:
    """A run's log, its processes, and the truth: busy seconds and busy CPU seconds of each attempt."""

    log: Log
    spec: RunSpec
    processes: list[Simulated] = field(default_factory=list)
    coordinator: list[tuple[float, float]] = field(default_factory=list)
    busy: dict[tuple[str, int], tuple[float, float]] = field(default_factory=dict)
    end: float = 0.0

    def run(self, order: Sequence[int] | None = None) -> RunRecord:
        return derive(self.log.pairs(order), self.spec)

    def evidence(self, meter: str = "model", interval: float = 1.0, intensity: float = 200.0) -> Evidence:
        """Return what was sampled, by the model, or by a counter of a host that uses exactly what the model says."""
        usage = tuple(self._usage(interval))
        accounting = Accounting(
            intensity=Intensity(kind="constant", values=(intensity,), source="simulated", date="2026"),
            prices=Prices(name="p", source="s", date="d", usd_per_vcpu_hour=0.1, usd_per_gb_hour=0.0, assumed_gb_per_vcpu=1.0),
        )
        if meter == "model":
            head = header("model", "estimated", coefficients=COEFFICIENTS, cpus=HOST_CPUS)
            return Evidence(samples=Samples(header=head, usage=usage), accounting=accounting)
        head = header("rapl", "measured", domains=("package-0",), cpus=HOST_CPUS, idle_watts={"package-0": IDLE_WATTS})
        times = [sample.t for sample in usage]
        first = usage[0]
        counter = [
            JOULES_PER_CPU_SECOND * (sample.busy_ns - first.busy_ns) / 1e9 + IDLE_WATTS * (sample.t - first.t) / 1e9
            for sample in usage
        ]
        power = {"package-0": EnergySeries(times, counter)}
        samples = Samples(header=head, usage=usage, power=power, power_samples=len(usage))
        return Evidence(samples=samples, accounting=accounting)

    def _usage(self, interval: float) -> list[UsageSample]:
        """Return the samples on the run's time scale; the coordinator waits for each process as soon as it has ended."""
        found = []
        seconds = -1.0
        present: set[tuple[int, int]] = set()
        while seconds <= self.end + 2 * interval:
            children = sum(one.cpu for one in self.processes if one.at < seconds)
            usages = [ProcessUsage(100, T0 - ns(1), 99, ns(used(self.coordinator, seconds)), ns(children), 0)]
            alive = set()
            for one in self.processes:
                pid, started = one.writer.process.pid, one.writer.process.process_started_ns
                if one.points[0][0] <= seconds <= one.at:
                    alive.add((pid, started))
                    usages.append(ProcessUsage(pid, started, 100, ns(used(one.points, seconds)), 0, 0))
            tree = used(self.coordinator, seconds) + sum(used(one.points, seconds) for one in self.processes)
            own, other = 0.002 * (seconds + 1), 0.25 * (seconds + 1)
            found.append(
                UsageSample(
                    t=ns(seconds),
                    busy_ns=ns(tree + own + other),
                    own_cpu_ns=ns(own),
                    processes=tuple(usages),
                    gone=tuple(sorted(present - alive)),
                )
            )
            present = alive
            seconds += interval
        return found


@st.composite
def simulations(draw: st.DrawFn) -> Simulation:
    """Draw runs of workers with several trials or a process per trial: waits, failures, retries, kills without a reading."""
    slots = draw(st.integers(1, 3))
    log = Log()
    deployed = draw(st.integers(4, 8))  # nothing begins or ends so near to the run's ends that a sample spans both
    log.step("deploy", 0, deployed)
    log.step("setup", deployed, None)
    simulation = Simulation(log, make_spec(epochs=PLANNED, workers=Workers(count=slots)))
    seconds, rate = st.integers(0, 6), st.sampled_from([0.0, 0.25, 0.5, 1.0])
    last, number = float(deployed), 0
    for slot in range(slots):
        at, worker = float(deployed + draw(seconds)), None
        for _ in range(draw(st.integers(0, 3))):
            if worker is None or draw(st.booleans()):
                writer = log.process("worker", at)
                worker = Simulated(writer, [(at, 0.0)])
                simulation.processes.append(worker)
                worker.go(draw(st.integers(1, 3)), draw(rate))
            else:
                worker.go(draw(seconds), draw(rate))
            name = f"t{number:02d}"
            number += 1
            log.submit(name, deployed, x=number / 100)
            is_killed = _attempt(draw, simulation, worker, name, slot, number / 100)
            at = worker.at
            if is_killed:
                worker = None
            last = max(last, at)
        if worker is not None:
            worker.go(draw(st.integers(1, 3)), draw(rate))  # its exit
            worker.writer.exit(worker.at, by=log.coordinator)
            last = max(last, worker.at)
    end = last + draw(seconds) + 1
    log.step("collect", end, end + 1)
    log.coordinator.add(schema.BestKnown, end + 1, trial=f"t{draw(st.integers(0, 4)):02d}")
    log.step("metrics", end + 2, end + 3)
    log.step("undeploy", end + 3, end + 4)
    simulation.end = end + 4
    simulation.coordinator = evenly(simulation.end)
    return simulation


def evenly(end: float) -> list[tuple[float, float]]:
    """Return the CPU curve of a coordinator that uses a quarter of a processor, also after the run's end."""
    return [(-1.0, 0.0), (end + 9, 0.25 * (end + 10))]


def _attempt(draw: st.DrawFn, simulation: Simulation, worker: Simulated, name: str, slot: int, x: float) -> bool:
    """Draw one attempt at a trial; True if its process was killed in it, without a last reading of its clock."""
    seconds, rate = st.integers(0, 6), st.sampled_from([0.0, 0.25, 0.5, 1.0])
    writer, start, base = worker.writer, worker.at, worker.cpu
    writer.start(name, start, slot=slot, x=x, process_cpu=base)
    busy = busy_cpu = 0.0
    epochs = draw(st.integers(0, PLANNED))
    for epoch in range(1, epochs + 1):
        length, before = draw(seconds), worker.cpu
        done = worker.go(length, draw(rate))
        busy, busy_cpu = busy + length, busy_cpu + done - before
        ended = worker.at
        back = worker.go(draw(seconds), draw(rate)) if draw(st.booleans()) else done
        value = draw(st.integers(0, 8)) / 8
        writer.epoch(name, epoch, ended, value, reported=worker.at, cpu=done - base, reported_cpu=back - base)
    length, before = draw(seconds), worker.cpu
    after = worker.go(length, draw(rate))
    simulation.busy[name, 0] = busy + length, busy_cpu + after - before
    if draw(st.booleans()) and length:
        simulation.log.coordinator.add(schema.TrialEnded, worker.at, trial=name, state="pruned", epochs=epochs, by="coordinator")
        return True
    state: Any = "completed" if epochs == PLANNED else draw(st.sampled_from(["pruned", "failed"]))
    cause = {"cause": "x", "charged": "workload"} if state == "failed" else {}
    writer.end(name, worker.at, state, epochs, cpu=after - base, **cause)
    return False


def one_trial() -> Simulation:
    """Return one trial of one epoch in one process, which uses half a processor at first, and then a whole one."""
    log = Log()
    log.step("deploy", 0, 2)
    log.step("setup", 2, 3)
    log.submit("t00", 3)
    writer = log.process("worker", 3)
    worker = Simulated(writer, [(3.0, 0.0)])
    base = worker.go(2, 0.5)
    writer.start("t00", worker.at, slot=0, process_cpu=base)
    worker.go(5, 0.5)
    done = worker.go(5, 1.0)
    writer.epoch("t00", 1, worker.at, 0.5, reported=worker.at, cpu=done - base, reported_cpu=done - base)
    writer.end("t00", worker.at, "completed", 1, cpu=done - base)
    worker.go(1, 0.5)
    writer.exit(worker.at, by=log.coordinator)
    log.step("collect", 18, 19)
    log.coordinator.add(schema.BestKnown, 19, trial="t00")
    log.step("undeploy", 19, 20)
    simulation = Simulation(log, make_spec(epochs=1, trials=1), [worker], end=20.0)
    simulation.coordinator = evenly(20)
    simulation.busy = {("t00", 0): (10, 7.5)}
    return simulation


def left_over(account: EnergyAccount) -> tuple[float, float]:
    """Return (the node's energy, what of it is in no part) in J, with any meter."""
    parts = [*account.parts.values(), *account.attempts.values()]
    node = joules(account.node or ())
    return node, node - sum(map(joules, parts))


def sampled(simulation: Simulation | None = None, meter: str = "counter") -> Samples:
    """Return what a meter saw of a run; without one, of 20 s with one trial from 5 to 15 s."""
    samples = (simulation or one_trial()).evidence(meter).samples
    assert samples is not None
    return samples


def with_header(samples: Samples, **changes: object) -> Samples:
    return replace(samples, header=msgspec.structs.replace(samples.header, **changes))


def metered(series: EnergySeries, **header: object) -> Samples:
    """Return the samples of one trial, with this counter of its host."""
    return with_header(replace(sampled(), power={"package-0": series}), **header)


def account_of(samples: Samples | None, simulation: Simulation | None = None) -> EnergyAccount:
    return energy_account((simulation or one_trial()).run(), Evidence(samples=samples))


def figures(samples: Samples | None, simulation: Simulation | None = None) -> Mapping[str, MetricValue]:
    return with_metrics((simulation or one_trial()).run(), Evidence(samples=samples)).metrics
