"""Of a bundle's options those are obeyed that the installed adapter and workload allow, as numbers and words; all are shown."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest

import data_workload
import fake_plugins
from builders.bundles import spec_of
from builders.strangers import bundle_of, foreign_spec
from command_line import Call
from data_workload import Telltale
from tuneoff import registry
from tuneoff.base.space import Categorical, Constant, SearchSpace
from tuneoff.errors import ExperimentError, UnknownNameError
from tuneoff.experiment.spec import RunSpec, Strategy, WorkloadSpec
from tuneoff.trust.bundle.opened import served_here
from tuneoff_faults.faulty import ALL_KINDS, Faulty

GENTLE = {"kinds": ["raise", "nan"], "rate": 0.5}
HARMFUL: list[dict[str, Any]] = [
    {},  # all kinds of faults
    {**GENTLE, "mark": "/tmp/a-file-of-mine"},
    {**GENTLE, "mark": "relative"},
    {**GENTLE, "fill_folder": "/tmp"},
    *({"kinds": [kind]} for kind in ("hang", "sigkill", "out_of_memory", "disk_full", "outside")),
    {"kinds": ["raise", "out_of_memory"], "allocate_mb": 1e9},
]
NO_WORDS = [
    "/etc/passwd",
    "~/x",
    "..",
    "x.py",
    "a\\b",
    "https://a.example/x",
    "host:1",
    "evil:X",
    "os.system",
    "$HOME",
    "{{x}}",
    "a b",
    "-x",
    "a\n",
    "",
    "x" * 101,
    ["x", {"k": "/y"}],
    {"/k": 1},
    [[[[[[[[[[1]]]]]]]]]],
]
WORDS: list[Any] = [
    "plain",
    "Nelder-Mead",
    "fashion_mnist",
    "é",
    3,
    -1.5,
    True,
    None,
    [64, 32],
    {"kind": ["redis"], "managed": True},
]


def foreign(options: Mapping[str, Any], name: str = "faulty") -> RunSpec:
    return spec_of(workload=WorkloadSpec(name=name, target="os:system", options=options))


@pytest.fixture
def telltale(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Install a workload that takes any options, allows a bundle `source` alone, and tells with which it was made."""
    known = {kind: list(registry.scan(kind)) for kind in get_args(registry.Kind)}
    known["workload"].append(fake_plugins.plugin("telltale", "data_workload:Telltale"))
    monkeypatch.setattr(registry, "scan", known.__getitem__)
    monkeypatch.setattr(Telltale, "foreign_options", frozenset({"source"}))
    yield "telltale"
    Telltale.made.clear()


@pytest.mark.parametrize("options", HARMFUL, ids=str)
def test_options_that_make_files_take_memory_or_end_processes_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ExperimentError, match=r"'faulty' does not obey these options of a bundle: option .*; unpack the bundle"):
        served_here(foreign(options))


def test_options_that_only_change_a_trial_s_result_are_obeyed() -> None:
    assert served_here(foreign(GENTLE)).experiment.workload.options == GENTLE
    obeyed = [kind for kind in ALL_KINDS if Faulty.refuse_foreign({"kinds": [kind]}) is None]
    assert set(ALL_KINDS) - set(obeyed) == {"hang", "sigkill", "out_of_memory", "disk_full", "outside"}


@pytest.mark.parametrize(
    ("adapter", "platform", "options"),
    [
        ("ray-tune", "cluster", {"hosts": ["a"], "host_command": "touch /tmp/{host}"}),
        ("ray-tune", "cluster", {}),
        ("serial", "slurm", {}),
        ("optuna", "slurm", {"setup": ["touch x"]}),
        ("serial", "kubernetes", {"image": "x"}),
        ("serial", "kubernetes-jobs", {"image": "x"}),
        ("optuna", "kubernetes", {"image": "x", "storage": "postgresql+psycopg://u:$HOME@a.example/x"}),
        ("katib", "kubernetes", {"image": "x", "kubeconfig": "kc"}),
        ("serial", "/tmp/x", {}),
    ],
)
def test_no_run_of_a_bundle_is_put_elsewhere(adapter: str, platform: str, options: dict[str, Any]) -> None:
    with pytest.raises(ExperimentError, match=r"a bundle's run is run on this machine alone \(platform 'local'.*; unpack"):
        served_here(replace(foreign(GENTLE), adapter=adapter, platform=platform, options=options))


def test_an_emulated_platform_is_obeyed_where_the_installed_adapter_declares_it() -> None:
    spec = replace(foreign(GENTLE), adapter="katib", platform="emulated", options={"api_seconds": 5})
    assert served_here(spec).options == {"api_seconds": 5}
    for name in ("kubeconfig", "context", "image", "namespace", "katib_namespace", "service_account", "data_claim"):
        with pytest.raises(ExperimentError, match=f'option "{name}" with "word" is not one that a bundle may set'):
            served_here(replace(spec, options={name: "word"}))
    with pytest.raises(ExperimentError, match="platform 'local'"):
        served_here(replace(spec, adapter="serial"))


