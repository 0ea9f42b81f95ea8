"""How a trial ended: what its pod, its conditions and Katib's shell tell."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from adapters.katib.followed_run import FIRST, Run
from adapters.katib.katib_objects import Object, condition, container, ended, pod, trial
from adapters.katib.test_pod import KATIB_TRIAL, environment_of, toy_spec
from emulated.node_cluster import node_cluster, trial_of
from katib_emulation.objects import TRIALS
from tuneoff.experiment.spec import Budget
from tuneoff.record.events.reader import read_header
from tuneoff_adapters.kubernetes import layout
from tuneoff_adapters.kubernetes.endings import PodEnding, PodLimits, ending_of
from tuneoff_adapters.kubernetes.followed_pod import PodLog
from tuneoff_adapters.kubernetes.resources import exit_of, terminal

LIMITS = PodLimits(deadline_seconds=900, memory_bytes=500_000_000)
FAILED = trial("a", condition("Failed", "TrialFailed. Job reason: BackoffLimitExceeded", "Trial has failed"))


def end(thing: Object | None, its_pod: Object | None, epochs: int = 2, **more: Any) -> PodEnding:
    return ending_of(thing, its_pod, LIMITS, epochs, **more)


def test_a_signal_without_a_reason_is_charged_to_the_infrastructure() -> None:
    ending = end(FAILED, pod("a", "Failed", ended(137)))
    assert (ending.charged, ending.exit_code, ending.limit) == ("infrastructure", -9, None)
    assert "SIGKILL" in (ending.cause or "")
    assert end(FAILED, pod("a", "Failed", ended(143))).exit_code == -15


def test_a_signal_of_the_code_that_runs_is_charged_to_the_workload() -> None:
    ending = end(FAILED, pod("a", "Failed", ended(139)))
    assert (ending.charged, ending.exit_code) == ("workload", -11)


@pytest.mark.parametrize(
    ("module", "argument"),
    [
        ("optuna", "EXTRAS=optuna,kubernetes"),
        ("psycopg", "EXTRAS=optuna,kubernetes"),
        ("torch.nn", "TORCH_INDEX=https://download.pytorch.org/whl/cpu"),
        ("my_training", "BASE=IMAGE_THAT_HAS_IT"),
    ],
)
@pytest.mark.parametrize("thing", [FAILED, trial("a", condition("Failed"), rules=[{"startStep": 1}])])
def test_a_package_that_the_image_lacks_is_the_user_s_and_the_build_argument_is_named(
    thing: Object, module: str, argument: str
) -> None:
    line = f"ModuleNotFoundError: No module named '{module}'"
    ending = end(thing, pod("a", "Failed", ended(1)), epochs=0, last_line=line)
    way_out = f"the image lacks {module.partition('.')[0]}: make image ARGS='--build-arg {argument}'"
    assert (ending.charged, (ending.cause or "").endswith(f"; {way_out}")) == ("user", True)


def test_an_exit_code_of_zero_without_an_end_is_a_lost_log() -> None:
    ending = end(trial("a", condition("Succeeded")), pod("a", "Succeeded", ended(0)))
    assert (ending.state, ending.charged) == ("failed", "infrastructure")
    assert "its log has no end" in (ending.cause or "")


def test_an_exit_code_of_zero_in_the_middle_of_a_whole_log_is_charged_to_the_workload() -> None:
    ending = end(trial("a", condition("MetricsUnavailable")), pod("a", "Succeeded", ended(0)), is_log_whole=True)
    assert (ending.state, ending.charged, ending.exit_code) == ("failed", "workload", 0)
    assert (ending.cause or "").endswith("training ended with exit code 0")


@pytest.mark.parametrize(
    ("thing", "its_pod"),
    [
        (FAILED, pod("a", "Failed", ended(137), reason="DeadlineExceeded", message="Pod was active too long")),
        (trial("a", condition("Failed", "TrialFailed. Job reason: DeadlineExceeded")), None),
    ],
)
def test_a_deadline_is_a_time_out(thing: Object, its_pod: Object | None) -> None:
    ending = end(thing, its_pod)
    assert ending.cause == "timed out: longer than 900 s (the job's activeDeadlineSeconds)"
    assert (ending.charged, ending.limit) == ("workload", "time")


def test_an_eviction_is_charged_to_the_infrastructure_in_its_own_words() -> None:
    ending = end(FAILED, pod("a", "Failed", reason="Evicted", message="The node was low on\nresource: memory."))
    assert ending.charged == "infrastructure"
    assert (ending.cause or "").endswith("Evicted: The node was low on resource: memory.")


def test_a_deleted_pod_is_charged_to_the_infrastructure() -> None:
    ending = end(FAILED, pod("a", "Running", container(running={})))
    assert ending.charged == "infrastructure"
    assert "was deleted or lost" in (ending.cause or "")
    assert "BackoffLimitExceeded" in (ending.cause or "")


def test_a_trial_without_a_pod_has_katib_s_own_words() -> None:
    assert end(FAILED, None).cause == ("no pod of it was seen: TrialFailed. Job reason: BackoffLimitExceeded: Trial has failed")


@pytest.mark.parametrize(("start_step", "epochs", "decided"), [("2", 3, 2), ("2", 1, 1), ("0", 3, 3)])
def test_an_early_stopped_trial_is_pruned_at_the_one_report_that_is_tested(start_step: str, epochs: int, decided: int) -> None:
    rules = [{"name": "objective", "value": "0.5", "comparison": "less", "startStep": int(start_step)}]
    stopped = trial("a", condition("Running"), condition("EarlyStopped", "TrialEarlyStopped"), rules=rules)
    ending = end(stopped, pod("a", "Failed", ended(143)), epochs)
    assert (ending.state, ending.stop_epoch) == ("pruned", decided)


RULES = [{"name": "objective", "value": "0.5", "comparison": "less", "startStep": 2}]


def test_katib_s_shell_hides_the_exit_code_of_a_trial_with_rules_so_nobody_blames_the_workload() -> None:
    ruled = trial("a", condition("Failed", "TrialFailed. Job reason: BackoffLimitExceeded"), rules=RULES)
    ending = end(ruled, pod("a", "Failed", ended(1)), last_line="Killed", is_log_whole=True, verdict=layout.FAILED)
    assert (ending.state, ending.charged, ending.exit_code) == ("failed", "infrastructure", None)
    assert "unknown exit code (Katib's early stopping hides it); its last line: Killed" in (ending.cause or "")
    assert end(ruled, pod("a", "Failed", ended(137))).exit_code == -9  # of the shell itself
    assert end(ruled, pod("a", "Failed", ended(137, "OOMKilled"))).charged == "workload"
    assert end(ruled, pod("a", "Failed", ended(1, "OOMKilled"))).charged == "workload"


def test_without_rules_an_exit_code_of_one_is_the_workload_s() -> None:
    assert end(FAILED, pod("a", "Failed", ended(1)), verdict=layout.FAILED).charged == "workload"


def test_a_stopped_trial_that_katib_takes_for_succeeded_is_pruned_by_what_its_shell_said() -> None:
    lost = trial("a", condition("Succeeded", "TrialSucceeded"), rules=RULES)
    its_pod = pod("a", "Succeeded", ended(0))
    ending = end(lost, its_pod, 3, is_log_whole=True, verdict=layout.EARLY_STOPPED)
    assert (ending.state, ending.stop_epoch, ending.charged) == ("pruned", 2, None)
    assert end(lost, its_pod, 3, is_log_whole=True).state == "failed"
    without = trial("a", condition("Succeeded", "TrialSucceeded"))
    assert end(without, its_pod, 3, is_log_whole=True, verdict=layout.EARLY_STOPPED).state == "failed"


def test_early_stopped_goes_before_what_else_katib_calls_the_trial() -> None:
    both = trial("a", condition("Succeeded"), condition("EarlyStopped"))
    assert (terminal(both) or {})["type"] == "EarlyStopped"
    assert terminal(trial("a", condition("Running"), condition("Failed", status="False"))) is None


def test_missing_fields_are_no_error() -> None:
    assert exit_of({"metadata": {}}, "training-container") is None
    assert end(None, {"metadata": {"name": "p"}, "status": None}).charged == "infrastructure"


@pytest.mark.parametrize("conditions", [["EarlyStopped"], ["Succeeded"], ["Failed"]])
@pytest.mark.parametrize("code", [0, 1])
def test_a_trial_whose_events_are_missing_failed_and_is_the_infrastructure_s(conditions: list[str], code: int) -> None:
    thing = trial("a", *(condition(kind) for kind in conditions))
    its_pod = pod("a", "Succeeded" if code == 0 else "Failed", ended(code))
    ending = end(thing, its_pod, is_log_whole=True, verdict=layout.EARLY_STOPPED, is_log_broken=True)
    assert (ending.state, ending.charged, ending.stop_epoch) == ("failed", "infrastructure", None)
    assert "events are missing in its log" in (ending.cause or "")
    assert end(thing, pod("a", "Failed", ended(137, "OOMKilled")), is_log_broken=True).charged == "workload"


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

    def ending(self) -> PodEnding:
        limits = PodLimits(deadline_seconds=900, memory_bytes=None)
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
