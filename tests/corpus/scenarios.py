"""Results in memory, one for each situation that the judge must tell apart; no recorded run can be made to show all of them.

A scenario is a function without arguments that returns `Results`. Values are drawn by name and seed, so they are the same
everywhere.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from statistics import NormalDist
from typing import Any

from builders.made_results import OF_EPOCHS, Draw, Entry, Metrics, over_tasks, results, steady
from tuneoff.experiment.accounting.declared import Accounting, Prices
from tuneoff.judge.results import Results
from tuneoff.measure.power.cpu_table import RATIO_HIGH, RATIO_LOW, default_ratio
from tuneoff.record.metric_value import Kind, MetricValue, metric_value, missing
from tuneoff.record.run_record import AttemptRecord, FlagRecord, RunRecord, RunStatus, TrialRecord, TrialState
from tuneoff.record.store import REPEAT, selected_executions

Scenario = Callable[[], Results]
FAST, SLOW = steady(1000, key="a"), steady(2000, key="b")
TASKS = 8
TIGHT = 0.001  # a spread that the margin of 5 % is far from
ANCHORS = {"random_search": 0.9, "best_known": 0.98, "source": "made"}
ENERGY, WITHOUT_TEST = "energy.per_completed_trial", "energy.per_completed_trial_without_test"
CHOICE: dict[str, Any] = {
    "questions": {"quality": "quality.test", "time": "time.jct", "overhead": "overhead.per_trial"},
    "primary_metric": "time.jct",
}
TIME: dict[str, Any] = {"questions": {"time": "time.jct"}, "primary_metric": "time.jct"}


def statuses(count: int, status: RunStatus = "failed") -> dict[int, RunStatus]:
    """Return the status of so many first seeds."""
    return dict.fromkeys(range(count), status)


def pair(one: Mapping[str, Any] | None = None, other: Mapping[str, Any] | None = None, **more: Any) -> Results:
    """Return a fast and a slow adapter; `one`, `other`: what else these entries have; `more`: of the results."""
    return results([Entry("a", FAST, **(one or {})), Entry("b", SLOW, **(other or {}))], **more)


def times(a: float, b: float, spread: float = 0.01, **more: Any) -> Results:
    """Return two adapters whose jobs take so many ms."""
    return results([Entry(name, steady(jct, spread=spread, key=name)) for name, jct in (("a", a), ("b", b))], **more)


def repeated(again: float, other: float) -> Results:
    """Return an adapter of 1000 ms, the same again with other times, and another one."""
    entries = [Entry("a", FAST), Entry("a", steady(again, key="a2"), replicate=1), Entry("b", steady(other, key="b"))]
    return results(entries)


def given(values: Sequence[float], **more: Any) -> Results:
    """Return an adapter whose jobs all take 1000 ms, and one with these times by seed."""
    entries = [Entry("a", lambda seed: {"time.jct": 1000.0}, **more), Entry("b", lambda seed: {"time.jct": values[seed]})]
    return results(entries, range(len(values)))


def asked(metric: str, *values: float, mode: str = "max") -> Results:
    """Return an adapter for each value of a metric that is the only question; a percent is added by seed."""
    entries = [
        Entry(name, lambda seed, value=value: {metric: value * (1 + seed / 100)}, mode=mode)  # type: ignore[misc]
        for name, value in zip("abc", values, strict=False)
    ]
    return results(entries, questions={"asked": metric}, primary_metric=metric)


def changed(made: Results, change: Callable[[RunRecord], RunRecord]) -> Results:
    """Return the results with each record changed."""
    records = tuple(map(change, made.records))
    return replace(made, records=records, selected={record.run_id: record for record in records})


def repeated_runs() -> Results:
    made = pair()
    first, second = made.records[:2]
    again = [replace(first, execution_id="later"), replace(second, execution_id="cut", status="interrupted", reason="stopped")]
    warm_up = replace(first, run_id="warm-up", execution_id="warm")
    return replace(made, records=(*made.records, *again, warm_up, replace(warm_up, execution_id="warmer")))


def tried_again(environment: Mapping[str, Any]) -> Results:
    """Return runs of which one had failed before it was done; `environment`: what its later execution was made in besides."""
    made = pair()
    first = made.records[0]
    failed = replace(first, execution_id="first", status="failed", reason="planted", charged="framework", metrics={})
    again = replace(first, environment={**first.environment, **environment})
    records = (failed, again, *made.records[1:])
    return replace(made, records=records, selected=selected_executions(records))


def no_larger_experiment() -> Results:
    """Return what 20 seeds do not decide, though by their spread some 18 find the margin: the difference is half of it."""
    order = [7 * place % 20 for place in range(20)]
    logs = [0.025 + 0.042 * NormalDist().inv_cdf((place + 0.5) / 20) for place in order]
    return given([1000 / math.exp(log) for log in logs])


# --- bills and energy ---


def billed(one: float, other: float, unit: float = 1.0, least: float = 0.0) -> Results:
    """Return adapters of so many seconds, the first twice, at what they are billed for."""
    price = 0.36 / 3600

    def draw(seconds: float) -> Draw:
        def of(seed: int) -> Metrics:
            used = seconds * (1 + 0.01 * random.Random(f"{seconds} {seed}").random())
            paid = max(used, least)
            paid = math.ceil(paid / unit) * unit if unit else paid
            return {
                "time.jct": 1000 * used,
                "cost.job": paid * price,
                "time.jct_without_test": 100 * used,
                "cost.job_without_test": math.ceil(used / 10) * price,
            }

        return of

    prices = Prices(
        name="made",
        source="made",
        date="2026",
        usd_per_vcpu_hour=0.36,
        usd_per_gb_hour=0.0,
        billing_granularity_seconds=unit,
        billing_minimum_seconds=least,
    )
    entries = [Entry("a", draw(one)), Entry("a", draw(one), replicate=1), Entry("b", draw(other))]
    questions = {"cost": "cost.job", "without": "cost.job_without_test"}
    return results(entries, accounting=Accounting(prices=prices), questions=questions, primary_metric="cost.job")


def uses(cpu: float, cores: float, key: str, **more: Any) -> Draw:
    """Return a job's energy by its CPU and core seconds at 2 J and 0.6 W (a ratio of 0.3), with a little chance."""

    def draw(seed: int) -> Metrics:
        factor = 1 + 0.002 * random.Random(f"{key} {seed}").gauss(0, 1)
        return {
            ENERGY: (2.0 * cpu + 0.6 * cores) * factor / 10,
            "trials.completed": 10.0,
            "energy.cpu_seconds": cpu * factor,
            "energy.reserved_core_seconds": cores * factor,
            **(more or RANGE),
        }

    return draw


