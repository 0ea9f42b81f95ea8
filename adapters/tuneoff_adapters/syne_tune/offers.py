"""What the Syne Tune adapter offers, under which of Syne Tune's classes, and what it refuses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tuneoff.adapter import Capabilities, Offer, Option, Support
from tuneoff.base.commands import install_command
from tuneoff.base.identity import is_finite
from tuneoff.base.packages import missing_modules, release
from tuneoff.base.targets import unknown_option
from tuneoff.experiment.strategies import COST_MODEL, LISTED, framework_version, release_refusal, sampler_refusal

if TYPE_CHECKING:
    from tuneoff.experiment.spec import RunSpec

POLL_SECONDS = 0.05  # Syne Tune's default is 5 s: no trial of shorter epochs would ever be stopped in time
POLL_OPTION = "poll_seconds"

_IMPORTED_BY_0_14 = ("botorch", "huggingface_hub")
_BASELINES = "syne_tune.optimizer.baselines"
COST_AWARE = "bayesopt_cost"  # what Syne Tune 0.13 calls this searcher
DRAWN_AT_RANDOM = ("random", "default", *LISTED)  # a list is Syne Tune's random search, given points to evaluate
CLASSES = {
    **dict.fromkeys(DRAWN_AT_RANDOM, "RandomSearch"),
    "tpe": "TPE",
    "bore": "BORE",
    "rea": "REA",
    "cqr": "CQR",
    "gp": "BOTorch",
    COST_AWARE: "FIFOScheduler",
}
HALVING_CLASSES = {
    **dict.fromkeys(DRAWN_AT_RANDOM, "ASHA"),
    "tpe": "BOHB",
    "bore": "ASHABORE",
    "cqr": "ASHACQR",
    COST_AWARE: "HyperbandScheduler",
}
HALVING_PRUNERS = ("asha", "hyperband")
HALVING_SEARCHERS = {"tpe": "kde", "bore": "bore", "cqr": "cqr"}  # of their common base; the others: random_search

_COUNT = Option(type="integer", least=1)
SAMPLER_OPTIONS: Mapping[str, Mapping[str, Option]] = {
    "tpe": {
        "num_min_data_points": _COUNT,
        "top_n_percent": Option(type="integer", least=1, most=99),  # of 100 none would be left on the other side of the split
        "min_bandwidth": Option(type="number", above=0),
        "num_candidates": _COUNT,
        "bandwidth_factor": _COUNT,
        "random_fraction": Option(type="number", above=0, most=1),
    },
    "rea": {"population_size": _COUNT, "sample_size": _COUNT},
}

CAPABILITIES = Capabilities(
    framework="Syne Tune",
    package="syne-tune",
    module="syne_tune",
    minimum_version="0.13",
    below_version="0.17",
    install="tuneoff[syne-tune]",
    stops_at_goal="syne_tune.StoppingCriterion with max_metric_value or min_metric_value",
    first_configurations="points_to_evaluate of the searcher",
    platforms=("local",),
    samplers={
        "random": Offer(
            implementation=f"{_BASELINES}.RandomSearch",
            note="0.13 would begin at the middle of the space, and draw nothing twice: both are off",
        ),
        "grid": Offer(implementation=f"{_BASELINES}.RandomSearch", note="Syne Tune has none: core's list, as points to evaluate"),
        "fixed": Offer(implementation=f"{_BASELINES}.RandomSearch", note="the given list, as points to evaluate"),
        "default": Offer(
            implementation=f"{_BASELINES}.RandomSearch",
            same_as="random",
            note="the project recommends no single method; the default searcher of its schedulers is random_search",
        ),
        "tpe": Offer(
            implementation=f"{_BASELINES}.TPE",
            options=SAMPLER_OPTIONS["tpe"],
            needs=("statsmodels",),
            note="the kernel density estimator of BOHB (KDE in 0.13), on a linear scale also for logarithmic dimensions; with d "
            "dimensions it draws at random up to (d + 1) / 0.15 trials, unless num_min_data_points is lowered to d + 1",
        ),
        "bore": Offer(implementation=f"{_BASELINES}.BORE", needs=("sklearn", "xgboost"), note="random for its first 6 trials"),
        "rea": Offer(
            implementation=f"{_BASELINES}.REA",
            options=SAMPLER_OPTIONS["rea"],
            note="random for the first `population_size` trials (100 unless given)",
        ),
        "cqr": Offer(
            implementation=f"{_BASELINES}.CQR",
            minimum_version="0.16",  # the wheel of 0.13 lacks its module; 0.14 and 0.15 fail with scikit-learn 1.9
            needs=("huggingface_hub",),
            install="huggingface_hub",
            note="huggingface_hub is only imported, never called",
        ),
        "gp": Offer(
            implementation=f"{_BASELINES}.BOTorch",
            needs=("torch", "botorch"),
            install="tuneoff[syne-tune-gp]",
            note="random for its first 3 trials; the tuner itself fits the model, while it looks at no trial",
        ),
        COST_AWARE: Offer(
            implementation="syne_tune.optimizer.schedulers.searchers.cost_aware.CostAwareGPFIFOSearcher",
            below_version="0.14",  # in which it is a legacy one, under other names; 0.15 has none
            needs=("autograd",),
            install="tuneoff[syne-tune-cost]",
            repeats=False,
            options={COST_MODEL: Option(type="flag")},
            note=f"expected improvement per cost: per second of a trial, which it models, or, with {COST_MODEL}, per what the "
            "workload says; random for its first 3 trials",
        ),
        "cmaes": Offer(support=Support.NOT_BY_FRAMEWORK),
        "sobol": Offer(support=Support.NOT_BY_FRAMEWORK),
    },
    pruners={
        "none": Offer(implementation="none"),
        "median": Offer(
            implementation="syne_tune.optimizer.schedulers.median_stopping_rule.MedianStoppingRule",
            note="the trial's running mean against the running means of all trials at that epoch, its own and stopped ones "
            "included; wraps random search only",
        ),
        "asha": Offer(
            implementation=f"{_BASELINES}.ASHA",
            note="the stopping type only; max_t is one epoch more than the budget, else every full-length trial is killed too; "
            "stops where more than 1/reduction_factor of those at the rung are better (0.13: where it is worse than their "
            "1/reduction_factor quantile); the first always goes on",
        ),
        "hyperband": Offer(
            implementation=f"{_BASELINES}.ASHA", note="asynchronous: ASHA with brackets, drawn at random by their number of rungs"
        ),
        "scripted": Offer(implementation="tuneoff_adapters.syne_tune.budgeted.BudgetedScheduler, a TrialScheduler"),
    },
    retry=Support.YES,
    long_lived_workers=False,
    reports="at_end",  # its tutorial's traincode_report_end.py, for all but multi-fidelity schedulers
    changed_defaults=(
        f"the tuner polls every {POLL_SECONDS:g} s, or as adapter option {POLL_OPTION} says (default: 5 s)",
        "a trial's process prints the line of its report (default: Reporter, which imports the whole library in each one)",
        "a trial's process ends without the interpreter's teardown, which takes long where torch is imported (default: with it)",
        "a stopped trial is waited for before the next one starts (default: at most `n_workers` trials, but more processes)",
        "no callbacks, results file, tuner state on disk or log lines",
        "max_failures without a bound (default: 1)",
    ),
    notes=(
        "one process per trial, as LocalBackend has it",
        "a stopped trial trains on until a poll sees its report, and is then ended by SIGKILL, with its children (before 0.16 "
        "Syne Tune itself leaves them)",
        "samplers draw from numpy's global generator, so it is seeded too: random_seed alone does not repeat a run",
        "a retry is a new trial for Syne Tune, with the same configuration",
    ),
)


def requirements(spec: RunSpec) -> tuple[str, ...]:
    """Return what the run's release of Syne Tune needs and does not ask for."""
    return _IMPORTED_BY_0_14 if release(framework_version(spec, CAPABILITIES) or "")[:2] == (0, 14) else ()


