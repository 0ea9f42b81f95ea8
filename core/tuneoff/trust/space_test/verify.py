"""Verify the search spaces of a plan: draw, or see what trials received, and judge, one adapter after the other.

Of each adapter of a file each search space, the narrow probes added, with random search and without work. The process in which an
adapter draws has a time limit, and nothing of it is left.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tuneoff import registry
from tuneoff.base.format import counted
from tuneoff.base.identity import canonical_json
from tuneoff.base.interrupting import interrupting
from tuneoff.base.json_values import plain
from tuneoff.base.layout import EVENTS, RUNS
from tuneoff.base.process_limits import fresh_environment
from tuneoff.base.processes import MARK, in_session, with_mark
from tuneoff.base.space import Categorical, Dimension, Float, IntegerLog, SearchSpace, stepped
from tuneoff.experiment.accounting.declared import NO_ACCOUNTING
from tuneoff.experiment.environments import interpreter
from tuneoff.experiment.names import variant_text
from tuneoff.experiment.plan import Plan, PlannedRun
from tuneoff.experiment.power_settings import PowerSettings
from tuneoff.experiment.skip_check import SkipCheck
from tuneoff.experiment.spec import Budget, Failures, Objective, RunSpec, Strategy, WorkloadSpec
from tuneoff.record.events.reader import EventLog
from tuneoff.record.events.schema import TrialStarted, TrialSubmitted
from tuneoff.run.child import ask
from tuneoff.run.execute import PlanRequest, execute
from tuneoff.run.run_ends import UNFINISHED, RunEnd
from tuneoff.run.supervisor.execution import new_execution, write_inputs
from tuneoff.run.supervisor.guardian import Announce, temporary_folder, watching
from tuneoff.run.supervisor.leftovers import RESULTS_MARK, left_outside
from tuneoff.run.supervisor.run import short_path
from tuneoff.trust.space_test.draw import DRAWN, DRAWS, FAILED, NOT_OFFERED, OUTSIDE, Drawing
from tuneoff.trust.space_test.judge import Sample, SpaceJudgement, judge

PREFIX = "probe_"

PROBES: dict[str, Dimension] = {
    "two": stepped(0, 1, 1, integer=True),
    "ten": stepped(0, 9, 1, integer=True),
    "tens": stepped(-20, 20, 10, integer=True),
    "quarters": stepped(0.0, 1.0, 0.25, integer=False),
    "log_ten": IntegerLog(low=1, high=10),
    "switch": Categorical(choices=(False, True)),
    "choice": Categorical(choices=("a", "b", None, 0.5, [64, 32], {"deep": 1}, "g")),
    "rank": Categorical(choices=("xs", "s", "m", "l"), ordered=True),
    "float": Float(low=-1.0, high=3.0),
    "rate": Float(low=1e-5, high=1e-1, log=True),
}
WORKLOAD, SAMPLER, PRUNER = "null", "random", "none"
MOST_TRIALS, RUN_SEEDS = 200, 2  # of all seeds together: a run costs a framework's start, and each trial its dispatch
SEEDS = 4  # of each adapter; the draws are shared among them
AGAIN = 100  # draws of the first seed, made once more in a fresh process

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class SpaceTarget:
    """One adapter with one search space. `run` has the spec to draw from and the reason where that cannot be done.

    `file_dimensions`: names of the file's dimensions; `unprobed`: why the narrow probes are left out, "" where they are not.
    """

    run: PlannedRun
    label: str
    variant: str  # the values by which the file's search spaces differ; "" where it has one
    file_dimensions: frozenset[str]
    unprobed: str = ""

    @property
    def title(self) -> str:
        """The adapter's label, and the variant where there are several."""
        return f"{self.label} {self.variant}".rstrip()

    @property
    def space(self) -> SearchSpace:
        return self.run.spec.experiment.search_space


def targets(plan: Plan, draws: int) -> list[SpaceTarget]:
    """Return what a plan asks to verify, each adapter entry and search space once, in the plan's order."""
    check = SkipCheck()
    labels = plan.label_texts
    several = len({_text(run.spec.experiment.search_space) for run in plan.counted}) > 1
    by_key: dict[str, SpaceTarget] = {}
    for run in plan.counted:
        spec = run.spec
        entry = [spec.adapter, spec.platform, dict(spec.options), plain(spec.environment)]
        key = canonical_json([entry, _text(spec.experiment.search_space)])
        if key not in by_key:
            values = spec.experiment.variant if several else {}
            of_space = {name: value for name, value in values.items() if name.partition(".")[0] == "search_space"}
            variant = variant_text(of_space or values)  # all, where the space is another one because of something else
            by_key[key] = _target(run, labels[run.label], variant, draws, check)
    return list(by_key.values())


