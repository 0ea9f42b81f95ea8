"""The files under benchmarks/ say what they promise, and the examples of the help run."""

from __future__ import annotations

import contextlib
import functools
import io
import json
import shlex
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from command_line import Call
from tuneoff.cli.main import all_commands, main
from tuneoff.experiment.plan import Plan
from tuneoff.experiment.spec import RunSpec
from tuneoff.judge.answers.judging import FEWEST_SEEDS
from tuneoff.registry import list_adapters

pytestmark = pytest.mark.slow(first=True)

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
FILES = sorted([*BENCHMARKS.glob("*.yaml"), *BENCHMARKS.glob("catalogue/*.yaml")])
LOCAL = {"serial", "optuna", "ray-tune", "syne-tune"}
ALL = {*LOCAL, "katib"}
OVER_WORKERS = ("R-Workers", "scale_workers_long")
WITH_KATIB = ("every_kind", "same_configurations", "control_fixed_mnist", *OVER_WORKERS)
KATIB_ALONE = "digits_katib"
ON_A_CLUSTER = "digits_kubernetes"
WITH_SERVERS = "Storage"
STARTING = {"check", "compare", "faults", "reproduce", "run"}  # what starts processes gets one of its own
AS_DIGITS = {  # the examples' experiment: what it trains is run in e2e/test_verified_matrix, and the corpus
    "workload": "surrogate",
    "adapters": ["serial", "optuna", "ray-tune", "syne-tune"],
    "budget": {"trials": 3, "epochs_per_trial": 2},
    "warm_up": False,
}


@functools.cache
def _plan(name: str) -> Plan:
    with contextlib.redirect_stdout(io.StringIO()) as out:
        assert main(["plan", name, "--json"]) == 0
    return Plan.from_json(json.loads(out.getvalue()))


def _specs(plan: Plan) -> list[RunSpec]:
    return [run.spec for run in plan.counted]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_file_says_what_it_answers_and_can_be_planned(path: Path) -> None:
    assert path.read_text().startswith("# ")
    if path.parent.name == "catalogue":
        said = [line.partition(":")[0] for line in path.read_text().splitlines() if line.startswith("# ") and ":" in line]
        assert [head for head in said if head in ("# Varies", "# Enough", "# Takes")] == ["# Varies", "# Enough", "# Takes"]
    plan = _plan(path.stem)
    planned = {
        KATIB_ALONE: {"katib"},
        "digits_katib_cluster": {"katib"},
        ON_A_CLUSTER: {"serial", "optuna", "katib"},
        **dict.fromkeys(WITH_KATIB, ALL),
    }
    planned |= {
        WITH_SERVERS: {"optuna"},
        "worker_start": {"serial", "optuna"},
        "Releases": {"serial", "optuna"},
        "R-Hosts": {"serial", "optuna", "ray-tune"},
    }
    planned |= {"scale_trials": {"serial", "optuna", "ray-tune"}, "scale_trials_processes": {"serial", "syne-tune", "katib"}}
    planned["frameworks"] = {listing.plugin.name for listing in list_adapters()}
    counts = {WITH_SERVERS: {1, 4, 16}, "R-Device": {1, 2, 4, 8}, **{name: {1, 4, 16, 64} for name in OVER_WORKERS}}
    assert {spec.adapter for spec in _specs(plan)} == planned.get(path.stem, LOCAL)
    assert {spec.experiment.workers.count for spec in _specs(plan)} == counts.get(path.stem, {2})
    for run in plan.counted:
        reason = run.skip_reason or "same as"
        assert (
            "same as" in reason
            or "pip install" in reason
            or "a managed PostgreSQL needs" in reason
            or "Optuna over MLflow may give two workers" in reason
            or run.spec.experiment.pruner.name in reason
            or f"does not list sampler {run.spec.experiment.sampler.name!r}" in reason
        )


def test_digits_is_the_embedded_default() -> None:
    specs = _specs(_plan("digits"))
    cells = Counter((spec.adapter, spec.experiment.sampler.name) for spec in specs)
    assert cells == {(adapter, "default"): FEWEST_SEEDS for adapter in LOCAL}
    assert {spec.experiment.workload.options["dataset"] for spec in specs} == {"digits"}
    assert min(spec.experiment.budget.trials for spec in specs) >= 12


def test_same_configurations_are_the_same_for_all() -> None:
    specs = _specs(_plan("same_configurations"))
    assert len({json.dumps(list(spec.experiment.configurations)) for spec in specs}) == 1
    assert len(specs[0].experiment.configurations) == 20
    assert {spec.experiment.sampler.name for spec in specs} == {"fixed"}


def test_overhead_has_both_workloads_and_a_noise_floor() -> None:
    plan = _plan("overhead")
    assert {spec.experiment.workload.name for spec in _specs(plan)} == {"null", "sleep"}
    assert {spec.replicate for spec in _specs(plan) if spec.adapter == "serial"} == {0, 1}


def test_the_matrix_script_is_the_command(call: Call) -> None:
    script = subprocess.run([sys.executable, BENCHMARKS / "compare.py", "--help"], capture_output=True, text=True)
    assert (script.returncode, script.stdout) == (0, call("compare", "--help").out)


def test_the_examples_of_all_commands_run(call: Call, tmp_path: Path) -> None:
    pytest.importorskip("optuna")
    (tmp_path / "digits").write_text(json.dumps(AS_DIGITS))
    for command in all_commands():  # in the order of the help: results before what shows them
        words = shlex.split(command.EXAMPLE.replace("/tmp/", f"{tmp_path}/"))
        if command.NAME in STARTING:
            finished = subprocess.run([sys.executable, "-m", *words], capture_output=True, text=True, timeout=280)
            assert finished.returncode == 0, (command.EXAMPLE, finished.stdout, finished.stderr)
        else:
            answer = call(*words[1:])
            expected = 7 if command.NAME == "diff" else 0  # one seed: nothing can be judged
            assert answer.code == expected, (command.EXAMPLE, answer.out, answer.err)
