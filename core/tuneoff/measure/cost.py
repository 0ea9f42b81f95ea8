"""Cost of a run in USD: rent of slots, head node and database, or the energy's tariff on own premises; and of what was wasted.

Rented are prices per hour of the slots and of what the framework needs besides, for the billed time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from tuneoff.experiment.accounting.declared import Accounting, Prices, prices_text
from tuneoff.experiment.spec import Workers
from tuneoff.measure.attribution.account import EnergyAccount, job_parts
from tuneoff.measure.attribution.pieces import JOULES_PER_KWH, joules
from tuneoff.measure.spans import NO_END, PARTS, jct_ns, part_reasons, partition
from tuneoff.measure.waste import POLICIES, no_goal, wasted_segments
from tuneoff.record.metric_value import MetricValue, metric_value, missing
from tuneoff.record.run_record import RunRecord
from tuneoff.record.samples.reader import Evidence

NANOSECONDS_PER_HOUR = 3_600_000_000_000
ACCELERATOR = "cuda"  # begins the device of a trial that trained on one
WHOLE = {"job": "per_completed_trial", "job_without_test": "per_completed_trial_without_test"}  # and its share per trial
NO_COMPLETED = "no trial completed, so the run enters no cost ranking"
NO_SLOT_PRICE = "on own premises a slot has no price; see the wasted energy"


@dataclass(frozen=True, slots=True)
class HourlyPrice:
    """A price in USD per hour, None for a `reason`; `note` says what was assumed."""

    usd: float | None
    reason: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Rent:
    """Prices of a run's resources, of what the framework needs."""

    slot: HourlyPrice  # one slot, without accelerator
    accelerated: Mapping[int, HourlyPrice]  # slots on which a trial trained on an accelerator, or on a share of one
    services: list[HourlyPrice]  # head node and database, where the framework needs them

    def of_slot(self, slot: int) -> HourlyPrice:
        """Return the price of a slot with its accelerator, if a trial trained on one there."""
        return self.accelerated.get(slot, self.slot)


def rent(run: RunRecord, accounting: Accounting, prices: Prices) -> Rent:
    """Return what a run's resources cost by the hour."""
    workers = run.run_spec().experiment.workers
    devices = {
        attempt.slot: attempt.device
        for trial in run.trials
        for attempt in trial.attempts
        if attempt.slot is not None and attempt.device is not None and attempt.device.startswith(ACCELERATOR)
    }
    slot = _slot(workers, prices)
    accelerated = slot
    if devices and slot.usd is not None:
        accelerated = _price(prices, "usd_per_accelerator_hour", f"trials trained on {next(iter(devices.values()))}")
        if accelerated.usd is not None:
            accelerated = HourlyPrice(slot.usd + accelerated.usd / workers.per_device, note=slot.note)
    framework = run.versions.get("framework")
    name = run.run_spec().adapter if framework in (None, "", "none") else str(framework)
    return Rent(slot, dict.fromkeys(devices, accelerated), _services(accounting, prices, name))


def unpriced(workers: Workers, accounting: Accounting, framework: str) -> str:
    """Return why a run with these workers will have no cost, as far as it is known before it; "" where nothing is lacking."""
    prices = accounting.prices
    if prices is None or prices.premises == "own":
        return ""
    needed = (_slot(workers, prices), *_services(accounting, prices, framework))
    return next((price.reason for price in needed if price.usd is None), "")


