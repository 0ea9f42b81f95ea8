"""The columns of the long tables: what each holds, in which unit and type, and whether it is in every row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

ColumnType = Literal["key", "text", "number", "integer", "truth"]  # key: one of a few texts, by which readers group


@dataclass(frozen=True, slots=True)
class Column:
    """One column. `always`: no row lacks it."""

    type: ColumnType
    text: str
    unit: str = ""
    always: bool = False

    @property
    def dtype(self) -> str:
        """Its type in a data frame."""
        if self.type == "integer":
            return "int64" if self.always else "Int64"
        if self.type == "truth":
            return "bool" if self.always else "boolean"
        return {"key": "category", "text": "str", "number": "float64"}[self.type]


Columns = Mapping[str, Column]

RUN_KEYS: Columns = {  # in every table, for most readers group by them
    "run_id": Column("key", "the run: hash of what defines it", always=True),
    "execution_id": Column("key", "one try at the run", always=True),
    "adapter": Column("key", "the adapter", always=True),
    "label": Column("key", "the adapter, with its platform where that is emulated: group by this", always=True),
    "sampler": Column("key", "the sampler", always=True),
    "pruner": Column("key", "the pruner", always=True),
    "seed": Column("integer", "the run's seed", always=True),
    "warm_up": Column("truth", "a warm-up, which counts nowhere", always=True),
    "emulated": Column("truth", "something stood in for the platform: in no ranking", always=True),
    "is_selected": Column("truth", "this execution stands for its run, and the run counts", always=True),
}
RUN_COLUMNS: Columns = {
    **RUN_KEYS,
    "platform": Column("key", "where the framework was put", always=True),
    "workload": Column("key", "what was trained", always=True),
    "replicate": Column("integer", "number of the adapter's entry in the file, from 0", always=True),
    "variant": Column("key", "what `matrix:` and `tasks:` set in this run, as JSON", always=True),
    "metric": Column("key", "the objective", always=True),
    "mode": Column("key", "`max` or `min`", always=True),
    "status": Column("key", "what the execution came to", always=True),
    "reason": Column("text", "why it is not done"),
    "charged": Column("key", "who is charged for that"),
    "cpu_limit": Column("key", "what limited the processors of its slots"),
    "flags": Column("text", "names of its flags, with commas"),
    "started_at": Column("text", "wall clock, UTC, ISO 8601"),
    "best_trial": Column("text", "the framework's best trial"),
}
_USED = {
    "energy_joules": Column("number", "energy", "J"),
    "energy_kind": Column("key", "what that rests on: measured, derived, estimated"),
    "co2e_g": Column("number", "CO2e", "g"),
    "co2e_kind": Column("key", "what that rests on"),
    "cost_usd": Column("number", "cost", "USD"),
    "cost_kind": Column("key", "what that rests on"),
}
CHARGED = (*_USED, "busy_seconds", "waste_default_seconds", "waste_post_goal_seconds")
TRIAL_COLUMNS: Columns = {
    **RUN_KEYS,
    "trial": Column("text", "the trial, unique in its execution", always=True),
    "framework_id": Column("text", "the framework's own name of it"),
    "state": Column("key", "how it ended", always=True),
    "cause": Column("text", "why it failed"),
    "charged": Column("key", "who is charged for that"),
    "attempts": Column("integer", "how often it was tried", "count", always=True),
    "slot": Column("integer", "slot of its last attempt; missing: no process took it up"),
    "configuration": Column("text", "its configuration, as JSON", always=True),
    "digest": Column("text", "hash of the configuration, equal in every framework", always=True),
    "value": Column("number", "best validation value of its last attempt", "the metric's"),
    "value_epoch": Column("integer", "the epoch of that value"),
    "stop_epoch": Column("integer", "the epoch on whose report the decision to stop fell"),
    "epochs_trained": Column("integer", "epochs of all attempts", "count", always=True),
    "ended_early": Column("truth", "its training ended by itself before its planned epochs", always=True),
    "submitted_seconds": Column("number", "submission of its first attempt, since the run's start", "s"),
    "started_seconds": Column("number", "start of its first attempt, since the run's start", "s"),
    "ended_seconds": Column("number", "end of its last attempt, since the run's start", "s"),
    "cpu_seconds": Column("number", "CPU time of all attempts", "s"),
    "peak_rss_bytes": Column("integer", "greatest resident memory of an attempt", "byte"),
    "busy_seconds": Column("number", "time in which it loaded, trained, validated or saved", "s"),
    **_USED,
    "waste_default_seconds": Column("number", "wasted time: the default policy", "s"),
    "waste_post_goal_seconds": Column("number", "wasted time: after the goal was met", "s"),
}
EPOCH_COLUMNS: Columns = {
    **RUN_KEYS,
    "trial": Column("text", "the trial", always=True),
    "attempt": Column("integer", "the attempt, from 1", always=True),
    "epoch": Column("integer", "the epoch, from 1", always=True),
    "ended_seconds": Column("number", "trained, validated and saved, since the run's start", "s", always=True),
    "reported_seconds": Column("number", "its report returned, since the run's start", "s"),
    "train_seconds": Column("number", "training", "s", always=True),
    "validate_seconds": Column("number", "validation", "s", always=True),
    "checkpoint_seconds": Column("number", "saving", "s", always=True),
    "restored": Column("truth", "trained by an earlier attempt, from whose checkpoint this one went on", always=True),
    "metric": Column("key", "which metric of the epoch", always=True),
    "value": Column("number", "its value; missing: not finite", "the metric's"),
    "non_finite": Column("key", "what a value that is not finite was"),
}
METRIC_COLUMNS: Columns = {
    **RUN_KEYS,
    "name": Column("key", "the metric", always=True),
    "value": Column("number", "its value", "see `unit`"),
    "unit": Column("key", "its unit", always=True),
    "kind": Column("key", "measured, derived, estimated or declared", always=True),
    "source": Column("key", "what it was computed from", always=True),
    "n_samples": Column("integer", "how many observations it rests on", "count"),
    "coverage": Column("number", "share of the window that they cover", "0 to 1"),
    "reason_if_null": Column("text", "why there is no value"),
}
STEP_COLUMNS: Columns = {
    **RUN_KEYS,
    "step": Column("key", "part of the job completion time", always=True),
    "milliseconds": Column("number", "how long it took", "ms"),
    **_USED,
}
DECLARED_COLUMNS: Columns = {
    **RUN_KEYS,
    "symbol": Column("key", "the declared variable's symbol", always=True),
    "variable": Column("key", "its name", always=True),
    "declared": Column("text", "what was declared, as JSON", always=True),
    "found": Column("text", "what was found, as JSON", always=True),
    "unit": Column("key", "its unit", always=True),
    "agrees": Column("truth", "whether they agree; missing: nothing can tell"),
    "how": Column("text", "by what it was found, or why it was not", always=True),
}
TABLES: dict[str, Columns] = {
    "runs": RUN_COLUMNS,
    "trials": TRIAL_COLUMNS,
    "epochs": EPOCH_COLUMNS,
    "metrics": METRIC_COLUMNS,
    "steps": STEP_COLUMNS,
    "declared": DECLARED_COLUMNS,
}