def refusal(spec: RunSpec) -> str | None:
    """Return why a combination or an option cannot be served, or None."""
    sampler, pruner = spec.experiment.sampler, spec.experiment.pruner
    version = framework_version(spec, CAPABILITIES) or ""
    is_0_14 = release(version)[:2] == (0, 14)
    if is_0_14 and spec.environment is None and (missing := missing_modules(_IMPORTED_BY_0_14)):
        return f"Syne Tune {version} imports {', '.join(missing)} for any scheduler; run: {install_command(*_IMPORTED_BY_0_14)}"
    if pruner.name == "median" and sampler.name not in DRAWN_AT_RANDOM:
        return (
            f"Syne Tune's MedianStoppingRule reports no completed trial, so it cannot wrap sampler {sampler.name!r}; "
            "use random, or another pruner"
        )
    if pruner.name in HALVING_PRUNERS and sampler.name not in HALVING_CLASSES:
        return (
            f"Syne Tune has no asynchronous halving with sampler {sampler.name!r}; it has it with: random, tpe, bore, cqr; "
            "use one of these, or another pruner"
        )
    if sampler.name not in DRAWN_AT_RANDOM and not spec.experiment.search_space.searched:
        return f"sampler {sampler.name!r} needs a dimension with more than one value, but the search space has none; use random"
    if pruner.name in HALVING_PRUNERS and sampler.name == COST_AWARE and not sampler.options.get(COST_MODEL):
        return f"sampler {sampler.name!r} under pruner {pruner.name!r} needs `{COST_MODEL}: true`; add it, or use another pruner"
    if pruner.name in HALVING_PRUNERS:
        model = "0.15" if is_0_14 and sampler.name in HALVING_SEARCHERS else ""  # 0.14 gives it a seed of more than 32 bits
        retry = "0.14" if spec.experiment.failures.retries else ""  # a trial that 0.13 has not suggested is none to it
        for what, least in ((f"sampler {sampler.name!r}", model), ("a retry", retry)):
            if problem := release_refusal(f"{what} under pruner {pruner.name!r}", least, spec, CAPABILITIES):
                return problem
    if problem := sampler_refusal(spec, CAPABILITIES):
        return problem
    dimensions = len(spec.experiment.search_space.searched)
    least = sampler.options.get("num_min_data_points", dimensions)
    if least < dimensions:
        return f"sampler option 'num_min_data_points' must be at least the number of dimensions, {dimensions}, but got {least}"
    if problem := unknown_option(f"adapter {spec.adapter!r}", spec.options, (POLL_OPTION,)):
        return problem
    value = spec.options.get(POLL_OPTION, POLL_SECONDS)
    if not is_finite(value) or value <= 0:
        return f"adapter option {POLL_OPTION!r} must be a number of seconds above 0, but got {value!r}"
    return None


