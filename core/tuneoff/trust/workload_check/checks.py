"""Train a workload a few times in processes of their own, and judge what came of it."""

from __future__ import annotations

import contextlib
import os
import random
import secrets
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any

from tuneoff.base.findings import (
    Check,
    Finding,
    Report,
    check,
    checks_of,
    failed,
    judged,
    not_applicable,
    not_tested,
    out_of_reach,
    passed,
)
from tuneoff.base.format import counted
from tuneoff.base.identity import is_finite
from tuneoff.base.interrupting import interrupting
from tuneoff.base.process_limits import fresh_environment
from tuneoff.base.processes import MARK, in_session, process_text, with_mark
from tuneoff.experiment.spec import ExperimentSpec
from tuneoff.experiment.strategies import draw
from tuneoff.run.child import ask
from tuneoff.run.supervisor.guardian import temporary_folder, watching
from tuneoff.workload import workload_at

EPOCHS = 3  # of a training, at most; one is trained through `budget.epochs_per_trial`
SEEDS = (1, 2)  # of the split, of the trial
MOST_USE = 1.3  # of the processors that a trial may have: clocks and imports of a moment are within
LEAST_IDLE = 0.5  # processors on average: with fewer a thread too many would have had none to run on
NOT_AGAIN = "a second training in the same process failed: see trials.again"
LONG_END = 1.0  # s, of a training that has trained all its epochs
MOST_OFF = 2.0  # a cost, relative to another one
SHORTEST = 0.2  # s: of a shorter training the use of processors tells nothing
TRAIN = "tuneoff.trust.workload_check.train"  # the module that trains, in a process of its own
ONCE, ALL = "first training", "all trainings"  # what checks read
Tell = Callable[[str], None]
TRAINED, CUT = "trained.safetensors", "cut.safetensors"  # the state after all epochs, and after all but the last


@dataclass(slots=True, kw_only=True)
class WorkloadEvidence:
    """What the trainings gave, and what they left: `trainings` by name, or why there is none.

    `whole`: the training through all planned epochs, or why it failed.
    """

    planned: int  # epochs
    has_state: bool
    has_test: bool
    restores_training: bool
    threads: int
    metric: str
    trainings: dict[str, Any] = field(default_factory=dict)
    whole: Any = None
    problem: str = ""
    fails_again: bool = False  # `problem` is that of a training after another one in the same process
    processes: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    temporary: list[str] = field(default_factory=list)  # files in the temporary folder, which a run removes at its end
    missing: dict[str, Finding] = field(default_factory=dict)


WorkloadCheck = Check[WorkloadEvidence]


def check_workload(experiment: ExperimentSpec, name: str, checks: Sequence[WorkloadCheck], tell: Tell) -> Report:
    """Train two configurations of an experiment in up to four processes, one after another, and return what the checks say.

    `tell`: takes a line of progress before each training.

    Raises:
        PluginError: the workload cannot be imported.
    """
    workload = workload_at(experiment.workload.target)
    evidence = WorkloadEvidence(
        planned=experiment.budget.epochs_per_trial,
        has_state=workload.has_state,
        has_test=workload.has_test,
        restores_training=workload.has_state and workload.restores_training,
        threads=experiment.workers.threads,
        metric=experiment.objective.metric,
    )
    before = _written(Path.cwd())
    with interrupting(), watching() as announce, temporary_folder(announce, "tuneoff-check-") as folder:
        _make(evidence, experiment, folder, tell)
    evidence.files += sorted(str(path) for path, when in _written(Path.cwd()).items() if before.get(path) != when)
    failure = "" if evidence.fails_again else evidence.problem
    if failure:
        evidence.missing = dict.fromkeys((ONCE, ALL), not_tested(failure))
    elif evidence.problem:
        evidence.missing = {ALL: not_tested(NOT_AGAIN)}
    return Report(
        label=name,
        findings=[check.finding(evidence) for check in checks],
        check_count=len(CHECKS),
        failure=failure,
        values={"workload": experiment.workload.name, "name": name},
    )


