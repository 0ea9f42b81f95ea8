"""What the recorded results folders are of: one experiment each, with as few and as short trials as it needs.

A folder that other programs, signals or changes of files shaped says so by its `how`; `make.py` has the functions.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

REMOVED = "removed"  # in place of a new text: the file
ONE, TWO = {"count": 1, "cpus": 1}, {"count": 2, "cpus": 1}
SPACE = {
    "learning_rate": {"type": "float", "low": 1e-4, "high": 1e-1, "log": True},
    "hidden_width": {"type": "int", "low": 8, "high": 64, "log": True},
    "dropout": {"type": "float", "low": 0.0, "high": 0.4, "step": 0.1},
}
DIGITS_SPACE = {
    "learning_rate": {"type": "float", "low": 1e-3, "high": 3e-2, "log": True},
    "batch_size": {"type": "ordered", "values": [16, 32]},
    "hidden_width": {"type": "int", "low": 4, "high": 8, "log": True},
    "activation": {"type": "categorical", "choices": ["relu", "tanh"]},
}
PRICES = """
name: corpus
source: the corpus
date: 2026-01
usd_per_vcpu_hour: 36.0
usd_per_gb_hour: 3.6
assumed_gb_per_vcpu: 2.0
head_node_usd_per_hour: 7.2
database_usd_per_hour: 1.8
billing_granularity_seconds: 1
"""
WATTS = "# kind: measured\n# source: a node of the corpus\n# idle package: 10\nseconds,domain,watts\n" + "".join(
    f"{tenth / 10},package,{20 + tenth % 7}\n{tenth / 10},dram,{3 + tenth % 2}\n" for tenth in range(1, 400)
)
GRID = "time,g_per_kwh\n2020-01-01T00:00:00+00:00,100\n2099-01-01T00:00:00+00:00,400\n"
PROGRAM = """
import sys
rate = float(sys.argv[1])
for epoch in range(1, 4 if rate < 0.01 else 3):
    print(f"train_loss={rate / epoch} validation_loss={(rate - 0.003) ** 2 + 1 / epoch}")
