"""`adapters`, `workloads` and `schema`: what they list, and that they import next to nothing."""

from __future__ import annotations

import json

import pytest

import fake_plugins
from command_line import Call, File
from tuneoff import registry
from tuneoff.errors import ExperimentError


def test_adapters_are_listed_with_their_state(call: Call, fakes: None) -> None:
    listed = {adapter["name"]: adapter for adapter in json.loads(call("adapters", "--json").out)}
    assert listed["plain"]["status"] == "ready"
    assert listed["missing"]["status"] == "missing"
    assert listed["missing"]["text"].endswith("run: pip install nowhere-tune")
    assert listed["outdated"]["status"] == "too old"
    assert listed["rich"]["framework_version"]
    assert listed["rich"]["platforms"] == ["local", "cluster"]
    assert listed["rich"]["samplers"]["gp"]["missing"] == ["no_such_module"]
    assert listed["rich"]["samplers"]["default"]["same_as"] == "tpe"
    assert listed["plain"]["pruners"]["asha"]["support"] == "not by tuneoff yet"


def test_the_table_names_what_is_offered_and_the_way_out_of_what_is_not(call: Call, fakes: None) -> None:
    lines = call("adapters").out.splitlines()
    plain = next(line for line in lines if line.startswith("plain "))
    assert plain.split() == ["plain", "ready", "none", "local", "random", "grid", "fixed", "default", "none", "scripted"]
    assert "rich: sampler 'gp' needs no_such_module; run: pip install rich-library" in lines
    assert "adapter 'missing' needs the nowhere-tune package; run: pip install nowhere-tune" in lines


