"""The plain programs of the built-in adapters, and the parts of their frameworks that can break."""

from __future__ import annotations

from tuneoff_faults.plain import FaultTools, Part

_PROGRAMS = "tuneoff_faults.programs"

SERIAL = FaultTools(
    plain=f"{_PROGRAMS}.plain_serial",
    defaults="no framework: `map` of Python's `ProcessPoolExecutor`, and `max` over its results",
)
OPTUNA = FaultTools(
    plain=f"{_PROGRAMS}.plain_optuna",
    defaults="the same script in as many processes as workers, on one `JournalStorage` file with its own lock; `Study.optimize` "
    "without `catch`; the configurations by `enqueue_trial`, `n_trials` divided among the processes; the answer is `best_trial`. "
    "Started again, it loads the study and asks for as many trials as are not complete",
    parts=(
        Part(fault="storage_removed", text="the journal's file", file="journal.log"),
        Part(fault="storage_locked", text="the journal's lock", lock="journal.log"),
    ),
)
RAY_TUNE = FaultTools(
    plain=f"{_PROGRAMS}.plain_ray_tune",
    defaults="`Tuner.fit` with a `grid_search` over the configurations and nothing else set: `FailureConfig` with max_failures "
    "0, strict checking of metrics, its checkpoint every 10 s; the answer is `get_best_result`. Started again, it does what "
    "`Tuner.restore` does",
    parts=(
        Part(fault="head_killed", text="the gcs_server", process="gcs_server"),
        Part(fault="node_killed", text="the raylet", process="raylet/raylet"),
    ),
)
SYNE_TUNE = FaultTools(
    plain=f"{_PROGRAMS}.plain_syne_tune",
    defaults="`Tuner.run` with `LocalBackend` and `RandomSearch` over the configurations, a `StoppingCriterion` on finished "
    "trials, and nothing else set: max_failures 1, a look at the trials every 5 s; the answer is `best_config`. Started "
    "again, it does what `Tuner.load` does. Its head is the program itself: see driver_killed",
)
KATIB = FaultTools(
    plain=f"{_PROGRAMS}.plain_katib",
    defaults="`KatibClient.tune` with the grid over the configurations and nothing else set: Jobs with `backoffLimit` 6, no "
    "limit of time, metrics by lines on standard output; `wait_for_experiment_condition` (600 s); the answer is "
    "`get_optimal_hyperparameters`. Started again, it waits for the same Experiment. All on the emulation, whose server "
    "stands for the API server and for Katib",
    parts=(Part(fault="head_killed", text="the emulated API server", process="katib_emulation"),),
)
