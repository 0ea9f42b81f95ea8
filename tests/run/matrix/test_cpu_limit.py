"""A limit of processors is decided once for a matrix: refused before its first run, or the same in all of its runs."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from command_line import write_file
from tuneoff.errors import UnsupportedError
from tuneoff.experiment.load import load_matrix
from tuneoff.experiment.plan import Plan, make_plan
from tuneoff.measure.stored import read_runs
from tuneoff.run.execute import PlanRequest, execute
from tuneoff.run.supervisor import cgroups, limits
from tuneoff.run.supervisor.limits import ReservedProcessors, usable_processors

FAR = 100 * (2000 + os.getpid())  # processors of these numbers exist nowhere, so no run holds them
MakePlan = Callable[..., Plan]


@pytest.fixture
def plan(tmp_path: Path) -> MakePlan:
    def make(seeds: int = 1, **workers: Any) -> Plan:
        content = {
            "workload": "null",
            "adapters": ["serial"],
            "budget": {"trials": 2},
            "warm_up": seeds > 1,
            "seeds": {"count": seeds},
            "workers": workers,
        }
        return make_plan(load_matrix(write_file(tmp_path / "file.yaml", content)))

    return make


def test_affinity_is_refused_before_the_first_run_where_another_matrix_holds_the_processors(
    plan: MakePlan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "usable_processors", lambda: [FAR, FAR + 1])
    with ReservedProcessors() as other:
        other.take(1, [FAR])
        with pytest.raises(UnsupportedError, match=r"^[^\n]*affinity[^\n]* needs [^\n]*2 vCPU, but [^\n]*; [^\n]*$"):
            execute(PlanRequest(plan=plan(count=2, cpu_limit="affinity"), results=tmp_path / "results"))
        assert other.take(1, [FAR + 1]) == (FAR + 1,)  # what was refused holds nothing
    assert not (tmp_path / "results").exists()


def test_a_quota_is_refused_before_the_first_run_where_there_are_no_control_groups(
    plan: MakePlan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cgroups, "ROOT", tmp_path / "none")
    with pytest.raises(UnsupportedError, match=r"quota[^\n]*no cpu controller[^\n]*; use cpu_limit: none$"):
        execute(PlanRequest(plan=plan(count=2, cpu_limit="quota"), results=tmp_path / "results"))
    assert not (tmp_path / "results").exists()


@pytest.mark.slow
def test_all_runs_of_a_matrix_have_the_processors_that_it_held_from_its_start(plan: MakePlan, tmp_path: Path) -> None:
    try:
        execute(PlanRequest(plan=plan(seeds=2, count=1, cpu_limit="affinity"), results=tmp_path / "results"))
    except UnsupportedError:
        pytest.skip("another run holds the processors")
    records = list(read_runs(tmp_path / "results"))
    assert len(records) == 3  # a warm-up too
    assert {record.environment["limits"]["cpus"] for record in records} == {"affinity"}
    (held,) = {str(record.environment["limits"]["processors"]) for record in records}
    with ReservedProcessors() as free:  # and they are free again
        assert [list(free.take(1, usable_processors()))] == json.loads(held)
