"""What the Ray Tune adapter offers, and under which of Ray's classes."""

from __future__ import annotations

from dataclasses import replace

from tuneoff.adapter import Capabilities, Offer, Support
from tuneoff_adapters.optuna_samplers import CMAES_DIMENSIONS, GP_POINTS, SAMPLER_OPTIONS

_OPTUNA = "ray.tune.search.optuna.OptunaSearch"
_INSTALL = "tuneoff[ray]"

CAPABILITIES = Capabilities(
    framework="Ray Tune",
    package="ray",
    module="ray",
    minimum_version="2.40",
    below_version="2.61",
    install=_INSTALL,
    platforms=("local", "cluster"),
    first_configurations="points_to_evaluate of BasicVariantGenerator and OptunaSearch",
    samplers={
        "random": Offer(implementation="ray.tune.search.BasicVariantGenerator"),
        "grid": Offer(
            implementation="ray.tune.grid_search", note="over the index of core's list, so that the order is core's too"
        ),
        "fixed": Offer(implementation="ray.tune.grid_search", note="over the index of the given list, in its order"),
        "default": Offer(implementation="ray.tune.search.BasicVariantGenerator", same_as="random"),
        "tpe": Offer(
            implementation=f"{_OPTUNA} with optuna.samplers.TPESampler",
            options=SAMPLER_OPTIONS["tpe"],
            needs=("optuna",),
            install=_INSTALL,
            note="one study in the driver; a pruned trial is reported as complete, as OptunaSearch does",
        ),
        "gp": Offer(
            implementation=f"{_OPTUNA} with optuna.samplers.GPSampler",
            options=SAMPLER_OPTIONS["gp"],
            needs=("optuna", "scipy", "torch"),
            install="tuneoff[ray,mnist]",
            most_points=GP_POINTS,
        ),
        "cmaes": Offer(
            implementation=f"{_OPTUNA} with optuna.samplers.CmaEsSampler",
            options=SAMPLER_OPTIONS["cmaes"],
            ordered_dimensions=CMAES_DIMENSIONS,
            needs=("optuna", "cmaes"),
            install=_INSTALL,
            note="unordered choices are drawn by its independent random sampler",
        ),
        "sobol": Offer(
            implementation=f"{_OPTUNA} with optuna.samplers.QMCSampler",
            options=SAMPLER_OPTIONS["sobol"],
            needs=("optuna", "scipy"),
            install=_INSTALL,
            note="the first trial and unordered choices are drawn independently",
        ),
    },
    pruners={
        "none": Offer(implementation="ray.tune.schedulers.FIFOScheduler"),
        "median": Offer(
            implementation="ray.tune.schedulers.MedianStoppingRule",
            note="the trial's best against the median of the running means of the others, running ones included; never pauses",
        ),
        "asha": Offer(
            implementation="ray.tune.schedulers.ASHAScheduler",
            note="stops below the 1 - 1/reduction_factor percentile of those that came to the rung earlier; the first goes on",
        ),
        "hyperband": Offer(
            implementation="ray.tune.schedulers.ASHAScheduler",
            note="asynchronous: ASHA with brackets, drawn at random by their number of rungs. Ray's synchronous "
            "HyperBandScheduler pauses trials, and a paused function starts again at epoch 1",
        ),
        "scripted": Offer(implementation="tuneoff_adapters.ray_tune.schedulers.ScriptedScheduler, a FIFOScheduler"),
    },
    retry=Support.YES,
    stops_at_goal="a ray.tune.Stopper with stop_all",
    long_lived_workers=True,
    reports="at_end",  # its page on trainables: "we could also report only a single time at the end with the final score"
    changed_defaults=(
        "a class trainable, in the actor's main thread (documented first: a function, in another thread)",
        "reuse_actors=True (default: a new process, with all its imports, for each trial)",
        "workers at niceness 0 (default: 15)",
        "no CSV, JSON and TensorBoard files per trial, no progress tables",
        "what trials print goes straight to the run's log (default: by way of Ray's log files and the driver)",
        "the experiment's state is written only at the end (default: every 10 s or less often)",
        "no dashboard",
        "at most workers.count trials made and not ended (default: more wait in Ray)",
        "a searcher learns a trial's best epoch (default: its last report)",
    ),
    notes=(
        "one Ray instance per run, on loopback, with a random token (from 2.52 on)",
        "one CPU token per slot, regardless of workers.cpus: the threads of a trial are set by core",
    ),
)

ON_CLUSTER = replace(
    CAPABILITIES,
    memory_limiter="watchdog on each host",
    notes=(
        "Ray on `hosts` for one run, started and ended by tuneoff with a random token, or the cluster at `address`; both "
        "listen on all addresses of their machines",
        *CAPABILITIES.notes[1:],
    ),
)
