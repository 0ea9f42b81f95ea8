"""How a trial ended: what its pod, its conditions and Katib's shell tell."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from adapters.katib.followed_run import FIRST, Run
from adapters.katib.katib_objects import Object, condition, container, ended, pod, trial
from tuneoff.experiment.spec import Budget
from tuneoff_adapters.kubernetes import layout
from tuneoff_adapters.kubernetes.endings import PodLimits, ending_of
from tuneoff_adapters.kubernetes.resources import terminal

LIMITS = PodLimits(deadline_seconds=900, memory_bytes=500_000_000)
RULES = [{"name": "objective", "value": "0.5", "comparison": "less", "startStep": 2}]
FAILED = trial("a", condition("Failed", "TrialFailed. Job reason: BackoffLimitExceeded", "Trial has failed"))
RULED = trial("a", condition("Failed", "TrialFailed. Job reason: BackoffLimitExceeded"), rules=RULES)
STOPPED = trial("a", condition("Running"), condition("EarlyStopped", "TrialEarlyStopped"), rules=RULES)
TAKEN = trial("a", condition("Succeeded", "TrialSucceeded"), rules=RULES)  # for succeeded, by Katib
SUCCEEDED = trial("a", condition("Succeeded"))
LATE = trial("a", condition("Failed", "TrialFailed. Job reason: DeadlineExceeded"))
SAYS_STOPPED: Object = {"is_log_whole": True, "verdict": layout.EARLY_STOPPED}
TIMED_OUT = "timed out: longer than 900 s (the job's activeDeadlineSeconds)"


def gone(code: int, reason: str = "") -> Object:
    return pod("a", "Succeeded" if code == 0 else "Failed", ended(code, reason))


@pytest.mark.parametrize(
    ("thing", "its_pod", "told", "expected", "words"),
    [
        # expected: charged, exit code, limit; pruned: the epoch at which that was decided
        pytest.param(FAILED, gone(137), {}, ("infrastructure", -9, None), "SIGKILL", id="a signal from outside"),
        pytest.param(FAILED, gone(143), {}, ("infrastructure", -15, None), "SIGTERM", id="another one"),
        pytest.param(FAILED, gone(139), {}, ("workload", -11, None), "SIGSEGV", id="a signal of the code that runs"),
        pytest.param(FAILED, gone(1), {"verdict": layout.FAILED}, ("workload", 1, None), "code 1", id="its own code"),
        pytest.param(SUCCEEDED, gone(0), {}, ("infrastructure", 0, None), "its log has no end", id="0, and a lost log"),
        pytest.param(SUCCEEDED, gone(0), {"is_log_whole": True}, ("workload", 0, None), "exit code 0", id="0, and a whole log"),
        pytest.param(FAILED, gone(137, reason="OOMKilled"), {}, ("workload", -9, "memory"), "more than 500 MB", id="memory"),
        pytest.param(
            FAILED,
            pod("a", "Failed", ended(137), reason="DeadlineExceeded"),
            {},
            ("workload", None, "time"),
            TIMED_OUT,
            id="late",
        ),
        pytest.param(LATE, None, {}, ("workload", None, "time"), TIMED_OUT, id="late, without a pod"),
        pytest.param(
            FAILED,
            pod("a", "Failed", reason="Evicted", message="The node was low on\nresource: memory."),
            {},
            ("infrastructure", None, None),
            "Evicted: The node was low on resource: memory.",
            id="evicted",
        ),
        pytest.param(
            FAILED,
            pod("a", "Running", container(running={})),
            {},
            ("infrastructure", None, None),
            "was deleted or lost before its training container ended (TrialFailed. Job reason: BackoffLimitExceeded",
            id="deleted",
        ),
        pytest.param(
            FAILED, None, {}, ("infrastructure", None, None), "no pod of it was seen: TrialFailed. Job reason: Back", id="no pod"
        ),
        pytest.param(
            None, {"metadata": {"name": "p"}, "status": None}, {}, ("infrastructure", None, None), "lost", id="missing fields"
        ),
        # with rules Katib's shell makes one code of all, so nobody blames the workload
        pytest.param(
            RULED,
            gone(1),
            {"last_line": "Killed", "is_log_whole": True, "verdict": layout.FAILED},
            ("infrastructure", None, None),
            "unknown exit code (Katib's early stopping hides it); its last line: Killed",
            id="hidden code",
        ),
        pytest.param(RULED, gone(137), {}, ("infrastructure", -9, None), "SIGKILL", id="of the shell itself"),
        pytest.param(RULED, gone(1, "OOMKilled"), {}, ("workload", 1, "memory"), "out of memory", id="memory, with rules"),
        pytest.param(STOPPED, gone(143), {"epochs": 3}, 2, "", id="stopped"),
        pytest.param(STOPPED, gone(143), {"epochs": 1}, 1, "", id="stopped before the report that is tested"),
        pytest.param(TAKEN, gone(0), {**SAYS_STOPPED, "epochs": 3}, 2, "", id="stopped, by what its shell said"),
        pytest.param(TAKEN, gone(0), {"is_log_whole": True}, ("workload", 0, None), "code 0", id="which said nothing"),
        pytest.param(SUCCEEDED, gone(0), SAYS_STOPPED, ("workload", 0, None), "code 0", id="said without rules"),
        *(
            pytest.param(
                thing,
                gone(code),
                {**SAYS_STOPPED, "is_log_broken": True},
                ("infrastructure", None, None),
                "events are missing in its log",
                id=f"broken log {number} {code}",
            )
            for number, thing in enumerate((STOPPED, SUCCEEDED, FAILED))
            for code in (0, 1)
        ),
        pytest.param(
            FAILED, gone(137, "OOMKilled"), {"is_log_broken": True}, ("workload", -9, "memory"), "", id="broken: memory"
        ),
    ],
)
def test_an_end_is_charged_to_who_brought_it_about(
    thing: Object | None, its_pod: Object | None, told: Object, expected: Any, words: str
) -> None:
    ending = ending_of(thing, its_pod, LIMITS, **{"epochs": 2, **told})
    if isinstance(expected, int):
        assert (ending.state, ending.stop_epoch, ending.charged) == ("pruned", expected, None)
    else:
        assert (ending.state, (ending.charged, ending.exit_code, ending.limit)) == ("failed", expected)
        assert words in (ending.cause or "")
        assert "\n" not in (ending.cause or "")


@pytest.mark.parametrize(
    ("module", "argument"),
    [
        ("psycopg", "EXTRAS=optuna,kubernetes"),
        ("torch.nn", "TORCH_INDEX=https://download.pytorch.org/whl/cpu"),
        ("my_training", "BASE=IMAGE_THAT_HAS_IT"),
    ],
)
@pytest.mark.parametrize("thing", [FAILED, RULED])
def test_a_package_that_the_image_lacks_is_the_user_s_and_the_build_argument_is_named(
    thing: Object, module: str, argument: str
) -> None:
    line = f"ModuleNotFoundError: No module named '{module}'"
    ending = ending_of(thing, gone(1), LIMITS, epochs=0, last_line=line)
    way_out = f"the image lacks {module.partition('.')[0]}: make image ARGS='--build-arg {argument}'"
    assert (ending.charged, (ending.cause or "").endswith(f"; {way_out}")) == ("user", True)


def test_early_stopped_goes_before_what_else_katib_calls_the_trial() -> None:
    both = trial("a", condition("Succeeded"), condition("EarlyStopped"))
    assert (terminal(both) or {})["type"] == "EarlyStopped"
    assert terminal(trial("a", condition("Running"), condition("Failed", status="False"))) is None


@pytest.mark.parametrize(("said", "code", "state"), [(layout.EARLY_STOPPED, 0, "pruned"), (layout.FAILED, 1, "failed")])
def test_what_katib_s_shell_said_reaches_the_record(make: Callable[..., Run], said: str, code: int, state: str) -> None:
    followed = make(budget=Budget(trials=1, epochs_per_trial=2))
    followed.begins(FIRST, 0.5)
    followed.cluster.log(f"p-{FIRST}", said.encode())
    followed.pod(FIRST, "Failed" if code else "Succeeded", ended(code))
    followed.trial(FIRST, condition("Failed" if code else "Succeeded"), rules=RULES)
    followed.succeeds(trials=1)
    end = followed.ends()[FIRST]
    assert (end.state, end.charged) == (state, "infrastructure" if code else None)
