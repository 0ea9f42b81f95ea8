"""What a bundle or a folder that somebody sent made tuneoff do by what it says of itself: a command, a token, an import.

Each attack is the whole of it, as it was: the bundle, what lies in the current folder, and the command that a user copies.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import tuneoff
from builders.distributions import install
from builders.strangers import bundle_of, folder_of, foreign_spec
from command_line import Answer, Call
from hostile.attacks import in_time
from tuneoff import registry
from tuneoff.base.space import Float, SearchSpace

IMAGE = f"registry.example/x@sha256:{'0' * 64}"
OWNED = "OWNED"
EVIL = f"open({OWNED!r}, 'w').close()\n"
POSTGRES = "postgresql+psycopg://u:$HOME@127.0.0.1:{port}/x"
ASKED = {"not asked for": (), "asked for": ("--adapter", "{adapter}", "--all")}
CLUSTERS = [("serial", "kubernetes"), ("serial", "kubernetes-jobs"), ("katib", "kubernetes"), ("optuna", "kubernetes")]


class Listener:
    """A server of mine on loopback: who reached it, and with which first bytes. It answers nothing."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        self.heard: list[bytes] = []
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                peer, _ = self._socket.accept()
            except OSError:
                return
            with peer:
                peer.settimeout(2)
                try:
                    self.heard.append(peer.recv(1000))
                except OSError:
                    self.heard.append(b"")

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join(10)


@pytest.fixture
def server() -> Iterator[Listener]:
    listener = Listener()
    yield listener
    listener.close()