def _make(evidence: WorkloadEvidence, experiment: ExperimentSpec, folder: Path, tell: Tell) -> None:
    epochs = min(EPOCHS, evidence.planned)
    generator = random.Random(0)
    first = draw(experiment.search_space, generator)
    drawn = (draw(experiment.search_space, generator) for _ in range(100))
    configurations = [first, next((configuration for configuration in drawn if configuration != first), first)]  # or twice
    training, other = ({"configuration": configuration, "epochs": epochs} for configuration in configurations)
    trained, cut = str(folder / TRAINED), str(folder / CUT)

    def trains(process: str, trainings: Mapping[str, dict[str, Any]]) -> bool:
        """Train in a process; tell whether all of it went well."""
        process_folder = folder / process
        (process_folder / "tmp").mkdir(parents=True)
        longest = max(each["epochs"] for each in trainings.values())
        tell(f"{process} process: {counted(len(trainings), 'training')} of up to {counted(longest, 'epoch')}")
        answer = _ask(evidence, experiment, process_folder, list(trainings.values()))
        evidence.temporary += [
            name for path in sorted(_written(process_folder / "tmp")) if (name := path.name) not in evidence.temporary
        ]
        if answer is not None and "error" in answer:
            evidence.problem = f"the training fails: {answer['error']}"
            evidence.fails_again = bool(answer["trainings"])
        if evidence.problem:
            return False
        evidence.trainings.update(zip(trainings, answer["trainings"], strict=True))
        return True

    if not trains("first", {"first": {**training, "save": trained} if evidence.has_state else training}):
        return
    epochs = len(evidence.trainings["first"]["metrics"])  # fewer, where it ends by itself
    is_resumed = evidence.restores_training and epochs > 1
    second = {"again": training, "other": other, "after the other": training}
    third = {"restored": {**training, "epochs": epochs, "load": trained}} if evidence.has_state and evidence.has_test else {}
    if is_resumed:
        second["cut"] = {**training, "epochs": epochs - 1, "save": cut}
        third["resumed"] = {**training, "epochs": epochs, "load": cut}
    if not trains("second", second) or (third and not trains("third", third)):
        return
    evidence.whole = evidence.trainings["first"]
    if EPOCHS == epochs < evidence.planned:
        is_well = trains("last", {"whole": {**training, "epochs": evidence.planned}})
        evidence.whole = evidence.trainings["whole"] if is_well else evidence.problem
        evidence.problem = ""


def _ask(evidence: WorkloadEvidence, experiment: ExperimentSpec, folder: Path, trainings: list[dict[str, Any]]) -> Any:
    """Return what a process answers, None where it failed; note what outlived it."""
    mark = f"check-{secrets.token_hex(8)}"
    threads = experiment.workers.threads
    environment = fresh_environment(threads, folder / "tmp", **{MARK: mark})

    def remaining(pid: int) -> set[int]:
        pids = {*with_mark(MARK, mark), *in_session(pid)}
        texts = [process_text(pid, TRAIN, "the training's process") for pid in sorted(pids)]
        evidence.processes += [text for text in dict.fromkeys(texts) if text not in evidence.processes]
        return pids

    request = {
        "target": experiment.workload.target,
        "options": dict(experiment.workload.options),
        "threads": threads,
        "objective": experiment.objective.metric,
        "planned_epochs": experiment.budget.epochs_per_trial,
        "seeds": SEEDS,
        "trainings": trainings,
    }
    seconds = experiment.timeouts.trial_seconds * len(trainings)
    answer, end = ask(TRAIN, folder, request, seconds, environment, remains=remaining)
    if answer is None:
        long = f"took longer than {seconds:g} s"
        evidence.problem = f"the training {long if end.code is None else end.text}"
    return answer


def _written(folder: Path) -> dict[Path, int]:
    """Return when the files of a folder and of those in it were last written, in ns; what Python caches is not counted."""
    times = {}
    for path in (*folder.glob("*"), *folder.glob("*/*")):
        with contextlib.suppress(OSError):  # it has gone meanwhile
            if path.is_file() and "__pycache__" not in path.parts:
                times[path] = path.stat().st_mtime_ns
    return times