def metered(joules: float, key: str, kind: Kind = "derived", name: str = ENERGY) -> Draw:
    """Return an energy of a kind, without a model's weights."""
    return lambda seed: {
        name: metric_value(joules * (1 + 0.002 * random.Random(f"{key} {seed}").gauss(0, 1)), "J", kind=kind),
        "time.jct": 1000.0,
    }


def energies(one: Draw, other: Draw, third: Draw | None = None) -> Results:
    entries = [Entry("a", one), Entry("b", other), *([Entry("c", third)] if third else [])]
    return results(entries, questions={"energy": ENERGY}, primary_metric=ENERGY)


def without(draw: Draw, name: str) -> Draw:
    return lambda seed: {metric: value for metric, value in draw(seed).items() if metric != name}


def energy_without_test() -> Results:
    """Return jobs whose test takes 80 of their 86 and 90 CPU seconds: with it the ratio of 0.6 is one of 0.96."""

    def draw(cpu: float, key: str) -> Draw:
        def of(seed: int) -> Metrics:
            alone, whole = uses(cpu, cpu, key)(seed), uses(cpu + 80, cpu + 80, key)(seed)
            times = {"time.jct": 1000 * (cpu + 80), "time.jct_without_test": 1000 * cpu}
            uses_cpu = {"energy.cpu_seconds_without_test": alone["energy.cpu_seconds"]}
            return {**whole, WITHOUT_TEST: alone[ENERGY], **uses_cpu, **times}

        return of

    entries = [Entry("a", draw(6, "a")), Entry("b", draw(10, "b"))]
    return results(entries, questions={"energy": WITHOUT_TEST, "whole": ENERGY}, primary_metric=WITHOUT_TEST)


def ratios(low: float, high: float, servers: str) -> dict[str, MetricValue]:
    return {name: metric_value(value, "ratio", source=servers) for name, value in ((RATIO_LOW, low), (RATIO_HIGH, high))}


SERVERS = ratios(0.1, 0.3, "x servers")
RANGE = ratios(*default_ratio()[0], default_ratio()[1])


# --- tasks ---


def around(quality: float, jct: float, key: str) -> Draw:
    def draw(seed: int) -> Metrics:
        chance = random.Random(f"{key} {seed}")
        value = quality + 0.001 * chance.gauss(0, 1)
        return {"quality.validation": value, "quality.test": value, "time.jct": jct * (1 + 0.01 * chance.gauss(0, 1))}

    return draw


Of = Callable[[str, int], Mapping[str, Any]]
FAR = {"a": (0.97, 1000.0), "b": (0.95, 2000.0)}


def tasks(
    count: int = TASKS, means: Mapping[str, tuple[float, float]] = FAR, seeds: int = 3, of: Of | None = None, **more: Any
) -> Results:
    """Return a file with tasks; `means`: quality and ms by adapter, both other ones from task to task."""

    def draw(name: str, task: int) -> Draw:
        quality, jct = means[name]
        return around(quality - 0.002 * task, jct * (1 + task), f"{name} {task}")

    entries = over_tasks(count, means, draw, of or (lambda name, task: {}))
    return results(entries, range(seeds), **{"anchors": {f"t{task}": ANCHORS for task in range(count)}, **more})


def tasks_of(draw: Callable[[str, int], Draw], of: Of | None = None, count: int = TASKS, seeds: int = 3, **more: Any) -> Results:
    """Return tasks of two adapters with values of their own."""
    return results(over_tasks(count, "ab", draw, of or (lambda name, task: {})), range(seeds), **more)


def controlled(slow: float, seeds: int = 3) -> Results:
    """Return 6 tasks of `a`, of `a` again and so much slower, and of `b`."""
    entries = over_tasks(6, "ab", lambda name, task: around(0.9, 1000.0, f"{name} {task}"))
    entries += over_tasks(6, "a", lambda name, task: around(0.9, 1000.0 * slow, f"a {task}"), lambda *_: {"replicate": 1})
    return results(entries, range(seeds))


