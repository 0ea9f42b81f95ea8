"""Carbon: CO2e of trials, job and steps, and the intensities of the grid that they met, weighted by energy."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass

from tuneoff.experiment.accounting.declared import Accounting, Intensity, intensity_text, series_window, wall_time
from tuneoff.measure.attribution.account import EnergyAccount, job_parts, job_pieces
from tuneoff.measure.attribution.pieces import JOULES_PER_KWH, EnergyPiece
from tuneoff.measure.spans import PARTS, jct_ns
from tuneoff.record.metric_value import MetricValue, metric_value, weakest
from tuneoff.record.run_record import RunRecord, TrialRecord
from tuneoff.record.samples.reader import Evidence

_CONSTANT = ("constant", "zone")
_STEPS = tuple(f"step.{part}" for part in PARTS)


@dataclass(frozen=True, slots=True)
class Emission:
    """Energy in J, and its sum weighted by the intensity that it met, in J·gCO2eq/kWh."""

    joules: float
    weighted: float

    @property
    def grams(self) -> float:
        """The CO2e that it caused."""
        return self.weighted / JOULES_PER_KWH

    @property
    def intensity(self) -> float:
        """The mean intensity in gCO2eq/kWh, weighted by energy; only where there is energy."""
        return self.weighted / self.joules


def emission(pieces: Iterable[EnergyPiece], intensity: Intensity, start_wall_ns: int) -> Emission:
    """Return what pieces of energy emitted; the intensity must cover them.

    A piece used its energy evenly, so its CO2e is its energy times the intensity's mean over it.

    Raises:
        ValueError: the intensity does not cover a piece.
    """
    if intensity.kind in _CONSTANT:
        joules = sum(energy for _, _, energy in pieces)
        return Emission(joules, joules * intensity.values[0])
    joules = weighted = 0.0
    for start, end, energy in pieces:
        mean = intensity.mean(start_wall_ns + start, start_wall_ns + end)
        if mean is None:
            raise ValueError(f"the intensity must cover each piece of energy, but not the one from {start} to {end} ns")
        joules += energy
        weighted += energy * mean
    return Emission(joules, weighted)


def uncovered(run: RunRecord, account: EnergyAccount, accounting: Accounting) -> str | None:
    """Return why the run's energy has no carbon intensity, None where it has one throughout."""
    intensity = accounting.intensity
    if intensity is None:
        return accounting.intensity_reason
    if intensity.kind in _CONSTANT:
        return None
    if run.clock is None:
        return "the run's start on the wall clock is not known, so the series cannot be laid beside it"
    pieces = tuple(job_pieces(account))
    start = run.clock.start_wall_ns + min(0, *(piece.start_ns for piece in pieces), 0)
    end = run.clock.start_wall_ns + max(jct_ns(run) or 0, *(piece.end_ns for piece in pieces), 0)
    if intensity.mean(start, end) is not None:
        return None
    since, until = series_window(intensity)
    return f"the series covers {since} to {until}, the run ran {wall_time(start)} to {wall_time(end)}"


def carbon_metrics(run: RunRecord, evidence: Evidence, account: EnergyAccount) -> dict[str, MetricValue]:
    """Return CINT and JCINT (g/kWh), and the CO2e (g) of the job and its steps."""
    intensity = evidence.accounting.intensity
    reason = account.reason or uncovered(run, account, evidence.accounting)
    if reason is not None or intensity is None:
        why = reason or evidence.accounting.intensity_reason
        values = {f"carbon.{name}_intensity": _missing("g/kWh", why, account) for name in ("trial", "job")}
        return values | {f"carbon.{name}": _missing("g", why, account) for name in ("job", "job_without_test", *_STEPS)}
    start = run.clock.start_wall_ns if run.clock is not None else 0
    return {**_of_trials(run, account, intensity, start), **_of_job(run, account, intensity, start)}


def _of_trials(run: RunRecord, account: EnergyAccount, intensity: Intensity, start_wall_ns: int) -> dict[str, MetricValue]:
    """Return CINT: the mean over the trials that took a ticket; those without energy are left out of it."""
    trials = [trial for trial in run.trials if trial.used_ticket]
    reason = account.reasons.get("trials") or (None if trials else "no trial ran")
    emissions = [emission(_pieces(trial, account), intensity, start_wall_ns) for trial in trials] if reason is None else []
    used = [trial_emission.intensity for trial_emission in emissions if trial_emission.joules > 0]
    mean = sum(used) / len(used) if used else None
    reason = reason or (None if used else "no trial used energy that the meter saw")
    return {"carbon.trial_intensity": _intensity(account, intensity, mean, reason, len(used))}


def _of_job(run: RunRecord, account: EnergyAccount, intensity: Intensity, start_wall_ns: int) -> dict[str, MetricValue]:
    """Return JCINT, and the CO2e of the job as a whole, without its test, and in each part of its time."""
    pieces, inside, reasons = job_parts(run, account)
    job = emission(pieces, intensity, start_wall_ns)
    grams = functools.partial(account.value, unit="g", by=intensity_text(intensity))
    steps = {part: emission(inside.get(part, ()), intensity, start_wall_ns).grams for part in PARTS}
    no_energy = None if job.joules > 0 else "the job used no energy that the meter saw"
    mean = job.intensity if job.joules > 0 else None
    return {
        "carbon.job": grams(job.grams, reason=account.job_reason),
        "carbon.job_without_test": grams(job.grams - steps["test"], reason=reasons["test"]),
        "carbon.job_intensity": _intensity(account, intensity, mean, account.job_reason or no_energy, account.n_samples),
        **{f"carbon.step.{part}": grams(value, reason=reasons[part]) for part, value in steps.items()},
    }


def _pieces(trial: TrialRecord, account: EnergyAccount) -> list[EnergyPiece]:
    return [piece for position in range(len(trial.attempts)) for piece in account.attempts.get((trial.trial, position), ())]


def _intensity(
    account: EnergyAccount, intensity: Intensity, mean: float | None, reason: str | None, n_samples: int
) -> MetricValue:
    """Return a mean intensity; what is declared to be the same all the time needs no energy as its weight."""
    if mean is None or reason is not None:
        return _missing("g/kWh", reason or "", account)
    is_constant = intensity.kind in _CONSTANT
    return metric_value(
        intensity.values[0] if is_constant else mean,
        "g/kWh",
        kind="declared" if is_constant else weakest(account.kind, "declared"),
        source=f"{account.source}; {intensity_text(intensity)}",
        n_samples=n_samples,
        coverage=account.coverage,
    )


def _missing(unit: str, reason: str, account: EnergyAccount) -> MetricValue:
    return account.value(None, unit, reason, by="an intensity")