def _differences(evidence: WorkloadEvidence, earlier: str, later: str) -> Iterator[str]:
    trained, again = evidence.trainings[earlier]["metrics"], evidence.trainings[later]["metrics"]
    if len(trained) != len(again):
        yield f"it trained {counted(len(trained), 'epoch')}, then {len(again)}"
    for epoch, (first, second) in enumerate(zip(trained, again, strict=False), start=1):
        yield from (f"epoch {epoch}: {text}" for text in _changed(first, second, "then"))


@check(
    "metric.given",
    reason="samplers and pruners decide by the objective of each epoch",
    way_out="return the file's objective from each epoch, as a finite number",
    reads=(ALL,),
)
def _given(evidence: WorkloadEvidence) -> Finding:
    return judged(
        f"epoch {epoch}: {evidence.metric} is {values.get(evidence.metric) or _instead(values)}"
        for epoch, values in enumerate(evidence.trainings.get("whole", evidence.trainings["first"])["metrics"], start=1)
        if not _is_number(values.get(evidence.metric, ""))
    )


def _instead(values: Mapping[str, str]) -> str:
    return f"not there, but {', '.join(values)}" if values else "not there"


def _is_number(text: str) -> bool:
    try:
        return is_finite(float(text))
    except ValueError:
        return False


@check(
    "epochs.planned",
    reason="every trial must reach its end, not only the first",
    way_out="train through `budget.epochs_per_trial`, or end the training by itself: tuneoff explain docs/workloads.md",
    reads=(ALL,),
)
def _planned(evidence: WorkloadEvidence) -> Finding:
    if isinstance(evidence.whole, str):
        return failed(evidence.whole)
    trained, ending = len(evidence.whole["metrics"]), evidence.whole["ending_seconds"]
    if trained == evidence.planned:
        then = f"; then it took {ending:.1f} s to end, as each trial will" if ending >= LONG_END else ""
        return passed(f"trained all {counted(trained, 'epoch')}{then}")
    return passed(f"ends by itself after {trained} of {counted(evidence.planned, 'epoch')}")


@check(
    "seeds.repeat",
    reason="the same configuration and seed must give the same values in each framework",
    way_out="seed every generator with `seed` (a class: `seeds.split`, `seeds.trial`), and give no times as metrics",
    reads=(ALL,),
)
def _repeats(evidence: WorkloadEvidence) -> Finding:
    return judged(_differences(evidence, "first", "again"))


@check(
    "trials.again",
    reason="a worker trains many trials, one after another, in one process",
    way_out="do what a process allows once at import of the module, or check first whether it is done",
    reads=(ONCE,),
)
def _again(evidence: WorkloadEvidence) -> Finding:
    return failed(f"after another one in its process {evidence.problem}") if evidence.fails_again else passed()


@check(
    "trials.isolated",
    reason="a trial's values must not depend on the trials before it in its process",
    way_out="keep no state in modules and classes; create it in each trial (in a class: in `load`)",
    reads=(ALL,),
)
def _isolated(evidence: WorkloadEvidence) -> Finding:
    return judged(_differences(evidence, "again", "after the other"))


@check(
    "state.restores",
    reason="the best model is tested in a fresh process, from its checkpoint",
    way_out="let `state_dict` return all that `test` needs",
    reads=(ALL,),
)
def _restores(evidence: WorkloadEvidence) -> Finding:
    if not evidence.has_test:
        return not_applicable("the workload offers no test")
    if not evidence.has_state:
        return not_applicable("the workload has no state: the test needs only the configuration")
    return judged(_changed(evidence.trainings["first"]["scores"], evidence.trainings["restored"]["scores"]))


@check(
    "state.resumes",
    reason="a retry goes on from the trial's checkpoint, as if it had never stopped",
    way_out="let `state_dict` return model, optimizer and random generators, or leave out `restores_training`",
    reads=(ALL,),
)
def _resumes(evidence: WorkloadEvidence) -> Finding:
    if not evidence.restores_training:
        return not_applicable("a retry begins at the first epoch: the workload has no state, or does not set `restores_training`")
    if "resumed" not in evidence.trainings:
        return out_of_reach("a trial has one epoch, so nothing is left to train after it")
    (resumed,), expected = evidence.trainings["resumed"]["metrics"], evidence.trainings["first"]["metrics"][-1]
    return judged(f"last epoch: {text}" for text in _changed(expected, resumed))