def lucky(label: str, task: int) -> Draw:
    """Return runs in which `a` is a little better, always."""
    luck = 0.01 if label == "a" else 0.0
    return lambda seed: {"time.jct": (1 + task) * 1000 * (1 - luck), "quality.validation": 0.92 + luck, "quality.test": 0.92}


def unmeasured(label: str, task: int) -> Draw:
    """Return runs of which two of three have no value in the first four tasks, where `a` is much slower."""
    draw = around(0.9, 1000.0 if label == "b" else 2000.0 if task < 4 else 900.0, f"{label} {task}")
    return lambda seed: {**draw(seed), **({"time.jct": missing("ms", "made")} if task < 4 and seed and label == "a" else {})}


def billed_tasks(unit: float, a: float, b: float) -> Results:
    prices = Prices(
        name="made", source="made", date="2026", usd_per_vcpu_hour=3600.0, usd_per_gb_hour=0.0, billing_granularity_seconds=unit
    )

    def draw(label: str, task: int) -> Draw:
        seconds = (a if label == "a" else b) + 0.0001 * task
        return lambda seed: {"time.jct": 1000 * seconds, "cost.job": math.ceil(seconds / unit) * unit}

    return tasks_of(draw, accounting=Accounting(prices=prices), questions={"cost": "cost.job"}, primary_metric="cost.job")


def declared_first(made: Results, declared: int) -> Results:
    return replace(made, plan=replace(made.plan, analysis={**made.plan.analysis, "seeds": list(range(declared))}))


def failing_tasks(failed: Mapping[str, int], a: float = 900, b: float = 1000) -> Results:
    """Return 36 pairs; of each adapter the runs of seed 0 fail in so many tasks, first those of `a`."""
    failing = {"a": range(failed.get("a", 0)), "b": range(TASKS - failed.get("b", 0), TASKS)}
    jct = {"a": a, "b": b}
    return tasks_of(
        lambda label, task: around(0.9, jct[label], f"{label} {task}"),
        lambda label, task: {"status": statuses(1) if task in failing[label] else {}},
    )


def rare() -> Results:
    """Return an adapter that has few of the tasks."""
    entries = [
        Entry(name, around(0.97 - cost / 1e5, cost * (1 + task), f"{name} {task}"), variant={"task": f"t{task}"})
        for task in range(TASKS)
        for name, cost in (("a", 1000.0), ("b", 2000.0), ("rare", 500.0))
        if name != "rare" or task < 3
    ]
    return results(entries, range(3), anchors={f"t{task}": ANCHORS for task in range(TASKS)})


# --- the choice ---


def runs(jct: float, overhead: float, key: str, quality: float = 0.96) -> Draw:
    """Return values with a tenth of chance of their own; times in ms."""

    def draw(seed: int) -> Metrics:
        chance = random.Random(f"{key} {seed}")
        time = jct * (1 + 0.1 * chance.gauss(0, 1))
        added = overhead * (1 + 0.05 * chance.gauss(0, 1))
        return {
            "time.deploy": jct / 10,
            "time.setup": 20.0,
            "time.result_collection": 5.0,
            "time.undeploy": 15.0,
            "time.trial": 0.8 * time,
            "time.jct": time,
            "time.jct_without_test": time,
            "overhead.per_trial": added,
            "overhead.further_trial": added,
            "overhead.job_start": 50.0,
            **OF_EPOCHS,
            "quality.test": quality + 0.01 * chance.gauss(0, 1),
            "trial_execution.median": 100.0,
            "slots.utilization": 80.0,
            WITHOUT_TEST: overhead / 100,
        }

    return draw


SERIAL, OPTUNA, RAY, SYNE = (
    Entry(name, runs(jct, added, name[0]))
    for name, jct, added in (("serial", 3000, 2), ("optuna", 4000, 20), ("ray-tune", 12_000, 400), ("syne-tune", 24_000, 1500))
)
FOUR = [SERIAL, OPTUNA, RAY, SYNE]


def choice(*entries: Entry, seeds: int = 10, **changes: Any) -> Results:
    return results(entries, range(seeds), **{**CHOICE, **changes})


def choices_over_tasks(count: int, seeds: int) -> Results:
    rates = {"serial": (3000, 2), "optuna": (4000, 20), "ray-tune": (12_000, 400)}
    entries = over_tasks(count, rates, lambda name, task: runs(*rates[name], f"{name} {task}"))
    return choice(*entries, seeds=seeds)


def failed_start(seeds: int, failed: int, *entries: Entry, reason: str = "") -> Results:
    """Return runs of which so many of Ray Tune's failed, with the names that the frameworks have."""
    start = reason or "step deploy failed: Ray must start on this machine within 225 s, but it did not"
    status = statuses(failed)
    made = choice(*(replace(one, status=status if one.adapter == "ray-tune" else {}) for one in entries), seeds=seeds)
    return changed(
        made,
        lambda record: replace(
            record,
            reason=start if record.status == "failed" else None,
            versions={"framework": record.run_spec().adapter.title().replace("-", " ")},
        ),
    )


def with_causes() -> Results:
    texts = {"optuna": ("KeyError: 'x'", "OSError: no disk"), "ray-tune": ("KeyError: 'x'", None)}

    def failing(record: RunRecord) -> RunRecord:
        trials = (
            TrialRecord(trial=f"t{n}", configuration={}, digest="", state="failed" if text else "pruned", cause=text)
            for n, text in enumerate(texts[record.run_spec().adapter])
        )
        return replace(record, trials=tuple(trials))

    return changed(choice(OPTUNA, RAY, seeds=2), failing)