@pytest.fixture
def here(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the current folder, from which modules are importable for as long as the test lasts, and a home of my own."""
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setattr(sys, "path", list(sys.path))
    return tmp_path


@pytest.fixture
def imported() -> Iterator[None]:
    """Forget what the test imports, and which plugins it installs."""
    before = set(sys.modules)
    registry.scan.cache_clear()
    yield
    registry.scan.cache_clear()
    for name in {"evil", "elsewhere"} & (set(sys.modules) - before):
        del sys.modules[name]


def kubeconfig(path: Path, port: int, user: dict[str, Any]) -> Path:
    """Write a kubeconfig whose cluster is `port` of this machine."""
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "users": [{"name": "u", "user": user}],
    }
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(content))
    return path


def by_command(folder: Path) -> dict[str, Any]:
    """Return a user whose token a command gives."""
    args = ["-c", f"id > {folder / OWNED}; echo '{{}}'"]
    version = "client.authentication.k8s.io/v1beta1"
    return {"exec": {"apiVersion": version, "command": "sh", "args": args, "interactiveMode": "Never"}}


def is_one_refusal(answer: Answer) -> bool:
    """Tell whether nothing was run and one line says why."""
    if answer.code == 2:
        return "has only runs outside this machine" in answer.line
    not_run = [line for line in answer.out.splitlines() if line.startswith("not run: ")]
    return answer.code == 7 and len(not_run) == 1 and "on this machine alone" in not_run[0] and "\nto run: " not in answer.out


@pytest.mark.slow
@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize(("adapter", "platform"), CLUSTERS)
def test_no_command_of_a_kubeconfig_beside_a_bundle_is_run(
    here: Path, call: Call, server: Listener, adapter: str, platform: str, asked: str
) -> None:
    kubeconfig(here / "kc", server.port, by_command(here))
    options = {"kubeconfig": "kc", "image": IMAGE, "api_seconds": 3}
    options |= {"storage": POSTGRES.format(port=server.port)} if adapter == "optuna" else {}
    spec = foreign_spec(adapter=adapter, platform=platform, options=options)
    bundle = bundle_of(here, spec, said={"label": f"{adapter}@emulated"})
    with in_time(120):
        answer = call("reproduce", bundle, *(word.format(adapter=adapter) for word in ASKED[asked]))
    assert not (here / OWNED).exists()
    assert server.heard == []
    assert is_one_refusal(answer), answer


@pytest.mark.slow
@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize(("adapter", "platform"), CLUSTERS[:3])
def test_my_own_cluster_is_not_asked_with_my_token_by_a_bundle(
    here: Path, call: Call, server: Listener, adapter: str, platform: str, asked: str
) -> None:
    kubeconfig(here / "home" / ".kube" / "config", server.port, {"token": "VICTIMS-TOKEN"})
    options = {"image": IMAGE, "namespace": "kube-system", "service_account": "admin", "api_seconds": 3}
    spec = foreign_spec(adapter=adapter, platform=platform, options=options)
    bundle = bundle_of(here, spec)
    with in_time(120):
        answer = call("reproduce", bundle, *(word.format(adapter=adapter) for word in ASKED[asked]))
    assert server.heard == []
    assert is_one_refusal(answer), answer


def test_a_folder_is_not_believed_that_an_emulated_platform_is_none(here: Path, call: Call) -> None:
    folder = folder_of(here / "stranger", foreign_spec(adapter="katib", platform="emulated"), said={"label": "katib"})
    answer = call("report", folder, "--json")
    assert [group["excluded"] for group in json.loads(answer.out)["groups"]] == ["emulated_platform"]


@pytest.mark.parametrize("url", ["redis://127.0.0.1:{port}", POSTGRES, "grpc://127.0.0.1:{port}"])
def test_no_storage_that_a_bundle_names_is_reached(here: Path, call: Call, server: Listener, url: str) -> None:
    spec = foreign_spec(adapter="optuna", options={"storage": url.format(port=server.port)})
    answer = call("reproduce", bundle_of(here, spec))
    assert server.heard == []
    assert "not run: optuna" in answer.out
    assert "option 'storage' may be numbers and words, but has" in answer.out


def test_the_plan_of_a_bundle_shows_the_real_platform_and_options(here: Path, call: Call) -> None:
    spec = foreign_spec(adapter="katib", platform="kubernetes", options={"image": IMAGE, "namespace": "kube-system"})
    bundle = bundle_of(here, spec, said={"label": "katib@emulated"})
    answer = call("reproduce", bundle, "--plan", "--adapter", "katib")
    assert "emulated random" not in answer.out
    assert 'not run: katib@kubernetes{"image":' in answer.out
    assert 'options of the adapter katib@kubernetes, as the bundle gives them: {"image":' in answer.out
    assert '"namespace":"kube-system"' in answer.out


PLAN, REPRODUCE = ("reproduce", "stranger.tar.gz", "--plan"), ("reproduce", "stranger.tar.gz")
READERS: list[tuple[str, ...]] = [
    PLAN,
    ("report", "stranger", "--text", "--must-retry"),
    ("bundle", "stranger", "--allow-unverified", "--output", "b.tar.gz"),
    *((*name.split(), "stranger") for name in ("watch --runs", "report", "verify", "check --controls", "export")),
    ("report", "stranger", "--text"),
    ("watch", "stranger", "--once"),
    ("diff", "stranger", "stranger"),
    ("compare", "mine.yaml", "--output", "stranger", "--resume", "--no-report"),
]
MINE = {"workload": "null", "adapters": ["serial"], "budget": {"trials": 1}, "warm_up": False}
TARGET = {"name": "evil:X", "target": "evil:X"}
NAMING: dict[str, dict[str, Any]] = {
    "adapter": {"spec": foreign_spec(adapter="evil:X", adapter_target="evil:X")},
    "workload": {"spec": foreign_spec(TARGET)},
    "targets": {"spec": foreign_spec({**TARGET, "name": "null"}, adapter_target="evil:X")},
    "meter": {"plan": {"power": {"meter": "evil:X", "options": {}, "interval_seconds": 1.0}}},
}


@pytest.mark.slow
@pytest.mark.usefixtures("imported")
@pytest.mark.parametrize("naming", NAMING)
def test_no_module_that_a_folder_or_a_bundle_names_is_imported(here: Path, call: Call, naming: str) -> None:
    (here / "evil.py").write_text(f"{EVIL}class X: ...\n")
    bundle_of(here, **NAMING[naming])
    (here / "mine.yaml").write_text(json.dumps(MINE))
    is_refused = naming in ("adapter", "workload")
    answers = {command: call(*command) for command in (*READERS, *([REPRODUCE] if is_refused else []))}
    tuneoff.load(here / "stranger")
    assert not (here / OWNED).exists()
    assert "evil" not in sys.modules
    assert {answer.code for answer in answers.values()} <= {0, 1, 2, 5, 7}
    if is_refused:
        assert all("a bundle brings no code" in answers[command].line for command in (PLAN, REPRODUCE))
    if naming == "meter":
        assert 'power: meter auto, as no bundle is obeyed in meter "evil:X"' in answers[PLAN].out


def test_a_missing_module_of_an_installed_plugin_is_not_taken_from_the_current_folder(
    here: Path, call: Call, imported: None
) -> None:
    (here / "evil.py").write_text(EVIL)
    sys.path.insert(0, str(install(here / "installed", adapters={"gone": "evil:X"})))
    answer = call("reproduce", bundle_of(here, foreign_spec(adapter="gone")), "--plan")
    assert not (here / OWNED).exists()
    assert "adapter 'gone' is broken (third_party 1.0)" in answer.out + answer.err


ELSEWHERE = f"""
from tuneoff.adapter import Adapter
from tuneoff.adapter import Capabilities, Offer

class Elsewhere(Adapter):
    capabilities = Capabilities(framework="none", platforms=("local", "batch"), samplers={{"random": Offer()}},
                                pruners={{"none": Offer()}})

    @classmethod
    def refuse(cls, spec):
        return None

    @classmethod
    def placement(cls, spec):
        return None

    def deploy(self):
        with open({OWNED!r}, "w") as file:
            file.write(str(dict(self.context.spec.options)))
        raise RuntimeError("deployed")

    def setup(self): ...
    def run_trials(self): ...
    def collect_results(self): ...
    def undeploy(self): ...
"""


@pytest.mark.slow
@pytest.mark.usefixtures("imported")
@pytest.mark.parametrize(
    ("platform", "options", "reason"),
    [
        ("batch", {}, """on this machine alone (platform 'local'), but this one is for "batch\""""),
        ("local", {"host": "word"}, """option "host" with "word" is not one that a bundle may set (none)"""),
        ("local", {}, None),
    ],
)
def test_an_adapter_of_others_that_says_nothing_of_bundles_runs_here_without_options_alone(
    here: Path, call: Call, monkeypatch: pytest.MonkeyPatch, platform: str, options: dict[str, Any], reason: str | None
) -> None:
    installed = install(here / "installed", adapters={"elsewhere": "elsewhere:Elsewhere"}, modules={"elsewhere": ELSEWHERE})
    sys.path.insert(0, str(installed))
    monkeypatch.setenv("PYTHONPATH", str(installed))
    bundle = bundle_of(here, foreign_spec(adapter="elsewhere", platform=platform, options=options))
    answer = call("reproduce", bundle, "--adapter", "elsewhere")
    assert (here / OWNED).exists() is (reason is None), answer
    assert reason is None or reason in answer.out


