"""What a bundle gives as a workload's options is shown, and acts on nothing beyond its trials."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from builders.bundles import packed, spec_of
from builders.event_logs import example_a
from builders.results_folders import Results
from builders.worked_examples import write_example
from command_line import Call
from data_workload import Telltale
from tuneoff.errors import ExperimentError
from tuneoff.experiment.spec import RunSpec, WorkloadSpec
from tuneoff.trust.bundle.opened import served_here
from tuneoff_workloads.faulty import ALL_KINDS, Faulty

GENTLE = {"kinds": ["raise", "nan"], "rate": 0.5}
HARMFUL: list[dict[str, Any]] = [
    {},  # all kinds of faults
    {**GENTLE, "once": "/tmp/a-file-of-mine"},
    {**GENTLE, "once": "relative"},
    {**GENTLE, "fill_folder": "/tmp"},
    *({"kinds": [kind]} for kind in ("hang", "sigkill", "out_of_memory", "disk_full", "outside")),
    {"kinds": ["raise", "out_of_memory"], "allocate_mb": 1e9},
]


def foreign(options: Mapping[str, Any], name: str = "faulty") -> RunSpec:
    target = "tuneoff_workloads.faulty:Faulty" if name == "faulty" else name
    return spec_of(workload=WorkloadSpec(name=name, target=target, options=options))


@pytest.mark.parametrize("options", HARMFUL, ids=str)
def test_options_that_make_files_take_memory_or_end_processes_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(
        ExperimentError, match=r"'faulty' does not obey these options of a bundle: option '(once|fill_folder|kinds)'"
    ):
        served_here(foreign(options))


def test_no_command_of_a_bundle_reaches_other_hosts() -> None:
    options = {"hosts": ["a"], "host_command": "touch /tmp/{host}"}
    spec = replace(foreign(GENTLE), adapter="ray-tune", platform="cluster", options=options)
    with pytest.raises(ExperimentError, match="no run of a bundle is put on other hosts, but this one: starts Ray on"):
        served_here(spec)
    with pytest.raises(ExperimentError, match="but this one: Ray's cluster at no address"):
        served_here(replace(spec, options={}))
    assert served_here(replace(spec, platform="local", options={}))


@pytest.mark.parametrize("platform", ["local", "kubernetes"])
@pytest.mark.parametrize("url", ["redis://a.example", "postgresql+psycopg://u:$HOME@a.example/x", "grpc://a.example:1"])
def test_no_storage_at_a_url_of_a_bundle_is_reached(url: str, platform: str) -> None:
    spec = replace(foreign(GENTLE), adapter="optuna", platform=platform, options={"image": "x", "storage": url})
    for given in (url, {"url": url}):
        with pytest.raises(ExperimentError, match=r"no run of a bundle has its storage at a URL .*; unpack the bundle") as caught:
            served_here(replace(spec, options={"image": "x", "storage": given}))
        assert "\n" not in str(caught.value)
    for here in ({}, {"storage": "sqlite"}, {"storage": {"kind": "redis", "managed": True}}):
        assert served_here(replace(spec, platform="local", options=here)).options == here


def test_reproduce_does_not_run_a_run_whose_storage_is_at_a_url(call: Call, tmp_path: Path) -> None:
    bundle = bundle_with(tmp_path, adapter="optuna", options={"storage": "redis://127.0.0.1:1"})
    shown = call("reproduce", bundle, "--plan")
    assert "no run of a bundle has its storage at a URL" in shown.out + shown.err
    assert json.loads(call("reproduce", bundle, "--json").out)["exit_code"] != 0
    assert not (tmp_path / "results").exists()


def test_options_that_only_change_a_trial_s_result_are_obeyed() -> None:
    assert served_here(foreign(GENTLE)).experiment.workload.options == GENTLE
    obeyed = [kind for kind in ALL_KINDS if Faulty.refuse_foreign({"kinds": [kind]}) is None]
    assert set(ALL_KINDS) - set(obeyed) == {"hang", "sigkill", "out_of_memory", "disk_full", "outside"}


@pytest.mark.parametrize(
    "value", ["/etc/passwd", "~/x", "..", "https://a.example/x", "a\\b", ["x", {"k": "/y"}], {"/k": 1}], ids=str
)
def test_a_workload_that_says_nothing_of_it_is_given_no_path(value: object) -> None:
    with pytest.raises(ExperimentError, match="option 'source' may be a path"):
        served_here(foreign({"source": value}, "data_workload:Telltale"))
    assert served_here(foreign({"source": ["plain", 3, None]}, "data_workload:Telltale"))
    assert Telltale.made == []


def bundle_with(tmp_path: Path, workload: WorkloadSpec | None = None, **changes: Any) -> Path:
    """Return a bundle of a run of example A with another workload, or with changes of its specification."""
    spec = replace(example_a()[1], **changes)
    if workload is not None:
        spec = replace(spec, experiment=replace(spec.experiment, workload=workload))
    results = Results(tmp_path / "stranger", [spec])
    write_example(results.folder(spec), "A")
    results.finish(spec)
    return packed(results.path, tmp_path / "stranger.tar.gz", allow_unverified=True).path


def test_reproduce_shows_the_options_and_runs_none_that_makes_a_file(call: Call, tmp_path: Path) -> None:
    mark = tmp_path / "made"
    options = {"kinds": ["raise"], "rate": 1.0, "once": str(mark)}
    workload = WorkloadSpec(name="faulty", target="tuneoff_workloads.faulty:Faulty", options=options)
    bundle = bundle_with(tmp_path, workload)
    shown = call("reproduce", bundle, "--plan")
    assert shown.code == 0
    assert f'"once":"{mark}"' in shown.out
    assert "not run: serial random seed 0: workload 'faulty' does not obey" in shown.out
    found = json.loads(call("reproduce", bundle, "--json").out)
    assert (found["answer"], found["exit_code"]) == ("INCONCLUSIVE", 7)
    assert found["workloads"] == [{"name": "faulty", "options": options}]
    assert not mark.exists()
    assert not (tmp_path / "results").exists()


def test_a_workload_is_not_even_made_with_options_that_are_refused(call: Call, tmp_path: Path) -> None:
    name = "data_workload:Telltale"
    bundle = bundle_with(tmp_path, WorkloadSpec(name=name, target=name, options={"source": "/x"}))
    assert call("reproduce", bundle, "--plan").code == 0
    assert Telltale.made == []