print("done", file=sys.stderr)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A results folder: its experiment, files beside that, how it is made, and what is done to a copy of another (`of`)."""

    name: str
    experiment: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    how: str = "compare"  # a function of `make.py`
    of: str = ""  # the folder that this one is a changed copy of
    changes: Sequence[tuple[str, str, str]] = ()  # (files, old text, new text): once, in the first that has it; "" cuts it in two

    @property
    def file(self) -> dict[str, Any]:
        """The experiment file; what is said of no case is short."""
        return {
            "name": self.name,
            "budget": {"trials": 4, "epochs_per_trial": 3},
            "workers": TWO,
            "timeouts": {"trial_seconds": 60, "silence_seconds": 60},
            "warm_up": False,
            **self.experiment,
        }

    def write(self, folder: Path) -> None:
        """Write the experiment file, and the files beside it."""
        for name, text in {f"{self.name}.yaml": json.dumps(self.file), **self.files}.items():
            (folder / name).write_text(text)


def _surrogate(noise: float = 0.0) -> dict[str, Any]:
    return {"workload": {"name": "surrogate", "options": {"noise": noise}}, "search_space": SPACE}


def _faulty(*kinds: str, rate: float, **options: Any) -> dict[str, Any]:
    return {"workload": {"name": "faulty", "options": {"kinds": list(kinds), "rate": rate, **options}}, "search_space": SPACE}


def _sleep(seconds: float) -> dict[str, Any]:
    return {"workload": {"name": "sleep", "options": {"epoch_seconds": seconds}}}


JUDGED = {
    **_surrogate(0.05),
    "adapters": ["serial", "serial", "optuna"],
    "seeds": {"count": 10},
    "workers": ONE,
    "analysis": {
        "quality_margin": 0.5,
        "questions": {
            "quality": "quality.test",
            "time": "time.jct_without_test",
            "rate": "trials.per_second",
            "cost": "cost.per_completed_trial_without_test",
        },
    },
}
CASES = (
    Case(
        name="digits",
        experiment={
            "workload": {"name": "mnist_mlp", "options": {"dataset": "digits", "train_limit": 150}},
            "search_space": DIGITS_SPACE,
            "objective": {"metric": "validation_accuracy", "goal": 0.8},
            "anchors": {"random_search": 0.8, "best_known": 0.95, "source": "the corpus"},
            "adapters": ["serial", "serial", "optuna"],
            "seeds": [0, 1],
            "warm_up": True,
        },
    ),
    Case(
        name="frameworks",
        experiment={
            **_sleep(0.02),
            "adapters": ["serial", "optuna", "ray-tune", "syne-tune", "rustuna", "nevergrad"],
            "reports": "every_epoch",
            "seeds": [0, 1],
        },
    ),
    Case(name="katib", experiment={**_sleep(0.1), "adapters": ["serial", {"name": "katib", "platform": "emulated"}]}),
    Case(name="judged", experiment={**JUDGED, "name": "judged"}),
    Case(name="judged-again", experiment={**JUDGED, "name": "judged", "adapters": ["serial", "optuna"]}, how="add a seed"),
    Case(
        name="samplers",
        experiment={
            **_surrogate(),
            "search_space": {"dropout": SPACE["dropout"], "hidden_width": {"type": "int", "low": 8, "high": 24, "step": 8}},
            "matrix": {"sampler": ["random", "default", "grid", "tpe"]},
            "adapters": ["serial", "optuna"],
        },
    ),
    Case(
        name="tasks",
        experiment={
            **_surrogate(0.02),
            "adapters": ["serial", "serial", "optuna"],
            "seeds": [0, 1],
            "workers": ONE,
            "tasks": {
                f"task-{number}": {
                    "budget.trials": 3 + number % 2,
                    "workload.options.noise": number / 100,
                    "anchors": {"random_search": 1.5, "best_known": 0.1, "source": "the corpus"},
                }
                for number in range(4)
            },
        },
    ),
    Case(
        name="listed",
        experiment={
            **_surrogate(0.01),
            "objective": {"goal": 1.5},
            "adapters": ["serial", "optuna", "syne-tune"],
            "sampler": "fixed",
            "configurations": {"sample": 6, "seed": 3},
            "pruner": "scripted",
            "stops": [{"index": 1, "after_epoch": 1}, {"index": 4, "after_epoch": 2}],
            "budget": {"trials": 6, "epochs_per_trial": 4},
            "seeds": [0, 1],
        },
        how="export",
    ),
    Case(
        name="pruners",
        experiment={
            **_surrogate(0.02),
            "adapters": ["serial", "optuna", "syne-tune"],
            "matrix": {
                "pruner": ["none", {"name": "median", "first_epoch": 1, "min_trials": 2}, {"name": "asha", "reduction_factor": 3}]
            },
            "budget": {"trials": 9, "epochs_per_trial": 9},
        },
    ),
    Case(
        name="retries",
        experiment={
            **_faulty("sigkill", "raise", "nan", "exit_code", "no_report", "wrong_metric", rate=0.6, at_epoch=2),
            "objective": {"goal": 1.5},
            "adapters": ["serial", "optuna", {"name": "katib", "platform": "emulated"}],
            "budget": {"trials": 12, "epochs_per_trial": 3},
            "failures": {"retries": 1},
        },
    ),
    Case(
        name="failed",
        experiment={
            **_faulty("raise", "inf", rate=1.0),
            "adapters": ["serial", "optuna"],
            "failures": {"max_failed_trials": 2},
            "seeds": [0, 1],
        },
    ),
    Case(
        name="partly-failed",
        experiment={
            **_faulty("raise", rate=0.5),
            "adapters": ["serial", "optuna"],
            "budget": {"trials": 1, "epochs_per_trial": 2},
            "workers": ONE,
            "seeds": [0, 1, 2, 3],
        },
    ),
    Case(
        name="timeouts",
        experiment={
            **_faulty("hang", rate=0.4, at_epoch=2),
            "adapters": ["serial", "optuna"],
            "budget": {"trials": 5, "epochs_per_trial": 3},
            "timeouts": {"trial_seconds": 2, "silence_seconds": 60},
        },
    ),
    Case(
        name="late",
        experiment={
            **_sleep(1.0),
            "adapters": ["serial"],
            "timeouts": {"trials_seconds": 4, "silence_seconds": 3},
            "power": {"meter": "replay", "options": {"path": "watts.csv"}},
        },
        files={"watts.csv": "\n".join(WATTS.split("\n")[:44])},
    ),
    Case(
        name="budgets",
        experiment={
            **_sleep(0.2),
            "adapters": ["serial", "optuna"],
            "budget": {"trials": 8, "epochs_per_trial": 3},
            "tasks": {"epochs": {"budget.epochs_total": 10}, "seconds": {"budget.wall_clock_seconds": 1.5}},
        },
    ),
    Case(
        name="workers",
        experiment={
            **_sleep(0.1),
            "adapters": ["serial", {"name": "optuna", "options": {"start": "forkserver"}}],
            "workers": {"cpus": 1, "memory_mb": 2000},
            "matrix": {"workers.count": [1, 2], "workers.cpu_limit": ["none", "affinity"]},
        },
    ),
    Case(
        name="storages",
        experiment={
            "workload": "null",
            "reports": "every_epoch",
            "adapters": [
                "optuna",
                {"name": "optuna", "options": {"storage": {"kind": "journal", "lock": "open"}}},
                {"name": "optuna", "options": {"storage": "sqlite"}},
            ],
        },
    ),
    Case(
        name="program",
        experiment={
            "workload": {"name": "command", "options": {"command": ["python", "train.py", "{learning_rate}"]}},
            "search_space": {"learning_rate": SPACE["learning_rate"]},
            "objective": {"metric": "validation_loss", "mode": "min", "goal": 0.4},
            "adapters": ["serial", "optuna"],
        },
        files={"train.py": PROGRAM},
    ),
    Case(
        name="energy",
        experiment={
            **_sleep(0.2),
            "adapters": ["serial", "optuna"],
            "power": {"meter": "replay", "options": {"path": "watts.csv"}},
            "carbon": {"series": "grid.csv", "source": "the corpus", "date": "2026"},
            "prices": "prices.yaml",
            "seeds": [0, 1],
        },
        files={"watts.csv": WATTS, "grid.csv": GRID, "prices.yaml": PRICES},
    ),
    Case(
        name="stated-power",
        experiment={
            **_sleep(0.1),
            "adapters": ["serial"],
            "power": {"meter": "constant", "options": {"watts": 50}},
            "carbon": {"zone": "DEU"},
        },
    ),
    Case(
        name="no-power", experiment={**_sleep(0.1), "adapters": ["serial"], "power": "none", "carbon": "none", "prices": "none"}
    ),
    Case(name="disturbed", experiment={**_sleep(0.5), "adapters": ["serial", "optuna"], "seeds": [0, 1]}, how="disturb"),
    Case(name="interrupted", experiment={**_sleep(0.5), "adapters": ["serial", "optuna"], "seeds": [0, 1]}, how="interrupt"),
    Case(name="killed", experiment={**_sleep(0.5), "adapters": ["serial", "optuna"]}, how="kill"),
    Case(name="unrecorded", experiment={**_sleep(0.5), "adapters": ["serial"]}, how="kill at once"),
    Case(name="resumed", experiment={**_sleep(0.5), "adapters": ["serial", "optuna"]}, how="kill and resume"),
    Case(
        name="repeated",
        experiment={
            **_faulty("raise", rate=1.0, mark="struck", once=True),
            "adapters": ["serial"],
            "budget": {"trials": 1, "epochs_per_trial": 2},
        },
        how="retry failed",
    ),
    Case(name="reproduced", experiment={**_surrogate(), "adapters": ["serial", "optuna"]}, how="reproduce"),
    Case(
        name="damaged-values",
        of="listed",
        changes=(
            ("runs/*/*/events/[wt]*.jsonl", '"validation_loss":', '"validation_loss":1'),
            ("runs/*/*/run.json", '"torn_lines": 0', '"torn_lines": 1'),
            ("runs/*/*/accounting.json", '"usd_per_vcpu_hour": 0', '"usd_per_vcpu_hour": 1'),
            ("runs/*/*/events/[wt]*.jsonl", '"hidden_width":', '"hidden_width":1'),
            ("runs/*/*/test.json", '"test_loss": 0', '"test_loss": 1'),
            ("runs/*/*/end.json", '"analysis_digest": "', '"analysis_digest": "0'),
            ("matrix.json", '"seed": 1', '"seed": 7'),
        ),
    ),
    Case(
        name="damaged-record",
        of="listed",
        changes=(
            ("runs/*/*/run.json", '"validation_loss":', '"validation_loss":1'),
            ("runs/*/*/run.json", '"state":"pruned"', '"state":"completed"'),
            ("runs/*/*/power.jsonl", "", REMOVED),
            ("runs/*/*/run.json", "", ""),
            ("export/metrics.csv", ",ms,", ",s,"),
        ),
    ),
    Case(
        name="damaged-tables",
        of="listed",
        changes=(
            ("runs/*/*/run.json", "", REMOVED),
            ("export/metrics.csv", ",ms,", ",s,"),
            ("export/declared.csv", "", ""),
            ("export/steps.csv", "", REMOVED),
        ),
    ),
    Case(
        name="damaged-files",
        of="listed",
        changes=(
            ("runs/*/*/end.json", "", ""),
            ("runs/*/*/run.json", "", REMOVED),
            ("runs/*/*/events/[wt]*.jsonl", "", REMOVED),
            ("runs/*/*/events/[wt]*.jsonl", "", ""),
            ("runs/*/*/power.jsonl", '"t":', '"t":1'),
            ("runs/*/*/spec.json", '"seed": ', '"seed": 9'),
            (".executions", "", ""),
        ),
    ),
    Case(name="damaged-version", of="no-power", changes=(("runs/*/*/end.json", '"format_version": 5', '"format_version": 99'),)),
)