def billed_ns(duration_ns: int, prices: Prices) -> int:
    """Return the time that is paid for: at least the minimum, rounded up to whole units of the granularity."""
    billed = max(duration_ns, round(prices.billing_minimum_seconds * 1e9))
    unit = round(prices.billing_granularity_seconds * 1e9)
    return -(-billed // unit) * unit if unit > 0 else billed


def _slot(workers: Workers, prices: Prices) -> HourlyPrice:
    """Return the price of a slot: its vCPU and its memory, which may have to be assumed."""
    if prices.usd_per_vcpu_hour is None:
        return _lacking(prices, "usd_per_vcpu_hour", "a slot has vCPU")
    if prices.usd_per_gb_hour is None:
        return _lacking(prices, "usd_per_gb_hour", "a slot has memory")
    note = ""
    if workers.memory_mb is not None:
        gigabytes = workers.memory_mb / 1000
    elif prices.usd_per_gb_hour == 0:
        gigabytes = 0.0  # however much it is, it is free
    elif prices.assumed_gb_per_vcpu is not None:
        gigabytes = workers.cpus * prices.assumed_gb_per_vcpu
        note = f"memory assumed: {prices.assumed_gb_per_vcpu:g} GB per vCPU"
    else:
        reason = "a slot's memory is not known: give `workers.memory_mb`, or `assumed_gb_per_vcpu` in the price file"
        return HourlyPrice(None, reason)
    return HourlyPrice(workers.cpus * prices.usd_per_vcpu_hour + gigabytes * prices.usd_per_gb_hour, note=note)


def _services(accounting: Accounting, prices: Prices, framework: str) -> list[HourlyPrice]:
    """Return the prices of a head node and of a database, where the framework needs them."""
    needed = {"head_node_usd_per_hour": accounting.head_node, "database_usd_per_hour": accounting.database}
    return [_price(prices, key, f"{framework} needs one") for key, is_needed in needed.items() if is_needed]


def _price(prices: Prices, key: str, why: str) -> HourlyPrice:
    value: float | None = getattr(prices, key)
    return HourlyPrice(value) if value is not None else _lacking(prices, key, why)


def _lacking(prices: Prices, key: str, why: str) -> HourlyPrice:
    return HourlyPrice(None, f"the price file ({prices.name}) has no `{key}`, but {why}; add it there")


def cost_metrics(run: RunRecord, evidence: Evidence, account: EnergyAccount) -> dict[str, MetricValue]:
    """Return OC, without the test too, both per completed trial, and the cost of each step by time alone.

    A pure function.
    """
    prices = evidence.accounting.prices
    if prices is None:
        names = (*(f"step.{step}" for step in PARTS), *WHOLE, *WHOLE.values())
        return {f"cost.{name}": _missing(evidence.accounting.prices_reason) for name in names}
    values = _own_premises(run, account, prices) if prices.premises == "own" else _rented(run, evidence, prices)
    completed = sum(trial.state == "completed" for trial in run.trials)
    for whole, share in WHOLE.items():
        job = values[f"cost.{whole}"]
        if not completed:
            values[f"cost.{share}"] = _missing(NO_COMPLETED)
        elif job.value is None:
            values[f"cost.{share}"] = job
        else:
            values[f"cost.{share}"] = metric_value(
                job.value / completed, "USD", kind=job.kind, source=job.source, n_samples=completed, coverage=job.coverage
            )
    return values


def waste_cost_metrics(run: RunRecord, evidence: Evidence, account: EnergyAccount) -> dict[str, MetricValue]:
    """Return wasted cost per policy: busy hours times the slot's price, without tariff, minimum or head node."""
    prices = evidence.accounting.prices
    if prices is None:
        return {f"waste.{policy}.cost": _missing(evidence.accounting.prices_reason) for policy in POLICIES}
    if prices.premises == "own":
        return {f"waste.{policy}.cost": _missing(NO_SLOT_PRICE) for policy in POLICIES}
    rented = rent(run, evidence.accounting, prices)
    values = {}
    for policy in POLICIES:
        reason = no_goal(run) if policy == "post_goal" else None
        by_slot: Counter[int] = Counter()
        for attempt, (start, end) in wasted_segments(run, policy) if reason is None else ():
            if attempt.slot is not None:
                by_slot[attempt.slot] += end - start
        needed = [rented.of_slot(slot) for slot in by_slot]
        lacking = (price.reason for price in (rented.slot, *needed) if price.usd is None)  # unknown too where nothing is wasted
        total = sum(
            (price.usd or 0.0) * wasted_ns / NANOSECONDS_PER_HOUR
            for price, wasted_ns in zip(needed, by_slot.values(), strict=True)
        )
        source = _source(prices, rented.slot.note)
        values[f"waste.{policy}.cost"] = _declared(total, reason or next(lacking, ""), source)
    return values


def _rented(run: RunRecord, evidence: Evidence, prices: Prices) -> dict[str, MetricValue]:
    """Return the rent of slots, head node and database: of the job for its billed time, of its parts by their time alone."""
    rented = rent(run, evidence.accounting, prices)
    needed = [rented.of_slot(slot) for slot in range(run.run_spec().experiment.workers.count)]
    needed += rented.services
    source = _source(prices, rented.slot.note)
    lacking = next((price.reason for price in needed if price.usd is None), "")
    rate = sum(price.usd or 0.0 for price in needed) / NANOSECONDS_PER_HOUR
    total_ns, parts, reasons = jct_ns(run), partition(run), part_reasons(run)
    lengths = {part: span[1] - span[0] for part, span in parts.items() if span is not None}
    no_end = lacking or (NO_END if total_ns is None else "")
    no_test = no_end or ("" if "test" in lengths else reasons["test"])
    whole_ns = total_ns or 0
    values = {
        "cost.job": _declared(rate * billed_ns(whole_ns, prices), no_end, source),
        "cost.job_without_test": _declared(rate * billed_ns(whole_ns - lengths.get("test", 0), prices), no_test, source),
    }
    for part in parts:
        reason = lacking if part in lengths else reasons[part]
        values[f"cost.step.{part}"] = _declared(rate * lengths.get(part, 0), reason, source)
    return values


def _own_premises(run: RunRecord, account: EnergyAccount, prices: Prices) -> dict[str, MetricValue]:
    """Return the tariff of the job's energy, and of each step's."""
    pieces, inside, reasons = job_parts(run, account)
    tariff = prices.usd_per_kwh or 0.0  # a file of own premises has one

    def paid(energy: float, reason: str | None) -> MetricValue:
        if reason is not None:
            return _missing(reason)
        return account.value(energy / JOULES_PER_KWH * tariff, "USD", by=_source(prices))

    total = joules(pieces)
    return {
        "cost.job": paid(total, account.reason or account.job_reason),
        "cost.job_without_test": paid(total - joules(inside.get("test", ())), reasons["test"]),
        **{f"cost.step.{part}": paid(joules(inside.get(part, ())), reasons[part]) for part in PARTS},
    }


def _missing(reason: str) -> MetricValue:
    return missing("USD", reason, kind="declared", source="accounting")


def _declared(usd: float, reason: str, source: str) -> MetricValue:
    return _missing(reason) if reason else metric_value(usd, "USD", kind="declared", source=source)


def _source(prices: Prices, note: str = "") -> str:
    return f"{prices_text(prices)} ({prices.source}){f'; {note}' if note else ''}"
