"""How trials ended whose own log has no end, from the objects that the cluster gives."""

from __future__ import annotations

from typing import Any

import pytest

from adapters.katib.katib_objects import Object, condition, container, ended, pod, trial
from tuneoff_adapters.kubernetes import layout
from tuneoff_adapters.kubernetes.endings import Ending, Limits, ending_of
from tuneoff_adapters.kubernetes.status import exit_of, terminal

LIMITS = Limits(deadline_seconds=900, memory_bytes=500_000_000)
FAILED = trial("a", condition("Failed", "TrialFailed. Job reason: BackoffLimitExceeded", "Trial has failed"))


def end(thing: Object | None, its_pod: Object | None, epochs: int = 2, **more: Any) -> Ending:
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
