"""What commands say of plugins and plans that nothing installed decides: adapters and a workload that do nothing."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from syrupy.assertion import SnapshotAssertion

import fake_plugins
import tuneoff
from command_line import LEAST, Answer, Call, forbid_runs, write_file
from tuneoff import registry
from tuneoff.cli.run import first_run
from tuneoff.cli.selection import overridden_plan
from tuneoff.errors import ExperimentError

PLUGINS = {"twofold": "fake_plugins:Twofold", "broken": "no_such_module:Adapter", "outdated": "command_line:Outdated"}
METERS = {name: f"tuneoff_meters.{name}:{name.title()}Meter" for name in ("command", "replay")}
METERS |= {"model": "tuneoff.measure.power.model_meter:ModelMeter", "rapl": "tuneoff_meters.rapl:RaplMeter"}
ON_A_CLUSTER = {"adapters": ["plain", {"name": "twofold", "platform": "cluster", "options": {}}, "twofold@emulated"]}
WITHOUT_IDLE = "seconds,domain,watts\n0,wall,40\n9,wall,40\n"
FILES = {
    "wall.csv": WITHOUT_IDLE,
    "idle.csv": f"# idle wall: 30\n{WITHOUT_IDLE}",
    "grid.csv": "time,g_per_kwh\n2020-01-01T00:00:00Z,100\n2099-01-01T00:00:00Z,200\n",
    "vcpu.yaml": "name: ours\nsource: x\ndate: 2026-05\nusd_per_vcpu_hour: 0.05\n",
    "both.yaml": "name: ours\nsource: x\ndate: 2026-05\nusd_per_vcpu_hour: 0.05\nusd_per_gb_hour: 0.01\n",
    "own.yaml": "name: ours\nsource: x\ndate: 2026-05\npremises: own\nusd_per_kwh: 0.3\n",
}
TWO = {"adapters": ["plain", "missing"]}
LISTINGS = (
    "list adapters",
    "list adapters --json",
    "list adapters twofold",
    "list adapters missing rich missing",
    "list adapters ritch",
    "list adapters fake_plugins:Plain",
    "list adapters plain broken",
    "list workloads",
    "list workloads --json",
    "list workloads heavy",
    "list workloads curv",
    "list workloads curve fake_plugins:Plain",
    "list workloads tuneoff_workloads.sleep:Sleep",
)
PLANS: Mapping[str, tuple[dict[str, Any], str]] = {
    "every run": (
        {"adapters": ["plain", "missing"], "seeds": [0, 1], "matrix": {"sampler": ["random", "default"]}, "warm_up": True},
        "",
    ),
    "no run": ({"adapters": ["missing"]}, ""),
    "no power": ({"power": "none"}, ""),
    "no prices": ({"prices": "none"}, ""),
    "variants": ({"matrix": {"workers.count": [1, 2]}, "budget": {"trials": 1}}, ""),
    "a meter of one's own": ({"power": {"meter": "one:Meter", "options": {"watts": 3}, "interval_seconds": 1}}, ""),
    "a declared intensity": ({"carbon": {"g_per_kwh": 250, "source": "ours", "date": "2026"}}, ""),
    "a series that covers the present": ({"carbon": {"series": "grid.csv"}}, ""),
    "no idle power": ({"power": {"meter": "replay", "options": {"path": "wall.csv"}}}, ""),
    "idle power": ({"power": {"meter": "replay", "options": {"path": "idle.csv"}}}, ""),
    "no price of memory": ({"adapters": ["plain", "rich"], "prices": "vcpu.yaml"}, ""),
    "memory that is not known": ({"adapters": ["plain", "rich"], "prices": "both.yaml"}, ""),
    "own premises": ({"prices": "own.yaml"}, ""),
    "replaced": (
        {"adapters": ["plain", {"name": "rich", "options": {"storage": "x"}}], "seeds": [0, 1]},
        "--adapter rich plain --trials 2 --seeds 7",
    ),
    "each platform of a name": (ON_A_CLUSTER, "--adapter twofold"),
    "the stand-in of a name": (ON_A_CLUSTER, "--adapter twofold@emulated"),
    "another platform of a name": (ON_A_CLUSTER, "--adapter twofold@pretended plain"),
    "an entry on another platform": (
        {"adapters": ["plain", {"name": "rich", "options": {"storage": "x"}}]},
        "--adapter rich@cluster",
    ),
    "a platform that is mistyped": ({"adapters": ["plain", "twofold@clustr"]}, ""),
    "a name without its platform": ({"adapters": ["twofold@"]}, ""),
    "a platform without its name": (ON_A_CLUSTER, "--adapter @emulated"),
    "a meter that is mistyped": ({"power": "rappl"}, ""),
    "an option that is mistyped": ({"power": {"meter": "rapl", "options": {"roo": "x"}}}, ""),
    "an option of auto": ({"power": {"options": {"raple": {}}}}, ""),
    "a CPU that is in no table": ({"power": {"options": {"model": {"cpu": "Xeon"}}}}, ""),
    "a meter without its command": ({"power": {"meter": "command", "options": {}}}, ""),
    "a recording that is not there": ({"power": {"meter": "replay", "options": {"path": "no.csv"}}}, ""),
}


@pytest.fixture
def plugins(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Make the fakes the only plugins, and no run start."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "130")
    monkeypatch.setenv("PYTHONPATH", "")  # a command may add the current folder
    meters = [fake_plugins.plugin(name, target) for name, target in METERS.items()]
    fake_plugins.register(monkeypatch, *(fake_plugins.plugin(*item) for item in PLUGINS.items()), meters=meters)
    forbid_runs(monkeypatch)
    for name, content in FILES.items():
        (tmp_path / name).write_text(content)


def file(**replaced: Any) -> Path:
    """Write an experiment file into the current folder: the least experiment with keys replaced."""
    return write_file(Path.cwd() / "experiment.yaml", {**LEAST, **replaced})


def told(answer: Answer) -> str:
    text = f"{answer.out}{answer.err}exit code {answer.code}"
    text = text.replace(str(Path(tuneoff.__file__).parent), "TUNEOFF")
    return text.replace(str(Path.cwd()), "DIR").replace(yaml.__version__, "VERSION")


@pytest.mark.parametrize("command", LISTINGS)
def test_a_listing(call: Call, plugins: None, command: str, snapshot: SnapshotAssertion) -> None:
    assert told(call(*command.split())) == snapshot


@pytest.mark.parametrize("name", PLANS)
def test_a_plan(call: Call, plugins: None, name: str, snapshot: SnapshotAssertion) -> None:
    content, options = PLANS[name]
    before = set(Path.cwd().iterdir())
    assert told(call("plan", file(**content), *options.split())) == snapshot
    assert set(Path.cwd().iterdir()) - before == {Path.cwd() / "experiment.yaml"}


def test_a_plan_as_json(call: Call, plugins: None, snapshot: SnapshotAssertion) -> None:
    assert told(call("plan", file(adapters=["plain", "missing", "twofold@pretended"]), "--json")) == snapshot


def test_the_first_run_is_one_run_of_the_whole_matrix(plugins: None) -> None:
    axes = {"matrix": {"sampler": ["random", "fixed"]}, "configurations": {"sample": 2}, "budget": {"trials": 2}}
    path = file(adapters=["plain", "rich"], seeds=[3, 4], **axes)
    whole = {run.run_id for run in overridden_plan(path).counted}
    (run,) = first_run(overridden_plan(path, adapters=["rich"])).runs
    (other,) = first_run(overridden_plan(path, adapters=["rich"], seeds=[4], sampler="fixed")).runs
    assert {run.run_id, other.run_id} < whole
    assert [(one.spec.seed, one.spec.experiment.sampler.name) for one in (run, other)] == [(3, "random"), (4, "fixed")]
    (run,) = first_run(overridden_plan(file(matrix={"sampler": ["default", "random"]}))).runs
    assert (run.skip_reason, run.spec.experiment.sampler.name) == (None, "random")


def test_the_schemas_accept_what_they_describe(call: Call, plugins: None) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads(call("explain", "--schema", "experiment").out)
    content = {**LEAST, "seeds": [0, 1], "sampler": "random"}
    jsonschema.validate(content, schema)
    with pytest.raises(jsonschema.ValidationError):  # control: a schema that accepts everything proves nothing
        jsonschema.validate({**content, "samplr": 1}, schema)
    jsonschema.Draft202012Validator.check_schema(json.loads(call("explain", "--schema", "run").out))


def test_a_plan_says_where_a_series_does_not_cover_the_present(call: Call, plugins: None) -> None:
    for year in (2020, 2090):
        Path("old.csv").write_text(f"time,g_per_kwh\n{year}-01-01T00:00:00Z,100\n{year}-01-02T00:00:00Z,200\n")
        answer = call("plan", file(carbon={"series": "old.csv"}))
        _, lacking = (line for line in answer.out.splitlines() if line.startswith("carbon: "))
        assert f"the series covers {year}-01-01T00:00:00Z to {year}-01-03T00:00:00Z, but now it is " in lacking
        assert "runs that begin now will have no CO2e; give a series that covers them" in lacking


def test_an_adapter_beside_the_file_needs_no_installation(
    call: Call, plugins: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "beside_the_file.py").write_text("from fake_plugins import Plain as Mine\n")
    monkeypatch.setattr(sys, "path", [folder for folder in sys.path if folder not in ("", str(tmp_path))])
    answer = call("plan", file(), "--adapter", "beside_the_file:Mine", "--json")
    (run,) = json.loads(answer.out)["runs"]
    assert run["spec"]["adapter_target"] == "beside_the_file:Mine"
    assert str(tmp_path) in os.environ["PYTHONPATH"].split(os.pathsep)  # the run's processes import it too


def test_a_workload_without_a_default_space_is_broken(call: Call, plugins: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_space() -> None:
        raise KeyError("rate")

    monkeypatch.setattr(fake_plugins.Curve, "default_space", no_space)
    answer = call("list", "workloads", "curve")
    assert (answer.code, "must give a default search space" in answer.line) == (6, True)


@pytest.mark.parametrize("name", [listing.plugin.name for listing in registry.list_workloads()])
def test_every_built_in_workload_declares_just_the_options_that_it_knows(name: str) -> None:
    workload = registry.workload_class(name)
    declared = workload.default_options
    assert declared is not None
    workload({key: value for key, value in declared.items() if value is not None})
    with pytest.raises(ExperimentError, match="no_such_option"):
        workload({"no_such_option": 1})


def test_a_built_in_workload_is_shown_with_all_that_it_has(call: Call, snapshot: SnapshotAssertion) -> None:
    assert told(call("list", "workloads", "sleep", "null")) == snapshot


def test_katib_is_shown_with_who_lacks_what(call: Call, snapshot: SnapshotAssertion) -> None:
    kinds = ("platforms", "sampler", "pruner", "feature")  # whether it is installed is another matter
    assert [line for line in call("list", "adapters", "katib").out.splitlines() if line.startswith(kinds)] == snapshot


def test_a_direction_that_the_file_gives_is_said_so(call: Call) -> None:
    shown = {line.split()[0]: " ".join(line.split()[2:]) for line in call("list", "workloads").out.splitlines() if line}
    assert shown["command"].startswith("validation_accuracy (by the file)")
    assert shown["sleep"].startswith("validation_loss (min)")  # control
