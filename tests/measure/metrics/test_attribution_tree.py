"""Whose the CPU time of a process tree is, where processes come and go between samples."""

from __future__ import annotations

import pytest

from builders.event_logs import T0, Log, Writer, ns
from builders.specs import make_spec
from builders.worked_examples import header
from tuneoff.measure.attribution.attempts import cpu_use
from tuneoff.measure.attribution.pieces import seconds
from tuneoff.measure.attribution.tree import TreeUse, tree_use
from tuneoff.record.derive import derive
from tuneoff.record.events import schema
from tuneoff.record.run_record import RunRecord
from tuneoff.record.samples.reader import Samples
from tuneoff.record.samples.schema import ProcessUsage, UsageSample

COORDINATOR, SUPERVISOR = (100, -1.0), (99, -3.0)


class Tree:
    """What a sampler saw, second by second: CPU seconds of each process and of the children that it waited for."""

    def __init__(self) -> None:
        self.samples: list[UsageSample] = []
        self.busy = 0.0

    def look(
        self, t: float, gone: tuple[tuple[int, float], ...] = (), **processes: tuple[tuple[int, float], int, float, float]
    ) -> None:
        """Add a sample; a process is (pid, start), parent, CPU seconds, CPU seconds of its children."""
        usages = tuple(
            ProcessUsage(pid, T0 + ns(start), parent, ns(cpu), ns(children), 0)
            for (pid, start), parent, cpu, children in processes.values()
        )
        self.busy += 1.0
        sample = UsageSample(
            t=ns(t), busy_ns=ns(self.busy), processes=usages, gone=tuple((pid, T0 + ns(start)) for pid, start in gone)
        )
        self.samples.append(sample)

    def use(self, run: RunRecord) -> TreeUse:
        return tree_use(run, Samples(header=header("model", "estimated"), usage=tuple(self.samples)))


def log_of(
    start: float, cpu: float, *, is_read: bool = True, ends: float = 4.0, process_started: float = 1.0
) -> tuple[Log, Writer]:
    """Return a log with one trial in the process 101."""
    log = Log()
    log.step("deploy", 0, 0.5)
    log.submit("a", 0.5)
    worker = log.process("trial", process_started)
    worker.start("a", start, slot=0, process_cpu=0.5)
    if is_read:
        worker.end("a", ends, "failed", 0, cpu=cpu, cause="x", charged="workload")
    else:
        log.coordinator.add(schema.TrialEnded, ends, trial="a", state="pruned", epochs=0, by="coordinator")
    log.step("undeploy", 8, 9)
    return log, worker


RUN = derive(log_of(2, 1.0)[0].pairs(), make_spec())


def begun() -> Tree:
    """Return a tree of which the coordinator was seen first, at 0."""
    tree = Tree()
    tree.look(0, c=(COORDINATOR, 99, 0.0, 0.0))
    return tree


def of_run(use: TreeUse) -> float:
    """Return the CPU seconds of the coordinator, of services and of the test."""
    return seconds(use.parts["services"])


def test_a_process_that_could_not_be_read_for_a_moment_is_not_counted_twice() -> None:
    helper = (300, 0.5)
    tree = begun()
    tree.look(1, c=(COORDINATOR, 99, 0.0, 0.0), h=(helper, 100, 0.5, 0.0))
    tree.look(2, gone=(helper,))
    tree.look(3, h=(helper, 100, 0.6, 0.0))
    tree.look(4, gone=(helper,), c=(COORDINATOR, 99, 0.0, 0.7))
    use = tree.use(RUN)
    assert of_run(use) == pytest.approx(0.7)
    again = (300, 2.5)  # the same pid, another process
    tree.samples[3:] = []
    tree.look(3, h=(again, 100, 0.6, 0.0))
    assert of_run(tree.use(RUN)) == pytest.approx(1.1)


def test_children_waited_for_one_sample_later_or_out_of_order_are_known_again() -> None:
    one, two = (300, 0.5), (301, 0.5)
    tree = begun()
    tree.look(1, c=(COORDINATOR, 99, 0.0, 0.0), a=(one, 100, 0.5, 0.0), b=(two, 100, 0.2, 0.0))
    tree.look(2, gone=(one, two))
    tree.look(3, c=(COORDINATOR, 99, 0.0, 0.2))
    tree.look(4, c=(COORDINATOR, 99, 0.0, 0.7))
    use = tree.use(RUN)
    assert of_run(use) == pytest.approx(0.7)


