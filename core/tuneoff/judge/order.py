"""The order of a table's rows: as the file lists variants, adapters and samplers, not as the runs were executed."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

from tuneoff.experiment.names import variant_text
from tuneoff.experiment.yaml_reader import named

if TYPE_CHECKING:
    from tuneoff.experiment.plan import Plan, PlannedRun


def in_file_order(plan: Plan) -> list[PlannedRun]:
    """Return the runs that tables show: variants, in them adapters, in them samplers, those that are another sampler last.

    The first block of the plan has the variants in the file's order, but not the adapters.
    """
    written = plan.content.get("adapters")
    entries = [named(entry) for entry in written] if isinstance(written, list) else []
    seen: dict[Hashable, int] = {}

    def rank(*what: Hashable) -> int:
        return seen.setdefault(what, len(seen))

    def key(run: PlannedRun) -> tuple[int, ...]:
        experiment = run.spec.experiment
        return (
            rank("variant", variant_text(experiment.variant)),
            _entry(run, entries),
            rank("label", run.label),
            run.same_as is not None,
            rank("sampler", repr(experiment.sampler)),
            rank("pruner", repr(experiment.pruner)),
            run.block,
        )

    return sorted(plan.counted, key=key)


def _entry(run: PlannedRun, entries: list[Any]) -> int:
    """Return the place of a run's adapter in the file; equal entries are told apart by the replicate."""
    places = [place for place, entry in enumerate(entries) if isinstance(entry, dict) and _is_of(run, entry)]
    return places[min(run.spec.replicate, len(places) - 1)] if places else len(entries)


def _is_of(run: PlannedRun, entry: dict[str, Any]) -> bool:
    spec = run.spec
    platform = entry.get("platform")
    return (
        entry.get("name") == spec.adapter
        and (entry.get("options") or {}) == dict(spec.options)
        and platform in (None, spec.platform)
    )
