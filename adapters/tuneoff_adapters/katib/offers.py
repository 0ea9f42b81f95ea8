"""What the Katib adapter offers, under which of Katib's algorithms, and what it refuses; on each platform."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from tuneoff.adapter import Capabilities, Offer, Option, Support
from tuneoff.base.capabilities import NO_LIMITER
from tuneoff.base.commands import install_command
from tuneoff.base.packages import module_exists
from tuneoff.base.space import Categorical
from tuneoff.experiment.strategies import LISTED, sampler_refusal
from tuneoff.experiment.translation import LIST_INDEX
from tuneoff_adapters.katib.options import EMULATED, EMULATION, katib_options
from tuneoff_adapters.katib.space import GRID, NUMBERS_ONLY
from tuneoff_adapters.kubernetes.options import KUBERNETES, epochs_refusal

if TYPE_CHECKING:
    from tuneoff.experiment.spec import RunSpec

ALGORITHMS = {
    "random": "random",
    "default": "random",
    "grid": GRID,
    "fixed": GRID,
    "tpe": "tpe",
    "multivariate-tpe": "multivariate-tpe",
    "gp": "bayesianoptimization",
    "cmaes": "cmaes",
    "sobol": "sobol",
}
UNSEEDED = ("sobol",)  # algorithms without the setting `random_state`
EMULATIONS = {  # what serves an algorithm on platform `emulated`
    "random": "emulated random: uniform draws of its own",
    GRID: "emulated grid: each combination once, in an order of its own",
}
STARTUP_TRIALS = {"multivariate-tpe": 10}  # Optuna's default of `n_startup_trials`: so many are drawn at random
OBJECT_BYTES = 1_400_000  # of the 1.5 MB that etcd takes: one object holds the assignments of all trials

_COUNT = Option(type="integer", least=1)
_SEEDED = "one seed per request, so the configurations repeat only with one worker, or where all are asked for at once"
_LISTED = "in an order of its own; one that it gives again is not trained, and one more trial is asked for"
_NO_RESTART = "another budget per trial, which the trials of the other frameworks have not"

CAPABILITIES = Capabilities(
    framework="Katib",
    package="kubeflow-katib",
    module="kubeflow.katib",
    minimum_version="0.19",
    below_version="0.20",
    install="tuneoff[katib]",
    platforms=(KUBERNETES, EMULATED),
    head_node=True,  # the cluster's control plane, with Katib's controllers
    database=True,  # katib-mysql, behind katib-db-manager
    samplers={
        "random": Offer(implementation="Katib random (hyperopt)", note=_SEEDED),
        "grid": Offer(implementation="Katib grid (Optuna)", note=f"over the index of core's list; {_LISTED}"),
        "fixed": Offer(implementation="Katib grid (Optuna)", note=f"over the index of the given list; {_LISTED}"),
        "default": Offer(
            implementation="Katib random (hyperopt)",
            same_as="random",
            note="what the SDK's `tune` takes where no algorithm is given",
        ),
        "tpe": Offer(
            implementation="Katib tpe (hyperopt)",
            options={
                "gamma": Option(type="number", above=0, most=0.99),
                "prior_weight": Option(type="number", above=0),
                "n_EI_candidates": _COUNT,
            },
            note="platform kubernetes only; the first request is random, and one later request for several trials gives all of "
            f"them the same configuration; {_SEEDED}",
        ),
        "multivariate-tpe": Offer(
            implementation="Katib multivariate-tpe (Optuna)",
            options={"n_startup_trials": Option(type="integer", least=0), "n_ei_candidates": _COUNT},
            note="platform kubernetes only; with constant liar",
        ),
        "gp": Offer(
            implementation="Katib bayesianoptimization (scikit-optimize)",
            options={"n_initial_points": _COUNT},
            note="platform kubernetes only; it draws every float log-uniformly, so linear dimensions are given as their exponent",
        ),
        "cmaes": Offer(
            implementation="Katib cmaes (goptuna)",
            options={"sigma": Option(type="number", above=0)},
            ordered_dimensions=2,
            note="platform kubernetes only; no dimensions without order; it draws every float uniformly, so logarithmic "
            "dimensions are given as their logarithm",
        ),
        "sobol": Offer(
            implementation="Katib sobol (goptuna)",
            ordered_dimensions=1,
            note="platform kubernetes only; no dimensions without order; it takes no seed: every run has the same configurations",
        ),
        "hyperband": Offer(
            support=Support.NOT_BY_TUNEOFF,
            note=f"Katib's hyperband starts a configuration again from its first epoch with {_NO_RESTART}; it takes no seed",
        ),
        "pbt": Offer(
            support=Support.NOT_BY_TUNEOFF,
            note="Katib's pbt goes on from another trial's checkpoint on a volume that all pods write to; it takes no seed",
        ),
    },
    pruners={
        "none": Offer(implementation="none"),
        "median": Offer(
            implementation="Katib medianstop",
            note="a mean and no median: the mean over the completed trials of each one's mean value up to `first_epoch`, fixed "
            "when a trial is suggested; the trial is compared with it once, by its best value, after `first_epoch`",
        ),
        "asha": Offer(support=Support.NOT_BY_FRAMEWORK, note="Katib's only early stopping is medianstop"),
        "hyperband": Offer(
            support=Support.NOT_BY_TUNEOFF,
            note=f"in Katib a sampler, which starts a configuration again from its first epoch with {_NO_RESTART}",
        ),
        "scripted": Offer(
            implementation="tuneoff_adapters.katib.pod",
            note="Katib has none: the trial ends itself, with an exit code that Katib counts as failed, never as its best",
        ),
    },
    retry=Support.NOT_BY_TUNEOFF,
    stops_at_goal="objective.goal of the Experiment",
    long_lived_workers=False,
    reports="at_end",  # the objective of its getting-started page prints its result once
    memory_limiter="container",
    cpu_limiter="container",
    changed_defaults=(
        "Jobs with backoffLimit 0, one attempt per trial (default: 6 more, after growing delays)",
        "a trial's Job and pod kept until the run is un-deployed (default: gone at the trial's end)",
        "metrics collected from a file (default: from standard output)",
        "a pod's program ends without the interpreter's teardown, which takes long where torch is imported (default: with it)",
    ),
    notes=(
        "platform emulated: a local process that serves Katib's API and runs each trial as a local process; it is no Katib, so "
        "its results are in no comparison",
        "one pod per trial, one attempt per trial; its events come through its standard output, its best checkpoint too",
        "integers and steps are drawn as floats and rounded: Katib's own integers give both end points half of their share",
        "budget.epochs_total: not by Katib, whose trials share nothing while they run",
        "Katib's algorithms enas and darts search network architectures, not hyperparameters: not by tuneoff",
    ),
)
_ABSENT = Offer(
    support=Support.NOT_BY_TUNEOFF, note=f"a service of Katib's, which the emulation lacks; use platform {KUBERNETES!r}"
)
ON_EMULATION = replace(
    CAPABILITIES,
    samplers={
        name: replace(offer, implementation=EMULATIONS[ALGORITHMS[name]]) if ALGORITHMS.get(name) in EMULATIONS else _ABSENT
        for name, offer in CAPABILITIES.samplers.items()
    },
    pruners={**CAPABILITIES.pruners, "median": replace(CAPABILITIES.pruners["median"], implementation="emulated medianstop")},
    cpu_limiter=NO_LIMITER,
)


def capabilities_on(platform: str) -> Capabilities:
    """Return what can be done on a platform."""
    return ON_EMULATION if platform == EMULATED else CAPABILITIES


def refusal(spec: RunSpec) -> str | None:
    """Return why the run cannot be served exactly, or None.

    Raises:
        ExperimentError: a wrong adapter option.
    """
    katib_options(spec)
    if spec.platform == EMULATED and not module_exists(EMULATION):
        return (
            f"platform {EMULATED!r} of adapter {spec.adapter!r} needs tuneoff-katib-emulation, which is not installed; "
            f"run, in a clone of tuneoff: {install_command('adapters/katib_emulation')}"
        )
    if (reason := epochs_refusal(spec) or sampler_refusal(spec, CAPABILITIES)) is not None:
        return reason
    if spec.experiment.objective.stop and spec.experiment.pruner.name == "median":
        return "Katib ends at its goal also by a trial that it stopped early, whose model is lost; use pruner none, or no `stop`"
    experiment, sampler, space = spec.experiment, spec.experiment.sampler.name, spec.experiment.search_space
    if sampler not in LISTED:
        if not space.searched:
            return "Katib needs a dimension with more than one value, but the search space has none; use sampler 'fixed'"
        odd = [name for name in space.searched if not (name.isidentifier() and name.isascii())]
        if odd:  # its webhook joins the trial's command without quotes
            return f"Katib needs names of letters, digits and underscores, as a shell reads them, but got {odd[0]!r}; rename it"
        unordered = [name for name, item in space.searched.items() if isinstance(item, Categorical) and not item.ordered]
        if ALGORITHMS[sampler] in NUMBERS_ONLY and unordered:
            names = ", ".join(unordered)
            return f"sampler {sampler!r} of Katib draws numbers only, but {names} has no order; use another sampler"
    if spec.platform == EMULATED:
        return None
    searched: Iterable[str] = (LIST_INDEX,) if sampler in LISTED else space.searched
    trial_bytes = 150 + sum(50 + len(name) for name in searched)  # bytes: a trial's name, and name and value of each parameter
    trials = OBJECT_BYTES // trial_bytes
    if experiment.budget.trials > trials:  # it would stop at etcd's limit, where Katib tries again for ever without a word
        return (
            f"Katib keeps the parameters of all trials in one object, which takes about {trials} of these trials, "
            f"but got budget.trials={experiment.budget.trials}; lower it, or run several experiments"
        )
    return None


def implementations(spec: RunSpec) -> dict[str, str]:
    """Return what serves this run's sampler and pruner on its platform."""
    offered = capabilities_on(spec.platform)
    return {
        "sampler": offered.samplers[spec.experiment.sampler.name].implementation,
        "pruner": offered.pruners[spec.experiment.pruner.name].implementation,
    }
