"""Options of platform `slurm`, what is refused before anything is submitted, and what SLURM's words mean."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from builders.specs import toy_spec
from tuneoff.errors import ExperimentError, InfrastructureError
from tuneoff.experiment.spec import Budget, RunSpec, Workers
from tuneoff.registry import adapter_class
from tuneoff_platforms.slurm import jobs
from tuneoff_platforms.slurm.options import slurm_options

pytest.importorskip("submitit", reason="needs submitit")


@pytest.fixture(autouse=True)
def _commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SLURM's commands are looked up, and not run: stand-ins of the test's own."""
    for name in ("sbatch", "srun", "scontrol"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))


def spec_of(adapter: str = "serial", options: dict[str, Any] | None = None, **fields: Any) -> RunSpec:
    return replace(toy_spec(adapter, **fields), platform="slurm", options=options or {})


def reason(adapter: str = "serial", options: dict[str, Any] | None = None, **fields: Any) -> str | None:
    spec = spec_of(adapter, options, **fields)
    return adapter_class(adapter).refuse(spec)


def test_the_plan_says_what_is_submitted() -> None:
    spec = spec_of(options={"sbatch": {"partition": "short", "time": 30}}, workers=Workers(count=3, cpus=1.5, memory_mb=500))
    said = adapter_class("serial").placement(spec) or ""
    assert said == "submits 3 jobs to SLURM, a worker each: --cpus-per-task=2 --mem=488282K --partition=short --time=30"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"sbatch": {"partition": None}}, "option `sbatch`"),
        ({"sbatch": {"time": "1:00:00"}}, "time in whole minutes"),
        ({"sbatch": {"comment": "a\n#SBATCH --uid=0"}}, "option `sbatch`"),
        ({"sbatch": {"job-name": "mine"}}, "must leave job-name to tuneoff"),
        ({"setup": "module load"}, "option `setup`"),
        ({"submit_host": "a b"}, "option `submit_host`"),
        ({"host_python": "-c"}, "option `host_python`"),
        ({"pending_seconds": 0}, "option `pending_seconds`"),
        ({"lost_seconds": 1}, "option `lost_seconds`"),
        ({"partition": "short"}, "has no option 'partition'"),
    ],
)
def test_wrong_options_are_named(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ExperimentError, match=words):
        reason(options=options)


def test_what_slurm_cannot_serve_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "share no budget of seconds" in (reason(budget=Budget(trials=2, epochs_per_trial=2, wall_clock_seconds=9.0)) or "")
    assert "remove workers.cpu_limit" in (reason(workers=Workers(count=1, cpu_limit="quota")) or "")
    for storage in ("sqlite", {"kind": "postgresql", "managed": True}):
        assert "a journal in the shared results folder" in (reason("optuna", {"storage": storage}) or "")
    monkeypatch.setenv("PATH", "/nowhere")
    assert "sbatch is not here" in (reason() or "")


@pytest.mark.parametrize(
    ("name", "why", "phase"),
    [
        ("RUNNING", "None", "running"),
        ("PENDING", "BeginTime", "waiting"),
        ("PENDING", "JobHeldUser", "held"),
        ("TIMEOUT", "None", "ended"),
        ("UNKNOWN", "", "ended"),
        (jobs.AWAY, "", "unknown"),
    ],
)
def test_states_of_jobs(name: str, why: str, phase: str) -> None:
    assert jobs.launch_state(name, why).phase == phase


def test_slurm_is_asked_once_for_all_jobs_and_by_itself_for_one_that_has_left_its_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def answer(*command: str) -> str:
        asked.append(command[0])
        if command[0] == "squeue":
            return "1|RUNNING|None\n2|PENDING|launch failed requeued held\n"
        assert command[-1] == "3"
        return "JobId=3 JobState=TIMEOUT Reason=TimeLimit"

    monkeypatch.setattr(jobs, "call", answer)
    told = jobs.states("run", ["1", "2", "3"])
    assert asked == ["squeue", "scontrol"]
    assert [told[job_id].phase for job_id in ("1", "2", "3")] == ["running", "held", "ended"]


def test_no_job_has_ended_while_slurm_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def answer(*command: str) -> str:
        asked.append(command[0])
        raise InfrastructureError("away")

    monkeypatch.setattr(jobs, "call", answer)
    assert {state.phase for state in jobs.states("run", ["1", "2"]).values()} == {"unknown"}
    assert asked == ["squeue"]


def test_the_defaults_are_of_this_machine() -> None:
    options = slurm_options(spec_of())
    assert options.submit_host
    assert Path(options.host_python).exists()
