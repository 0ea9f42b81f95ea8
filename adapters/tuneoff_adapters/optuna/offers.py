"""What Optuna's samplers and pruners are called there, what they need, and where they differ from the same name elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tuneoff.adapter import Capabilities, Offer, Support
from tuneoff_adapters.optuna.plan import STOPS_AT_GOAL
from tuneoff_adapters.optuna_samplers import CMAES_DIMENSIONS, GP_POINTS, SAMPLER_OPTIONS

_NO_LOG = "no log line per trial"
_PRELOAD = "a sampler's and a storage's imports before the first trial (default: at its first use)"
_WORKER_SEEDS = "each worker asks by itself with its own seed: reproducible configurations only with one worker"

CAPABILITIES = Capabilities(
    framework="Optuna",
    package="optuna",
    module="optuna",
    minimum_version="4.0",
    below_version="6",
    stops_at_goal=STOPS_AT_GOAL,
    first_configurations="optuna.study.Study.enqueue_trial",
    install="tuneoff[optuna]",
    samplers={
        "random": Offer(
            implementation="optuna.samplers.RandomSampler",
            note="each worker draws from its own seed: which trial gets which configuration depends on timing",
        ),
        "grid": Offer(
            implementation="optuna.study.Study.enqueue_trial",
            note="core's shuffled grid is enqueued: GridSampler repeats points when several workers ask",
        ),
        "fixed": Offer(implementation="optuna.study.Study.enqueue_trial"),
        "default": Offer(
            implementation="optuna.samplers.TPESampler",
            same_as="tpe",
            note=f"what create_study takes where no sampler is given; {_WORKER_SEEDS}",
        ),
        "tpe": Offer(
            implementation="optuna.samplers.TPESampler",
            options=SAMPLER_OPTIONS["tpe"],
            note=f"from 5.0 on multivariate, with constant liar; {_WORKER_SEEDS}",
        ),
        "gp": Offer(
            implementation="optuna.samplers.GPSampler",
            options=SAMPLER_OPTIONS["gp"],
            needs=("torch", "scipy"),
            install="tuneoff[optuna,mnist]",
            most_points=GP_POINTS,
            note=f"the first 10 trials are random; {_WORKER_SEEDS}",
        ),
        "cmaes": Offer(
            implementation="optuna.samplers.CmaEsSampler",
            options=SAMPLER_OPTIONS["cmaes"],
            ordered_dimensions=CMAES_DIMENSIONS,
            needs=("cmaes",),
            note=f"unordered choices are drawn at random; the first trial too; {_WORKER_SEEDS}",
        ),
        "sobol": Offer(
            implementation="optuna.samplers.QMCSampler",
            options=SAMPLER_OPTIONS["sobol"],
            needs=("scipy",),
            note="scrambled; the first trial (with several workers: the first ones) is random, and two workers that ask at "
            "the same moment may get the same point",
        ),
    },
    pruners={
        "none": Offer(implementation="optuna.pruners.NopPruner"),
        "median": Offer(
            implementation="optuna.pruners.MedianPruner",
            note="stops a trial whose best value so far is worse than the median of the completed trials' values at this "
            "epoch; `min_trials` counts completed trials, pruned ones do not count",
        ),
        "asha": Offer(
            implementation="optuna.pruners.SuccessiveHalvingPruner",
            note="same rungs as elsewhere; keeps the best floor(n / reduction_factor) of the n values at a rung, its own "
            "included, and at least one",
        ),
        "hyperband": Offer(
            implementation="optuna.pruners.HyperbandPruner",
            note="brackets of the asynchronous halving that differ in their first rung; a trial's bracket is drawn by a hash "
            "of its number; samplers learn from trials of the same bracket only",
        ),
        "scripted": Offer(implementation="tuneoff_adapters.optuna.pruners.ScriptedPruner"),
    },
    retry=Support.YES,
    reports="none",  # by its page on pruning report() and should_prune() turn that on; an objective returns its value
    changed_defaults=(
        "worker processes are started by tuneoff and share the number of trials (documented: the same script is started several "
        "times by hand, each with its own `n_trials`)",
        "flock on the journal, unless `storage` names another lock (default: a lock file whose waiters back off for up to 1 s)",
        _PRELOAD,
        "a writer of SQLite waits up to 60 s for another one (default: 5 s)",
        _NO_LOG,
    ),
    notes=(
        "workers are long-lived processes over one JournalStorage file with a flock lock: no server, no port; option `storage`: "
        "another lock, SQLite, PostgreSQL, Redis or Optuna's gRPC proxy, at a URL or started by the run",
        "the study's value of a trial is its best epoch's, so that Optuna's best trial is tuneoff's",
    ),
)

IN_PODS: Mapping[str, Any] = {  # where workers share no folder with the run
    "database": True,
    "changed_defaults": ("workers are pods that tuneoff starts, and says when to ask", _PRELOAD, _NO_LOG),
}
