"""What a folder that somebody sent made tuneoff do, each by the command that did it: now nothing, or one line that says why."""

from __future__ import annotations

import json
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from builders.stored import write_run
from command_line import Answer, Call, caller
from hostile.attacks import in_time
from tuneoff.base.layout import END, RECORD
from tuneoff.cli.main import main
from tuneoff.experiment.spec import WorkloadSpec, run_spec_to_json
from tuneoff.measure.stored import read_run
from tuneoff.record.results_folder import read_plan

PLAN = """workload: "null"
adapters: [serial]
budget: {trials: 2, epochs_per_trial: 1}
warm_up: false
"""
PRECIOUS = "precious\n"


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with m.yaml and its results."""
    folder = tmp_path_factory.mktemp("base")
    (folder / "m.yaml").write_text(PLAN)
    assert main(["compare", str(folder / "m.yaml"), "--output", str(folder / "results"), "--no-report"]) == 0
    return folder


@pytest.fixture
def here(base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a copy as the current folder, with a file and a folder of mine in it."""
    here = Path(shutil.copytree(base, tmp_path / "here"))
    (here / "mine").write_text(PRECIOUS)
    (here / "victim").mkdir()
    (here / "victim" / "x").write_text(PRECIOUS)
    monkeypatch.chdir(here)
    return here


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Call:
    return caller(capsys)


def compare(call: Call, *more: str) -> Answer:
    with in_time(60):
        return call("compare", "m.yaml", "--output", "results", "--no-report", *more)


def execution(results: Path = Path("results")) -> Path:
    (found,) = results.glob("runs/*/*")
    return found


def instead(path: Path, make: Callable[[Path], object]) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
    make(path)


def link_to(name: str) -> Callable[[Path], None]:
    return lambda path: path.symlink_to(Path(name).absolute())


@pytest.mark.parametrize(
    ("folder", "options", "words"),
    [
        ("results", ["--resume"], "results/.lock must be a file, but is a link; put the file itself there"),
        ("new", [], ".lock is a link, which is not followed here"),
    ],
)
@pytest.mark.parametrize(("plan", "to"), [("m.yaml", "mine"), ("other.yaml", "nothing"), ("m.yaml", "/dev/null")])
def test_a_lock_that_is_a_link_is_refused_before_anything_is_written(
    here: Path, call: Call, plan: str, folder: str, options: list[str], words: str, to: str
) -> None:
    (here / "other.yaml").write_text(PLAN.replace("trials: 2", "trials: 3"))
    Path(folder).mkdir(exist_ok=True)
    instead(Path(folder) / ".lock", link_to(to))
    answer = call("compare", plan, "--output", folder, *options)
    assert (answer.code, words in answer.line) == (5, True), answer
    assert (here / "mine").read_text() == PRECIOUS
    assert not (here / "nothing").exists()
    assert not list(Path("new").glob("[!.]*"))


def test_a_lock_that_is_a_pipe_is_refused(here: Path, call: Call) -> None:
    instead(Path("results/.lock"), os.mkfifo)
    answer = compare(call, "--resume")
    assert (answer.code, "results/.lock must be a file, but is a pipe" in answer.line) == (5, True)


def test_a_command_that_is_refused_leaves_how_the_last_one_ended(here: Path, call: Call) -> None:
    (here / "other.yaml").write_text(PLAN.replace("trials: 2", "trials: 3"))
    assert Path("results/.lock").read_text() == ""
    assert call("compare", "other.yaml", "--output", "results").code == 5
    assert Path("results/.lock").read_text() == ""


