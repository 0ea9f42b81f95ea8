"""`plan`: every run with its id, skips with reasons, the budget; overrides; nothing is started."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path

import pytest

import fake_plugins
from command_line import Call, File
from tuneoff import registry
from tuneoff.cli.run import first_run
from tuneoff.cli.selection import overridden_plan

METERS = {
    "rapl": "tuneoff_meters.rapl:RaplMeter",
    "nvml": "tuneoff_meters.nvml:NvmlMeter",
    "model": "tuneoff.measure.power.model_meter:ModelMeter",
    "command": "tuneoff_meters.command:CommandMeter",
    "replay": "tuneoff_meters.replay:ReplayMeter",
    "codecarbon": "tuneoff_meters.codecarbon:CodecarbonMeter",
}


def test_every_run_has_its_line(call: Call, file: File, fakes: None) -> None:
    path = file(adapters=["plain", "missing"], seeds=[0, 1], matrix={"sampler": ["random", "default"]}, warm_up=True)
    answer = call("plan", path)
    assert (answer.code, answer.err) == (0, "")
    lines = answer.out.splitlines()
    plan = json.loads(call("plan", path, "--json").out)
    for run in plan["runs"]:
        line = next(line for line in lines if line.startswith(run["run_id"]))
        assert run["same_as"] or (run["skip_reason"] or "") in line
    assert sum(line.endswith("  = random") for line in lines) == 2
    assert sum("skipped: adapter 'missing' needs the nowhere-tune package" in line for line in lines) == 4
    assert lines[-1].startswith("2 runs, 1 warm-up, 6 skipped; at most 10 trials and 90 epochs; how long it takes is known ")
    digests = f"plan {plan['plan_id']}, analysis {plan['analysis_digest'][:16]}"
    assert lines[-1].endswith(f" only if every timeout strikes); {digests}")
    assert list(path.parent.iterdir()) == [path]


def test_a_plan_of_no_runs_has_no_budget(call: Call, file: File, fakes: None) -> None:
    path = file(adapters=["missing"])
    plan_id = json.loads(call("plan", path, "--json").out)["plan_id"]
    assert call("plan", path).out.splitlines()[-1].startswith(f"0 runs, 1 skipped; plan {plan_id}, analysis ")


def test_plans_that_differ_in_what_is_charged_alone_are_told_apart(call: Call, file: File, fakes: None) -> None:
    """Their runs, and so their plan ids, are the same."""
    last = [call("plan", file(**parts)).out.splitlines()[-1] for parts in ({}, {"power": "none"}, {"prices": "none"})]
    assert len(set(last)) == 3
    assert len({line.partition(", analysis ")[0] for line in last}) == 1


@pytest.mark.parametrize(
    ("power", "problem"),
    [
        ("rappl", "known: auto, .*none.*rapl, replay; or give it as module:Class"),
        ({"meter": "rapl", "options": {"roo": "x"}}, "power.options: meter rapl has no option 'roo'; did you mean 'root'"),
        ({"options": {"raple": {}}}, "power.options: meter auto has no option 'raple'; did you mean 'rapl'"),
        ({"options": {"model": {"cpu": "Xeon"}}}, "power.options: meter model: no CPU 'Xeon' in the table"),
        ({"meter": "command", "options": {}}, "power.options: meter command needs `command`"),
        ({"meter": "replay", "options": {"path": "no.csv"}}, "power.meter 'replay' cannot be used: .*no.csv cannot be read"),
    ],
)
def test_a_meter_or_an_option_that_does_not_fit_is_refused_without_opening_one(
    call: Call, file: File, monkeypatch: pytest.MonkeyPatch, fakes: None, power: object, problem: str
) -> None:
    meters = [fake_plugins.plugin(name, target) for name, target in METERS.items()]
    monkeypatch.setattr(registry, "scan", lambda kind, known=registry.scan: meters if kind == "power_meter" else known(kind))
    for command in ("plan", "compare"):
        answer = call(command, file(power=power))
        assert answer.code == 2
        assert re.search(problem, answer.line)


def test_a_recording_without_idle_power_is_said_before_the_first_run(call: Call, file: File, fakes: None, tmp_path: Path) -> None:
    recording = tmp_path / "there" / "recording.csv"
    recording.parent.mkdir()
    recording.write_text("seconds,domain,watts\n0,wall,40\n9,wall,40\n")
    path = file(power={"meter": "tuneoff_meters.replay:ReplayMeter", "options": {"path": str(recording)}})
    line = "no idle power of wall, so no run will have energy of trials or job; say it in the recording: `# idle wall: WATTS`"
    assert line in call("plan", path).out
    recording.write_text(f"# idle wall: 30\n{recording.read_text()}")
    assert "idle power" not in call("plan", path).out, "the control"
    slots = recording.read_text().replace("wall", "slot-0").removeprefix("# idle slot-0: 30\n")
    recording.write_text(slots)
    assert "idle power" not in call("plan", path).out, "slots need none"


def test_a_plan_names_variants_as_the_tables_do(call: Call, file: File, fakes: None) -> None:
    header, first, *_ = call("plan", file(matrix={"workers.count": [1, 2]}, budget={"trials": 1})).out.splitlines()
    assert header.split() == ["RUN", "ADAPTER", "SAMPLER", "VARIANT", "SEED", "BUDGET"]
    assert "workers=1" in first.split()
    assert "VARIANT" not in call("plan", file()).out


def test_a_plan_says_what_is_metered_and_charged(call: Call, file: File, fakes: None, tmp_path: Path) -> None:
    power, carbon, prices, _ = call("plan", file()).out.splitlines()[-4:]
    assert power == "power: meter auto, the best that the host has, read every 0.2 s"
    assert carbon.startswith("carbon: 480.62 gCO2eq/kWh, zone WORLD, 2023 (CodeCarbon ")
    assert carbon.endswith("; name the zone with carbon: {zone: ...}")
    assert prices == "prices: AWS Fargate on demand, Linux/x86, US East (N. Virginia), 2026-03, rented"
    meter = {"meter": "one:Meter", "options": {"watts": 3}, "interval_seconds": 1}
    path = file(power=meter, carbon={"g_per_kwh": 250, "source": "ours", "date": "2026"}, prices="none")
    assert call("plan", path).out.splitlines()[-4:-1] == [
        "power: meter one:Meter (watts: 3), read every 1 s",
        "carbon: 250 gCO2eq/kWh, 2026 (ours)",
        "prices: none (the experiment file says `prices: none`)",
    ]
    plan = json.loads(call("plan", path, "--json").out)
    assert plan["power"] == plan["analysis"]["power"] == meter
    assert plan["accounting"]["intensity"] == plan["analysis"]["carbon"]
    assert plan["analysis"]["prices"] is None


def test_a_plan_says_where_a_series_does_not_cover_the_present(call: Call, file: File, fakes: None, tmp_path: Path) -> None:
    def lines(start: str, end: str) -> list[str]:
        (tmp_path / "grid.csv").write_text(f"time,g_per_kwh\n{start},100\n{end},200\n")
        answer = call("plan", file(carbon={"series": str(tmp_path / "grid.csv")}))
        assert (answer.code, answer.err) == (0, "")
        return [line for line in answer.out.splitlines() if line.startswith("carbon: ")]

    assert len(lines("2020-01-01T00:00:00Z", "2099-01-01T00:00:00Z")) == 1
    for start, end, until in (("2020-01-01", "2020-01-02", "2020-01-03"), ("2090-01-01", "2090-01-02", "2090-01-03")):
        about, lacking = lines(f"{start}T00:00:00Z", f"{end}T00:00:00Z")
        assert about.startswith("carbon: series of 2 values")
        assert f"the series covers {start}T00:00:00Z to {until}T00:00:00Z, but now it is " in lacking
        assert "runs that begin now will have no CO2e; give a series that covers them" in lacking


def test_a_plan_says_which_runs_will_have_no_cost_and_why(call: Call, file: File, fakes: None, tmp_path: Path) -> None:
    path = tmp_path / "prices.yaml"

    def lines(prices: str, **more: object) -> list[str]:
        path.write_text(f"name: ours\nsource: x\ndate: 2026-05\n{prices}")
        found = call("plan", file(adapters=["plain", "rich"], prices=str(path), **more)).out.splitlines()
        return [line.removeprefix("prices: ") for line in found if "will have no cost" in line]

    vcpu, memory = "usd_per_vcpu_hour: 0.05\n", "usd_per_gb_hour: 0.01\n"
    reason = "the price file (ours) has no `usd_per_gb_hour`, but a slot has memory; add it there"
    assert lines(vcpu) == [f"plain, rich will have no cost: {reason}"]
    (unknown,) = lines(vcpu + memory)
    assert unknown.startswith("plain, rich will have no cost: a slot's memory is not known: give `workers.memory_mb`, or")
    assert lines(vcpu + memory, workers={"memory_mb": 500}) == []
    assert lines(vcpu + "usd_per_gb_hour: 0\n") == [], "memory that is free need not be known"
    assert lines("premises: own\nusd_per_kwh: 0.3\n") == []


def test_overrides_change_the_runs_and_their_ids(call: Call, file: File, fakes: None) -> None:
    path = file(adapters=["plain", {"name": "rich", "options": {"storage": "x"}}], seeds=[0, 1])
    as_written = json.loads(call("plan", path, "--json").out)
    small = json.loads(call("plan", path, "--adapter", "rich", "plain", "--trials", "2", "--seeds", "7", "--json").out)
    assert len(as_written["runs"]) == 4
    specs = {run["spec"]["adapter"]: run["spec"] for run in small["runs"]}
    assert set(specs) == {"rich", "plain"}
    assert {spec["seed"] for spec in specs.values()} == {7}
    assert {spec["experiment"]["budget"]["trials"] for spec in specs.values()} == {2}
    assert specs["rich"]["options"] == {"storage": "x"}
    assert small["plan_id"] != as_written["plan_id"]


def test_an_override_wins_over_an_axis(call: Call, file: File, fakes: None) -> None:
    path = file(matrix={"budget.trials": [3, 4], "workers.count": [1, 2]})
    plan = json.loads(call("plan", path, "--trials", "2", "--json").out)
    assert [run["spec"]["experiment"]["variant"] for run in plan["runs"]] == [{"workers.count": 1}, {"workers.count": 2}]


def test_the_first_run_is_one_run_of_the_whole_matrix(file: File, fakes: None) -> None:
    path = file(adapters=["plain", "rich"], seeds=[3, 4], matrix={"sampler": ["random", "fixed"]}, configurations={"sample": 2})
    path.write_text(path.read_text().replace('"budget": {"trials": 5}', '"budget": {"trials": 2}'))
    whole = {run.run_id for run in overridden_plan(path).counted}
    (run,) = first_run(overridden_plan(path, adapters=["rich"])).runs
    assert run.run_id in whole
    assert (run.spec.adapter, run.spec.seed, run.spec.warm_up) == ("rich", 3, False)
    (other,) = first_run(overridden_plan(path, adapters=["rich"], seeds=[4], sampler="fixed")).runs
    assert other.run_id in whole
    assert (other.spec.seed, other.spec.experiment.sampler.name) == (4, "fixed")


def test_a_default_that_is_random_is_run_as_random(file: File, fakes: None) -> None:
    path = file(matrix={"sampler": ["default", "random"]})
    (run,) = first_run(overridden_plan(path)).runs
    assert run.skip_reason is None
    assert run.spec.experiment.sampler.name == "random"


def test_an_adapter_beside_the_file_needs_no_installation(
    call: Call, file: File, fakes: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "beside_the_file.py").write_text("from fake_plugins import Plain as Mine\n")
    monkeypatch.setattr(sys, "path", [folder for folder in sys.path if folder not in ("", str(tmp_path))])
    answer = call("plan", file(), "--adapter", "beside_the_file:Mine", "--json")
    (run,) = json.loads(answer.out)["runs"]
    assert run["spec"]["adapter_target"] == "beside_the_file:Mine"
    assert str(tmp_path) in os.environ["PYTHONPATH"].split(os.pathsep)  # the run's processes import it too


def test_an_emulated_platform_is_marked_and_said(call: Call, file: File, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_plugins.register(monkeypatch, fake_plugins.plugin("twofold", "fake_plugins:Twofold"))
    path = file(adapters=["plain", {"name": "twofold", "platform": "pretended"}])
    lines = call("plan", path).out.splitlines()
    line = next(line for line in lines if "twofold" in line)
    assert "twofold@pretended (emulated)  pretended (emulated)  " in line
    assert "emulated, so shown but in no ranking or comparison: twofold@pretended (emulated)" in lines
    runs = json.loads(call("plan", path, "--json").out)["runs"]
    assert [(run["label"], run["emulated"]) for run in runs] == [("plain", False), ("twofold@pretended (emulated)", True)]
    assert "emulated" not in call("plan", file(adapters=["plain", {"name": "twofold", "platform": "cluster"}])).out


def test_an_adapter_is_chosen_on_a_platform_as_tables_write_it(call: Call, file: File, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_plugins.register(monkeypatch, fake_plugins.plugin("twofold", "fake_plugins:Twofold"))
    path = file(adapters=["plain", {"name": "twofold", "platform": "cluster"}, "twofold@emulated"])

    def chosen(*adapters: str) -> list[str]:
        return [run["label"] for run in json.loads(call("plan", path, "--json", "--adapter", *adapters).out)["runs"]]

    assert chosen("twofold") == ["twofold@cluster", "twofold@emulated"]
    assert chosen("twofold@emulated") == ["twofold@emulated"]
    assert chosen("twofold@pretended", "plain") == ["twofold@pretended (emulated)", "plain"]
    path = file(adapters=[{"name": "twofold", "options": {"depth": 3}}, {"name": "twofold", "platform": "emulated"}])
    runs = json.loads(call("plan", path, "--json", "--adapter", "twofold@cluster").out)["runs"]
    assert [(run["label"], run["spec"]["options"]) for run in runs] == [("twofold@cluster", {"depth": 3})]
    assert chosen("twofold@emulated") == ["twofold@emulated"]
    line = call("plan", file(adapters=["plain", "twofold@clustr"])).line
    assert ": adapters.1: twofold has no platform named 'clustr'; did you mean 'cluster'?" in line
    for name, lacking in (("twofold@", "platform"), ("@emulated", "name")):
        assert call("plan", file(adapters=[name])).line.endswith(f": adapters.0.{lacking}: must not be empty, but got ''")
        answer = call("plan", path, "--adapter", name)
        assert (answer.code, answer.line) == (
            2,
            f"tuneoff: --adapter: NAME@PLATFORM needs both, but got {name!r}; drop the @, or complete it",
        )
