"""The parts between a run and its judgement: what is planted, what is left, what can be made, what is asked."""

from __future__ import annotations

import re
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from builders.check_evidence import SUBJECT, made, trial
from fake_plugins import Plain, Rich
from tuneoff.adapter import Adapter, Capabilities, Offer, Support
from tuneoff.ask_tell import AskTellAdapter
from tuneoff.base.findings import out_of_reach
from tuneoff.base.targets import load_target
from tuneoff.errors import PluginError
from tuneoff.trust.check import planned_runs as experiments
from tuneoff.trust.check.fault_injection import METHODS, PlantedFailure, wrapped_target
from tuneoff.trust.check.footprint import Leftover, ListeningSocket, RunTraces, own_folders
from tuneoff.trust.check.make import run_spec, without_trials
from tuneoff.trust.check.planned_runs import FIRST, CheckRun, planned_runs
from tuneoff.trust.check.probe_workload import CURVE, METRIC, NOTES, Probe
from tuneoff.trust.check.refusals import ACCEPTED, REFUSED, ask
from tuneoff.workload import TrialSeeds

SEEDS = TrialSeeds(split=1, trial=2)


class Counting(Plain):
    calls = 0

    def undeploy(self) -> None:
        type(self).calls += 1

    def collect_results(self) -> None:
        type(self).calls += 10


def wrapped(plant: Any) -> Adapter:
    adapter: Adapter = load_target(wrapped_target(plant, f"{__name__}:Counting"))(None)
    type(adapter).calls = 0  # type: ignore[attr-defined]
    return adapter


def test_a_failure_is_planted_after_the_steps_own_work() -> None:
    adapter = wrapped("collect")
    with pytest.raises(PlantedFailure, match="planted in step collect"):
        adapter.collect_results()
    adapter.undeploy()
    assert type(adapter).calls == 11  # type: ignore[attr-defined]


@pytest.mark.parametrize("plant", METHODS)
def test_it_is_planted_in_an_adapter_whose_author_could_not_define_the_step(plant: str) -> None:
    assert issubclass(load_target(wrapped_target(plant, "tuneoff_adapters.rustuna:RustunaAdapter")), AskTellAdapter)


def test_what_is_no_plant_is_no_adapter() -> None:
    for target in ("tuneoff.trust.check.fault_injection:nothing|a:B", "tuneoff.trust.check.fault_injection:Wrapped"):
        with pytest.raises(PluginError):
            load_target(target)


def test_what_the_supervisor_ended_is_sorted_by_its_kind() -> None:
    texts = ["process 7: python x", "process 8: python y", "shared memory /dev/shm/z", "folder /tmp/a", "un-deploy did not end"]
    found = list(RunTraces(listeners={ListeningSocket("1", "127.0.0.1", 80): 8}).flagged(texts))
    assert [item.kind for item in found] == ["process", "port", "temporary file"]  # the others are seen elsewhere
    assert found[1] == Leftover("port", "127.0.0.1:80 of process 8: python y")


def test_runs_are_made_of_what_an_adapter_offers() -> None:
    runs = planned_runs(Plain.capabilities)
    absent = {name for name, run in runs.items() if run.absence(Plain.capabilities) is not None}
    assert absent == set(FIRST)  # which it offers no means for
    bare = Capabilities(framework="none", samplers={"random": Offer()}, pruners={"none": Offer()})
    bare_runs = planned_runs(bare)
    absent = {name for name, run in bare_runs.items() if run.absence(bare) is not None}
    assert absent == {"scripted", "default-sampler", *FIRST}
    assert bare_runs["faulty"].experiment.sampler.name == "random"
    assert not any(finding.is_out_of_reach for run in bare_runs.values() if (finding := run.absence(bare)) is not None)
    stopping = replace(bare, pruners={**bare.pruners, "asha": Offer()})
    assert (absence := bare_runs["scripted"].absence(stopping)) is not None
    assert absence == out_of_reach("pruner 'scripted' is not offered (not listed)")
    assert bare_runs["honest-max"].experiment.sampler.name == "random"
    assert bare_runs["honest-max"].seed != bare_runs["honest-min"].seed
    assert runs["honest-max"].seed == runs["honest-min"].seed
    assert runs["honest-max"].experiment.sampler.name == "fixed"
    assert runs["retried"].experiment.failures.retries == 1
    limited = replace(Plain.capabilities, memory_limiter="container")
    assert "container" in str(runs["without-groups"].absence(limited))


def asked(adapter: type[Adapter], *, declared: bool = False, platform: str = "local") -> dict[str, str]:
    """Return the answers to what must be refused, or to what must be served."""
    subject = replace(SUBJECT, capabilities=adapter.capabilities, platform=platform)
    spec = run_spec(subject, CheckRun(name="plain", experiment=experiments.random_search(8)))
    return {answer.request: answer.outcome for answer in ask(spec, adapter) if (answer.family == "declared") is declared}