@pytest.mark.slow
@pytest.mark.parametrize("command", [("report", "--text"), ("report",), ("check", "--controls"), ("export",)])
def test_a_workload_that_a_folder_names_is_not_called_when_it_is_read(here: Path, call: Call, command: tuple[str, ...]) -> None:
    """`subprocess:run` takes a mapping for a command line of its keys."""
    plan, folder, record = read_plan(Path("results")), execution(), read_run(execution())
    workload = WorkloadSpec(name="null", target="subprocess:run", options={"touch": 1, str(here / "owned"): 1})
    runs = []
    for adapter in ("serial", "optuna"):
        known = plan.runs[0].spec
        spec = replace(known, adapter=adapter, experiment=replace(known.experiment, workload=workload))
        runs.append(replace(plan.runs[0], run_id=spec.run_id, spec=spec, label=adapter))
        theirs = Path(shutil.copytree(folder, Path("results/runs") / spec.run_id / folder.name))
        write_run(theirs, replace(record, run_id=spec.run_id, specification=run_spec_to_json(spec)))
    shutil.rmtree(folder.parent)
    Path("results/matrix.json").write_text(json.dumps(replace(plan, runs=tuple(runs)).to_json()))
    assert call(*command, "results").code == 0
    assert not (here / "owned").exists()


@pytest.mark.parametrize(("name", "command"), [("report", "report"), ("export", "export")])
def test_tables_and_pages_are_not_written_through_a_link(here: Path, call: Call, name: str, command: str) -> None:
    before = {path: path.read_bytes() for path in (here / "victim").iterdir()}
    instead(Path("results") / name, link_to("victim"))
    answer = call(command, "results")
    assert answer.code == 5
    assert f"{name} must be a folder, but is a link; put the folder itself there" in answer.line
    assert {path: path.read_bytes() for path in (here / "victim").iterdir()} == before


@pytest.mark.slow
@pytest.mark.parametrize("command", ["report", "export"])
def test_a_folder_that_a_person_names_may_lie_behind_links(here: Path, call: Call, command: str) -> None:
    (here / "disk").mkdir()
    shutil.move(here / "results", here / "disk" / "r")
    Path("linked").symlink_to(here / "disk")
    Path("target").symlink_to(here / "victim")
    assert call("watch", "--runs", "linked/r").code == 0
    assert call("verify", "linked/r").code == 0
    assert call(command, "linked/r", "--output", "target/new").code == 0
    assert any((here / "victim" / "new").iterdir())
    assert call("compare", "m.yaml", "--output", "linked/r", "--resume", "--no-report").code == 0


@pytest.mark.slow
def test_a_run_is_made_behind_a_link_that_a_person_names(here: Path, call: Call) -> None:
    (here / "disk").mkdir()
    Path("linked").symlink_to(here / "disk")
    assert call("compare", "m.yaml", "--output", "linked/new", "--no-report").code == 0
    assert call("verify", "linked/new").code == 0


@pytest.mark.parametrize("name", [".executions", "runs"])
def test_runs_are_not_led_elsewhere(here: Path, call: Call, name: str) -> None:
    before = sorted((here / "victim").iterdir())
    shutil.rmtree(execution().parent)
    instead(Path("results") / name, link_to("mine" if name == ".executions" else "victim"))
    answer = compare(call, "--resume")
    assert answer.code == 5
    kind = "file" if name == ".executions" else "folder"
    assert f"{name} must be a {kind}, but is a link; put the {kind} itself there" in answer.err
    assert (here / "mine").read_text() == PRECIOUS
    assert sorted((here / "victim").iterdir()) == before


@pytest.fixture
def short() -> Iterator[Path]:
    """Return a temporary folder with a short path: a run's sockets lie below it."""
    with tempfile.TemporaryDirectory(prefix="h") as folder:
        yield Path(folder)


@pytest.mark.slow
def test_a_list_of_leftovers_removes_no_folder_of_mine(
    here: Path, call: Call, short: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = short
    victims = [here / "victim", temporary / "victim", temporary / "tuneoff-victim00"]
    for folder in victims:
        folder.mkdir(parents=True, exist_ok=True)
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    (execution() / END).unlink()
    with (execution() / "leftovers.jsonl").open("a") as file:
        file.writelines(json.dumps({"kind": "folder", "value": str(folder)}) + "\n" for folder in victims)
    assert compare(call, "--resume").code == 0
    assert [folder.exists() for folder in victims] == [True] * 3


@pytest.mark.slow
def test_what_a_folder_has_outside_is_not_undeployed_by_its_own_word(here: Path, call: Call) -> None:
    user = {"apiVersion": "client.authentication.k8s.io/v1beta1", "command": "sh", "interactiveMode": "Never"}
    user["args"] = ["-c", f"id > {here / 'OWNED'}; echo '{{}}'"]  # type: ignore[assignment]
    kubeconfig = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "users": [{"name": "u", "user": {"exec": user}}],
    }
    Path("results/kc").write_bytes(msgspec.json.encode(kubeconfig))
    folder = execution()
    (folder / END).unlink()
    (folder / "outside.txt").write_text("x")
    spec = json.loads((folder / "spec.json").read_text())
    options = {"kubeconfig": str(here / "results" / "kc"), "image": f"x/y@sha256:{'0' * 64}"}
    katib = {"adapter": "katib", "adapter_target": "tuneoff_adapters.katib.adapter:KatibAdapter", "platform": "kubernetes"}
    spec["run"].update(katib, options=options)
    (folder / "spec.json").write_text(json.dumps(spec))
    answer = compare(call, "--resume")
    assert not (here / "OWNED").exists()
    assert answer.code == 0
    assert "it cannot be removed now: x" in answer.err


