"""Who used the energy: every part of a run on its own path, and the residual against the node's energy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tuneoff.measure.attribution.coverage import Domains, still, to_both_ends, unseen
from tuneoff.measure.attribution.gpu import trained_on_gpu, with_gpus
from tuneoff.measure.attribution.intervals import NOTHING, AttemptKey, Attributed, EnergyPiece, joules
from tuneoff.measure.attribution.methods import SLOTS_ONLY, by_counters, by_model, by_slot_meters
from tuneoff.measure.attribution.uses import Uses, uses_of
from tuneoff.measure.evidence import Evidence
from tuneoff.measure.spans import NO_END, jct_ns
from tuneoff.record.metric_value import Kind
from tuneoff.record.run_record import RunRecord
from tuneoff.record.samples.schema import Coefficients
from tuneoff.record.samples.series import EnergySeries

__all__ = ["AttemptKey", "EnergyAccount", "EnergyPiece", "energy_account", "job_pieces", "joules"]

NO_SAMPLES = "no power was sampled in this run"
NO_HOST_METER = "only accelerators are metered here, not the host"
NOT_COVERED = "no power sample lies in the run"
JOB_PARTS = ("overhead", "idle", "outside", "coordinator", "services", "test")  # and the trials: what the job used
OTHER_PARTS = ("suite", "other", "unreserved")  # what the node used besides
LEAST_COVERAGE = 0.95  # of the run by samples: below, what was measured becomes an estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class EnergyAccount:
    """A run's energy in pieces, in order of time; pieces may overlap. Empty with a `reason` where nothing is known.

    `attempts`: the busy segments of each attempt. `parts` of the job besides them: `overhead` (of slots), `idle` (slots within
    the slot window), `outside` (slots, neither busy nor overhead, outside of the slot window), `coordinator`, `services` (all
    other processes of the framework), `test`. Not of the job: `suite` (tuneoff's own supervision), `other` (processes that are
    not the run's), `unreserved` (idle power of processors that no slot reserves). `node`: what the node used as a whole.
    A part or attempt that is not there is unknown, never 0: `reasons` says why, and `job_reason` why the job as a whole is
    unknown (a meter that sees slots only knows it without a coordinator).
    """

    kind: Kind = "estimated"  # of what is attributed: derived (attributed from a counter) or estimated
    source: str = ""
    reason: str | None = None
    n_samples: int = 0
    coverage: float | None = None
    node_kind: Kind = "estimated"
    node_source: str = ""
    attempts: Mapping[AttemptKey, tuple[EnergyPiece, ...]] = field(default_factory=dict)
    parts: Mapping[str, tuple[EnergyPiece, ...]] = field(default_factory=dict)
    node: tuple[EnergyPiece, ...] | None = None  # None: the meter sees slots only
    reasons: Mapping[str, str] = field(default_factory=dict)  # of missing parts; `trials` of missing attempts; `node`
    job_reason: str | None = None
    model: Coefficients | None = None  # by which this energy was estimated
    use_kind: Kind = "derived"  # of CPU seconds; estimated where an attempt without a last reading was continued
    cpu_seconds: float | None = None  # of the job; None where a part's are unknown
    trial_cpu_seconds: float | None = None  # of all trials while they were busy
    core_seconds: float | None = None  # reserved by the slots, busy or not
    trial_core_seconds: float | None = None
    other_cpu: EnergySeries | None = None  # CPU seconds of other programs on the processors that the run could use


def energy_account(run: RunRecord, evidence: Evidence) -> EnergyAccount:
    """Return who used how much energy in a run.

    Slots with a meter each need no attribution; else counters of the host are taken; else the model, whose coefficients the
    samples name. Accelerators come on top.
    """
    samples = evidence.samples
    if samples is None:
        return _account(run, uses_of(run, None), reason=NO_SAMPLES)
    header, domains = samples.header, Domains(samples, is_trained_on_gpu=bool(trained_on_gpu(run)))
    model = header.coefficients if not domains.host else None
    uses = uses_of(run, samples, is_refined=bool(domains.host), is_extrapolated=model is not None)
    is_by_slots = bool(domains.slots) and all(f"slot-{slot.slot}" in domains.slots for slot in uses.slots)
    if is_by_slots:
        model, metered = None, domains.slots
    else:
        metered = {**domains.host, **(domains.elsewhere if uses.foreign and domains.host else {})}
    gpus = domains.gpus_seen(uses.end_ns)
    seen = {**metered, **gpus}
    coverages = [series.coverage(0, uses.end_ns, header.longest_gap_ns) for series in seen.values()]
    if model is not None:
        looks = EnergySeries(uses.tree.sampled.times, uses.tree.sampled.times)
        coverages.append(looks.coverage(0, uses.end_ns, uses.tree.sampled.longest_gap_ns))
    coverage = min(coverages, default=0.0)
    reason = unseen(seen, domains.silent(is_by_slots=is_by_slots), uses.end_ns, header.longest_gap_ns)
    if not metered and model is None:
        reason = NO_HOST_METER if gpus else reason or "no power meter could be read"
        reason += f": {header.reason}" if header.reason else ""
    elif not coverage and model is None:
        reason = NOT_COVERED
    elif reason is None and domains.host and not is_by_slots:
        reason = still(domains.host, uses.end_ns)
    if reason is not None:
        return _account(run, uses, reason=reason)
    reached = to_both_ends(metered, uses.end_ns)
    if is_by_slots:
        found, how = by_slot_meters(uses.slots, reached), "each slot by its own meter"
    elif model is not None:
        found, how = by_model(model, uses), ""
    else:
        found = by_counters(list(reached.values()), domains.idle_watts, uses)
        how = "attributed by CPU time and reserved cores"
    if gpus:
        found = with_gpus(found, run, samples, uses, to_both_ends(gpus, uses.end_ns))
        how += "; accelerators by device time"
    is_unfit = bool(header.idle_problem) and (bool(gpus) or (model is None and not is_by_slots))
    if is_unfit:  # what is split by such a baseline is wrong by nobody knows how much
        how += f"; an estimate: {header.idle_problem}"
    if uses.cpu.extrapolated and model is not None:
        how += f"; {uses.cpu.extrapolated} attempts without a last reading continued at their own mean power"
    is_covered = coverage >= LEAST_COVERAGE
    if not is_covered:
        how += f"; samples cover {coverage:.0%} of the run"
    is_measured = is_covered and model is None and header.kind == "measured"
    return _account(
        run,
        uses,
        found,
        kind="derived" if is_measured and not is_unfit else "estimated",
        source="; ".join(filter(None, (header.source, how))),
        n_samples=samples.power_samples if model is None else len(samples.usage),
        model=model,
        coverage=coverage if seen or uses.tree.sampled.times else None,
        node_kind="measured" if is_measured else "estimated",
        node_source=header.source if is_covered else f"{header.source}; samples cover {coverage:.0%} of the run",
    )


def _account(
    run: RunRecord, uses: Uses, found: Attributed = NOTHING, *, reason: str | None = None, **about: Any
) -> EnergyAccount:
    """Return the account of what was found, with the CPU and core seconds that are known in any case."""
    is_by_slots = found.reasons.get("coordinator") == SLOTS_ONLY
    needed = ("trials", "overhead", "idle", "outside", *(() if is_by_slots else ("coordinator", "services")))
    unknown = next((found.reasons[name] for name in needed if name in found.reasons), None)
    times, others = uses.tree.sampled.times, uses.tree.others_ns
    return EnergyAccount(
        reason=reason,
        attempts={key: tuple(pieces) for key, pieces in found.attempts.items()},
        parts={name: tuple(sorted(pieces)) for name, pieces in found.parts.items()},
        node=tuple(sorted(found.node)) if found.node is not None else None,
        reasons=found.reasons,
        job_reason=reason or unknown or (NO_END if jct_ns(run) is None else None),
        use_kind="estimated" if uses.cpu.extrapolated else "derived",
        cpu_seconds=uses.job_cpu_seconds(),
        trial_cpu_seconds=uses.trial_cpu_seconds(),
        core_seconds=uses.core_seconds() if jct_ns(run) is not None else None,
        trial_core_seconds=uses.trial_core_seconds(),
        other_cpu=EnergySeries(times, [used / 1e9 for used in others]) if len(times) > 1 else None,
        **about,
    )


def job_pieces(account: EnergyAccount) -> Iterator[EnergyPiece]:
    """Yield the energy of the job, trials first; all of it only where neither `reason` nor `job_reason` is set."""
    for pieces in account.attempts.values():
        yield from pieces
    for name in JOB_PARTS:
        yield from account.parts.get(name, ())
