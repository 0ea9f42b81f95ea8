"""Who used the energy: every part of a run on its own path, and the residual against the node's energy.

What the meter did not see of a run, by domain, decides whether its energy can be told all the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tuneoff.base.clock import NANOSECONDS
from tuneoff.measure.attribution.gpu import trained_on_gpu, with_gpus
from tuneoff.measure.attribution.method import Rates, Uses, by_counters, by_rates, uses_of
from tuneoff.measure.attribution.pieces import EnergyAccount, EnergyPiece, joules, split
from tuneoff.measure.presence import Presence, presence_of
from tuneoff.measure.spans import NO_END, jct_ns, part_reasons, partition
from tuneoff.record.run_record import RunRecord
from tuneoff.record.samples.reader import Evidence, Samples
from tuneoff.record.samples.schema import EnergySeries

__all__ = ["EnergyAccount", "EnergyPiece", "energy_account", "job_pieces", "joules"]

NOTHING = EnergyAccount()
NO_SAMPLES = "no power was sampled in this run"
NO_HOST_METER = "only accelerators or single slots are metered here, not the host"
NOT_COVERED = "no power sample lies in the run"
EVENLY = "accelerators evenly over their busy slots (an estimate: which processes used them is not known)"
JOB_PARTS = ("overhead", "idle", "outside", "services")  # and the trials: what the job used
LEAST_COVERAGE = 0.95  # of the run by samples: below, what was measured becomes an estimate


def energy_account(run: RunRecord, evidence: Evidence, presence: Presence | None = None) -> EnergyAccount:
    """Return who used how much energy in a run, by counters of the host, else by the model, whose weights the samples name.

    Accelerators come on top. `presence`: of these very attempts, where the caller has it already.
    """
    presence = presence or presence_of(run)
    samples = evidence.samples
    if samples is None:
        return _account(run, uses_of(run, presence, None), reason=NO_SAMPLES)
    is_trained_on_gpu = bool(trained_on_gpu(run))
    header, domains = samples.header, Domains(samples, is_trained_on_gpu=is_trained_on_gpu)
    model = header.coefficients if not domains.host else None
    uses = uses_of(run, presence, samples, is_modelled=model is not None)
    gpus = {  # without one on which no trial trained, and that was not sampled over the whole run
        name: series
        for name, series in domains.gpus.items()
        if is_trained_on_gpu or unseen({name: series}, (), uses.end_ns, header.longest_gap_ns) is None
    }
    seen = {**domains.host, **(domains.elsewhere if uses.foreign and domains.host else {}), **gpus}
    coverages = [series.coverage(0, uses.end_ns, header.longest_gap_ns) for series in seen.values()]
    if model is not None:
        looks = EnergySeries(uses.tree.sampled.times, uses.tree.sampled.times)
        coverages.append(looks.coverage(0, uses.end_ns, uses.tree.sampled.longest_gap_ns))
    coverage = min(coverages, default=0.0)
    reason = unseen(seen, domains.silent, uses.end_ns, header.longest_gap_ns)
    if not domains.host and model is None:
        reason = NO_HOST_METER if domains.gpus else reason or "no power meter could be read"
        reason += f": {header.reason}" if header.reason else ""
    elif not coverage and model is None:
        reason = NOT_COVERED
    elif reason is None and domains.host and not any(series.energy(0, uses.end_ns) > 0 for series in domains.host.values()):
        reason = f"the meter does not count: {', '.join(domains.host)} stood still over the run"
    if reason is not None:
        return _account(run, uses, reason=reason)
    # what no sample saw goes on at the power of the nearest second
    metered = {name: series.reaching(0, uses.end_ns) for name, series in seen.items()}
    if model is not None:
        rates = Rates([0, max(1, uses.end_ns)], [model.joules_per_cpu_second / 1e9], [model.watts_per_core / 1e9])
        attributed, how = by_rates(rates, uses), [header.source]
    else:
        attributed = by_counters([series for name, series in metered.items() if name not in gpus], domains.idle_watts, uses)
        how = [header.source, "attributed by CPU time and reserved cores"]
    if gpus:
        attributed = with_gpus(attributed, run, samples, uses, {name: metered[name] for name in gpus})
        how.append("accelerators by device time" if not attributed.is_assumed else EVENLY)
    is_unfit = bool(header.idle_problem) and (bool(gpus) or model is None)
    if is_unfit:  # what is split by such a baseline is wrong by nobody knows how much
        how.append(f"an estimate: {header.idle_problem}")
    if uses.cpu.extrapolated and model is not None:
        how.append(f"{uses.cpu.extrapolated} attempts without a last reading extended at their own mean power")
    is_covered = coverage >= LEAST_COVERAGE
    if not is_covered:
        how.append(f"samples cover {coverage:.0%} of the run")
    is_unfit |= attributed.is_assumed
    is_measured = is_covered and model is None and header.kind == "measured"
    return _account(
        run,
        uses,
        attributed,
        kind="derived" if is_measured and not is_unfit else "estimated",
        source="; ".join(filter(None, how)),
        n_samples=samples.power_samples if model is None else len(samples.usage),
        model=model,
        coverage=coverage if seen or uses.tree.sampled.times else None,
        node_kind="measured" if is_measured else "estimated",
        node_source=header.source if is_covered else f"{header.source}; samples cover {coverage:.0%} of the run",
    )


def _account(
    run: RunRecord, uses: Uses, attributed: EnergyAccount = NOTHING, *, reason: str | None = None, **about: Any
) -> EnergyAccount:
    """Return what was attributed with the CPU and core seconds that are known in any case."""
    unknown = next((attributed.reasons[name] for name in ("trials", *JOB_PARTS) if name in attributed.reasons), None)
    times, others = uses.tree.sampled.times, uses.tree.others_ns
    test = partition(run)["test"]
    return replace(
        attributed,
        reason=reason,
        parts={name: sorted(pieces) for name, pieces in attributed.parts.items()},
        job_reason=reason or unknown or (NO_END if jct_ns(run) is None else None),
        use_kind="estimated" if uses.cpu.extrapolated else "derived",
        cpu_seconds=uses.job_cpu_seconds(),
        core_seconds=uses.reserved_cores * uses.end_ns / 1e9 if jct_ns(run) is not None else None,
        test_cpu_seconds=uses.job_cpu_seconds(test) if test is not None else None,
        other_cpu=EnergySeries(times, [used / 1e9 for used in others]) if len(times) > 1 else None,
        **about,
    )


JobParts = tuple[Sequence[EnergyPiece], dict[str, list[EnergyPiece]], dict[str, str | None]]


def job_parts(run: RunRecord, account: EnergyAccount) -> JobParts:
    """Return the energy of the job, what of it lies in each part of its time that there is, and why that of a part is missing."""
    unknown = account.reason or account.job_reason
    pieces = tuple(job_pieces(account)) if unknown is None else ()
    spans = {name: span for name, span in partition(run).items() if span is not None}
    inside = dict(zip(spans, split(pieces, list(spans.values())), strict=True))
    return pieces, inside, {part: unknown or (None if part in spans else reason) for part, reason in part_reasons(run).items()}


def job_pieces(account: EnergyAccount) -> Iterator[EnergyPiece]:
    """Yield the energy of the job, trials first; all of it only where neither `reason` nor `job_reason` is set."""
    for pieces in account.attempts.values():
        yield from pieces
    for name in JOB_PARTS:
        yield from account.parts.get(name, ())


class Domains:
    """A run's metered domains by what they are; on several hosts a domain is named `host/domain`.

    `host` is summed; an accelerator, `gpu-N`, is in no sum of the host.
    """

    def __init__(self, samples: Samples, *, is_trained_on_gpu: bool) -> None:
        header = samples.header
        power = {name: series for name, series in samples.power.items() if series.times}
        hosts = {name.partition("/")[0] for name in power if "/" in name}
        host_name = next(iter(hosts)) if len(hosts) == 1 and all("/" in name for name in power) else header.host
        local = {
            name.removeprefix(f"{host_name}/"): name for name in power if "/" not in name or name.startswith(f"{host_name}/")
        }
        self.gpus = {name: power[full] for name, full in local.items() if name.startswith("gpu-")}
        host = {name: full for name, full in local.items() if name not in self.gpus}
        self.host = {name: power[full] for name, full in host.items()}
        self.elsewhere = {name: series for name, series in power.items() if name not in local.values()}
        watts = [header.idle_watts.get(full, header.idle_watts.get(name)) for name, full in host.items()]
        known_watts = [value for value in watts if value is not None]
        self.idle_watts = sum(known_watts) if len(known_watts) == len(watts) else None
        promised = [name.removeprefix(f"{host_name}/") for name in header.domains]
        # of this host those that the meter has, that the run's energy needs, and that gave no sample
        self.silent = [
            name
            for name in promised
            if "/" not in name and name not in local and (is_trained_on_gpu or not name.startswith("gpu-"))
        ]


def unseen(power: Mapping[str, EnergySeries], silent: Sequence[str], end_ns: int, longest_gap_ns: int) -> str | None:
    """Return why the energy of a run (0 to `end_ns`) is not known from its domains; None where it is.

    `silent` are domains that the meter has, and that gave no sample. Samples that begin later or end earlier than a gap
    between them may last leave a time of which nothing is known: what was used in it is no 0.
    """
    if silent:
        return f"the meter gave no sample of {', '.join(silent)} in this run"
    for name, series in power.items():
        first, last = series.times[0], series.times[-1]
        if first > longest_gap_ns:
            return f"{name} was sampled only from {_seconds(first)} of the run on"
        if last < end_ns - longest_gap_ns:
            return f"{name} was sampled only up to {_seconds(last)} of the run's {_seconds(end_ns)}"
    return None


def _seconds(t: int) -> str:
    return f"{t / NANOSECONDS:.1f} s"