@pytest.mark.parametrize("name", ["../../../../../victim/x", "/tmp/x", "..", "a/b", "a\nb", "", "a" * 101])
def test_a_trial_has_no_name_that_leads_elsewhere(here: Path, call: Call, name: str) -> None:
    folder = execution()
    kept = (folder / RECORD).read_text()
    record = json.loads(kept)
    record["trials"][0]["trial"] = name
    (folder / RECORD).write_text(json.dumps(record, indent=1))  # no reader takes it: the record is derived anew
    assert call("compare", "m.yaml", "--output", "results", "--resume").code == 0
    answer = call("verify", "results")
    assert (answer.code, "run.json is damaged" in answer.out) == (0, True)
    (folder / RECORD).write_text(kept)
    for events in (folder / "events").glob("*"):
        events.write_text(events.read_text().replace('"trial":"t00000"', f'"trial":{json.dumps(name)}'))
    answer = call("verify", "results")
    assert (answer.code, "is not an event" in answer.out + answer.err) == (1, True)
    assert (here / "victim" / "x").read_text() == PRECIOUS


def test_a_bundle_and_a_plan_show_their_escapes_and_obey_none(here: Path, call: Call) -> None:
    plan = json.loads(Path("results/matrix.json").read_text())
    hostile = "\x1b[2J\x1b]0;title\x07\u202e"
    plan["runs"][0].update(label=hostile, skip_reason=hostile)
    Path("results/matrix.json").write_text(json.dumps(plan))
    for command in (("bundle", "results", "--allow-unverified", "--output", "b.tar.gz"), ("watch", "--runs", "results")):
        answer = call(*command)
        assert answer.code == 0
        assert "\\x1b[2J" in answer.out
        assert not {"\x1b", "\x07", "\u202e"} & set(answer.out + answer.err)


@pytest.mark.parametrize("command", ["watch --runs", "verify", "export", "bundle"])
def test_a_copy_by_hard_links_is_read_and_the_original_stays_as_it_is(here: Path, call: Call, command: str) -> None:
    shutil.copytree("results", "copy", copy_function=os.link)
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in Path("results").rglob("*") if path.is_file()}
    more = ("--output", "b.tar.gz") if command == "bundle" else ()
    assert call(*command.split(), "copy", *more).code == 0
    assert {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in before} == before


def test_a_copy_by_hard_links_is_resumed_and_the_original_stays_as_it_is(here: Path, call: Call) -> None:
    shutil.copytree("results", "copy", copy_function=os.link)
    Path("results/.lock").write_text("1\n")
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in Path("results").rglob("*") if path.is_file()}
    assert call("compare", "m.yaml", "--output", "copy", "--resume", "--no-report").code == 0
    assert {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in before} == before
    assert Path("copy/.lock").read_text() == ""


@pytest.mark.skipif(os.getuid() == 0, reason="root writes everywhere")
def test_a_folder_that_may_only_be_read_is_read(here: Path, call: Call) -> None:
    for path in (*Path("results").rglob("*"), Path("results")):
        path.chmod(path.stat().st_mode & ~(stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH))
    assert call("watch", "--runs", "results").code == 0
    assert call("verify", "results").code == 0
    assert call("export", "results", "--output", "tables").code == 0
    assert call("export", "results").code == 5
