"""The plan: every run with its id, its place in the order, and the reason where it is skipped. Making it starts nothing."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tuneoff.base.commands import command
from tuneoff.base.identity import digest, own_copy
from tuneoff.base.json_values import values
from tuneoff.base.reading import read
from tuneoff.errors import ExperimentError, ResultsError
from tuneoff.experiment import analysis
from tuneoff.experiment.accounting.declared import NO_ACCOUNTING, Accounting
from tuneoff.experiment.expand import Cell, entries, expand, warm_ups
from tuneoff.experiment.names import run_name, short_label
from tuneoff.experiment.power_settings import PowerSettings
from tuneoff.experiment.skip_check import NO_PRUNER, SkipCheck
from tuneoff.experiment.spec import RunSpec, Strategy

if TYPE_CHECKING:
    from tuneoff.experiment.load import MatrixFile

# history: 1 = run ids of format 1, whose samplers had other seeds; 2 = with a second meter; 3 = of executions with run.json alone
FORMAT_VERSION = 4
LAST_READERS = {3: "39c43333"}  # the last commit that reads folders of an earlier version
UNPACKED = (
    "manifest.json",
    "experiment.json",
)  # of a bundle, beside its results folder: its list of files, and the file of the plan
REPRODUCES = "reproduces"  # in the content of a plan that was made of a bundle: the plan that is reproduced
RULES = "rules"  # in the frozen analysis: the tier that all runs of the file keep together
WARM_UP_BLOCK = -1
OBSOLETE = ("emulated",)  # keys of planned runs and records that earlier tuneoffs wrote: today it is a flag


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRun:
    """One run of the plan.

    `block`: index of its seed, -1 for warm-ups. `same_as`: the run whose result stands for this one.
    """

    run_id: str
    spec: RunSpec
    label: str  # of the adapter entry, unique among the entries of the file
    block: int
    skip_reason: str | None = None
    same_as: str | None = None

    @property
    def name(self) -> str:
        """Its entry, what tells it from others of that, and its seed."""
        return run_name(self.label, self.spec)


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """What the runs that are not skipped may use at most; warm-ups count in `warm_ups` and `seconds_at_most` alone."""

    runs: int
    skipped: int
    warm_ups: int
    trials: int
    epochs: int
    seconds_at_most: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """All runs in the order of execution, warm-ups first, and the frozen analysis."""

    name: str
    path: str
    runs: tuple[PlannedRun, ...]
    analysis: Mapping[str, Any] = field(default_factory=dict)
    content: Mapping[str, Any] = field(default_factory=dict)  # the file, includes merged
    options: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # of the command line: what they replaced of the file
    power: PowerSettings = PowerSettings()  # noqa: RUF009  # frozen
    accounting: Accounting = NO_ACCOUNTING

    @property
    def plan_id(self) -> str:
        """Content hash of the runs, skipped ones included: equal where the same file asks for the same runs."""
        return digest([run.run_id for run in self.runs if not run.spec.warm_up])

    @property
    def analysis_digest(self) -> str:
        """Content hash of the frozen analysis, recorded in every run."""
        return digest(dict(self.analysis), length=64)

    @property
    def to_run(self) -> tuple[PlannedRun, ...]:
        """The runs that are executed, warm-ups included."""
        return tuple(run for run in self.runs if run.skip_reason is None)

    @property
    def counted(self) -> tuple[PlannedRun, ...]:
        """The runs that tables show, skipped ones included: the denominator."""
        return tuple(run for run in self.runs if not run.spec.warm_up)

    @property
    def label_texts(self) -> dict[str, str]:
        """The text of each label: the class alone for `module:Class`, where that is unique."""
        short = {run.label: short_label(run.label, run.spec.adapter) for run in self.runs}
        times = Counter(short.values())
        return {label: text if times[text] == 1 else label for label, text in short.items()}

    @property
    def seeds(self) -> tuple[int, ...]:
        """Its seeds, in the order of their first runs."""
        return tuple(dict.fromkeys(run.spec.seed for run in self.counted))

    @property
    def added_seeds(self) -> tuple[int, ...]:
        """Seeds that were added to a folder after its first run: the frozen analysis has them not, and they only describe."""
        declared = self.analysis.get("seeds")
        return tuple(seed for seed in self.seeds if seed not in declared) if isinstance(declared, list) and declared else ()

    def begins(self, other: Plan) -> bool:
        """Tell whether another plan has these runs first, and then runs of other seeds alone, if any."""
        ids, others = ([run.run_id for run in plan.counted] for plan in (self, other))
        rest = {run.spec.seed for run in other.counted[len(ids) :]}
        return others[: len(ids)] == ids and rest.isdisjoint(self.seeds)

    @property
    def totals(self) -> Totals:
        """The total budget."""
        budgets = [run.spec.experiment.budget for run in self.to_run if not run.spec.warm_up]
        return Totals(
            runs=len(budgets),
            skipped=sum(run.skip_reason is not None for run in self.runs),
            warm_ups=sum(run.spec.warm_up for run in self.to_run),
            trials=sum(item.trials for item in budgets),
            epochs=sum(min(filter(None, (item.trials * item.epochs_per_trial, item.epochs_total))) for item in budgets),
            seconds_at_most=sum(seconds_at_most(run.spec) for run in self.to_run if not run.spec.copy),
        )

    def compare_command(self, results: Path, *more: object, **replaced: Sequence[object]) -> str:
        """Return a command on the file with the options that it was planned with, or others: `seeds=(0, 1)`.

        The file's path is of the folder where it was planned: that, or one above the results.
        """
        options = {option: words for option, words in self.options.items() if option != "--sampler"}  # of `run` alone
        return self._command("compare", results, {**options, **{f"--{name}": words for name, words in replaced.items()}}, more)

    def resume_command(self, results: Path, *more: object) -> str:
        """Return the command that goes on with a results folder of this plan, which for a part of a bundle begins anew.

        A plan of `tuneoff run` is one run alone.
        """
        if self.is_of_bundle:
            return command("reproduce", self._file(results))
        name = "run" if len({run.spec.shared_key for run in self.runs}) == 1 else "compare"
        return self._command(name, results, self.options, ("--resume", *more, "--output", results))

    def _command(self, name: str, results: Path, options: Mapping[str, Sequence[object]], more: Sequence[object]) -> str:
        spelled = {"--seeds": "--seed"} if name == "run" else {}
        words = [word for option, values in options.items() for word in (spelled.get(option, option), *values)]
        return command(name, self._file(results), *words, *more)

    @property
    def is_of_bundle(self) -> bool:
        """Whether it was made of a bundle: `tuneoff reproduce` runs that, no command runs it with other seeds."""
        return REPRODUCES in self.content

    def _file(self, results: Path) -> str | Path:
        above = [Path(), *results.absolute().parents]
        files = [folder / self.path for folder in above]
        if all(os.path.isfile(above[1] / name) for name in UNPACKED):
            files.append(above[1] / UNPACKED[1])
        return next((path for path in files if os.path.isfile(path)), self.path)

    def to_json(self) -> dict[str, Any]:
        """Return the plan as JSON values, for the results folder."""
        followed = ("plan_id", "name", "path", "totals", "analysis", "analysis_digest", "power", "accounting", "content")
        return {"format_version": FORMAT_VERSION, **values(self, (*followed, "options", "runs"))}

    @classmethod
    def from_json(cls, data: Any) -> Plan:
        """Read back `to_json`, from a file that anyone may have made.

        Raises:
            ResultsError: another format version, or not a plan.
        """
        version = data.get("format_version") if isinstance(data, dict) else None
        if version != FORMAT_VERSION:
            reader = LAST_READERS.get(version) if isinstance(version, int) else None
            way_out = f"use tuneoff as of commit {reader}" if reader else "use the tuneoff that wrote it"
            raise ResultsError(
                f"a plan must have format_version {FORMAT_VERSION}, but got {version!r}; {way_out}, or a new folder"
            )
        stored = {"options": {}, **data}  # a folder of an earlier tuneoff has none
        try:
            stored["runs"] = [{key: run[key] for key in run if key not in OBSOLETE} for run in stored["runs"]]
            plan: Plan = read(cls, {field.name: stored[field.name] for field in fields(cls)}, exact=True)
        except (ArithmeticError, AttributeError, ExperimentError, LookupError, RecursionError, TypeError, ValueError) as error:
            raise ResultsError(f"a plan is damaged: {type(error).__name__}: {error}; begin a new folder") from error
        for run in plan.runs:
            if run.run_id != run.spec.run_id:
                raise ResultsError(f"run {run.run_id} of the plan was changed or made by another tuneoff; begin a new folder")
        return plan


def make_plan(file: MatrixFile) -> Plan:
    """Return the plan of a file.

    Raises:
        ExperimentError: an unknown name, or parts of the file that do not fit; one line.
        PluginError: a plugin that the file names is broken.
    """
    adapters = entries(file)
    cells = expand(file, adapters)
    check = SkipCheck(has_plain=any(variant.file.pruner.name == NO_PRUNER.name for variant in file.variants))
    try:
        planned = [
            PlannedRun(
                run_id=cell.spec.run_id,
                spec=cell.spec,
                label=cell.label,
                block=cell.block,
                skip_reason=check.reason(cell.spec, cell.entry.adapter),
            )
            for cell in cells
        ]
    except ExperimentError as error:
        raise type(error)(f"{file.path}: {error}") from error
    runs = _same(file, cells, planned)
    by_id = {run.run_id: cell for run, cell in zip(runs, cells, strict=True)}
    running = [by_id[run.run_id] for run in runs if run.skip_reason is None]
    with_result = [by_id[run.run_id] for run in runs if run.skip_reason is None or run.same_as is not None]
    warm = []
    if file.warm_up:
        warm = [
            PlannedRun(run_id=spec.run_id, spec=spec, label=entry.label, block=WARM_UP_BLOCK)
            for spec, entry in warm_ups(adapters, running, check)
        ]
    return Plan(
        name=file.name,
        path=file.path,
        runs=(*warm, *runs),
        analysis=analysis.freeze(file, adapters, with_result),
        content=own_copy(file.content),
        power=file.power,
        accounting=file.accounting,
    )


def seconds_at_most(spec: RunSpec) -> float:
    """Return the most seconds that the timeouts and the budget of a run allow."""
    experiment = spec.experiment
    timeouts, budget = experiment.timeouts, experiment.budget
    rounds = math.ceil(budget.trials / experiment.workers.count) * (1 + experiment.failures.retries)
    trials = min(timeouts.trials_seconds, rounds * timeouts.trial_seconds)
    if budget.wall_clock_seconds is not None:  # a trial that began in time may end after it
        trials = min(trials, budget.wall_clock_seconds + timeouts.trial_seconds)
    others = ("deploy", "setup", "collect", "test", "metrics", "undeploy")
    return trials + sum(float(getattr(timeouts, f"{step}_seconds")) for step in others)


def _same(file: MatrixFile, cells: Sequence[Cell], runs: Sequence[PlannedRun]) -> list[PlannedRun]:
    """Skip each `default` sampler that is another sampler of the matrix, and refuse two runs of one identity."""
    by_id: dict[str, tuple[Cell, PlannedRun]] = {}
    for cell, run in zip(cells, runs, strict=True):
        if run.run_id in by_id:
            first, second = (_name(file, item) for item in (by_id[run.run_id][0], cell))
            raise ExperimentError(
                f"{file.path}: two runs must differ in what they do, but {first} and {second} do not; remove one"
            )
        by_id[run.run_id] = (cell, run)
    result = []
    for cell, run in zip(cells, runs, strict=True):
        # The twin differs only in naming the sampler that the `default` of this adapter is.
        experiment = cell.spec.experiment
        offer = cell.entry.adapter.capabilities.samplers.get(experiment.sampler.name)
        same_as = offer.same_as if offer is not None else None
        if run.skip_reason is None and same_as is not None and same_as != experiment.sampler.name:
            named = replace(cell.spec, experiment=replace(experiment, sampler=Strategy(name=same_as)))
            _, twin = by_id.get(named.run_id, (None, None))
            if twin is not None and twin.skip_reason is None:
                reason = f"same as sampler {same_as!r}: run {twin.run_id}"
                run = replace(run, skip_reason=reason, same_as=twin.run_id)
        result.append(run)
    return result


def _name(file: MatrixFile, cell: Cell) -> str:
    label = file.variants[cell.variant].label
    return f"{cell.entry.label} ({label})" if label else cell.entry.label
