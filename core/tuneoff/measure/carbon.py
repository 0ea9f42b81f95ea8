"""Carbon: CO2e of trials, job and steps, and the intensities of the grid that they met, weighted by energy."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass

from tuneoff.experiment.accounting.declared import Accounting, Intensity, intensity_text, series_window, wall_time
from tuneoff.measure.attribution.account import EnergyAccount, job_pieces
from tuneoff.measure.attribution.slots import JOULES_PER_KWH, EnergyPiece, split
from tuneoff.measure.spans import Interval, jct_ns, part_reasons, partition
from tuneoff.record.metric_value import Kind, MetricValue, known, weakest
from tuneoff.record.run_record import RunRecord, TrialRecord
from tuneoff.record.samples.reader import Evidence

NO_COMPLETED = "no trial completed"
_CONSTANT = ("constant", "zone")
_MEANS = ("carbon.trial_intensity", "carbon.trial_intensity_weighted")
_OF_TRIALS = {"trial_intensity": "g/kWh", "trial_intensity_weighted": "g/kWh", "trials_left_out": "count", "trials": "g"}


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


def emission(pieces: Iterable[EnergyPiece], intensity: Intensity, start_wall_ns: int, within: Interval | None = None) -> Emission:
    """Return what pieces of energy emitted, all of it or what lies in an interval; the intensity must cover them.

    A piece used its energy evenly, so its CO2e is its energy times the intensity's mean over it.

    Raises:
        ValueError: the intensity does not cover a piece.
    """
    if within is not None:
        (pieces,) = split(pieces, [within])
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
    """Return CINT, JCINT (g/kWh) and CO2e (g) of trials, job and steps."""
    reason = account.reason or uncovered(run, account, evidence.accounting)
    if reason is not None or evidence.accounting.intensity is None:
        return _without(run, account, reason or evidence.accounting.intensity_reason)
    intensity = evidence.accounting.intensity
    start = run.clock.start_wall_ns if run.clock is not None else 0
    source = f"{account.source}; {intensity_text(intensity)}"
    return {
        **_of_trials(run, account, intensity, start, source),
        **_of_job(run, account, intensity, start, source),
    }


def _of_trials(
    run: RunRecord, account: EnergyAccount, intensity: Intensity, start_wall_ns: int, source: str
) -> dict[str, MetricValue]:
    """Return the metrics of the trials that took a ticket of the budget."""
    trials = [trial for trial in run.trials if trial.used_ticket]
    reason = account.reasons.get("trials") or (None if trials else "no trial ran")
    if reason is not None:
        return _without_trials(account, reason)
    found = [emission(_pieces(trial, account), intensity, start_wall_ns) for trial in trials]
    used = [each for each in found if each.joules > 0]
    left_out = len(found) - len(used)
    total = Emission(sum(each.joules for each in used), sum(each.weighted for each in used))
    about = _intensity_kind(account, intensity)
    values = {
        "carbon.trials_left_out": known(left_out, "count", kind=account.kind, source=account.source, n_samples=len(found)),
        "carbon.trials": account.value(total.grams, "g", by=intensity_text(intensity), n_samples=len(found)),
    }
    means = {name: _missing("g/kWh", "no trial used energy that the meter saw", account) for name in _MEANS}
    if used:
        constant = intensity.values[0] if intensity.kind in _CONSTANT else None
        found_means = (sum(each.intensity for each in used) / len(used), total.intensity)
        for name, value in zip(_MEANS, found_means, strict=True):
            mean = constant if constant is not None else value
            means[name] = known(mean, "g/kWh", kind=about, source=source, n_samples=len(used), coverage=account.coverage)
    return {**values, **means}


def _of_job(
    run: RunRecord, account: EnergyAccount, intensity: Intensity, start_wall_ns: int, source: str
) -> dict[str, MetricValue]:
    """Return the metrics of the job as a whole and of its steps."""
    if account.job_reason is not None:
        return _without_job(run, account, account.job_reason)
    pieces = tuple(job_pieces(account))
    job = emission(pieces, intensity, start_wall_ns)
    grams = functools.partial(account.value, unit="g", by=intensity_text(intensity))
    completed = sum(trial.state == "completed" for trial in run.trials)
    no_completed = None if completed else NO_COMPLETED
    values = {
        "carbon.job": grams(job.grams),
        "carbon.job_intensity": _missing("g/kWh", "the job used no energy that the meter saw", account),
        "carbon.per_completed_trial": grams(job.grams / completed if completed else None, reason=no_completed),
    }
    if job.joules > 0:
        about = _intensity_kind(account, intensity)
        mean = intensity.values[0] if intensity.kind in _CONSTANT else job.intensity
        values["carbon.job_intensity"] = known(
            mean, "g/kWh", kind=about, source=source, n_samples=account.n_samples, coverage=account.coverage
        )
    reasons, parts = part_reasons(run), partition(run)
    reached = {step: within for step, within in parts.items() if within is not None}
    inside = dict(zip(reached, split(pieces, list(reached.values())), strict=True))
    for step in parts:
        value = emission(inside[step], intensity, start_wall_ns).grams if step in reached else None
        values[f"carbon.step.{step}"] = grams(value, reason=None if step in reached else reasons[step])
    test, no_test = values["carbon.step.test"].value, values["carbon.step.test"].reason_if_null
    rest = job.grams - test if test is not None else None
    values["carbon.job_without_test"] = grams(rest, reason=no_test)
    values["carbon.per_completed_trial_without_test"] = grams(
        rest / completed if rest is not None and completed else None, reason=no_test or no_completed
    )
    return values


def _pieces(trial: TrialRecord, account: EnergyAccount) -> list[EnergyPiece]:
    return [piece for position in range(len(trial.attempts)) for piece in account.attempts.get((trial.trial, position), ())]


def _intensity_kind(account: EnergyAccount, intensity: Intensity) -> Kind:
    """Return the kind of a mean intensity: what is declared to be the same all the time needs no energy as its weight."""
    return "declared" if intensity.kind in _CONSTANT else weakest(account.kind, "declared")


def _without(run: RunRecord, account: EnergyAccount, reason: str) -> dict[str, MetricValue]:
    return {**_without_trials(account, reason), **_without_job(run, account, reason)}


def _without_trials(account: EnergyAccount, reason: str) -> dict[str, MetricValue]:
    return {f"carbon.{name}": _missing(unit, reason, account) for name, unit in _OF_TRIALS.items()}


def _without_job(run: RunRecord, account: EnergyAccount, reason: str) -> dict[str, MetricValue]:
    wholes = [f"{name}{without}" for name in ("job", "per_completed_trial") for without in ("", "_without_test")]
    names = (*wholes, *(f"step.{step}" for step in partition(run)))
    values = {f"carbon.{name}": _missing("g", reason, account) for name in names}
    return {"carbon.job_intensity": _missing("g/kWh", reason, account), **values}


def _missing(unit: str, reason: str, account: EnergyAccount) -> MetricValue:
    return account.value(None, unit, reason, by="an intensity")
