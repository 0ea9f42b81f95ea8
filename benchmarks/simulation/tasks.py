"""How often claims across tasks are wrong where there is nothing, by the very functions that make them, and what they find.

A file is cells of runs with records, as a results folder would give them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from benchmarks.simulation.row import POWER, SimulationRow
from tuneoff.base.dimension import Float
from tuneoff.base.space import SearchSpace
from tuneoff.experiment.schema import AnchorsPart
from tuneoff.experiment.spec import Budget, ExperimentSpec, Objective, RunSpec, Strategy, WorkloadSpec
from tuneoff.judge.answers.across import TaskComparison, compared
from tuneoff.judge.answers.analysis_plan import Frozen
from tuneoff.judge.answers.answer import OverTasks, Question
from tuneoff.judge.groups import Group
from tuneoff.judge.results import Run, Scope
from tuneoff.judge.stats.location import wilson
from tuneoff.judge.stats.sign_flip import generator
from tuneoff.record.metric_value import metric_value
from tuneoff.record.run_record import RunRecord

Floats = NDArray[np.float64]
Asked = Literal["time", "quality"]

ADAPTERS = (2, 4, 6)
SEEDS = (3, 10)
MOST_WRONG = 0.075  # of files, by the upper end of the share's 95 % interval; nominal is 0.05
SPREAD = 0.38  # paired SD of ln(JCT) over seeds, pooled over the tasks of a run of benchmarks/tasks.yaml on a busy machine
RATIO = 1.5
IMAGES = 360
ANCHORS = AnchorsPart(random_search=0.9, best_known=0.98, source="simulated")
QUESTIONS = {
    "time": Question(
        name="time", metric="time.jct", unit="ms", better="min", scale="ratio", margin=None, margin_text="none: simulated"
    ),
    "quality": Question(
        name="quality",
        metric="quality.test",
        unit="test_accuracy",
        better="max",
        scale="difference",
        margin=None,
        margin_text="none: simulated",
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """A simulated file. `streams`: whether tasks have their own, of the samplers."""

    adapters: int
    tasks: int
    seeds: int
    streams: Literal["own", "shared"] = "own"

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(f"f{number}" for number in range(self.adapters))


class File:
    """The cells of a file, made once: a repetition only has other values."""

    def __init__(self, shape: Shape, question: Asked, *, streams: str | None = None) -> None:
        """`streams`: what the specifications say of the streams, where that is not what they are."""
        self.shape, self.asked = shape, question
        tasks = tuple(f"t{task}" for task in range(shape.tasks))
        plan = Frozen(
            primary=question,
            questions={question: QUESTIONS[question].metric},
            margin_percent=5.0,
            confidence=0.95,
            family_size=15,
            seeds=shape.seeds,
            anchors=dict.fromkeys(tasks, ANCHORS),
        )
        self.comparison = TaskComparison(question=QUESTIONS[question], plan=plan, is_quality=question == "quality")
        changes = {task: task if (streams or shape.streams) == "own" else "" for task in tasks}
        self.cells = {label: {task: _cell(label, task, changes[task], shape.seeds) for task in tasks} for label in shape.labels}
        self.tasks_of = dict.fromkeys(combinations(shape.labels, 2), tasks)

    def claims(self, values: Floats) -> list[OverTasks]:
        """Return what the tasks say of each pair; `values` (adapters, tasks, seeds): in ms, or accuracies on validation."""
        metric, unit, kind = (
            ("time.jct", "ms", "derived") if self.asked == "time" else ("quality.validation", "accuracy", "measured")
        )
        for of_label, cells in zip(values, self.cells.values(), strict=True):
            for of_task, cell in zip(of_label, cells.values(), strict=True):
                for number, run in zip(of_task.tolist(), cell.runs, strict=True):
                    run.record.metrics[metric] = metric_value(number, unit, kind=kind)  # type: ignore[union-attr, index, arg-type]
        return list(compared(self.cells, self.tasks_of, self.comparison))


def _cell(label: str, task: str, changes: str, seeds: int) -> Group:
    experiment = ExperimentSpec(
        workload=WorkloadSpec(name="simulated", target="simulated:None"),
        search_space=SearchSpace({"x": Float(low=0.0, high=1.0)}),
        objective=Objective(metric="validation_accuracy", mode="max"),
        sampler=Strategy(name="random"),
        pruner=Strategy(name="none"),
        budget=Budget(trials=8, epochs_per_trial=5),
        variant={"task": task},
        task_digest=changes,
    )
    spec = RunSpec(experiment=experiment, adapter=label, adapter_target="simulated:None")
    runs = []
    for seed in range(seeds):
        name = f"{label} {task} {seed}"
        record = RunRecord(
            run_id=name,
            execution_id=name,
            specification={},
            status="done",
            reason=None,
            started_at="2026-01-01T00:00:00Z",
            environment={},
            metrics={},
        )
        runs.append(Run(run_id=name, spec=replace(spec, seed=seed), record=record, status="done"))
    scope = Scope(sampler="random", pruner="none", variant="", task=task, text=f"random {task}")
    return Group(label=label, entry=label, scope=scope, spec=spec, runs=tuple(runs))


def values(draw: np.random.Generator, shape: Shape, question: Asked) -> Floats:
    """Return the values (adapters, tasks, seeds) of equal frameworks.

    Half of a run's variance is what its task and seed share between frameworks. Tasks differ in centre and spread.
    """
    adapters, tasks, seeds = shape.adapters, shape.tasks, shape.seeds
    entry_draws = draw.standard_normal((adapters, tasks if shape.streams == "own" else 1, seeds))
    z = np.sqrt(0.5) * (draw.standard_normal((tasks, seeds)) + entry_draws)  # (adapters, tasks, seeds)
    spreads = np.linspace(0.5, 1.5, tasks)[:, None]
    if question == "time":
        spikes = np.where(draw.random(z.shape) < 0.1, 1 + draw.exponential(1.0, z.shape), 1.0)
        return np.asarray(np.linspace(1, 4, tasks)[:, None] * 1000 * np.exp(SPREAD * spreads * z) * spikes)
    share = np.linspace(0.9, 0.96, tasks)[:, None] + 0.01 * spreads * z
    return np.asarray(draw.binomial(IMAGES, np.clip(share, 0, 1)) / IMAGES)


def wrong(file: File, files: int) -> int:
    """Return in how many files any pair is claimed to differ."""
    draw = generator("tasks", file.asked, str(file.shape))
    claims_by_file = (file.claims(values(draw, file.shape, file.asked)) for _ in range(files))
    return sum(any(claim.p is not None and claim.p <= 0.05 for claim in claims) for claims in claims_by_file)


def null_rows(files: int, question: Asked = "time") -> Iterator[SimulationRow]:
    """Yield the share of files with any false claim; where it must lie is said of the upper end of its 95 % interval."""
    for tasks in (12, 16):
        for seeds in SEEDS:
            for adapters in ADAPTERS:
                shape = Shape(adapters=adapters, tasks=tasks, seeds=seeds)
                yield _null_row(f"null: {question}, {tasks} tasks", shape, wrong(File(shape, question), files), files)


def _null_row(what: str, shape: Shape, count: int, files: int, *, is_required: bool = True) -> SimulationRow:
    return SimulationRow(
        what=what,
        distribution=f"{shape.seeds} seeds",
        n=shape.adapters,
        share=count / files,
        required=(0.0, MOST_WRONG) if is_required else None,
        upper=wilson(count, files, 0.95).high,
    )


def shared_rows(files: int) -> Iterator[SimulationRow]:
    """Yield the same where all tasks share their samplers' streams; and where that is not told, which no test can bear."""
    shape = Shape(adapters=4, tasks=12, seeds=10, streams="shared")
    for streams in ("shared", "own"):
        count = wrong(File(shape, "time", streams=streams), files)
        what = "streams shared by all tasks" if streams == "shared" else "the same, taken for independent"
        yield _null_row(what, shape, count, files, is_required=streams == "shared")


def power_rows(files: int) -> Iterator[SimulationRow]:
    """Yield the share of files in which a framework that takes 1.5 times as long in all tasks is found, by number of seeds."""
    for adapters in ADAPTERS:
        shape = Shape(adapters=adapters, tasks=12, seeds=3)
        file, draw, ratios_found = File(shape, "time"), generator("power over tasks", str(shape)), 0
        for _ in range(files):
            drawn = values(draw, shape, "time")
            drawn[1] *= RATIO
            (pair,) = [claim for claim in file.claims(drawn) if (claim.one, claim.other) == shape.labels[:2]]
            ratios_found += pair.p is not None and pair.p <= 0.05 and pair.ahead[0] > pair.ahead[1]
        yield SimulationRow(
            what="ratio 1.5 found", distribution="3 seeds, 12 tasks", n=adapters, share=ratios_found / files, required=POWER
        )