@pytest.mark.slow
@pytest.mark.parametrize(
    ("adapter", "platform", "reason"),
    [
        ("katib", "emulated", "on this machine alone"),  # its pods are commands of a shell
        ("serial", "local", "`search_space` of a bundle may have only numbers and words"),
    ],
)
def test_no_hyperparameter_of_a_bundle_is_a_command(here: Path, call: Call, adapter: str, platform: str, reason: str) -> None:
    space = SearchSpace({f"x; touch {OWNED}; :": Float(low=0.0, high=1.0)})
    spec = foreign_spec(adapter=adapter, platform=platform)
    spec = replace(spec, experiment=replace(spec.experiment, search_space=space))
    with in_time(120):
        answer = call("reproduce", bundle_of(here, spec), "--adapter", adapter)
    assert list(here.rglob(OWNED)) == []
    assert reason in answer.out


def _fifo(path: Path) -> str:
    os.mkfifo(path)
    return str(path)


@pytest.mark.slow
@pytest.mark.parametrize(("meter", "cpuinfo"), [("model", _fifo), ("auto", lambda path: "/etc/passwd")], ids=["fifo", "passwd"])
def test_no_file_that_a_bundle_s_meter_names_is_opened(
    here: Path, call: Call, meter: str, cpuinfo: Callable[[Path], str]
) -> None:
    options: dict[str, Any] = {"cpuinfo": cpuinfo(here / "cpuinfo")}
    power = {
        "meter": meter,
        "options": options if meter == "model" else {"model": options},
        "interval_seconds": 1.0,
    }
    with in_time(100):
        answer = call("reproduce", bundle_of(here, plan={"power": power}))
    assert "power: meter auto, as no bundle is obeyed in option" in answer.out
    assert "to run: serial" in answer.out
    (record,) = (here / "results").glob("*/runs/*/*/power.jsonl")
    assert "passwd" not in record.read_text()


@pytest.mark.parametrize(
    "command",
    [
        ("report", "--text", "--must-retry"),
        ("watch", "--runs"),
        ("report", "--text"),
        ("watch", "--once"),
        ("check", "--controls"),
    ],
)
def test_a_command_that_is_printed_for_a_folder_can_be_pasted_whatever_its_file_is_called(
    here: Path, call: Call, command: tuple[str, ...]
) -> None:
    spec = foreign_spec(adapter="serial")
    folder = folder_of(here / "stranger", spec, plan={"path": f"x.yaml; touch {OWNED} #"})
    answer = call(*command, folder)
    printed = [f"tuneoff {line.partition('tuneoff ')[2]}" for line in answer.out.splitlines() if "tuneoff compare " in line]
    assert printed or "--must-retry" not in command
    for line in printed:
        subprocess.run(["sh", "-c", f"tuneoff() {{ :; }}; {line}"], cwd=here, check=True)
    assert not (here / OWNED).exists()