def _target(run: PlannedRun, label: str, variant: str, draws: int, check: SkipCheck) -> SpaceTarget:
    file_space = run.spec.experiment.search_space
    adapter = registry.adapter_class(run.spec.adapter)
    workload = registry.workload_class(WORKLOAD)
    metric = workload.default_metric
    experiment = replace(
        run.spec.experiment,
        workload=WorkloadSpec(name=WORKLOAD, target=registry.find("workload", WORKLOAD).target),
        objective=Objective(metric=metric, mode=workload.metrics[metric]),
        sampler=Strategy(name=SAMPLER),
        pruner=Strategy(name=PRUNER),
        budget=Budget(trials=draws, epochs_per_trial=1),
        workers=replace(run.spec.experiment.workers, cpus=1.0, memory_mb=None),
        failures=Failures(),
        configurations=(),
        stops={},
    )
    unprobed = ""
    for space in (with_probes(file_space), file_space):
        spec = replace(run.spec, replicate=0, experiment=replace(experiment, search_space=space))
        if (reason := check.reason(spec, adapter)) is None:
            break
        unprobed = unprobed or f"without the narrow probes: {reason}"
    planned = replace(run, run_id=spec.run_id, spec=spec, skip_reason=reason, same_as=None, block=0)
    return SpaceTarget(
        run=planned, label=label, variant=variant, file_dimensions=frozenset(file_space.dimensions), unprobed=unprobed
    )


def _text(space: SearchSpace) -> str:
    return canonical_json(space.to_json())


def with_probes(space: SearchSpace) -> SearchSpace:
    """Return the space with the probes behind its own dimensions, under names that it does not use."""
    prefix = PREFIX
    while any(f"{prefix}{name}" in space.dimensions for name in PROBES):
        prefix = f"_{prefix}"
    return SearchSpace({**space.dimensions, **{f"{prefix}{name}": dimension for name, dimension in PROBES.items()}})


def draw_in_process(
    spec: RunSpec,
    count: int,
    seed: int,
    seconds: float,
    way_out: str = "raise --timeout, or lower --draws",
    announce: Announce = lambda folder: None,
    is_stopped: Callable[[], bool] = lambda: False,
) -> Drawing:
    """Have the adapter of `spec` draw `count` configurations under `seed`, in a fresh process of its own session.

    `way_out`: what to do where `seconds` were too few. `announce` is told of each temporary folder.
    """
    budget = replace(spec.experiment.budget, trials=count)
    spec = replace(spec, seed=seed, experiment=replace(spec.experiment, budget=budget))
    with temporary_folder(announce) as folder:
        execution = new_execution(spec, folder / RUNS)
        write_inputs(execution)
        with short_path(folder) as short:
            (short / "tmp").mkdir()
            marks = {MARK: execution.execution_id, RESULTS_MARK: str(folder)}
            environment = fresh_environment(spec.experiment.workers.threads, short / "tmp", **marks)
            request = {"run_dir": str(execution.folder), "count": count}
            answer, end = ask(
                "tuneoff.trust.space_test.draw",
                execution.folder,
                request,
                seconds,
                environment,
                python=interpreter(spec),
                is_stopped=is_stopped,
                remains=lambda pid: {*with_mark(MARK, execution.execution_id), *in_session(pid)},
            )
        lines = path.read_text().splitlines(keepends=True) if (path := execution.folder / DRAWS).exists() else ()
        drawn = [json.loads(line) for line in lines if line.endswith("\n")]  # one that a killed process was writing has no end
    if answer is None:
        text = f"the process that draws {end.text}"
        if end.code is None:
            text = f"after {seconds:g} s the process that draws had given {counted(len(drawn), 'configuration')}; {way_out}"
        return Drawing(state=FAILED, text=text, configurations=drawn)
    return Drawing(**{**answer, "configurations": drawn})


Outcome = tuple[SpaceTarget, SpaceJudgement | None]  # None: the target was skipped


def verify(plan: Plan, targets: Sequence[SpaceTarget], *, draws: int, seed: int, seconds: float, tell: Tell) -> list[Outcome]:
    """Draw `draws` configurations of each target and judge them; `seconds` limits each process that draws.

    Raises:
        KeyboardInterrupt: SIGINT, SIGTERM or SIGHUP; every process is ended and every folder removed then.
    """
    outcomes: list[Outcome] = []
    to_come = sum(target.run.skip_reason is None for target in targets)
    with interrupting(), watching() as announce:
        for target in targets:
            if target.run.skip_reason is not None:
                outcomes.append((target, None))
                continue
            sample = draw_sample(target, plan, draws, seed, seconds, tell, announce)
            to_come -= 1
            others = f"; {counted(to_come, 'framework')} to come" if to_come else ""
            tell(f"{target.label}: testing {len(sample.configurations)} configurations{others}")
            outcomes.append((target, judge(target.space, sample)))
    return outcomes