def test_one_adapter_is_shown_with_all_that_it_offers_and_does_not(
    call: Call, fakes: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_plugins.register(monkeypatch, fake_plugins.plugin("twofold", "fake_plugins:Twofold"))
    answer = call("adapters", "twofold")
    lines = [" ".join(line.split()) for line in answer.out.splitlines()]
    assert (answer.code, answer.err, lines[0]) == (0, "", "twofold: ready, framework none")
    assert lines[1] == (
        "platforms: cluster (the default), pretended (emulated: a local stand-in, in no ranking), "
        "emulated (a local stand-in, in no ranking)"
    )
    for line in (
        "sampler random yes plain.Random",
        "sampler default yes = random",
        "sampler tpe not by the framework",
        "pruner asha not by tuneoff yet later",
        "feature retry not by the framework failures.retries: a trial whose worker died is tried again",
    ):
        assert line in lines
    assert lines.index("sampler default yes = random") < lines.index("sampler tpe not by the framework")
    assert lines[-1] == "a note on the whole"


def test_adapters_are_chosen_by_name(call: Call, fakes: None) -> None:
    lines = [" ".join(line.split()) for line in call("adapters", "missing", "rich", "missing").out.splitlines()]
    assert [line.split(",")[0] for line in lines if ": missing" in line or ": ready" in line] == [
        "missing: missing",
        "rich: ready",
    ]
    assert "adapter 'missing' needs the nowhere-tune package; run: pip install nowhere-tune" in lines
    assert "sampler gp yes needs no_such_module: pip install rich-library" in lines
    assert [adapter["name"] for adapter in json.loads(call("adapters", "rich", "--json").out)] == ["rich"]
    answer = call("adapters", "ritch")
    assert (answer.code, "no adapter named 'ritch'; did you mean 'rich'?" in answer.line) == (2, True)
    assert call("adapters", "fake_plugins:Plain").out.startswith("fake_plugins:Plain: ready")


def test_the_table_marks_emulated_platforms(call: Call, fakes: None, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_plugins.register(monkeypatch, fake_plugins.plugin("twofold", "fake_plugins:Twofold"))
    assert "cluster pretended (emulated) emulated  " in call("adapters").out
    listed = {adapter["name"]: adapter for adapter in json.loads(call("adapters", "--json").out)}
    assert listed["twofold"]["emulated_platforms"] == ["pretended", "emulated"]
    assert listed["plain"]["emulated_platforms"] == []


def test_a_broken_plugin_does_not_break_the_listing(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_plugins.register(monkeypatch, fake_plugins.plugin("broken", "no_such_module:Adapter"))
    answer = call("adapters")
    assert (answer.code, answer.err) == (0, "")
    assert any(line.split()[:2] == ["broken", "broken"] for line in answer.out.splitlines())
    assert "plain" in answer.out
    listed = {adapter["name"]: adapter for adapter in json.loads(call("adapters", "--json").out)}
    assert listed["broken"]["status"] == "broken"
    assert "No module named 'no_such_module'" in listed["broken"]["text"]


def test_a_broken_adapter_that_is_asked_for_ends_the_command_with_its_exit_code(
    call: Call, fakes: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_plugins.register(monkeypatch, fake_plugins.plugin("broken", "no_such_module:Adapter"))
    alone = call("adapters", "broken")
    assert (alone.code, alone.out) == (6, "")
    assert "adapter 'broken' is broken" in alone.line
    among = call("adapters", "plain", "broken")
    assert (among.code, among.err) == (6, alone.err)
    assert among.out.startswith("plain: ready")
    assert "broken" not in among.out
    as_json = call("adapters", "broken", "--json")
    assert (as_json.code, json.loads(as_json.out)[0]["status"]) == (6, "broken")


def test_workloads_are_listed_with_their_objective(call: Call, fakes: None) -> None:
    listed = {workload["name"]: workload for workload in json.loads(call("workloads", "--json").out)}
    assert listed["curve"]["status"] == "ready"
    assert (listed["curve"]["objective"], listed["curve"]["mode"], listed["curve"]["epochs"]) == ("accuracy", "max", 9)
    assert listed["heavy"]["status"] == "missing"
    assert "curve     ready    accuracy (max)  9       loss accuracy" in call("workloads").out


def test_a_direction_that_the_file_gives_is_said_so(call: Call) -> None:
    shown = {line.split()[0]: " ".join(line.split()[2:]) for line in call("workloads").out.splitlines() if line}
    assert shown["command"].startswith("validation_accuracy (by the file)")
    assert shown["sleep"].startswith("validation_loss (min)")  # control
    assert "None" not in call("workloads").out


def test_one_workload_is_shown_with_its_options_metrics_and_default_space(call: Call) -> None:
    answer = call("workloads", "sleep")
    lines = [" ".join(line.split()) for line in answer.out.splitlines()]
    assert (answer.code, answer.err) == (0, "")
    assert lines[0].startswith("sleep: ready; 1 epoch unless")
    for line in (
        "option epoch_seconds default: 1.0",
        "metric validation_loss min, the objective unless the file names another",
        "metric validation_accuracy max",
        "dimension x float [-1, 1]",
    ):
        assert line in lines
    shown = json.loads(call("workloads", "sleep", "null", "--json").out)
    assert [workload["name"] for workload in shown] == ["sleep", "null"]
    assert shown[0]["options"]["epoch_seconds"] == 1.0
    assert (shown[1]["options"], shown[1]["default_space"]) == ({}, {"x": "float [-1, 1]"})


@pytest.mark.parametrize("name", [listing.plugin.name for listing in registry.list_workloads()])
def test_every_built_in_workload_declares_just_the_options_that_it_knows(name: str) -> None:
    workload = registry.workload_class(name)
    declared = workload.default_options
    assert declared is not None
    workload({key: value for key, value in declared.items() if value is not None})
    with pytest.raises(ExperimentError, match="no_such_option"):
        workload({"no_such_option": 1})


def test_a_workload_that_declares_no_options_is_shown_without_them(call: Call, fakes: None) -> None:
    lines = [" ".join(line.split()) for line in call("workloads", "curve").out.splitlines()]
    assert "option ? it does not declare them" in lines
    assert "dimension width int [1, 4] step 1" in lines
    assert call("workloads", "heavy").out.splitlines()[1].startswith("workload 'heavy' needs no_such_module")


def test_a_workload_that_is_not_there_or_broken_is_an_error_when_it_is_asked_for(call: Call, fakes: None) -> None:
    unknown = call("workloads", "curv")
    assert (unknown.code, "did you mean 'curve'?" in unknown.line) == (2, True)
    broken = call("workloads", "fake_plugins:Plain")
    assert (broken.code, "must be a subclass of Workload" in broken.line) == (6, True)
    among = call("workloads", "curve", "fake_plugins:Plain")
    assert (among.code, among.err, among.out.startswith("curve: ready")) == (6, broken.err, True)


def test_a_workload_without_a_default_space_is_broken(call: Call, fakes: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_space() -> None:
        raise KeyError("rate")

    monkeypatch.setattr(fake_plugins.Curve, "default_space", no_space)
    answer = call("workloads", "curve")
    assert (answer.code, "must give a default search space" in answer.line) == (6, True)


def test_the_schemas_accept_what_they_describe(call: Call, fakes: None, file: File) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads(call("schema").out)
    content = json.loads(file(seeds=[0, 1], sampler="random").read_text())
    jsonschema.validate(content, schema)
    with pytest.raises(jsonschema.ValidationError):  # control: a schema that accepts everything proves nothing
        jsonschema.validate({**content, "samplr": 1}, schema)
    run = json.loads(call("schema", "--run").out)
    jsonschema.Draft202012Validator.check_schema(run)
    assert "format_version" in json.dumps(run)


def test_katib_is_shown_with_its_platforms_algorithms_and_who_lacks_what(call: Call) -> None:
    answer = call("adapters", "katib")
    rows = [line.split(maxsplit=2) for line in answer.out.splitlines()]
    offered = {(row[0], row[1]): row[2] for row in rows if len(row) == 3}
    assert answer.code == 0
    assert "platforms: kubernetes (the default), emulated (a local stand-in, in no ranking)" in answer.out.splitlines()
    for algorithm in ("random", "grid", "tpe", "multivariate-tpe", "gp", "cmaes", "sobol"):
        assert offered["sampler", algorithm].startswith("yes ")
    for kind, name, support in (
        ("sampler", "hyperband", "not by tuneoff yet "),
        ("sampler", "pbt", "not by tuneoff yet "),
        ("pruner", "asha", "not by the framework "),
        ("pruner", "median", "yes "),
        ("feature", "retry", "not by tuneoff yet "),
    ):
        assert offered[kind, name].startswith(support)