def test_what_a_process_used_that_died_in_its_imports_is_overhead_and_no_service() -> None:
    log, _ = log_of(2, 1.0)
    dead = log.process("trial", 4.5)
    dead.exit(6.5, by=log.coordinator)
    pid = (dead.process.pid, 4.5)
    tree = begun()
    for t, cpu in ((5, 0.25), (6, 1.0)):
        tree.look(t, c=(COORDINATOR, 99, 0.0, 1.5), d=(pid, 100, cpu, 0.0))
    tree.look(7, gone=(pid,), c=(COORDINATOR, 99, 0.0, 2.75))
    run = derive(log.pairs(), make_spec())
    use = tree.use(run)
    assert seconds(cpu_use(run, use.sampled).around[dead.process.name]) == pytest.approx(1.25)
    assert of_run(use) == pytest.approx(0)


def test_without_samples_a_killed_trial_is_unknown_and_with_them_it_used_nothing_that_they_saw() -> None:
    log, _ = log_of(2, 0, is_read=False)
    run = derive(log.pairs(), make_spec())
    assert cpu_use(run, TreeUse().sampled).unknown == [("a", 0)]
    tree = Tree()
    for t in range(6):
        tree.look(t, c=(COORDINATOR, 99, 0.0, 0.0))
    assert cpu_use(run, tree.use(run).sampled).unknown == []


def test_the_model_continues_a_killed_trial_at_its_own_mean_rate() -> None:
    log = Log()
    log.submit("a", 0)
    worker = log.process("trial", 0, host="pod-1")
    worker.start("a", 1, slot=0, process_cpu=0.5)
    worker.epoch("a", 1, 3, reported=3, cpu=1.0, reported_cpu=1.0)
    log.coordinator.add(schema.TrialEnded, 5, trial="a", state="pruned", epochs=1, by="coordinator")
    run = derive(log.pairs(), make_spec())
    assert cpu_use(run, TreeUse().sampled).unknown == [("a", 0)]
    used = cpu_use(run, TreeUse().sampled, is_modelled=True)
    assert used.extrapolated == 1
    assert seconds(used.attempts["a", 0]) == pytest.approx(2.0)


@pytest.mark.parametrize("is_seen", [False, True])
def test_the_test_has_its_own_process_seen_or_not(is_seen: bool) -> None:
    log, _ = log_of(2, 1.0)
    log.coordinator.events.pop()
    log.coordinator.events.pop()
    log.step("test", 5, 7)
    log.coordinator.add(schema.Tested, 7, trial="a", scores={}, cpu_ns=ns(1.0))
    process = (500, 5.25)
    tree = Tree()
    tree.look(4, c=(COORDINATOR, 99, 0.0, 0.0))
    if is_seen:
        tree.look(6, p=(process, 100, 0.5, 0.0))
    tree.look(7.5, gone=(process,) if is_seen else (), c=(COORDINATOR, 99, 0.0, 1.0))
    use = tree.use(derive(log.pairs(), make_spec()))
    assert of_run(use) == pytest.approx(1.0), "its own reading of its clock, once"


def test_processes_that_vanish_together_are_counted_once() -> None:
    """The coordinator waits for its helper and ends, both after the last look at them: the supervising process is told all."""
    helper = (300, 0.5)
    tree = Tree()
    tree.look(0, s=(SUPERVISOR, 1, 50.0, 0.0), c=(COORDINATOR, 99, 0.0, 0.0))
    tree.look(1, s=(SUPERVISOR, 1, 50.0, 0.0), c=(COORDINATOR, 99, 0.25, 0.0), h=(helper, 100, 0.5, 0.0))
    tree.look(2, gone=(COORDINATOR, helper), s=(SUPERVISOR, 1, 50.0, 0.8))
    use = tree.use(RUN)
    assert of_run(use) == pytest.approx(0.8)
    assert seconds(use.parts["others"]) == pytest.approx(2.0 - 0.8)


def test_a_killed_service_that_nobody_of_the_run_waits_for_makes_nothing_others() -> None:
    """The negative control of what comes back in a parent's children: here it never does."""
    service, worker = (300, 0.5), (301, 0.5)
    tree = begun()
    tree.look(1, c=(COORDINATOR, 99, 0.0, 0.0), s=(service, 100, 0.25, 0.0), w=(worker, 300, 0.5, 0.0))
    tree.look(2, gone=(service, worker))
    tree.look(3)
    use = tree.use(RUN)
    assert of_run(use) == pytest.approx(0.75)
    assert seconds(use.parts["others"]) == pytest.approx(3.0 - 0.75)