def _changed(trained: Mapping[str, str], later: Mapping[str, str], when: str = "from the state") -> Iterator[str]:
    return (f"{name} {trained[name]}, {when} {later.get(name)}" for name in trained if trained[name] != later.get(name))


@check(
    "threads.limited",
    reason="trials run side by side: one that takes more processors slows the others, not equally for all frameworks",
    way_out="limit your library's threads in `limit_threads`",
    reads=(ALL,),
)
def _threads(evidence: WorkloadEvidence) -> Finding:
    used = [training for training in evidence.trainings.values() if training["seconds"] >= SHORTEST]
    if not used:
        return out_of_reach(f"trainings took less than {SHORTEST:g} s, too short to count processors; train on more data")
    if (os.cpu_count() or 1) <= evidence.threads:
        return out_of_reach(f"a trial may have {evidence.threads} threads, and this machine has no more processors")
    most = max(training["cpu_seconds"] / training["seconds"] for training in used)
    text = f"at most {most:.2f} processors in use, {evidence.threads} allowed"
    if most > MOST_USE * evidence.threads:
        return failed(text)
    idle = max(training["idle_seconds"] / training["seconds"] for training in used)
    if idle < LEAST_IDLE:
        return out_of_reach(f"{text}, but other programs left {idle:.2f} processors idle; free the machine to see")
    return passed(text)


@check(
    "cost.follows",
    reason="a sampler that takes the workload's costs begins where they are low",
    way_out="let `cost` follow the time that a training takes, or leave it out",
    reads=(ALL,),
)
def _cost(evidence: WorkloadEvidence) -> Finding:
    again, other = (evidence.trainings[name] for name in ("again", "other"))
    if "cost" not in again:
        return not_applicable("the workload has no `cost`")
    costs = [float(each["cost"]) if _is_number(each["cost"]) else 0.0 for each in (again, other)]
    if min(costs) <= 0:
        return failed(f"costs must be above 0, but got {again['cost']} and {other['cost']}")
    if min(again["seconds"], other["seconds"]) < SHORTEST:
        return out_of_reach(f"trainings took less than {SHORTEST:g} s, too short to compare; train on more data")
    costlier, longer = costs[1] / costs[0], other["cpu_seconds"] / again["cpu_seconds"]
    text = f"a second configuration is to cost {costlier:.2f} times the first, and took {longer:.2f} times its CPU time: "
    text += f"{costlier / longer - 1:+.0%}"
    return passed(text) if 1 / MOST_OFF <= costlier / longer <= MOST_OFF else failed(text)


@check(
    "left.processes",
    reason="leftover processes disturb later trials",
    way_out="end them in `finally` (in a class: in `close`)",
    reads=(ALL,),
)
def _processes(evidence: WorkloadEvidence) -> Finding:
    return judged(evidence.processes)


@check(
    "left.files",
    reason="trials share the current folder, and others run at the same time",
    way_out="write to a `tempfile.TemporaryDirectory()` that ends with the trial",
    reads=(ALL,),
)
def _left_files(evidence: WorkloadEvidence) -> Finding:
    temporary = evidence.temporary
    kept = (
        f"{counted(len(temporary), 'file')} in the temporary folder, which goes with its run, e.g. {min(temporary, default='')}"
    )
    return judged(evidence.files, kept if temporary else "")


@check(
    "splits.disjoint",
    reason="a test on cases of training or validation is optimistic",
    way_out="take the test cases away before you split off validation",
    reads=(ALL,),
)
def _disjoint(evidence: WorkloadEvidence) -> Finding:
    cases: Mapping[str, Iterable[str]] = evidence.trainings["first"]["cases"]
    if not cases:
        return not_applicable("the workload does not tell its cases")
    return judged(
        f"{first} and {second} share {len(both)} cases, e.g. {min(both)}"
        for first, second in combinations(cases, 2)
        if (both := set(cases[first]) & set(cases[second]))
    )


CHECKS = checks_of(sys.modules[__name__])
