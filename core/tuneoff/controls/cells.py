"""The cells of a matrix, as the controls compare them: an adapter's runs in one setting that differ in the seed alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tuneoff.experiment.identity import canonical_json
from tuneoff.experiment.names import emulated_label, variant_text
from tuneoff.experiment.spec import ExperimentSpec, RunSpec, Strategy
from tuneoff.records.model import RunRecord
from tuneoff.records.store import selected
from tuneoff.report.summary import Planned

POOL = "serial"  # the adapter that uses no framework: what the others are held to
EMULATED = "emulated, so in no comparison"


@dataclass(slots=True, kw_only=True)
class Cell:
    """The runs of one adapter entry with one sampler, pruner and variant; `runs` are those that are done, by seed.

    `label` is of the entry (`serial#2` is the second equal one: replicate 1); `entry` is what equal entries share.
    """

    label: str
    entry: str
    spec: RunSpec  # of one of the runs
    replicate: int = 0
    emulated: bool = False
    runs: dict[int, RunRecord] = field(default_factory=dict)
    not_done: dict[int, str] = field(default_factory=dict)  # seed -> status; "planned": not run yet

    @property
    def sampler(self) -> Strategy:
        return self.spec.experiment.sampler

    @property
    def pruner(self) -> Strategy:
        return self.spec.experiment.pruner


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What cells must share to be compared: the sampler with its options, the pruner, the variant. In the plan's order."""

    sampler: str
    pruner: str
    variant: str
    cells: tuple[Cell, ...]

    @property
    def compared(self) -> tuple[Cell, ...]:
        """The cells that are in comparisons."""
        return tuple(cell for cell in self.cells if not cell.emulated)

    @property
    def name(self) -> str:
        """The setting as text, as far as it tells it from others: `random + asha workload=null`."""
        pruner = f" + {self.pruner}" if self.pruner != "none" else ""
        return f"{self.sampler}{pruner}{f' {self.variant}' if self.variant else ''}"


def settings(records: Sequence[RunRecord], planned: Sequence[Planned] = ()) -> list[Setting]:
    """Return the settings of a matrix with their cells, warm-ups and skipped runs left out, in the plan's order.

    Of several executions of a run the one counts that stands for it. Without a plan the executed runs are the plan.
    """
    standing = {record.run_id: record for record in selected(list(records))}
    groups: dict[tuple[str, ...], dict[str, Cell]] = {}
    if planned:
        for run in planned:
            if not run.spec.warm_up and run.skip_reason is None:
                _add(groups, run.spec, run.label, run.emulated, standing.get(run.run_id))
    else:
        for record in sorted(standing.values(), key=lambda record: record.run_id):
            spec = record.run_spec()
            if not spec.warm_up:
                _add(groups, spec, own_label(spec), record.emulated, record)
    return [
        Setting(sampler=sampler, pruner=pruner, variant=variant, cells=tuple(cells.values()))
        for (sampler, pruner, variant, _), cells in groups.items()
    ]


def own_label(spec: RunSpec) -> str:
    """Return the label of a run without a plan."""
    return spec.adapter + (f"#{spec.replicate + 1}" if spec.replicate else "")


def noise_pairs(setting: Setting) -> list[tuple[Cell, Cell]]:
    """Return (the first of two equal entries, a further one) of a setting: A/A, whose difference is chance."""
    firsts = {cell.entry: cell for cell in setting.compared if cell.replicate == 0}
    return [(firsts[cell.entry], cell) for cell in setting.compared if cell.replicate and cell.entry in firsts]


def _add(
    groups: dict[tuple[str, ...], dict[str, Cell]], spec: RunSpec, label: str, emulated: bool, record: RunRecord | None
) -> None:
    experiment = spec.experiment
    key = (experiment.sampler.name, experiment.pruner.name, variant_text(experiment.variant), _options(experiment))
    cells = groups.setdefault(key, {})
    cell = cells.get(label)
    if cell is None:
        entry = canonical_json([spec.adapter, spec.platform, _defining(spec)])
        cell = cells[label] = Cell(label=label, entry=entry, spec=spec, replicate=spec.replicate)
    if emulated or (record is not None and record.emulated):
        cell.emulated, cell.label = True, emulated_label(label, spec)
    if record is not None and record.status == "done":
        cell.runs[spec.seed] = record
    else:
        cell.not_done[spec.seed] = "planned" if record is None else record.status


def _options(experiment: ExperimentSpec) -> str:
    return canonical_json([dict(experiment.sampler.options), dict(experiment.pruner.options)])


def _defining(spec: RunSpec) -> Mapping[str, object]:
    return {name: value for name, value in spec.options.items() if name not in spec.local_options}
