"""What a training counts and times of itself is in its epochs' events, and nothing where it does neither."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from trial_runs import Curve, events_of, run, trial_context
from tuneoff.record.events import schema
from tuneoff.run.trial.run_trial import Decision
from tuneoff.workload import items, phase

SECONDS = 0.02


class Telling(Curve):
    """Option `tells`: what it does beside training."""

    def train_epoch(self, epoch: int) -> Mapping[str, float]:
        tells = self.options.get("tells")
        if tells == "all":
            with phase("forward"):
                time.sleep(SECONDS)
                with phase("loss"):
                    time.sleep(2 * SECONDS)
            items(30)
            items(epoch)
        elif tells is not None:
            items(tells)
        return super().train_epoch(epoch)

    def validate(self) -> Mapping[str, float]:
        if self.options.get("tells") == "all":
            with phase("validate"):
                items(10**6)  # not trained on
        return super().validate()


def ends_early(configuration: Mapping[str, Any]) -> Iterator[Mapping[str, float]]:
    """A generator that is inside a phase while the framework has the word."""
    for loss in (3.0, 2.0, 1.0):
        with phase("step"):
            yield {"loss": loss}


def test_items_and_phases_of_an_epoch_and_of_no_other_time(tmp_path: Path) -> None:
    context = trial_context(tmp_path, workload="run.trial.test_phases:Telling", workload_options={"tells": "all"})
    for trial in ("t0", "t1"):
        run(context, trial)
    epochs = list(events_of(tmp_path, schema.Epoch))
    assert [epoch.items for epoch in epochs] == [31, 32, 33] * 2
    for epoch in epochs:
        assert set(epoch.phases) == {"forward", "loss", "validate"}
        assert epoch.phases["forward"] >= 1e9 * SECONDS
        assert epoch.phases["loss"] >= 2e9 * SECONDS
        assert epoch.phases["forward"] + epoch.phases["loss"] <= epoch.train_ns  # one stood still during the other
        assert epoch.phases["validate"] <= epoch.validate_ns


def test_a_phase_that_is_open_while_a_report_waits_does_not_count_that(tmp_path: Path) -> None:
    context = trial_context(tmp_path, workload="run.trial.test_phases:ends_early")

    def report(epoch: int, metrics: Mapping[str, float]) -> Decision:
        time.sleep(SECONDS)
        return Decision.CONTINUE

    assert run(context, report=report).state == "completed"
    assert all(epoch.phases["step"] < epoch.train_ns + epoch.validate_ns for epoch in events_of(tmp_path, schema.Epoch))
    (tmp_path / "next").mkdir()
    run(trial_context(tmp_path / "next"))  # the training above left its last phase when it was closed
    assert [epoch.phases for epoch in events_of(tmp_path / "next", schema.Epoch)] == [None] * 3


def test_a_training_that_tells_nothing_has_the_lines_that_it_always_had(tmp_path: Path) -> None:
    run(trial_context(tmp_path))
    (path,) = (tmp_path / "events").iterdir()
    assert "items" not in path.read_text()
    assert "phases" not in path.read_text()


@pytest.mark.parametrize(
    ("count", "cause"),
    [
        (1.5, "TypeError: 'float' object cannot be interpreted as an integer"),
        (-1, "ValueError: `items` must be a whole number from 0 to 1000000000000000, but got -1"),
        (10**16, "but got 10000000000000000"),
    ],
)
def test_a_count_that_is_none_fails_the_trial_with_its_reason(tmp_path: Path, count: Any, cause: str) -> None:
    context = trial_context(tmp_path, workload="run.trial.test_phases:Telling", workload_options={"tells": count})
    outcome = run(context)
    assert outcome.state == "failed"
    assert cause in (outcome.cause or "")


@pytest.mark.parametrize("name", ["", "a b", "-x", "x" * 41, "<b>", "a/b", "a.b", "a\n"])
def test_a_name_that_is_none_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="a phase's name must be 1 to 40 letters"):
        phase(name)


def test_there_are_no_more_phases_than_a_page_can_show(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tuneoff.base.phases._phases", {})
    for number in range(32):
        phase(f"p{number}")
    with pytest.raises(ValueError, match="at most 32 phases"):
        phase("another")
    phase("p0")
