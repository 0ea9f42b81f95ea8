"""The cells of a matrix file: variant x adapter x seed x replicate, in blocks of seeds, and one short warm-up per adapter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from tuneoff import registry
from tuneoff.base.capabilities import LOCAL, Offer, Support
from tuneoff.base.identity import canonical_json
from tuneoff.base.json_values import plain
from tuneoff.base.targets import unknown_name
from tuneoff.errors import ExperimentError, UnknownNameError
from tuneoff.experiment.names import entry_label
from tuneoff.experiment.skip_check import NO_PRUNER, SkipCheck
from tuneoff.experiment.spec import EnvironmentSpec, ExperimentSpec, RunSpec
from tuneoff.registry import AdapterClass

if TYPE_CHECKING:  # YAML reads files; those who read a plan need none of it
    from tuneoff.experiment.load import MatrixFile
    from tuneoff.experiment.schema import ExperimentFile


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One line under `adapters:`. `replicate` counts equal lines from 0: an A/A repetition has 1, 2, ...

    Lines are equal where they define the same run, whatever their local options. `distinguishing`: names of options by which
    lines of the same adapter and platform differ: a label has these alone.
    """

    name: str
    target: str
    adapter: AdapterClass
    platform: str | None = None
    place: str = LOCAL  # the platform; where none is named the file's, or the adapter's first one
    options: Mapping[str, Any] = field(default_factory=dict)
    replicate: int = 0
    distinguishing: frozenset[str] = frozenset()
    environment: EnvironmentSpec | None = None

    @property
    def defining(self) -> dict[str, Any]:
        """The options that define a run."""
        return {name: value for name, value in self.options.items() if name not in self.adapter.local_options_on(self.place)}

    @property
    def label(self) -> str:
        """A short text that tells the entries of one file apart."""
        options = {name: value for name, value in self.options.items() if name in self.distinguishing}
        return entry_label(self.name, self.platform, options, self.replicate, self.environment)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One run of the matrix and its place: the block of its seed (from 0), its variant and entry in the file's order."""

    spec: RunSpec
    entry: Entry
    variant: int
    block: int

    @property
    def label(self) -> str:
        return self.entry.label


def entries(file: MatrixFile) -> list[Entry]:
    """Return the adapters of a file with their classes.

    Raises:
        UnknownNameError: an adapter does not exist.
        PluginError: an adapter's plugin is broken.
    """
    expanded: list[Entry] = []
    for index, part in enumerate(file.adapters):
        try:
            adapter = registry.adapter_class(part.name)
        except ExperimentError as error:
            raise type(error)(f"{file.path}: adapters.{index}: {error}") from error
        if part.platform not in (None, *adapter.platforms()):
            rule = unknown_name("platform", part.platform, adapter.platforms())
            raise UnknownNameError(f"{file.path}: adapters.{index}: {part.name} has {rule}")
        entry = Entry(
            name=part.name,
            target=registry.find("adapter", part.name).target,
            adapter=adapter,
            platform=part.platform,
            place=part.platform or file.variants[0].file.platform or next(iter(adapter.platforms()), LOCAL),
            options=part.options,
            environment=part.environment,
        )
        expanded.append(replace(entry, replicate=sum(1 for other in expanded if _kind(other) == _kind(entry))))
    result = []
    for entry in expanded:  # with the options by which the entries of one adapter and platform differ
        where = attrgetter("name", "platform", "environment")
        alike = [other.defining for other in expanded if where(other) == where(entry)]
        names = {name for options in alike for name in options}
        differing = (name for name in names if len({canonical_json([name in other, other.get(name)]) for other in alike}) > 1)
        result.append(replace(entry, distinguishing=frozenset(differing)))
    return result


