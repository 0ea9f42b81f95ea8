"""Before a run: what differs between the bundle and here is found, named, and put on its level."""

from __future__ import annotations

import hashlib
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

import data_workload
import fake_plugins
from builders.bundles import environment, metric, record_of, spec_of, with_trial
from tuneoff.base.capabilities import PackageStatus
from tuneoff.base.code_digest import code_digest
from tuneoff.errors import ExperimentError, MissingPackageError
from tuneoff.experiment.plan import Plan, PlannedRun
from tuneoff.experiment.power_settings import PowerSettings
from tuneoff.experiment.spec import RunSpec, Strategy, WorkloadSpec
from tuneoff.judge.comparison.environments import EnvironmentRow, Level
from tuneoff.record.run_record import RunRecord
from tuneoff.trust.bundle import reproduce as module
from tuneoff.trust.bundle.foreign import obeyed_power
from tuneoff.trust.bundle.manifest import BundleManifest
from tuneoff.trust.bundle.opened import Bundle, choose
from tuneoff.trust.bundle.reproduce import compare, preflight, prepare

OWN = WorkloadSpec(name="from_file", target="data_workload:FromFile")


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Be on the machine of `environment()`, with the fakes as the only plugins."""
    fake_plugins.register(monkeypatch, workloads=[fake_plugins.plugin(OWN.name, OWN.target)])
    monkeypatch.setattr(module, "capture", lambda packages: environment(versions={"torch": "2.15.0", "PyYAML": "6.0"}))
    (tmp_path / "pupils.csv").write_text("1,2\n")
    monkeypatch.setenv(data_workload.VARIABLE, str(tmp_path / "pupils.csv"))


def spec(**more: Any) -> RunSpec:
    return spec_of(**{"adapter": "rich", "workload": OWN, **more})


def record(run: RunSpec, **changed: Any) -> RunRecord:
    data = {"name": "pupils", "version": "1", "sha256": {"pupils.csv": hashlib.sha256(b"1,2\n").hexdigest()}, "size_bytes": 4}
    versions = {"tuneoff": "0.1.0", "torch": "2.15.0", "PyYAML": "6.0"}
    return record_of(run, environment={**environment(versions=versions, data=data), **changed})


def bundle_of(*records: RunRecord, **more: Any) -> Bundle:
    runs = tuple(PlannedRun(run_id=item.run_id, spec=item.run_spec(), label=item.run_spec().adapter, block=0) for item in records)
    manifest = BundleManifest(name="n", plan_id="p", tuneoff="0.1.0", tuneoff_code=code_digest(), verified=True, files=())
    fields: dict[str, Any] = {
        "path": Path("b.tar.gz"),
        "sha256": "0" * 64,
        "manifest": manifest,
        "plan": Plan(name="n", path="n.yaml", runs=runs),
        "records": {item.run_id: item for item in records},
        "problems": (),
    }
    return Bundle(**{**fields, **more})


def rows_of(bundle: Bundle, seed: int | None = None) -> dict[str, EnvironmentRow]:
    return {row.name: row for row in preflight(bundle, list(bundle.plan.counted), seed).rows}


def changed(bundle: Bundle, seed: int | None = None) -> dict[str, str]:
    return {name: row.level for name, row in rows_of(bundle, seed).items() if row.is_same is False}


def test_nothing_differs_on_the_same_machine_with_the_same_data() -> None:
    rows = rows_of(bundle_of(record(spec())))
    assert {row.is_same for row in rows.values()} == {True}


PLANTED: dict[str, tuple[dict[str, Any], Level, str]] = {
    "PyYAML": ({"versions": {"PyYAML": "5.4", "torch": "2.15.0"}}, "identity", "PyYAML is 6.0 here, 5.4 in the bundle"),
    "torch": ({"versions": {"torch": "2.14.0"}}, "notice", "torch is 2.15.0 here, 2.14.0 in the bundle"),
    "accelerators": ({"accelerators": [{"name": "H"}]}, "machine", 'accelerators is none here, [{"name": "H"}] in the bundle'),
    "data file pupils.csv": (
        {"data": {"sha256": {"pupils.csv": "ab" * 32}}},
        "identity",
        f"data file pupils.csv is SHA-256 {hashlib.sha256(b'1,2' + bytes([10])).hexdigest()[:12]} here, SHA-256 abababababab",
    ),
    "data file more.csv": (
        {"data": {"sha256": {"pupils.csv": hashlib.sha256(b"1,2\n").hexdigest(), "more.csv": "ab" * 32}}},
        "identity",
        "data file more.csv is no such file here, SHA-256 abababababab in the bundle",
    ),
    f"code of {OWN.name}": ({"workload": {"sha256": "cd" * 32}}, "notice", "cdcdcdcdcdcd in the bundle"),
}


@pytest.mark.parametrize("thing", PLANTED)
def test_a_planted_change_is_named_on_its_level_and_nothing_else_is(thing: str) -> None:
    environment_of, level, text = PLANTED[thing]
    bundle = bundle_of(record(spec(), **environment_of))
    assert changed(bundle) == {thing: level}
    assert text in preflight(bundle, list(bundle.plan.counted)).changed(level)[0]


def test_packages_that_the_workload_preloads_may_change_its_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data_workload.FromFile, "preload", ("torch.nn",))
    assert changed(bundle_of(record(spec(), versions={"torch": "2.14.0"}))) == {"torch": "numerics"}


def test_trials_of_another_seed_are_found_whatever_the_plan_says() -> None:
    other = record(spec(seed=1))
    planted = replace(other, run_id=spec().run_id, specification={**other.specification, "seed": 0})
    bundle = bundle_of(planted)
    assert changed(bundle) == {"seed": "identity"}
    assert "0, but t00000 of run" in rows_of(bundle)["seed"].a


def test_one_trial_of_another_seed_is_found() -> None:
    honest = record(spec())
    other = record(spec(seed=1)).trials[2].attempts
    assert changed(bundle_of(with_trial(honest, 2, attempts=other))) == {"seed": "identity"}


def test_another_seed_that_is_asked_for_is_a_change() -> None:
    bundle = bundle_of(record(spec()))
    assert changed(bundle, seed=7) == {"seed": "identity"}
    assert preflight(bundle, list(bundle.plan.counted), 7).changed("identity") == ["seed is 7 here, 0 in the bundle"]
    assert changed(bundle, seed=0) == {}


@pytest.mark.parametrize("dropped", [[], ["numpy==2.4.6"]])
def test_the_answer_names_the_versions_that_an_environment_could_not_keep(
    dropped: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    theirs = record(spec())
    ours = replace(theirs, environment={**theirs.environment, "made": {"dropped": dropped}})
    monkeypatch.setattr(module, "read_runs", lambda results: [ours])
    answer = compare(prepare(bundle_of(theirs)), tmp_path)
    assert answer.why.endswith("that could not be kept in an environment here: numpy==2.4.6") == bool(dropped)


def test_data_that_cannot_be_had_are_named_and_leave_the_run_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(data_workload.VARIABLE, str(tmp_path / "gone.csv"))
    bundle = bundle_of(record(spec()))
    assert changed(bundle) == {f"data of {OWN.name}": "identity"}
    request = prepare(bundle)
    assert request.runnable == []
    assert "gone.csv cannot be read" in next(iter(request.not_here.values()))


def verification(**more: Any) -> EnvironmentRow:
    bundle = bundle_of(record(spec()))
    manifest = {name: more.pop(name) for name in ("verified", "tuneoff_code") if name in more}
    return rows_of(replace(bundle, manifest=msgspec.structs.replace(bundle.manifest, **manifest), **more))[
        "verification of the bundle"
    ]


def test_numbers_that_do_not_follow_make_it_another_experiment_whoever_it_says_made_them() -> None:
    assert verification().is_same
    assert (verification(verified=False).is_same, verification(verified=False).level) == (False, "identity")
    for maker in ({}, {"tuneoff_code": "ab"}):
        altered = verification(problems=("run.json: stored 1, recomputed 2",), **maker)
        assert (altered.is_same, altered.level) == (False, "identity")


def test_what_an_old_record_lacks_is_unknown_and_no_change() -> None:
    old = replace(record_of(spec()), environment={"cpu": {}, "data": {"sha256": {}}})
    rows = rows_of(bundle_of(replace(old, environment={})))
    assert (rows["CPU instruction sets"].is_same, rows["CPU"].is_same, rows["python"].is_same) == (None, None, None)


# --- which runs ---


def jct(run: RunSpec, seconds: float) -> RunRecord:
    return record_of(run, metrics={"time.jct": metric(1000 * seconds)})


def labels(bundle: Bundle, **more: Any) -> list[tuple[str, str, int]]:
    found = choose(bundle, **more)
    return [(run.label, run.spec.experiment.sampler.name, run.spec.seed) for run in found]


@pytest.fixture
def several() -> Bundle:
    random = [jct(spec(seed=seed), [5, 3, 4][seed]) for seed in range(3)]
    fixed = [jct(spec(seed=seed, sampler=Strategy(name="fixed")), [9, 8, 7][seed]) for seed in range(3)]
    other = [jct(spec(seed=0, adapter="plain"), 1)]
    failed = replace(jct(spec(seed=1, adapter="plain"), 0.1), status="failed", reason="x")
    return bundle_of(*random, *fixed, *other, failed)


def test_the_cheapest_run_of_each_adapter_is_chosen(several: Bundle) -> None:
    assert labels(several) == [("rich", "random", 1), ("plain", "random", 0)]


def test_more_runs_come_from_every_cell_first(several: Bundle) -> None:
    assert labels(several, runs=2) == [("rich", "random", 1), ("rich", "fixed", 2), ("plain", "random", 0)]
    assert labels(several, runs=3) == [("rich", "random", 1), ("rich", "random", 2), ("rich", "fixed", 2), ("plain", "random", 0)]
    assert len(labels(several, everything=True)) == 7
    assert labels(several, adapters=["plain"]) == [("plain", "random", 0)]


def test_copies_of_a_job_are_chosen_together_count_once_and_only_where_all_are_done() -> None:
    def together(seed: int) -> list[RunRecord]:
        first = spec(seed=seed)
        copies = (replace(first, copy=copy, experiment=replace(first.experiment, copies=2)) for copy in range(2))
        return [jct(run, 1 + seed) for run in copies]

    (alone, beside), others, last = together(0), together(1), together(2)
    bundle = bundle_of(alone, replace(beside, status="failed", reason="x"), *others, *last)
    assert [seed for _, _, seed in labels(bundle)] == [1, 1]
    assert [seed for _, _, seed in labels(bundle, runs=2)] == [1, 1, 2, 2]


def test_unknown_adapters_and_bundles_without_a_done_run_are_refused(several: Bundle) -> None:
    with pytest.raises(ExperimentError, match="has no run of adapter 'other' that is done; it has: plain, rich"):
        choose(several, adapters=["plain", "other"])
    with pytest.raises(ExperimentError, match="has no run that is done"):
        choose(bundle_of(replace(record(spec()), status="failed", reason="x")))


def test_a_platform_outside_this_machine_is_left_out_unless_asked_for() -> None:
    near, far = jct(spec(adapter="plain"), 1), jct(spec(platform="cluster"), 1)
    bundle = bundle_of(near, far)
    assert [label for label, _, _ in labels(bundle)] == ["plain"]
    assert [label for label, _, _ in labels(bundle, everything=True)] == ["plain"]
    with pytest.raises(ExperimentError, match=r"has only runs outside this machine \(rich@cluster\), and none is run there"):
        choose(bundle_of(far))
    assert [label for label, _, _ in labels(bundle, adapters=["rich"])] == ["rich"]


def test_an_adapter_that_is_not_installed_is_one_line() -> None:
    bundle = bundle_of(record(spec(adapter="rich")))
    gone = replace(bundle.plan.runs[0], spec=replace(bundle.plan.runs[0].spec, adapter="gone"))
    with pytest.raises(ExperimentError, match="no adapter named 'gone'"):
        prepare(replace(bundle, plan=replace(bundle.plan, runs=(gone,))))


def test_a_package_that_is_missing_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "adapter 'rich' needs the PyYAML package; run: pip install rich-library"
    found = {"rich": PackageStatus(state="missing", text=text), "plain": PackageStatus(state="ready")}
    monkeypatch.setattr("tuneoff.experiment.skip_check.framework_status", lambda name, capabilities: found[name])
    with pytest.raises(MissingPackageError, match="needs the PyYAML package"):
        prepare(bundle_of(record(spec())))
    request = prepare(bundle_of(record(spec()), record(spec(adapter="plain"))))
    assert [run.label for run in request.runnable] == ["plain"]  # the others are run
    assert list(request.not_here.values()) == [text]


@pytest.mark.parametrize(
    ("meter", "options", "more"),
    [
        ("model", {"cpuinfo": "/dev/zero"}, {}),
        ("model", {"cpu": "default"}, {}),
        ("model", {"watts_per_core": "1"}, {}),
        ("auto", {"model": {"cpuinfo": "/dev/zero"}}, {}),
        ("auto", {"rapl": {"root": "/home"}}, {}),
        ("constant", {"watts": True}, {}),
        ("constant", {"watts": 5}, {"interval_seconds": 1e-9}),
        ("constant", {"watts": 5}, {"interval_seconds": math.nan}),
        ("prometheus", {}, {}),
        ("data_workload:FromFile", {}, {}),
    ],
)
def test_no_meter_of_a_bundle_is_given_more_than_numbers(meter: str, options: dict[str, Any], more: dict[str, Any]) -> None:
    settings, problem = obeyed_power(PowerSettings(meter=meter, options=options, **more))
    assert settings == PowerSettings()
    assert (problem or "").startswith("power: meter auto, as no bundle is obeyed in ")


def test_numbers_of_a_bundle_s_meter_are_obeyed() -> None:
    coefficients: dict[str, Any] = {"joules_per_cpu_second": 3, "watts_per_core": 1, "low": [2, 0.5], "high": [4, 2]}
    given: dict[str, dict[str, Any]] = {"model": coefficients, "constant": {"watts": 50}, "auto": {}, "none": {}}
    for meter, options in given.items():
        settings = PowerSettings(meter=meter, options=options)
        assert obeyed_power(settings) == (settings, None)


def test_a_run_with_another_seed_is_named_by_both_seeds() -> None:
    bundle = bundle_of(*(record(spec(seed=seed)) for seed in (0, 7)))
    texts = {seed: list(prepare(bundle, everything=True, seed=seed).names.values()) for seed in (None, 7)}
    assert texts[None] == ["rich random seed 0", "rich random seed 7"]
    assert texts[7] == ["rich random seed 7 (0 in the bundle)", "rich random seed 7"]