def clocks_and_states() -> Results:
    """Return runs whose hosts' clocks are unsure by 50 ms, where a deploy takes less, and whose trials ended in each way."""

    def ended(record: RunRecord) -> RunRecord:
        states: tuple[TrialState, ...] = ("completed", "failed", "timed_out", "timed_out", "pruned", "cancelled")
        attempt = AttemptRecord(attempt=1, state="completed", slot=0, started_ns=0, ended_ns=1)
        trials = (
            TrialRecord(trial=f"t{n}", configuration={}, digest="", state=state, attempts=(attempt,), cause="planted")
            for n, state in enumerate(states)
        )
        return replace(record, trials=tuple(trials), clock_uncertainty_ns=50_000_000)

    return changed(results([Entry("a", added(3.0)), Entry("b", added(30.0))]), ended)


def turned_by_others() -> Results:
    """Return a verdict that other choices change: late runs of ten seeds, early ones of three."""

    def late(seed: int) -> Metrics:
        return {**RAY.draw(seed), "time.jct": 5000.0 if seed < 10 else 3500.0}

    def steadily(seed: int) -> Metrics:
        return {**OPTUNA.draw(seed), "time.jct": 4000.0 + seed}

    return choice(replace(OPTUNA, draw=steadily), replace(RAY, draw=late, disturbed=range(9)), seeds=13)


def added(deploy: float, further: float = 50.0, *, slow: Sequence[int] = (), spread: float = 0.02) -> Draw:
    """Return runs with these ms of deploy and of each trial, which take ten times as much with the `slow` seeds."""

    def draw(seed: int) -> Metrics:
        factor = (1 + spread * random.Random(f"{deploy} {seed}").random()) * (10 if seed in slow else 1)
        parts = dict.fromkeys(("time.setup", "time.result_collection", "time.undeploy", "overhead.job_start"), 100.0)
        reports = {**OF_EPOCHS, "overhead.per_report": 1.0 * factor}
        own = {"time.deploy": deploy * factor, "overhead.further_trial": further * factor, "time.jct": 2000.0}
        return {**parts, **reports, **own, "overhead.per_trial": further, "trial_execution.median": 100.0}

    return draw


LENGTHS: Sequence[tuple[float, Mapping[str, Any]]] = [(0.1, {"s": 0.1}), (1.0, {"s": 1}), (10.0, {"s": 10})]
ADDED = {"serial": 2.0, "optuna": 20.0, "ray-tune": 400.0}  # ms per trial


def curve(*columns: tuple[float, Mapping[str, Any]], grows: float = 0.0, seeds: int = 5) -> Results:
    """Return runs by (seconds of a trial, variant); `grows`: ms that are added per second of a trial."""

    def draw(seconds: float, more: float) -> Draw:
        def of(seed: int) -> Metrics:
            parts = dict.fromkeys(("time.deploy", "time.setup", "time.result_collection", "time.undeploy"), 1.0)
            share = 1 + 0.01 * random.Random(seed).gauss(0, 1)
            overhead = dict.fromkeys(("overhead.per_trial", "overhead.further_trial"), (more + grows * seconds) * share)
            reports = {"overhead.per_report": 0.0, "overhead.reports": 1.0, "epochs.trained": 10.0, "trials.used": 10.0}
            own = {"overhead.job_start": 1.0, "time.jct": 1000.0, "trial_execution.median": 1000 * seconds}
            return {**parts, **overhead, **reports, **own}

        return of

    entries = [Entry(name, draw(seconds, more), variant=variant) for seconds, variant in columns for name, more in ADDED.items()]
    return results(entries, range(seeds), **CHOICE)


def by_workers(*variants: Mapping[str, Any]) -> Results:
    return curve(*((0.5, variant) for variant in variants))


def scaling(seconds: Sequence[float] = (1.0,), lost: Mapping[str, int] | None = None) -> Results:
    """Return utilizations over workers, each framework with a ceiling; `lost`: those whose runs fail with as many workers."""
    counts, ceilings = (1, 2, 4, 8, 16, 32, 64), {"serial": 1000.0, "optuna": 20.0, "ray-tune": 6.0}

    def draw(ceiling: float, count: int, length: float) -> Draw:
        return lambda seed: {
            "slots.utilization": min(98.0, 100 * ceiling * length * (1 + 0.02 * random.Random(seed).gauss(0, 1)) / count),
            "stage.ask": float(count),
            "time.jct": 1000.0,
            "overhead.per_trial": 1.0,
            "trial_execution.median": 1000 * length,
        }

    entries = [
        Entry(
            name,
            draw(ceiling, count, length),
            variant={"workers.count": count, "budget.trials": 4 * count, "length": length},
            status=statuses(5) if (lost or {}).get(name) == count else {},
        )
        for length in seconds
        for count in counts
        for name, ceiling in ceilings.items()
    ]
    return results(entries, range(5), **TIME)


