"""The order of the steps, and what a failure in each of them leads to."""

from __future__ import annotations

import errno
import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

import trial_runs
from builders.specs import CURVE, make_spec
from trial_runs import events_of, go_on, trial_context
from tuneoff.adapter import Adapter, Best, Capabilities
from tuneoff.base.processes import kill
from tuneoff.errors import ExperimentError, InfrastructureError, MissingPackageError, StepError, UserError
from tuneoff.experiment.spec import Objective
from tuneoff.record.events import schema
from tuneoff.record.events.writer import EventWriter
from tuneoff.record.run_context import RunContext
from tuneoff.run.lifecycle import DONE, FAILED, INTERRUPTED, INTERRUPTED_SECONDS, run_lifecycle, undeploy_only
from tuneoff.run.trial.checkpoint import checkpoint_path, read_checkpoint
from tuneoff.run.trial.run_trial import run_trial


class Scripted(Adapter):
    """Does nothing but fail, or be interrupted, where the test says."""

    capabilities: ClassVar[Capabilities] = Capabilities(framework="none")
    fails_in: ClassVar[str | None] = None
    interrupted_in: ClassVar[str | None] = None
    best: ClassVar[Best | None] = Best(trial_id="t00000", configuration={"x": 0.5}, value=0.1)
    undeployed: ClassVar[int] = 0

    def _enter(self, step: str) -> None:
        if step == self.interrupted_in:
            os.kill(os.getpid(), signal.SIGTERM)
        if step == self.fails_in:
            raise ConnectionError(f"{step} is broken\nand a second line")

    def deploy(self) -> None:
        self._enter("deploy")

    def setup(self) -> None:
        self._enter("setup")

    def run_trials(self) -> None:
        self._enter("trial")

    def collect_results(self) -> Best | None:
        self._enter("collect")
        return self.best

    def test(self, best: Best) -> None:
        self._enter("test")

    def collect_metrics(self) -> None:
        self._enter("metrics")

    def undeploy(self) -> None:
        type(self).undeployed += 1
        self._enter("undeploy")


@pytest.fixture(autouse=True)
def _signals() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def context(tmp_path: Path, workload: str = "Curve", **options: Any) -> RunContext:
    trials = trial_context(
        tmp_path, execution_id=f"e-{os.urandom(4).hex()}", workload=f"trial_runs:{workload}", workload_options=options
    )
    return RunContext(
        spec=make_spec("scripted", workload=CURVE, objective=Objective(metric="loss", mode="min"), trials=1, epochs=1),
        run_dir=tmp_path,
        execution_id="e",
        trial_context=trials,
        events=EventWriter(tmp_path, "e", "coordinator"),
    )


def adapter(**attributes: Any) -> type[Scripted]:
    return type("Chosen", (Scripted,), {"undeployed": 0, **attributes})


def ended(tmp_path: Path) -> list[str]:
    return [event.step for event in events_of(tmp_path, schema.StepEnded)]


@pytest.mark.parametrize("step", schema.STEPS)
def test_undeploy_runs_after_a_failure_in_each_step_and_later_steps_are_skipped(tmp_path: Path, step: str) -> None:
    chosen = adapter(fails_in=step)
    assert run_lifecycle(chosen, context(tmp_path)) == FAILED
    expected = list(schema.STEPS[: schema.STEPS.index(step) + 1])
    assert ended(tmp_path) == (expected if step == "undeploy" else [*expected, "undeploy"])
    (failure,) = [event for event in events_of(tmp_path, schema.StepEnded) if event.error]
    assert (failure.step, failure.charged) == (step, "workload" if step == "test" else "framework")
    assert re.fullmatch(rf"ConnectionError: {step} is broken \(test_lifecycle\.py:\d+\)", failure.error)
    assert chosen.undeployed == 1


@pytest.mark.parametrize(
    ("error", "charged"),
    [
        (OSError(errno.ENOSPC, "full"), "infrastructure"),
        (OSError(errno.EAGAIN, "no process more"), "infrastructure"),
        (MemoryError(), "infrastructure"),
        (InfrastructureError("the cluster is away"), "infrastructure"),
        (OSError(errno.ECONNREFUSED, "no"), "framework"),
        (MissingPackageError("install it"), "user"),
        (SystemExit(3), "framework"),
        (TimeoutError("no worker in time"), "infrastructure"),
        (subprocess.TimeoutExpired("initdb", 60.0), "infrastructure"),
        (UserError("the image lacks optuna"), "user"),
        (ExperimentError("option `image` must be set"), "user"),
    ],
)
def test_a_failed_step_is_charged_by_its_cause(tmp_path: Path, error: BaseException, charged: str) -> None:
    def deploy(self: Scripted) -> None:
        try:
            raise error
        except OSError as cause:
            raise RuntimeError("start-up failed") from cause

    assert run_lifecycle(adapter(deploy=deploy), context(tmp_path)) == FAILED
    (failure,) = [event for event in events_of(tmp_path, schema.StepEnded) if event.error]
    assert failure.charged == charged