def test_each_thing_that_is_not_offered_is_asked_for() -> None:
    answers = asked(Plain)
    assert set(answers.values()) == {REFUSED}
    for request in ("sampler 'tpe'", "sampler 'gp'", "pruner 'asha'", "pruner 'median'"):
        assert request in answers
    assert "sampler 'random'" not in answers
    assert "`failures.retries` of 1" not in answers
    assert asked(Rich)["`failures.retries` of 1"] == REFUSED


def test_each_thing_that_is_declared_is_asked_for() -> None:
    answers = asked(Rich, declared=True)
    assert set(answers.values()) == {ACCEPTED}
    assert {"declared sampler 'gp'", "declared sampler 'own'", "declared pruner 'median'"} < set(answers)
    assert "declared sampler 'tpe'" not in asked(Plain, declared=True)


def test_what_is_declared_has_its_type() -> None:
    wrong: tuple[tuple[str, Any, str], ...] = (
        ("retry", True, "capabilities.retry must be a Support (e.g. Support.YES), but got True"),
        ("database", Support.YES, "capabilities.database must be True or False, but got Support.YES"),
        ("samplers", {"tpe": True}, "capabilities.samplers['tpe'] must be an Offer (e.g. Offer()), but got True"),
        ("pruners", {"asha": Support.YES}, "capabilities.pruners['asha'] must be an Offer (e.g. Offer()), but got Support.YES"),
    )
    for field, value, text in wrong:
        with pytest.raises(TypeError, match=re.escape(text)):
            replace(Plain.capabilities, **{field: value})
    with pytest.raises(TypeError, match=r"support of an Offer must be a Support \(e\.g\. Support\.YES\), but got True"):
        Offer(support=True)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="`platforms` must name at least one"):
        Capabilities(framework="none", platforms=())


def trained(configuration: dict[str, Any], epochs: int = 3, **options: Any) -> list[float]:
    probe = Probe(options)
    probe.limit_threads(1)
    probe.load(configuration, SEEDS)
    values = []
    for epoch in range(1, epochs + 1):
        probe.train_epoch(epoch)
        values.append(probe.validate()[METRIC])
    return values


def test_the_best_epoch_of_the_probe_is_neither_its_first_nor_its_last() -> None:
    values = trained({"level": 0.5})
    assert values.index(max(values)) == 1
    assert values.index(min(values)) == 0
    assert trained({"level": 0.5}) == values
    assert trained({"level": 0.5}, noise=0.0) == [pytest.approx(0.5 + change) for change in CURVE]
    assert trained({"x": 1}) != trained({"x": 2})


def test_the_probe_notes_what_is_done_with_it_and_keeps_its_state(tmp_path: Path) -> None:
    trained({"level": 0.5}, notes=str(tmp_path), compute_seconds=0.01)
    text = (tmp_path / NOTES).read_text()
    assert text.count('"what": "train"') == 3
    assert '"busy_threads": 1' in text
    probe, other = Probe({}), Probe({})
    probe.load({"level": 0.5}, SEEDS)
    probe.train_epoch(1)
    probe.train_epoch(2)
    tensors, texts = probe.state_dict()
    other.load({"level": 0.5}, SEEDS)
    other.load_state_dict(tensors, texts)
    assert other.test().values == probe.test().values


def test_what_a_run_makes_in_its_own_folders_is_known_to_be_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "letters").mkdir()
    (tmp_path / ".ray").mkdir()
    (tmp_path / ".ray" / "token").touch()
    monkeypatch.setenv("HOME", str(tmp_path))
    with own_folders() as own:
        assert own.leftovers() == []
        assert (Path(own.home) / "letters").samefile(tmp_path / "letters")
        assert len(own.temporary) < len(tempfile.gettempdir()) + 16  # sockets lie below it
        (Path(own.temporary) / "forgotten").touch()
        for name in ("new", ".ray/session", "letters/read"):
            (Path(own.home) / name).touch()
        texts = [item.text for item in own.leftovers()]
        assert texts == [f"{own.temporary}/forgotten", "~/.ray/session", "~/new"]
    assert not Path(own.home).exists()
    assert {path.name for path in tmp_path.rglob("*")} == {"letters", "read", ".ray", "token"}


@pytest.mark.parametrize(
    ("with_trials", "charged", "verdicts"),
    [
        (["one"], "framework", {"other": "not tested"}),
        ([], "framework", {"one": "failed", "other": "failed"}),
        ([], "infrastructure", {"one": "not tested", "other": "not tested"}),
        (["one", "other"], "framework", {}),
    ],
)
def test_runs_without_a_trial_are_a_failure_where_none_has_one_and_the_adapter_failed(
    with_trials: list[str], charged: Any, verdicts: dict[str, str]
) -> None:
    end = {"status": "failed", "reason": "it broke", "charged": charged}
    ended = {
        name: made(name, [trial(0, 0.5)] if name in with_trials else [], record_fields=end, notes=[{}])
        for name in ("one", "other", "planted")
    }
    plants = {"planted": "deploy"}  # what that run comes to tells nothing of the others
    runs = {name: CheckRun(name=name, experiment=experiments.random_search(8), plant=plants.get(name)) for name in ended}
    assert {name: finding.verdict for name, finding in without_trials(runs, ended).items()} == verdicts