def over_trials(*variants: Mapping[str, int]) -> Results:
    """Return what an ask and the memory come to over trials that take no time."""

    def draw(trials: int) -> Draw:
        return lambda seed: {
            "stage.ask": 1.0 + trials / 2000,
            "trials.per_second": 100.0,
            "memory.driver_peak_rss": 80 + trials / 500,
            "memory.tree_peak_rss": 200 + trials / 100,
            "time.jct": 1000.0,
            "trial_execution.median": 0.01,
        }

    entries = [Entry(name, draw(of["budget.trials"]), variant=of) for of in variants for name in ("serial", "optuna")]
    return results(entries, range(3), **TIME)


def emulated_at_run_time() -> Results:
    flags = (FlagRecord(name="emulated_platform", text="planted"),)
    return changed(pair(), lambda record: replace(record, flags=flags if record.run_spec().adapter == "b" else ()))


def stands_for(again: Draw, other: Draw) -> Results:
    """Return a sampler `default` of `a` that is its random search."""
    entries = [Entry("a", FAST), Entry("a", FAST, sampler="default", same_as="random"), Entry("b", SLOW)]
    return results([*entries, Entry("b", other, sampler="default"), Entry("c", again, sampler="default")])


def conditions(**limits: Mapping[str, Any]) -> Results:
    """Return adapters whose runs had these limits, changed defaults and processes."""
    declared = {"changed_defaults": ["the lock is flock"], "long_lived_workers": False, "reports": "at_end"}

    def limited(record: RunRecord) -> RunRecord:
        return replace(record, environment={"limits": dict(limits[record.run_spec().adapter]), "adapter": declared})

    return changed(results([Entry(name, steady(key=name)) for name in limits]), limited)


PINNED = {"cpus": "affinity", "processors": [[0], [1]]}
FREE = {"cpus": "none (declared, not enforced)"}
LATE = [950.0, 960.0, 955.0, 953.0, 957.0, 951.0, 958.0, 952.0, 959.0, 1400.0]

RELEASES = ("4.0.0", "4.9.0", "4.10.0", "5.0.0")


def over_releases(
    asks: Sequence[float] = (1.0, 1.0, 1.0, 1.5),
    trials: Sequence[int] = (100, 1000),
    seeds: int = 10,
    of: Callable[[str, int], Mapping[str, Any]] = lambda release, number: {},
) -> Results:
    """Return four releases of a framework; `asks`: in ms, in jobs of 100 trials; `of`: what else an entry has."""

    def draw(release: str, ask: float, number: int) -> Draw:
        def by_seed(seed: int) -> Metrics:
            chance = random.Random(f"{release} {number} {seed}")
            job = ("time.deploy", "time.setup", "time.result_collection", "time.undeploy", "overhead.job_start")
            usual = dict.fromkeys(job, 100.0) | {"overhead.further_trial": 3.0, "overhead.per_trial": 4.0, "time.jct": 800.0}
            usual |= {"overhead.per_report": 1.0, "stage.ask": ask * number / 100, WITHOUT_TEST: 0.7}
            times = {name: value * math.exp(0.03 * chance.gauss(0, 1)) for name, value in usual.items()}
            memory = 150 + 0.007 * number + 0.1 * chance.gauss(0, 1)
            scores = {"overhead.reports": 1.0, "quality.test": 0.9 + 0.001 * chance.gauss(0, 1), "memory.tree_peak_rss": memory}
            return {**times, **scores}

        return by_seed

    entries = [
        Entry(
            "optuna",
            draw(release, ask, number),
            release=release,
            variant={"budget.trials": number},
            packages={"optuna": release, "alembic": "1.13" if release < "5" else "1.14", "numpy": "2.4"},
            **of(release, number),
        )
        for number in trials
        for release, ask in zip(RELEASES, asks, strict=True)
    ]
    return changed(
        results(entries, range(seeds), **CHOICE),
        lambda record: replace(record, versions={**record.versions, "framework": "Optuna"}),
    )


