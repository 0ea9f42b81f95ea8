"""Trials with stop rules whose process was killed, on the emulated node: Katib's shell around them hides how they ended."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from adapters.katib.followed_run import FIRST, Run
from adapters.katib.katib_objects import condition, ended
from adapters.katib.test_pod import KATIB_TRIAL, environment_of, toy_spec
from emulated.node_cluster import node_cluster, trial_of
from katib_emulation.kinds import TRIALS
from tuneoff.experiment.spec import Budget
from tuneoff.record.events.reader import read_header
from tuneoff_adapters.kubernetes import layout
from tuneoff_adapters.kubernetes.endings import Ending, Limits, ending_of
from tuneoff_adapters.kubernetes.pod_log import PodLog

RULE = {"name": "objective", "value": "0.1", "comparison": "greater", "startStep": 1}
LATE_RULE = {**RULE, "startStep": 3}  # is never tested: the fault strikes in epoch 2
SUCCEEDED = {"type": "Succeeded", "status": "True", "reason": "TrialSucceeded"}
NAMES = (layout.CONFIG_DIR_VARIABLE, layout.RUN_DIR_VARIABLE, "PYTHONPATH")


@dataclass(frozen=True)
class Seen:
    """What an observer of the cluster has at the end of a trial."""

    trial: dict[str, Any]
    pod: dict[str, Any]
    log: PodLog
    kinds: list[str]

    def ending(self) -> Ending:
        limits = Limits(deadline_seconds=900, memory_bytes=None)
        return ending_of(self.trial, self.pod, limits, 1, self.log.last_line, True, self.log.verdict)


def run(folder: Path, fault: str | None, rules: Sequence[dict[str, Any]], **options: Any) -> Seen:
    """Run a trial's pod as Katib would wrap it."""
    environment = environment_of(toy_spec(fault or "raise", workload_options=options), folder)
    env = [{"name": name, "value": environment[name]} for name in NAMES]
    env.append({"name": layout.METRICS_FILE_VARIABLE, "value": layout.METRICS_FILE})
    command = [sys.executable, "-m", layout.POD_MODULE, KATIB_TRIAL, "x=0.5", f"fault={int(bool(fault))}"]
    trial = trial_of(rules=rules)
    trial["spec"]["objective"]["objectiveMetricName"] = "objective"
    with node_cluster(folder) as cluster:
        cluster.submit(trial=trial, command=command, container={"env": env})
        cluster.ended()
        lines = cluster.log(container=layout.CONTAINER).encode().splitlines()
        header = read_header(lines[1].partition(b" ")[2], "log")
        log = PodLog(folder, folder / "framework", header.execution_id, KATIB_TRIAL, layout.trial_id(KATIB_TRIAL))
        events = [log.take(line) for line in lines]
        log.end()
        kinds = [type(event).__name__ for event in events if event is not None]
        return Seen(cluster.store.get(TRIALS, "job", "default"), cluster.pods()[0], log, kinds)


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Seen:
    return run(tmp_path_factory.mktemp("killed"), "sigkill", [LATE_RULE])


def test_a_killed_trial_with_rules_is_not_charged_to_its_workload(killed: Seen) -> None:
    assert killed.log.verdict == layout.FAILED
    ending = killed.ending()
    assert (ending.state, ending.charged, ending.exit_code) == ("failed", "infrastructure", None)
    assert "unknown exit code" in (ending.cause or "")
    assert layout.FAILED not in (ending.cause or "")


def test_a_workload_that_fails_has_said_so_itself(tmp_path: Path) -> None:
    seen = run(tmp_path, "raise", [LATE_RULE])
    assert seen.kinds[-1] == "TrialEnded"
    assert (seen.log.last_line, seen.log.verdict) == ("RuntimeError: the toy broke", layout.FAILED)


@pytest.mark.slow
def test_a_stop_is_known_without_the_condition_that_katib_may_lose(tmp_path: Path) -> None:
    seen = run(tmp_path, None, [RULE], epoch_seconds=1.0)
    lost = {**seen.trial, "status": {"conditions": [SUCCEEDED]}}
    assert "TrialEnded" not in seen.kinds
    ending = Seen(lost, seen.pod, seen.log, seen.kinds).ending()
    assert (ending.state, ending.stop_epoch) == ("pruned", 1)


@pytest.mark.parametrize(("said", "code", "state"), [(layout.EARLY_STOPPED, 0, "pruned"), (layout.FAILED, 1, "failed")])
def test_what_katib_s_shell_said_reaches_the_record(make: Callable[..., Run], said: str, code: int, state: str) -> None:
    followed = make(budget=Budget(trials=1, epochs_per_trial=2))
    followed.begins(FIRST, 0.5)
    followed.cluster.log(f"p-{FIRST}", said.encode())
    followed.pod(FIRST, "Failed" if code else "Succeeded", ended(code))
    followed.trial(FIRST, condition("Failed", "TrialFailed") if code else SUCCEEDED, rules=[RULE])
    followed.succeeds(trials=1)
    end = followed.ends()[FIRST]
    assert (end.state, end.charged) == (state, "infrastructure" if code else None)
