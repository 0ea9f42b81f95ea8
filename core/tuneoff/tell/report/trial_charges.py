"""What each trial used and wasted: busy time, energy, CO2e, cost; a figure that is not known is None, never 0."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from tuneoff.experiment.accounting.declared import Accounting
from tuneoff.measure.attribution.account import EnergyAccount, EnergyPiece, energy_account
from tuneoff.measure.carbon import JOULES_PER_KWH, emission, uncovered
from tuneoff.measure.evidence import Evidence
from tuneoff.measure.incumbent import goal_reached
from tuneoff.measure.rent import NANOSECONDS_PER_HOUR, rent
from tuneoff.measure.segments import busy_ns
from tuneoff.measure.waste import POLICIES, Policy, wasted_segments
from tuneoff.record.metric_value import Kind, weakest
from tuneoff.record.run_record import RunRecord, TrialRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialCharge:
    """A trial's own work. `cost_usd`: busy hours times the slot's price, or on own premises energy times the tariff."""

    busy_seconds: float
    energy_joules: float | None
    energy_kind: Kind | None
    co2e_g: float | None
    co2e_kind: Kind | None
    cost_usd: float | None
    cost_kind: Kind | None
    wasted_seconds: Mapping[Policy, float | None] = field(default_factory=dict)  # None: no goal, or it was not met


def trial_charges(run: RunRecord, evidence: Evidence) -> dict[str, TrialCharge]:
    """Return what each trial of a run used, by its id."""
    account = energy_account(run, evidence)
    has_carbon = account.reason is None and uncovered(run, account, evidence.accounting) is None
    wasted = {policy: _wasted_ns(run, policy) for policy in POLICIES}
    costs = _costs(run, evidence.accounting)
    charges = {}
    for trial in run.trials:
        pieces = _pieces(trial, account)
        energy = None if pieces is None else _finite(sum(piece.joules for piece in pieces))
        grams = _finite(_grams(run, pieces, evidence.accounting) if has_carbon and pieces is not None else None)
        usd = _finite(costs.get(trial.trial) if costs is not None else _tariff(energy, evidence.accounting))
        charges[trial.trial] = TrialCharge(
            busy_seconds=_busy_ns(trial) / 1e9,
            energy_joules=energy,
            energy_kind=None if energy is None else account.kind,
            co2e_g=grams,
            co2e_kind=None if grams is None else weakest(account.kind, "declared"),
            cost_usd=usd,
            cost_kind=None if usd is None else "declared" if costs is not None else weakest(account.kind, "declared"),
            wasted_seconds={
                policy: None if found is None else found.get(trial.trial, 0) / 1e9 for policy, found in wasted.items()
            },
        )
    return charges


def _pieces(trial: TrialRecord, account: EnergyAccount) -> list[EnergyPiece] | None:
    """Return the energy of a trial's busy segments over all its attempts; None where that of one is not known."""
    if account.reason is not None or "trials" in account.reasons:
        return None
    found: list[EnergyPiece] = []
    for position, attempt in enumerate(trial.attempts):
        pieces = account.attempts.get((trial.trial, position))
        if pieces is None and attempt.started_ns is not None:
            return None
        found += pieces or ()
    return found


def _finite(value: float | None) -> float | None:
    """Return a figure, or None where it overflowed; the run's metrics say why."""
    return value if value is not None and math.isfinite(value) else None


def _busy_ns(trial: TrialRecord) -> int:
    return sum(busy_ns(attempt) for attempt in trial.attempts)


def _grams(run: RunRecord, pieces: list[EnergyPiece], accounting: Accounting) -> float | None:
    if accounting.intensity is None:
        return None
    return emission(pieces, accounting.intensity, run.clock.start_wall_ns if run.clock is not None else 0).grams


def _costs(run: RunRecord, accounting: Accounting) -> dict[str, float | None] | None:
    """Return each trial's share of its slots' rent; None where energy is paid instead, or nothing is known."""
    prices = accounting.prices
    if prices is None or prices.premises == "own":
        return None
    rented = rent(run, accounting, prices)
    found: dict[str, float | None] = {}
    for trial in run.trials:
        total: float | None = None if rented.slot.usd is None else 0.0  # no time at an unknown price is unknown too
        for attempt in trial.attempts:
            usd = rented.of_slot(attempt.slot).usd if attempt.slot is not None else 0.0
            total = None if usd is None or total is None else total + usd * busy_ns(attempt) / NANOSECONDS_PER_HOUR
        found[trial.trial] = total
    return found


def _tariff(energy: float | None, accounting: Accounting) -> float | None:
    prices = accounting.prices
    if energy is None or prices is None or prices.premises != "own" or prices.usd_per_kwh is None:
        return None
    return energy / JOULES_PER_KWH * prices.usd_per_kwh


def _wasted_ns(run: RunRecord, policy: Policy) -> dict[str, int] | None:
    """Return the wasted busy time of each trial that has any; None for `post_goal` without a goal that was met."""
    if policy == "post_goal" and goal_reached(run) is None:
        return None
    owners = {id(attempt): trial.trial for trial in run.trials for attempt in trial.attempts}
    found: dict[str, int] = {}
    for attempt, (start, end) in wasted_segments(run, policy):
        trial = owners[id(attempt)]
        found[trial] = found.get(trial, 0) + end - start
    return found