def test_a_timeout_after_deploy_is_no_start(tmp_path: Path) -> None:
    def collect(self: Scripted) -> Best | None:
        raise TimeoutError

    assert run_lifecycle(adapter(collect_results=collect), context(tmp_path)) == FAILED
    (failure,) = [event for event in events_of(tmp_path, schema.StepEnded) if event.error]
    assert failure.charged == "framework"


@pytest.mark.parametrize("step", schema.STEPS[:-1])
def test_an_interruption_in_each_step_undeploys(tmp_path: Path, step: str) -> None:
    chosen = adapter(interrupted_in=step)
    assert run_lifecycle(chosen, context(tmp_path)) == INTERRUPTED
    assert ended(tmp_path)[-1] == "undeploy"
    assert chosen.undeployed == 1


@pytest.mark.parametrize(("interrupted_in", "seconds"), [(None, 300.0), ("trial", INTERRUPTED_SECONDS)])
def test_an_undeploy_knows_how_long_it_may_take(tmp_path: Path, interrupted_in: str | None, seconds: float) -> None:
    told: list[float] = []
    chosen = adapter(interrupted_in=interrupted_in, undeploy=lambda self: told.append(self.undeploy_seconds))
    run_lifecycle(chosen, context(tmp_path))
    undeploy_only(chosen, context(tmp_path), 4.0)
    undeploy_only(chosen, context(tmp_path))
    assert told == [seconds, 4.0, 300.0]


def test_no_completed_trial_means_no_test(tmp_path: Path) -> None:
    assert run_lifecycle(adapter(best=None), context(tmp_path)) == DONE
    assert "test" not in ended(tmp_path)
    (known,) = events_of(tmp_path, schema.BestKnown)
    assert known.trial is None


def test_undeploy_alone_runs_in_a_fresh_process_after_a_kill(tmp_path: Path) -> None:
    chosen = adapter()
    assert undeploy_only(chosen, context(tmp_path)) == DONE
    assert undeploy_only(adapter(fails_in="undeploy"), context(tmp_path)) == FAILED
    assert chosen.undeployed == 1


BEST = Best(trial_id="t00000", configuration={"x": 0.5}, value=0.5)


@pytest.fixture
def score(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Return a function that trains a workload, and has the trial tested as by default: in a fresh process."""
    monkeypatch.setenv("PYTHONPATH", str(Path(trial_runs.__file__).parent))

    def score(workload: str, **options: Any) -> None:
        run = context(tmp_path, workload, **options)
        run_trial(run.trial_context, "t00000", {"x": 0.5}, go_on)
        Adapter.test(adapter()(run), BEST)

    return score


def test_the_default_test_step_scores_the_own_checkpoint_in_a_fresh_process(tmp_path: Path, score: Callable[..., None]) -> None:
    with pytest.raises(StepError, match=r"t00000 could not be tested: .*a checkpoint must be readable"):
        Adapter.test(adapter()(context(tmp_path)), BEST)
    score("Curve")
    (tested,) = events_of(tmp_path, schema.Tested)
    assert tested.scores == {"test_loss": 0.5}
    assert tested.checkpoint_sha256 == read_checkpoint(checkpoint_path(tmp_path, "t00000")).sha256
    assert 1_000_000 < tested.cpu_ns < 10_000_000_000  # of its process, from the start of the interpreter


def test_the_test_step_ends_with_its_process_and_not_with_its_output(
    tmp_path: Path, score: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    begun = time.monotonic()
    try:
        score("LeavingTest", note=str(tmp_path / "pid"))
        assert time.monotonic() - begun < 120  # what keeps the output open would last 600 s
    finally:
        kill(int((tmp_path / "pid").read_text()))
    assert "tested\n" in capsys.readouterr().err


def test_a_fault_in_the_workload_s_test_has_its_line_and_its_whole_traceback_in_the_log(
    score: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(StepError, match=r"ValueError: no test split \(trial_runs\.py:\d+\)$"):
        score("BrokenTest")
    assert re.search(r'trial_runs\.py", line \d+, in test\n', capsys.readouterr().err)  # of a coordinator: its log


def test_a_test_score_that_is_not_finite_fails_nothing_and_is_null_in_events_and_files(
    tmp_path: Path, score: Callable[..., None]
) -> None:
    score("OddScores")
    (tested,) = events_of(tmp_path, schema.Tested)
    assert tested.scores == {"test_loss": 0.5, "test_f1": None, "test_ratio": None}
    assert tested.non_finite == {"test_f1": "nan", "test_ratio": "-inf"}
    stored = json.loads((tmp_path / "test.json").read_text(), parse_constant=pytest.fail)
    assert stored["details"] == {"per_class": [{"f1": None, "support": 0}]}