def draw_sample(target: SpaceTarget, plan: Plan, draws: int, seed: int, seconds: float, tell: Tell, announce: Announce) -> Sample:
    """Return the draws of one target under several seeds, each from a process of its own, and the first seed's again."""
    spec, label = target.run.spec, target.label
    drawings: dict[int, Drawing] = {}
    for number in range(SEEDS):
        tell(f"{label}: drawing, seed {number + 1} of {SEEDS}")
        count = draws // SEEDS + (number < draws % SEEDS)
        answer = drawings[seed + number] = draw_in_process(spec, count, seed + number, seconds, announce=announce)
        if answer.state == DRAWN and len(answer.configurations) < count:
            text = f"seed {seed + number} gave only {len(answer.configurations)} of {count} configurations"
            answer = replace(answer, state=FAILED, text=text)
        if answer.state != DRAWN:
            break
    first = drawings[seed]
    again: Sequence[Mapping[str, Any]] | None = None
    if answer.state == DRAWN:
        tell(f"{label}: drawing, the first seed again")
        answer = draw_in_process(spec, min(AGAIN, len(first.configurations)), seed, seconds, announce=announce)
        again = answer.configurations if answer.state == DRAWN else None
    if answer.state == NOT_OFFERED:
        sample = receive(
            target.run, plan, draws, seed, answer.text, announce=announce, tell=lambda text: tell(f"{label}: {text}")
        )
    else:
        sample = Sample(
            by_seed={seed: drawing.configurations for seed, drawing in drawings.items()},
            again=again,
            outside=answer.text if answer.state == OUTSIDE else None,
            failure=answer.text if answer.state == FAILED else None,
        )
    return replace(sample, mapping=first.problems, mapping_text=first.mapping_text)


def receive(
    run: PlannedRun,
    plan: Plan,
    draws: int,
    seed: int,
    why: str,
    seeds: int = RUN_SEEDS,
    announce: Announce = lambda folder: None,
    tell: Tell = lambda text: None,
) -> Sample:
    """Return what the trials of supervised runs received; `why` the adapter cannot draw. Nothing of the runs is left.

    Raises:
        KeyboardInterrupt: a run was interrupted.
    """
    trials = min(draws, MOST_TRIALS) // seeds
    note = f"configurations that {trials * seeds} trials of {seeds} real runs received, because the adapter cannot draw"
    by_seed: dict[int, list[dict[str, Any]]] = {}
    problems: list[str] = []
    changed = 0
    for done, number in enumerate(range(seed, seed + seeds), 1):
        tell(f"running trials, seed {done} of {seeds}, for the adapter cannot draw without")
        with temporary_folder(announce) as folder:
            end = _execute(run, plan, trials, number, folder / "results")
            by_seed[number], differing = _read(end)
            changed += differing
            if end.status != "done":
                problems.append(f"the run with seed {number} ended as {end.status}: {end.reason}")
            problems += left_outside(end.folder) if end.folder is not None else ()
    return Sample(
        source="runs",
        note=f"{note}{f': {why}' if why else ''}",
        by_seed=by_seed,
        changed=changed,
        failure="; ".join(problems) or None,
    )


def _execute(run: PlannedRun, plan: Plan, trials: int, seed: int, results: Path) -> RunEnd:
    experiment = run.spec.experiment
    spec = replace(run.spec, seed=seed, experiment=replace(experiment, budget=replace(experiment.budget, trials=trials)))
    only = replace(run, run_id=spec.run_id, spec=spec)
    alone = replace(plan, runs=(only,), power=PowerSettings(meter="none"), accounting=NO_ACCOUNTING)
    (end,) = execute(PlanRequest(plan=alone, results=results))
    if end.status in UNFINISHED:
        raise KeyboardInterrupt
    return end


def _read(end: RunEnd) -> tuple[list[dict[str, Any]], int]:
    """Return the configurations of the first attempts that began, and how many differ from what was handed over."""
    if end.folder is None:
        return [], 0
    submitted: dict[str, dict[str, Any]] = {}
    started: dict[str, dict[str, Any]] = {}
    for _, event in EventLog(end.folder / EVENTS):
        if isinstance(event, TrialSubmitted):
            submitted.setdefault(event.trial, event.configuration)
        elif isinstance(event, TrialStarted):
            started.setdefault(event.trial, event.configuration)
    differing = sum(trial in submitted and submitted[trial] != configuration for trial, configuration in started.items())
    return list(started.values()), differing