@pytest.mark.parametrize("url", ["redis://a.example", "postgresql+psycopg://u:$HOME@a.example/x", "grpc://a.example:1"])
def test_a_storage_at_a_url_is_not_reached_and_one_of_this_machine_is(url: str) -> None:
    spec = replace(foreign(GENTLE), adapter="optuna")
    for given in (url, {"url": url}):
        with pytest.raises(ExperimentError, match="option 'storage' may be numbers and words, but has") as caught:
            served_here(replace(spec, options={"storage": given}))
        assert "\n" not in str(caught.value)
    for here in ({}, {"storage": "sqlite"}, {"storage": {"kind": "redis", "managed": True}}):
        assert served_here(replace(spec, options=here)).options == here


@pytest.mark.parametrize("value", NO_WORDS, ids=str)
def test_what_is_no_word_is_given_to_no_part_of_a_run(value: Any, telltale: str) -> None:
    allowed = foreign({"source": value}, telltale)
    experiment = foreign({}, telltale).experiment  # allowed but for the part that has the value
    spaces = [SearchSpace({"x": dimension}) for dimension in (Constant(value=value), Categorical(choices=("a", value)))]
    named = replace(allowed, experiment=replace(experiment, search_space=SearchSpace({str(value): Constant(value=1)})))
    parts = {
        "option 'source' may be": allowed,
        "option 'storage' may be": replace(foreign(GENTLE), adapter="optuna", options={"storage": value}),
        "`sampler` of a bundle may have": replace(
            allowed, experiment=replace(experiment, sampler=Strategy(name="tpe", options={"x": value}))
        ),
        "`pruner` of a bundle may have": replace(
            allowed, experiment=replace(experiment, pruner=Strategy(name="own", options={"x": value}))
        ),
        "`search_space` of a bundle": replace(allowed, experiment=replace(experiment, search_space=spaces[0])),
        "`search_space` of a bundle may have": replace(allowed, experiment=replace(experiment, search_space=spaces[1])),
        **({"`search_space` of a bundle may": named} if isinstance(value, str) else {}),
        "`configurations` of a bundle may have": replace(allowed, experiment=replace(experiment, configurations=({"x": value},))),
    }
    for problem, spec in parts.items():
        with pytest.raises(ExperimentError, match=problem):
            served_here(spec)
    assert Telltale.made == []


@pytest.mark.parametrize("value", WORDS, ids=str)
def test_numbers_and_words_are_obeyed_under_names_that_are_allowed(value: Any, telltale: str) -> None:
    assert served_here(foreign({"source": value}, telltale)).experiment.workload.options == {"source": value}
    with pytest.raises(ExperimentError, match=r'option "other" with .* is not one that a bundle may set \(source\)'):
        served_here(foreign({"other": value}, telltale))


def test_a_workload_that_says_nothing_of_bundles_is_given_no_options(telltale: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(Telltale, "foreign_options")
    assert served_here(foreign({}, telltale))
    with pytest.raises(ExperimentError, match=r"is not one that a bundle may set \(none\)"):
        served_here(foreign({"source": 1}, telltale))


@pytest.mark.parametrize("name", ["data_workload:Telltale", "subprocess:run", ":", "x:"])
def test_a_module_that_a_bundle_names_is_not_imported(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, data_workload.__name__)
    for spec in (foreign({}, name), replace(foreign(GENTLE), adapter=name)):
        with pytest.raises(UnknownNameError, match="a bundle brings no code"):
            served_here(spec)
    assert data_workload.__name__ not in sys.modules


def test_reproduce_shows_the_options_and_runs_none_that_makes_a_file(call: Call, tmp_path: Path) -> None:
    mark = tmp_path / "made"
    options = {"kinds": ["raise"], "rate": 1.0, "mark": str(mark)}
    bundle = bundle_of(tmp_path, foreign_spec({"name": "faulty", "options": options}))
    shown = call("reproduce", bundle, "--plan")
    assert shown.code == 0
    assert f'"mark":"{mark}"' in shown.out
    assert "not run: serial random seed 0: workload 'faulty' does not obey" in shown.out
    found = json.loads(call("reproduce", bundle, "--json").out)
    assert (found["answer"], found["exit_code"]) == ("INCONCLUSIVE", 7)
    assert found["workloads"] == [{"name": "faulty", "options": options}]
    assert not mark.exists()
    assert not (tmp_path / "results").exists()


def test_a_workload_is_not_even_made_with_options_that_are_refused(call: Call, tmp_path: Path, telltale: str) -> None:
    bundle = bundle_of(tmp_path, foreign_spec({"name": telltale, "options": {"source": "/x"}}))
    assert call("reproduce", bundle, "--plan").code == 0
    assert Telltale.made == []