SCENARIOS: Mapping[str, Scenario] = {
    # verdicts
    "faster, the other way round": lambda: results([Entry("b", SLOW), Entry("a", FAST)]),
    "better quality": lambda: results([Entry("a", steady(quality=0.9, key="a")), Entry("b", steady(quality=0.8, key="b"))]),
    "a smaller loss": lambda: results(
        [
            Entry(name, steady(quality=loss, key=name), mode="min", metric="validation_loss")
            for name, loss in (("a", 0.9), ("b", 0.8))
        ]
    ),
    "equivalent though different": lambda: times(1000, 1010, TIGHT),
    "a wide spread": lambda: times(1000, 1000, 0.1),
    "nine seeds": lambda: times(10, 1000, seeds=range(9)),
    "a family of three": lambda: pair(seeds=range(20), family_size=3),
    "another confidence": lambda: pair(seeds=range(20), confidence=0.9),
    "more pairs than the family": lambda: results([Entry(name, steady(1000, key=name)) for name in "abc"], family_size=2),
    "a noise floor": lambda: repeated(1000, 2000),
    "two noise floors": lambda: results(
        [
            Entry(name, steady(jct, spread=0.02, key=f"{name} {again}"), replicate=again)
            for name, jct, later in (("a", 1000, 1010), ("b", 1100, 1500))
            for again, jct in ((0, jct), (1, later))
        ]
    ),
    "no larger than the noise floor": lambda: repeated(2000, 1500),
    "one seed that decides": lambda: given(LATE),
    "no seed that decides": lambda: given([value - 100 for value in LATE[:9]] + [856.0]),
    "no margin": lambda: results([Entry(name, steady(key="same")) for name in "ab"], quality_margin=None),
    "a zero has no ratio": lambda: asked("overhead.per_trial", 5.0, 0.0, 0.0),
    "a share": lambda: asked("slots.utilization", 90.0, 70.0),
    "too few seeds for the error": lambda: pair(family_size=30),
    "several that are not decided": lambda: results(
        [Entry(name, steady(1000, spread=spread, key=name)) for name, spread in (("a", 0.05), ("b", 0.08), ("c", 0.12))]
    ),
    "no larger experiment is advised": no_larger_experiment,
    "a test that hides the difference": lambda: results(
        [
            Entry(
                name,
                lambda seed, own=own, name=name: {  # type: ignore[misc]
                    "time.jct_without_test": own + seed,
                    "time.jct": own + seed + random.Random(f"{name} {seed}").uniform(1000, 9000),
                },
            )
            for name, own in (("quick", 200), ("slow", 300))
        ],
        questions={"time": "time.jct_without_test", "with-test": "time.jct"},
        primary_metric="time.jct_without_test",
    ),
    # failures
    "runs that failed": lambda: pair({"status": {3: "failed", 4: "timeout"}}),
    "failures turn it round": lambda: pair({"status": statuses(19)}, seeds=range(20)),
    "most failed": lambda: pair({"status": statuses(6)}),
    "both failed in most": lambda: results([Entry(name, FAST, status=statuses(12)) for name in "ab"], range(20)),
    "interrupted and not begun": lambda: pair({"status": {9: "interrupted"}, "absent": [8]}),
    "repeated executions": repeated_runs,
    "failed, and done when tried again": lambda: tried_again({}),
    "failed, and done when its block was repeated": lambda: tried_again({REPEAT: {"number": 1, "because": {"low_disk": 1}}}),
    # what is odd
    "nothing ran": lambda: pair({"absent": range(10)}, {"absent": range(10)}),
    "a single seed": lambda: pair(seeds=[7]),
    "different samplers": lambda: results([Entry("a", FAST, sampler="random"), Entry("b", SLOW, sampler="tpe")]),
    "skipped": lambda: results([Entry("a", FAST), Entry("b", SLOW), Entry("c", SLOW, skipped="it has no such sampler")]),
    "a sampler that is another one": lambda: stands_for(steady(1000, spread=TIGHT, key="c"), steady(500, key="tpe")),
    "emulated": lambda: results([Entry("a", FAST), Entry("b", SLOW), Entry("k", FAST, emulated=True)]),
    "runs of two machines": lambda: changed(
        pair(), lambda record: replace(record, environment={"host": record.run_spec().adapter})
    ),
    "emulated at run time": emulated_at_run_time,
    "a missing metric": lambda: results(
        [Entry(name, lambda seed: {"time.jct": missing("ms", "un-deploy did not end")}) for name in "ab"]
    ),
    "flags": lambda: pair({"flags": {0: ["machine_drift"], 1: ["best_tied"]}}),
    "a primary metric that no question asks": lambda: pair(primary_metric="quality.validation"),
    "hostile names": lambda: results([Entry("<script>\x1b[31m", FAST, status={0: "failed"}), Entry("b", SLOW)]),
    "other limits": lambda: conditions(a=FREE, b=PINNED, c={"cpus": "cgroup v2", "cpu_quota": 0.5}),
    "the same limits": lambda: conditions(a=FREE, b=FREE),
    # bills and energy
    "one billed second": lambda: billed(0.5, 0.715),
    "below the billed minimum": lambda: billed(20.0, 50.0, least=60.0),
    "above the billed minimum": lambda: billed(80.0, 80.2, least=60.0),
    "billed to the nanosecond": lambda: billed(0.5, 0.5001, unit=0.0),
    "modelled energy": lambda: energies(uses(10, 10, "a"), uses(20, 20, "b"), uses(10, 10, "c")),
    "modelled energy that turns": lambda: energies(uses(30, 10, "a"), uses(10, 60, "b")),
    "modelled energy in two ranges": lambda: energies(uses(30, 10, "a", **SERVERS), uses(10, 60, "b")),
    "modelled energy without its uses": lambda: energies(
        *(without(uses(of, of, key), "energy.cpu_seconds") for of, key in ((10, "a"), (20, "b")))
    ),
    "modelled energy without the test": energy_without_test,
    "measured energy": lambda: energies(metered(10, "a"), metered(20, "b")),
    "energies of two kinds without the test": lambda: results(
        [Entry("a", metered(9, "a", "measured", WITHOUT_TEST)), Entry("b", metered(9, "b", "derived", WITHOUT_TEST))],
        questions={"energy": WITHOUT_TEST},
        primary_metric=WITHOUT_TEST,
    ),
    "energies of two kinds": lambda: energies(metered(10, "a"), uses(20, 20, "b")),
    # disturbed runs
    "one disturbed": lambda: pair({"disturbed": [3]}),
    "four disturbed": lambda: pair({"disturbed": [0, 1]}, {"disturbed": [2, 3]}),
    "five disturbed": lambda: pair({"disturbed": [0, 1, 2]}, {"disturbed": [3, 4]}),
    "not sampled": lambda: pair({"unsampled": range(10)}),
    "one not sampled": lambda: pair({"unsampled": [0]}),
    "a difference that disturbed runs make": lambda: results(
        [
            Entry("a", lambda seed: {"time.jct": 1000.0}),
            Entry("b", lambda seed: {"time.jct": 1000.0 + (900 if seed < 12 else -100) + seed}, disturbed=range(12)),
        ],
        range(20),
        family_size=1,
    ),
    "disturbed runs that stand for others": lambda: results(
        [Entry("a", FAST, disturbed=[1]), Entry("a", FAST, sampler="default", same_as="random"), Entry("b", SLOW)]
    ),
    "disturbed in some tasks": lambda: tasks_of(
        lambda name, task: {"a": FAST, "b": SLOW}[name],
        lambda name, task: {"disturbed": range(10 if task < 2 else 1)},
        count=5,
        seeds=10,
    ),
    # over tasks
    "tasks": tasks,
    "tasks with ten seeds": lambda: tasks(5, seeds=10),
    "equal over tasks": lambda: tasks(means={"a": (0.96, 1000), "b": (0.96, 1000)}),
    "two tasks of six seeds": lambda: tasks(2, {"a": (0.97, 1000), "b": (0.90, 2000)}, seeds=6),
    "tasks with failures": lambda: tasks(
        means={"a": (0.95, 1500), "b": (0.97, 1000)}, of=lambda name, task: {"status": statuses(2) if name == "b" else {}}
    ),
    "tasks in which all failed": lambda: tasks(
        means={"a": (0.95, 1500), "b": (0.97, 1000)},
        of=lambda name, task: {"status": statuses(3) if name == "b" and task < 4 else {}},
    ),
    "a task without anchors": lambda: tasks(anchors={f"t{task}": ANCHORS for task in range(TASKS - 1)}),
    "anchors the wrong way round": lambda: tasks(anchors={f"t{task}": {**ANCHORS, "best_known": 0.8} for task in range(TASKS)}),
    "tasks that are not finished": lambda: tasks(of=lambda name, task: {"absent": [2] if name == "a" and not task else []}),
    "a family too large for the streams": lambda: tasks(5, seeds=2, family_size=30),
    "many families": lambda: tasks(10, seeds=10, questions={"time": "time.jct", "quality": "quality.test"}),
    "an adapter with few tasks": rare,
    "four adapters over tasks": lambda: tasks(6, {"a": (0.97, 1000), "b": (0.96, 1100), "c": (0.955, 1500), "d": (0.95, 2000)}),
    "tasks of unequal numbers of seeds": lambda: tasks_of(unmeasured),
    "tasks without the metric": lambda: results(
        over_tasks(3, "ab", lambda *_: lambda seed: {"quality.test": 0.9}, lambda name, _: {"status": statuses(name == "b")}),
        range(3),
    ),
    "tasks of one stream": lambda: tasks_of(
        lucky, lambda *_: {"stream": "the same"}, anchors={f"t{task}": ANCHORS for task in range(TASKS)}
    ),
    "tasks of their own streams": lambda: tasks_of(lucky, anchors={f"t{task}": ANCHORS for task in range(TASKS)}),
    "values below zero": lambda: tasks_of(
        lambda name, task: (
            lambda seed: {"time.jct": 1000.0, "overhead.per_trial": (-3.0 if name == "a" else 0.1) * (1 + 0.01 * seed)}
        ),
        questions={"time": "time.jct", "overhead": "overhead.per_trial"},
    ),
    "a control over tasks that differs": lambda: controlled(1.5),
    "a control over tasks that is the same": lambda: controlled(1.0, seeds=1),
    "disturbed over tasks": lambda: tasks(of=lambda name, task: {"disturbed": range(3)}),
    "a difference over tasks that disturbed runs make": lambda: tasks_of(
        lambda label, task: (
            lambda seed: {"time.jct": 1000.0 + (0.0 if label == "a" else 900.0 if task < 4 else -20.0) + 2 * task + seed}
        ),
        lambda label, task: {"disturbed": range(3 if task < 4 else 0)},
        family_size=1,
    ),
    "six undisturbed streams": lambda: tasks(seeds=1, of=lambda name, task: {"disturbed": range(name == "a" and task < 2)}),
    "five undisturbed streams": lambda: tasks(seeds=1, of=lambda name, task: {"disturbed": range(name == "a" and task < 3)}),
    "not sampled over tasks": lambda: tasks(of=lambda name, task: {"unsampled": range(3)}),
    "bills over tasks that a unit hides": lambda: billed_tasks(1.0, 0.99, 1.01),
    "bills over tasks": lambda: billed_tasks(0.01, 0.99, 2.0),
    "five failures of who is ahead": lambda: failing_tasks({"a": 5}),
    "a failure of each": lambda: failing_tasks({"a": 1, "b": 2}),
    "five failures of who is behind": lambda: failing_tasks({"b": 5}),
    "modelled energy over tasks": lambda: tasks_of(
        lambda label, task: uses(*(10.0, 10.0) if label == "a" else (20.0, 20.0), f"{label} {task}"),
        count=6,
        questions={"energy": ENERGY},
        primary_metric=ENERGY,
    ),
    # the choice
    "four frameworks": lambda: choice(*FOUR),
    "four frameworks, a seed": lambda: choice(*FOUR, seeds=1),
    "frameworks, tpe and asha": lambda: choice(*(replace(one, sampler="tpe", pruner="asha") for one in (OPTUNA, RAY))),
    "who is beaten": lambda: choice(OPTUNA, Entry("ray-tune", runs(4000, 20, "r")), SYNE),
    "who is behind with three seeds": lambda: choice(
        OPTUNA, Entry("syne-tune", runs(4000, 20, "s")), replace(RAY, disturbed=range(2)), seeds=3
    ),
    "a choice over tasks": lambda: choices_over_tasks(8, 1),
    "one framework": lambda: choice(SERIAL, OPTUNA),
    "caveats": lambda: choice(
        replace(OPTUNA, disturbed=(0, 1), flags={seed: ["sampler_without_model"] for seed in range(10)}),
        replace(RAY, flags={3: ["best_differs"]}, status={4: "failed"}),
        Entry("katib", runs(5000, 100, "k"), emulated=True),
    ),
    "an emulated framework failed": lambda: choice(
        Entry("katib", runs(1000, 1, "k"), emulated=True, status=statuses(3)), *FOUR, seeds=3
    ),
    "a choice on disturbed runs": lambda: choice(replace(OPTUNA, disturbed=range(9)), RAY),
    "a choice before all has ended": lambda: choice(replace(OPTUNA, disturbed=range(9), absent=(9,)), RAY),
    "a choice where nobody sampled": lambda: choice(replace(OPTUNA, disturbed=range(3)), replace(RAY, unsampled=range(10))),
    "a choice that others turn": turned_by_others,
    "causes of failed trials": with_causes,
    "clocks that are unsure and trials of each state": clocks_and_states,
    "a control that differs": lambda: choice(Entry("optuna", runs(4000, 20, "o", 0.7)), RAY),
    "no run is done": lambda: choice(*(replace(one, status=statuses(3)) for one in (OPTUNA, RAY)), seeds=3),
    "seeds added to few": lambda: declared_first(choice(*FOUR, seeds=12), 3),
    "seeds added to enough": lambda: declared_first(choice(*FOUR, seeds=15), 10),
    "an adapter that is always skipped": lambda: choice(replace(SERIAL, skipped="no pruner"), OPTUNA, RAY, seeds=3),
    "a start that failed, ten seeds": lambda: failed_start(10, 10, OPTUNA, RAY, SYNE),
    "some starts failed": lambda: failed_start(
        10, 6, OPTUNA, RAY, SYNE, reason="no trial completed: 4 of 4 failed: KeyError: 'x'"
    ),
    "one start failed": lambda: failed_start(3, 1, OPTUNA, RAY),
    "two of twenty failed": lambda: failed_start(20, 2, OPTUNA, RAY, SYNE),
    "one of ten failed": lambda: failed_start(10, 1, OPTUNA, RAY, SYNE),
    "the only one failed": lambda: failed_start(3, 3, RAY),
    "several that failed": lambda: choice(*(replace(one, status=statuses(0 if one is OPTUNA else 10)) for one in FOUR)),
    "a failure in a task": lambda: choice(
        *over_tasks(
            3,
            ("optuna", "ray-tune"),
            lambda name, task: steady(3000 if (name, task) == ("ray-tune", 1) else 1000, spread=0),
            lambda name, task: {"status": statuses(1 if (name, task) == ("ray-tune", 1) else 0)},
        ),
        seeds=3,
    ),
    # what is added
    "no more than the baseline": lambda: choice(
        Entry("serial", added(3000)), Entry("optuna", added(3000)), Entry("ray-tune", added(8000))
    ),
    "another start than the baseline's": lambda: choice(
        Entry("serial", added(3000), start="forkserver"), Entry("optuna", added(3000)), Entry("ray-tune", added(8000))
    ),
    "the baseline's start": lambda: choice(
        *(Entry(name, added(ms), start="forkserver") for name, ms in (("serial", 1000), ("optuna", 3000)))
    ),
    "few undisturbed runs": lambda: choice(
        *(Entry(name, added(ms, slow=range(5)), disturbed=range(5)) for name, ms in (("serial", 1000), ("optuna", 4000)))
    ),
    "undisturbed runs enough": lambda: choice(
        *(Entry(name, added(ms, slow=range(4)), disturbed=range(4)) for name, ms in (("serial", 1000), ("optuna", 4000)))
    ),
    "added over conditions": lambda: choice(
        *(Entry("optuna", added(1000, further), variant={"v": further}) for further in (10.0, 100.0, 40.0))
    ),
    # curves
    "over trial length": lambda: curve(*LENGTHS),
    "over releases": over_releases,
    "over trial length, a seed": lambda: curve(*LENGTHS, seeds=1),
    "more is added to longer trials": lambda: curve(LENGTHS[2], LENGTHS[0], grows=100.0),
    "over workers": lambda: by_workers(*({"workers.count": count} for count in (4, 1, 2))),
    "over length for workers": lambda: curve(
        *((seconds, {"workers.count": count, "s": seconds}) for count in (1, 2) for seconds in (0.1, 1.0))
    ),
    "utilization over workers": scaling,
    "utilization for two lengths": lambda: scaling((1.0, 2.0), {"serial": 64}),
    "over trials": lambda: over_trials(*({"budget.trials": trials} for trials in (100, 1000, 10000))),
    "over trials that are near": lambda: over_trials({"budget.trials": 100}, {"budget.trials": 200}),
}
