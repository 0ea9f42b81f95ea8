"""Environment and processes of the Ray Tune adapter. Starts no Ray instance."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from builders.specs import make_context, toy_spec
from builders.waiting_processes import waiting
from tuneoff.base.private_folder import PrivateFolder
from tuneoff.base.processes import MARK
from tuneoff_adapters.ray_tune import session
from tuneoff_adapters.ray_tune.environment import CLUSTER_FILE, OF_ONE_MACHINE, REMOVED, SETTINGS, TOKEN, prepare_environment
from tuneoff_platforms.remote.cleaning import processes_of
from waiting import until

SECRET = {
    "RAY_REDIS_PASSWORD": "hunter2",
    "RAY_MYSERVICE_TOKEN": "20261128",
    "TUNE_WANDB_API_KEY": "k3y",
    "RAY_STORE": "redis://:p4ss@host:1",
    "TUNE_NOTE": "swordfish",
}


@pytest.fixture
def variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith(("RAY_", "TUNE_"))]:
        monkeypatch.delenv(name)  # Ray itself sets some where it is imported
    for name in (*SETTINGS, *REMOVED, TOKEN):
        monkeypatch.setenv(name, "before")  # also puts it back after the test


@pytest.mark.usefixtures("variables")
def test_the_environment_is_set_what_would_change_the_run_is_removed_and_no_secret_recorded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plain = {"RAY_memory_usage_threshold": "0.9"}
    for name, value in (plain | SECRET).items():
        monkeypatch.setenv(name, value)
    record = prepare_environment()
    first = os.environ[TOKEN]
    assert {name: os.environ.get(name) for name in (*SETTINGS, *REMOVED)} == {**SETTINGS, **dict.fromkeys(REMOVED)}
    assert (record["set"], record["removed"]) == (SETTINGS, sorted(REMOVED))
    assert record["inherited"] == plain | dict.fromkeys(SECRET, "set")
    assert {name: os.environ[name] for name in SECRET} == SECRET  # they stay in force
    assert not [value for value in (*SECRET.values(), first) if value in json.dumps(record)]
    prepare_environment()
    assert (len(first), os.environ[TOKEN] != first) == (64, True)  # each run has its own


@pytest.mark.usefixtures("variables")
def test_a_cluster_s_token_is_the_users_and_one_for_hosts_is_random(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TOKEN, "given")
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    record = prepare_environment(on_cluster=True, own_token=False)
    assert set(SETTINGS) - set(record["set"]) == {"RAY_AUTH_MODE", *OF_ONE_MACHINE}
    assert record["inherited"] == {"RAY_AUTH_MODE": "disabled", "RAY_AUTH_TOKEN_PATH": "before"}
    assert "RAY_AUTH_TOKEN_PATH" not in str(record["removed"])
    assert "given" not in str(record)
    assert (os.environ[TOKEN], os.environ["RAY_AUTH_MODE"]) == ("given", "disabled")
    prepare_environment(on_cluster=True)
    assert (len(os.environ[TOKEN]), os.environ["RAY_AUTH_MODE"]) == (64, "token")


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


def test_undeploy_believes_no_folder_but_this_run_s_own_and_follows_no_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    context = make_context(toy_spec("ray-tune"), tmp_path)
    session.stop_ray(context)  # nothing was deployed
    mine, record = tmp_path / "mine", context.work_dir / session.RECORD
    mine.mkdir()
    record.write_text(json.dumps({"temporary_folder": str(mine)}))
    with waiting(env={**os.environ, MARK: context.execution_id}) as marked:  # of nobody that this process knows
        session.stop_ray(context)
        assert marked.poll() is None
    assert mine.exists()
    record.rename(mine / "record")
    record.symlink_to(mine / "record")
    with pytest.raises(OSError, match="is a link"):
        session.stop_ray(context)


def test_a_process_never_ends_those_that_it_descends_from() -> None:
    code = """
from tuneoff_platforms.remote.cleaning import processes_of
print(processes_of("run-x", None))
"""
    inner = [sys.executable, "-c", code]
    outer = [sys.executable, "-c", f"import subprocess; subprocess.run({inner!r})"]
    done = subprocess.run(outer, env={**os.environ, MARK: "run-x"}, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