def expand(file: MatrixFile, adapters: Sequence[Entry]) -> list[Cell]:
    """Return every cell in the order of execution.

    Blocks of seeds; in a block one group per variant, begun at another one in each block; in a group the adapters in the
    order of a row of a Williams square (a Latin square that balances neighbours too), another row for each group.

    Raises:
        ExperimentError: names or parts of the file do not fit.
    """
    from tuneoff.experiment.build import build_experiments

    samplers = {name for entry in adapters for name in entry.adapter.capabilities.samplers}
    pruners = {name for entry in adapters for name in entry.adapter.capabilities.pruners}
    experiments = build_experiments(file, samplers=samplers, pruners=pruners)
    rows = williams_rows(len(adapters))
    cells = []
    for block, seed in enumerate(file.seeds):
        for variant in rotated(len(experiments), block):
            part = file.variants[variant].file
            for index in rows[(block + variant) % len(rows)]:
                entry = adapters[index]
                spec = _run_spec(experiments[variant], entry, part, seed)
                experiment, workers = spec.experiment, spec.experiment.workers
                each = len(workers.devices) // experiment.copies
                for number in range(experiment.copies):  # each has its share of the devices
                    devices = workers.devices[number * each : (number + 1) * each]
                    share = replace(workers, devices=devices, count=workers.count // experiment.copies) if devices else workers
                    copy = replace(spec, copy=number, experiment=replace(experiment, workers=share))
                    cells.append(Cell(spec=copy, entry=entry, variant=variant, block=block))
    return cells


def williams_rows(size: int) -> list[list[int]]:
    """Return the rows of a Williams square: each of `size` items stands once in each place, and follows each other equally often.

    An odd `size` needs twice as many rows for the second property. Source: E. J. Williams, Aust. J. Sci. Res. A 2 (1949) 149.
    """
    first = [(position + 1) // 2 if position % 2 else (size - position // 2) % size for position in range(size)]
    rows = [[(item + shift) % size for item in first] for shift in range(size)]
    return rows if size % 2 == 0 else rows + [row[::-1] for row in rows]


def rotated(size: int, shift: int) -> list[int]:
    """Return 0 .. size-1, begun at `shift`."""
    return [(position + shift) % size for position in range(size)]


def _run_spec(experiment: ExperimentSpec, entry: Entry, file: ExperimentFile, seed: int) -> RunSpec:
    capabilities = entry.adapter.capabilities
    platform = entry.platform or file.platform or next(iter(capabilities.platforms), LOCAL)
    needed = entry.adapter.capabilities_on(platform).reports_with(experiment.pruner.name)
    return RunSpec(
        experiment=experiment,
        adapter=entry.name,
        adapter_target=entry.target,
        platform=platform,
        seed=seed,
        replicate=entry.replicate,
        options=entry.options,
        local_options=tuple(sorted(set(entry.options) & entry.adapter.local_options_on(platform))),
        reports="every_epoch" if file.reports == "every_epoch" else needed,
        environment=entry.environment,
    )


def _kind(entry: Entry) -> str:
    return canonical_json([entry.name, entry.platform, entry.defining, plain(entry.environment)])


def warm_ups(entries: Sequence[Entry], cells: Sequence[Cell], check: SkipCheck) -> list[tuple[RunSpec, Entry]]:
    """Return one warm-up per kind of entry that has a cell in `cells` (those that will run), in the file's order.

    A warm-up has one trial per worker and one epoch per trial of the adapter's first cell.
    """
    runs = []
    for entry in entries:
        first = next((cell for cell in cells if cell.entry is entry), None)
        if entry.replicate == 0 and first is not None:
            spec = shortened(first.spec, entry)
            if check.reason(spec, entry.adapter) is None:
                runs.append((spec, entry))
    return runs


def shortened(spec: RunSpec, entry: Entry) -> RunSpec:
    """Return the warm-up of a run: same adapter, workload, sampler and workers, and as little work as uses them all."""
    experiment = spec.experiment
    trials = min(experiment.budget.trials, experiment.workers.count)
    budget = replace(experiment.budget, trials=trials, epochs_per_trial=1, epochs_total=None)
    offer = entry.adapter.capabilities.pruners.get(NO_PRUNER.name, Offer(support=Support.NOT_BY_TUNEOFF))
    without_pruner = offer.support is Support.YES
    return replace(
        spec,
        warm_up=True,
        experiment=replace(
            experiment,
            budget=budget,
            copies=1,
            pruner=NO_PRUNER if without_pruner else experiment.pruner,
            stops={} if without_pruner else experiment.stops,
            configurations=experiment.configurations[:trials],
        ),
    )
