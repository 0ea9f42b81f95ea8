"""What rented machines cost: prices per hour of a run's slots and of what its framework needs besides, and billed time."""

from __future__ import annotations

from dataclasses import dataclass

from tuneoff.experiment.accounting.declared import Accounting, Prices
from tuneoff.experiment.spec import Workers
from tuneoff.record.run_record import RunRecord

NANOSECONDS_PER_HOUR = 3_600_000_000_000
ACCELERATOR = "cuda"  # begins the device of a trial that trained on one


@dataclass(frozen=True, slots=True)
class HourlyPrice:
    """A price in USD per hour, None for a `reason`; `note` says what was assumed."""

    usd: float | None
    reason: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Rent:
    """Prices of a run's resources. None: the framework needs no such resource."""

    slot: HourlyPrice  # one slot, without accelerator
    accelerator: HourlyPrice | None  # one, of each slot in `accelerated`
    accelerated: frozenset[int]
    head_node: HourlyPrice | None
    database: HourlyPrice | None

    def of_slot(self, slot: int) -> HourlyPrice:
        """Return the price of a slot with its accelerator, if a trial trained on one there."""
        if slot not in self.accelerated or self.accelerator is None or self.slot.usd is None:
            return self.slot
        if self.accelerator.usd is None:
            return self.accelerator
        return HourlyPrice(self.slot.usd + self.accelerator.usd, note=self.slot.note)


def rent(run: RunRecord, accounting: Accounting, prices: Prices) -> Rent:
    """Return what a run's resources cost by the hour."""
    devices = {
        attempt.slot: attempt.device
        for trial in run.trials
        for attempt in trial.attempts
        if attempt.slot is not None and attempt.device is not None and attempt.device.startswith(ACCELERATOR)
    }
    accelerator = None
    if devices:
        device = next(iter(devices.values()))
        accelerator = _price(prices, "usd_per_accelerator_hour", f"trials trained on {device}")
    head_node, database = _services(accounting, prices, framework_name(run))
    return Rent(
        slot=_slot(run.run_spec().experiment.workers, prices),
        accelerator=accelerator,
        accelerated=frozenset(devices),
        head_node=head_node,
        database=database,
    )


def unpriced(workers: Workers, accounting: Accounting, framework: str) -> str:
    """Return why a run with these workers will have no cost, as far as it is known before it; "" where nothing is lacking."""
    prices = accounting.prices
    if prices is None or prices.premises == "own":
        return ""
    needed = (_slot(workers, prices), *_services(accounting, prices, framework))
    return next((price.reason for price in needed if price is not None and price.usd is None), "")


def framework_name(run: RunRecord) -> str:
    """Return the framework's name, or the adapter's where it has none."""
    name = run.versions.get("framework")
    return str(name) if name not in (None, "", "none") else run.run_spec().adapter


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


def _services(accounting: Accounting, prices: Prices, framework: str) -> tuple[HourlyPrice | None, HourlyPrice | None]:
    """Return the prices of a head node and of a database; None where the framework needs none."""
    needs = f"{framework} needs one"
    return (
        _price(prices, "head_node_usd_per_hour", needs) if accounting.head_node else None,
        _price(prices, "database_usd_per_hour", needs) if accounting.database else None,
    )


def _price(prices: Prices, key: str, why: str) -> HourlyPrice:
    value: float | None = getattr(prices, key)
    return HourlyPrice(value) if value is not None else _lacking(prices, key, why)


def _lacking(prices: Prices, key: str, why: str) -> HourlyPrice:
    return HourlyPrice(None, f"the price file ({prices.name}) has no `{key}`, but {why}; add it there")