def implementations(spec: RunSpec) -> dict[str, str]:
    """Return the classes that serve this run's sampler and pruner: asynchronous halving has one class for both."""
    sampler, pruner = spec.experiment.sampler.name, spec.experiment.pruner.name
    if pruner in HALVING_PRUNERS:
        both = f"{_BASELINES}.{HALVING_CLASSES[sampler]}"
        return {"sampler": both, "pruner": both}
    return {
        "sampler": CAPABILITIES.samplers[sampler].implementation,
        "pruner": CAPABILITIES.pruners[pruner].implementation,
    }


def poll_seconds(spec: RunSpec) -> float:
    """Return how long the tuner sleeps between two looks at the trials."""
    return float(spec.options.get(POLL_OPTION, POLL_SECONDS))


def first_modelled_trial(sampler: str, options: Mapping[str, float], dimensions: int) -> int:
    """Return how many trials must be told before a sampler uses its model; until then it draws at random."""
    if sampler == "tpe":  # both sides of its split must have more trials than there are dimensions
        least, percent = int(options.get("num_min_data_points", dimensions)), options.get("top_n_percent", 15)
        trials = 1
        while not (good := max(least, int(percent * trials // 100))) > dimensions or trials - good <= dimensions:
            trials += 1
        return trials
    return {"rea": int(options.get("population_size", 100)), "bore": 6, "cqr": 5, "gp": 3, COST_AWARE: 3}[sampler]
