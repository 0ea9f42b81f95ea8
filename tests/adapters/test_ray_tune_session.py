"""Environment, processes and refusals of the Ray Tune adapter. Starts no Ray instance."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from builders.specs import make_context, toy_spec
from tuneoff.base.private_folder import PrivateFolder
from tuneoff.base.processes import MARK
from tuneoff.base.space import Categorical, Float, SearchSpace
from tuneoff.errors import StepError
from tuneoff_adapters.ray_tune import session
from tuneoff_adapters.ray_tune.adapter import RayTuneAdapter
from tuneoff_adapters.ray_tune.environment import CLUSTER_FILE, REMOVED, SETTINGS, TOKEN, prepare_environment
from tuneoff_platforms.remote.cleaning import processes_of
from waiting import until


def test_the_environment_is_set_and_what_would_change_the_run_is_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*SETTINGS, *REMOVED, TOKEN):
        monkeypatch.setenv(name, "before")  # also puts it back after the test
    monkeypatch.setenv("RAY_memory_usage_threshold", "0.9")
    monkeypatch.setenv("TUNE_RESULT_DIR", "/tmp/x")  # Ray fails where it is set
    record = prepare_environment()
    assert "TUNE_RESULT_DIR" not in os.environ
    assert {name: os.environ[name] for name in SETTINGS} == {name: value for name, (value, _) in SETTINGS.items()}
    assert not [name for name in REMOVED if name in os.environ]
    assert record["removed"] == sorted(REMOVED)
    inherited = record["inherited"]
    assert isinstance(inherited, dict)
    assert inherited["RAY_memory_usage_threshold"] == "0.9"
    assert not {*SETTINGS, *REMOVED, TOKEN} & set(inherited)


def test_no_value_that_may_be_a_secret_is_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*SETTINGS, *REMOVED, TOKEN):
        monkeypatch.setenv(name, "before")
    secret = {
        "RAY_REDIS_PASSWORD": "hunter2",
        "RAY_MYSERVICE_TOKEN": "20261128",
        "TUNE_WANDB_API_KEY": "k3y",
        "RAY_STORE": "redis://:p4ss@host:1",
        "TUNE_NOTE": "swordfish",
    }
    for name, value in secret.items():
        monkeypatch.setenv(name, value)
    record = prepare_environment()
    assert not [value for value in secret.values() if value in json.dumps(record)]
    assert {name: record["inherited"][name] for name in secret} == dict.fromkeys(secret, "set")  # type: ignore[index]
    assert {name: os.environ[name] for name in secret} == secret  # they stay in force


@pytest.mark.parametrize("is_there", [True, False])
def test_the_file_that_doctor_names_keeps_ray_from_asking_a_cloud(is_there: bool, tmp_path: Path) -> None:
    pytest.importorskip("ray")
    if is_there:
        (tmp_path / Path(CLUSTER_FILE).name).write_text("{}\n")
    code = f"""import sys
def refuse(event, arguments):
    if event in ("socket.getaddrinfo", "socket.connect"):
        print(arguments)
        raise OSError("refused")
