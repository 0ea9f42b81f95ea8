"""What every adapter must do. A subclass names its adapter; the runs are made once per class, the tests only read them."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import Any, ClassVar

import pytest

from contract.faults import KINDS, faulty_experiment, out_of_memory_experiment
from contract.runs import Made, experiment, fixed, kill_one_trial, make
from tuneoff.events import schema
from tuneoff.experiment.identity import configuration_digest
from tuneoff.experiment.spec import Budget, ExperimentSpec, Failures, Strategy
from tuneoff.matrix.listener import LiveRun
from tuneoff.metrics.spans import PARTS
from tuneoff.supervisor import controllers
from tuneoff.trial.limits import NOT_JOINED, NOT_PINNED

SLEEP = {"epoch_seconds": 0.25}


class AdapterContract:
    """Inherit as `class TestX(AdapterContract): adapter = "x"` in a module marked `slow`."""

    adapter: ClassVar[str]
    platform: ClassVar[str] = "local"
    has_retries: ClassVar[bool] = True  # False: a trial whose process is killed fails
    memory_limiters: ClassVar[tuple[str, ...]] = ("control group", "watchdog")  # what may end a trial out of memory, in its words
    late_epochs: ClassVar[int] = 0  # epochs that a trial may end after the decision to stop it
    memory_mb: ClassVar[int] = 600  # limit of a trial; what the faulty one allocates is more
    expects_listeners: ClassVar[bool] = False  # True: the framework listens somewhere, so a run without a listener was not seen

    @classmethod
    def make(cls, spec: ExperimentSpec, results: Path, **how: Any) -> Made:
        return make(cls.adapter, spec, results, platform=cls.platform, **how)

    # --- runs, made once ---

    @pytest.fixture(scope="class")
    @classmethod
    def honest(cls, tmp_path_factory: pytest.TempPathFactory) -> Made:
        return cls.make(experiment("surrogate", **fixed(8)), tmp_path_factory.mktemp("honest"))

    @pytest.fixture(scope="class")
    @classmethod
    def scripted(cls, tmp_path_factory: pytest.TempPathFactory) -> Made:
        changes = fixed(6)
        stops = {configuration_digest(changes["configurations"][index]): epoch for index, epoch in ((1, 1), (4, 3))}
        spec = experiment(
            "sleep", SLEEP, **changes, pruner=Strategy(name="scripted"), stops=stops, budget=Budget(trials=6, epochs_per_trial=6)
        )
        return cls.make(spec, tmp_path_factory.mktemp("scripted"))

    @pytest.fixture(scope="class")
    @classmethod
    def faulty(cls, tmp_path_factory: pytest.TempPathFactory) -> Made:
        return cls.make(faulty_experiment(cls.memory_mb), tmp_path_factory.mktemp("faulty"))

    @pytest.fixture(scope="class")
    @classmethod
    def without_groups(cls, tmp_path_factory: pytest.TempPathFactory) -> Made:
        """A run whose first trial exceeds its memory, on a machine where no control group can be made."""
        if "watchdog" not in cls.memory_limiters:
            pytest.skip(f"memory is limited by: {', '.join(cls.memory_limiters)}")
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(controllers, "ROOT", Path("/nonexistent"))
            return cls.make(out_of_memory_experiment(cls.memory_mb, int(cls.has_retries)), tmp_path_factory.mktemp("watched"))

    @pytest.fixture(scope="class")
    @classmethod
    def killed(cls, tmp_path_factory: pytest.TempPathFactory) -> Made:
        spec = experiment(
            "sleep",
            SLEEP,
            **fixed(5),
            failures=Failures(retries=int(cls.has_retries)),
            budget=Budget(trials=5, epochs_per_trial=5),
        )
        return cls.make(spec, tmp_path_factory.mktemp("killed"), act=kill_one_trial)

    @pytest.fixture(scope="class")
    @classmethod
    def interrupted(cls, tmp_path_factory: pytest.TempPathFactory) -> tuple[Made, float]:
        interrupt, moment = threading.Event(), [0.0]

        def act(live: LiveRun, folder: Path) -> bool:
            if live.completed >= 1 and not interrupt.is_set():
                moment[0] = time.monotonic()
                interrupt.set()
            return interrupt.is_set()

        spec = experiment("sleep", SLEEP, **fixed(20), budget=Budget(trials=20, epochs_per_trial=4))
        made = cls.make(spec, tmp_path_factory.mktemp("interrupted"), act=act, interrupt=interrupt)
        return made, time.monotonic() - moment[0]

    # --- the honest run ---

    def test_an_honest_run_is_done_and_all_its_trials_complete(self, honest: Made) -> None:
        assert (honest.record.status, honest.record.reason) == ("done", None)
        assert [trial.state for trial in honest.record.trials] == ["completed"] * 8

    def test_the_seven_steps_come_in_order_without_errors(self, honest: Made) -> None:
        assert [step.step for step in honest.record.steps] == list(schema.STEPS)
        assert [step.error for step in honest.record.steps] == [None] * 7
        moments = [moment for step in honest.record.steps for moment in (step.started_ns, step.ended_ns)]
        assert moments == sorted(moments)  # type: ignore[type-var]

    def test_exactly_the_given_configurations_are_evaluated(self, honest: Made) -> None:
        given = {configuration_digest(item) for item in honest.record.run_spec().experiment.configurations}
        assert {trial.digest for trial in honest.record.trials} == given
        assert all(configuration_digest(trial.configuration) == trial.digest for trial in honest.record.trials)
        assert honest.record.refusals == ()

    def test_every_trial_was_submitted_before_it_started(self, honest: Made) -> None:
        for trial in honest.record.trials:
            (attempt,) = trial.attempts
            assert attempt.submitted_ns is not None
            assert attempt.started_ns is not None
            assert attempt.submitted_ns <= attempt.started_ns

    def test_the_framework_names_the_same_best_trial_as_core(self, honest: Made) -> None:
        best = honest.record.best
        assert best is not None
        assert best.trial == best.core_trial
        values = {trial.trial: trial.value for trial in honest.record.trials}
        assert best.framework_value == pytest.approx(values[best.trial or ""], rel=1e-6)

    def test_the_best_trial_is_tested_once(self, honest: Made) -> None:
        assert honest.record.test is not None
        assert honest.record.test.trial == honest.record.best.trial  # type: ignore[union-attr]
        assert len(honest.events(schema.Tested)) == 1

    def test_no_more_than_the_given_workers_run_at_once(self, honest: Made, scripted: Made) -> None:
        for made in (honest, scripted):
            assert {attempt.slot for trial in made.record.trials for attempt in trial.attempts} <= {0, 1}
            assert all(attempt.waited_ns == 0 for trial in made.record.trials for attempt in trial.attempts)

    def test_both_slots_are_used_where_trials_take_time(self, scripted: Made) -> None:
        assert {attempt.slot for trial in scripted.record.trials for attempt in trial.attempts} == {0, 1}

    def test_the_partition_sums_to_the_job_completion_time(self, honest: Made) -> None:
        metrics = honest.record.metrics
        parts = [metrics[f"time.{part}"].value for part in PARTS]
        assert None not in parts
        assert sum(part for part in parts if part is not None) == pytest.approx(metrics["time.jct"].value)
        assert metrics["time.unassigned"].value == 0

    def test_nothing_listens_beyond_loopback(self, honest: Made, scripted: Made) -> None:
        for made in (honest, scripted):
            assert [listener for listener in made.listeners if not listener.is_loopback] == []
            assert made.listeners or not self.expects_listeners

    # --- stops ---

    def test_scripted_stops_end_exactly_the_given_trials(self, scripted: Made) -> None:
        experiment = scripted.record.run_spec().experiment
        states = {trial.digest: trial.state for trial in scripted.record.trials}
        given = [states[configuration_digest(configuration)] for configuration in experiment.configurations]
        assert given == ["completed", "pruned", "completed", "completed", "pruned", "completed"]
        stops = experiment.stops
        decisions = {event.trial: event.t for event in scripted.events(schema.StopDecided)}
        for trial in scripted.record.trials:
            if trial.state == "pruned":
                late = trial.epochs_trained - stops[trial.digest]
                assert late >= 0
                if trial.trial in decisions:  # by a coordinator that polls: how late it looks is the machine's matter
                    epochs = scripted.events(schema.Epoch)
                    late = sum(event.trial == trial.trial and event.t > decisions[trial.trial] for event in epochs)
                assert late <= self.late_epochs

    # --- faults ---

    @pytest.mark.parametrize("kind", KINDS)
    def test_a_faulty_trial_ends_as_the_failure_that_it_is(self, faulty: Made, kind: str) -> None:
        expected = KINDS[kind]
        (trial,) = [trial for trial in faulty.record.trials if expected.is_of(trial.configuration)]
        assert trial.state == expected.state
        assert expected.cause in (trial.cause or "").lower()
        assert trial.charged in expected.charged

    def test_the_end_of_a_trial_out_of_memory_names_what_enforced_the_limit(self, faulty: Made) -> None:
        (trial,) = [trial for trial in faulty.record.trials if KINDS["out_of_memory"].is_of(trial.configuration)]
        in_force = faulty.record.environment["limits"]["memory"]
        (limiter,) = [words for words in self.memory_limiters if in_force.startswith(words.replace("control group", "cgroup"))]
        assert limiter in (trial.cause or "")

    def test_the_watchdog_alone_ends_a_trial_out_of_memory_and_the_run_goes_on(self, without_groups: Made) -> None:
        record = without_groups.record
        assert record.environment["limits"]["memory"] == "watchdog (no memory controller)"
        over, *others = sorted(record.trials, key=lambda trial: not KINDS["out_of_memory"].is_of(trial.configuration))
        assert (over.state, over.charged, len(over.attempts)) == ("failed", "workload", 1)  # it would exceed it again
        assert (over.cause or "").endswith("(watchdog)")
        assert [trial.state for trial in others] == ["completed"] * 2
        assert record.status == "done"

    def test_what_limits_the_slots_is_in_force_and_in_the_record(self, honest: Made, faulty: Made) -> None:
        for made in (honest, faulty):
            assert {flag.name for flag in made.record.flags}.isdisjoint({NOT_JOINED, NOT_PINNED})
            limits = made.record.environment["limits"]
            allowed = {attempt.cpus_allowed for trial in made.record.trials for attempt in trial.attempts}
            if limits["cpus"] == "affinity":
                processors = [number for slot in limits["processors"] for number in slot]
                assert (allowed, len(set(processors))) == ({1}, 2)
            else:  # other runs hold the processors, or there are too few, or a cluster limits pods
                assert allowed == {len(os.sched_getaffinity(0))}
                assert limits["cpus"].startswith(("cgroup v", "none ("))
                assert "processors" not in limits

    def test_the_trials_beside_faulty_ones_are_intact(self, faulty: Made) -> None:
        sound = [trial for trial in faulty.record.trials if not any(kind.is_of(trial.configuration) for kind in KINDS.values())]
        assert len(sound) >= 3
        assert [trial.state for trial in sound] == ["completed"] * len(sound)
        assert faulty.record.status == "done"

    def test_a_killed_worker_costs_one_attempt_and_no_trial(self, killed: Made) -> None:
        if not self.has_retries:
            pytest.skip(f"adapter {self.adapter!r} offers no retries; that its trial fails is tested instead")
        assert [trial.state for trial in killed.record.trials] == ["completed"] * 5
        (trial,) = [trial for trial in killed.record.trials if len(trial.attempts) > 1]
        assert [attempt.state for attempt in trial.attempts] == ["superseded", "completed"]
        assert trial.attempts[0].charged == "infrastructure"
        assert killed.record.refusals == ()

    def test_a_killed_trial_that_is_not_retried_fails_alone(self, killed: Made) -> None:
        if self.has_retries:
            pytest.skip(f"adapter {self.adapter!r} tries it again")
        assert sorted(trial.state for trial in killed.record.trials) == ["completed"] * 4 + ["failed"]
        (trial,) = [trial for trial in killed.record.trials if trial.state == "failed"]
        assert (trial.charged, len(trial.attempts)) == ("infrastructure", 1)
        assert killed.record.refusals == ()

    # --- interruption and leftovers ---

    def test_an_interrupted_run_ends_within_15_seconds_and_keeps_its_trials(self, interrupted: tuple[Made, float]) -> None:
        made, seconds = interrupted
        assert made.record.status == "interrupted"
        assert seconds < 15
        assert sum(trial.state == "completed" for trial in made.record.trials) >= 1
        assert made.record.step("undeploy") is not None

    def test_what_an_interruption_ended_is_cancelled_and_nobody_else_is_charged_with_it(
        self, interrupted: tuple[Made, float]
    ) -> None:
        trials = interrupted[0].record.trials
        assert {trial.charged for trial in trials} <= {None, "user"}, [(trial.cause, trial.charged) for trial in trials]
        ended = [trial for trial in trials if trial.used_ticket and trial.state != "completed"]
        assert {(trial.state, trial.cause) for trial in ended} <= {("cancelled", "interrupted by the user")}

    def test_nothing_is_left_behind(
        self, honest: Made, scripted: Made, faulty: Made, killed: Made, interrupted: tuple[Made, float]
    ) -> None:
        for made in (honest, scripted, faulty, killed, interrupted[0]):
            assert made.left == ()
            assert [flag.text for flag in made.record.flags if flag.name == "left_behind"] == []