sys.addaudithook(refuse)
from ray._common.usage.usage_lib import get_cluster_config_to_report
from tuneoff_adapters.ray_tune.environment import doctor
import os
get_cluster_config_to_report(os.path.expanduser({CLUSTER_FILE!r}))
print(*[check.verdict for check in doctor()])"""
    environment = os.environ | {"HOME": str(tmp_path)}
    told = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True).stdout
    assert ("169.254.169.254" in told, told.split()[-1]) == ((False, "passed") if is_there else (True, "warning"))


def test_each_run_has_its_own_token_and_no_record_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*SETTINGS, *REMOVED, TOKEN):
        monkeypatch.setenv(name, "before")
    record = prepare_environment()
    first = os.environ[TOKEN]
    prepare_environment()
    assert len(first) == 64
    assert os.environ[TOKEN] != first
    assert first not in json.dumps(record)


def test_a_temporary_folder_too_deep_for_sockets_is_refused_before_anything_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = make_context(toy_spec("ray-tune"), tmp_path)
    monkeypatch.setattr("tempfile.tempdir", "/tmp/" + 40 * "x")
    with pytest.raises(StepError, match=r"at most 43 bytes.*shorten TMPDIR"):
        session.start_ray(context, lambda: pytest.fail("Ray was imported"))


def test_undeploy_without_a_deploy_does_nothing_twice(tmp_path: Path) -> None:
    adapter = RayTuneAdapter(make_context(toy_spec("ray-tune"), tmp_path))
    adapter.undeploy()
    adapter.undeploy()


UNMARKED = "import sys; file = open(sys.argv[1], 'a'); input()"


def test_undeploy_ends_marked_processes_and_those_that_write_in_ray_s_folder_and_no_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    context = make_context(toy_spec("ray-tune"), tmp_path)
    folder, elsewhere = tmp_path / "ray", tmp_path / "ray-of-others"
    for path in (folder, elsewhere):
        path.mkdir()
    (context.work_dir / session.RECORD).write_text(json.dumps({"temporary_folder": str(folder)}))
    wait = [sys.executable, "-c", "input()"]
    unmarked = [sys.executable, "-c", UNMARKED]
    ours = subprocess.Popen(wait, stdin=subprocess.PIPE, env={**os.environ, MARK: context.execution_id})
    agent = subprocess.Popen([*unmarked, str(folder / "log")], stdin=subprocess.PIPE)
    other = subprocess.Popen(wait, stdin=subprocess.PIPE, env={**os.environ, MARK: f"{context.execution_id}-other"})
    stranger = subprocess.Popen([*unmarked, str(elsewhere / "log")], stdin=subprocess.PIPE)
    try:
        both = sorted([ours.pid, agent.pid])
        with contextlib.ExitStack() as held:
            ray = PrivateFolder.open(folder)
            assert ray is not None
            held.enter_context(ray)
            until(lambda: processes_of(context.execution_id, ray) == both)  # each has its own environment, and its file
        session.stop_ray(context)
        assert (ours.wait(5), agent.wait(5)) == (-9, -9)
        assert (other.poll(), stranger.poll()) == (None, None)
        assert not folder.exists()
    finally:
        for process in (ours, agent, other, stranger):
            process.kill()
            process.communicate()


def test_undeploy_believes_no_folder_but_this_run_s_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    context = make_context(toy_spec("ray-tune"), tmp_path)
    mine = tmp_path / "mine"
    mine.mkdir()
    (context.work_dir / session.RECORD).write_text(json.dumps({"temporary_folder": str(mine)}))
    session.stop_ray(context)
    assert mine.exists()


@pytest.mark.parametrize("is_pipe", [True, False])
def test_undeploy_follows_no_link_and_waits_for_no_pipe(tmp_path: Path, is_pipe: bool) -> None:
    context = make_context(toy_spec("ray-tune"), tmp_path)
    record = context.work_dir / session.RECORD
    if is_pipe:
        os.mkfifo(record)
    else:
        (tmp_path / "mine").write_text(json.dumps({"temporary_folder": str(tmp_path)}))
        record.symlink_to(tmp_path / "mine")
    with pytest.raises(OSError, match="is a pipe" if is_pipe else "is a link"):
        session.stop_ray(context)


def test_a_process_never_ends_those_that_it_descends_from(tmp_path: Path) -> None:
    code = """
from tuneoff_platforms.remote.cleaning import processes_of
print(processes_of("run-x", None))
"""
    inner = [sys.executable, "-c", code]
    outer = [sys.executable, "-c", f"import subprocess; subprocess.run({inner!r})"]
    done = subprocess.run(outer, env={**os.environ, MARK: "run-x"}, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


ONE_ORDERED = SearchSpace({"x": Float(low=0.0, high=1.0), "kind": Categorical(choices=("a", "b"))})


def test_cmaes_needs_two_numbers() -> None:
    reason = RayTuneAdapter.refuse(toy_spec("ray-tune", sampler="cmaes", space=ONE_ORDERED))
    assert "at least 2 numeric or ordered dimensions" in (reason or "")
