"""Bundles and folders whose every text is hostile: paths, addresses, modules, commands, templates, a kubeconfig's command.

Of what acts (adapter, platform, options, hyperparameters, ...) one part or several are hostile and the others are names that are
installed here, so that each rule stands alone. Nothing of such a bundle may run: no process is started, nothing connected to, no
file of mine read or written.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from builders.event_logs import example_a
from builders.strangers import folder_of
from fuzz import oracle
from fuzz.archive_cases import ARCHIVE, write_bundle
from fuzz.sandbox import Main, Place, call_forked
from tuneoff.base.space import Categorical, SearchSpace
from tuneoff.cli.main import main as command_line
from tuneoff.experiment.spec import RunSpec, Strategy

PORT = 9  # of a service that discards what it gets
TEXTS = (
    *("{mine}/secret", "{work}/kc", "./kc", "../x", "~/.kube/config", "./fifo", "/dev/zero", "file://{mine}/secret", "@./kc"),
    *(f"{scheme}://127.0.0.1:{PORT}/x" for scheme in ("http", "redis", "grpc", "postgresql+psycopg", "ssh", "s3")),
    *(f"127.0.0.1:{PORT}", "registry.example/x:latest", "postgresql+psycopg://u:$HOME@127.0.0.1:9/x"),
    *("evil:X", "evil:", "os:system", "subprocess:run", "os.system", "evil.X", "fuzz.guard:install"),
    *("touch OWNED", "$(touch OWNED)", "`touch OWNED`", "; touch OWNED", "-oProxyCommand=touch OWNED", "sh -c 'touch OWNED'"),
    *("ssh {{host}}", "{{{{x}}}}", "${{trialParameters.x}}", "%(x)s", "!!python/object/apply:os.system [touch OWNED]"),
    *("\x1b[2J", "\u202eevil", "a\nb", "</script>", "=HYPERLINK(1)", "{kubeconfig}", ""),
)
WORDS = ("kc", "fifo", "evil", "localhost", "default", "kubernetes")  # are hostile under names that no bundle may set
ADAPTERS = ("serial", "optuna", "syne-tune", "katib", "ray-tune", "nevergrad", "rustuna")
PLATFORMS = ("kubernetes", "kubernetes-jobs", "slurm", "cluster")
WORKLOADS = ("null", "surrogate", "sleep", "faulty", "mnist_mlp", "command", "optunahub")
ALLOWED = ("storage", "poll_seconds", "api_seconds", "pending_seconds", "start")  # of some adapters: a value must be hostile
OPTIONS = (
    *ALLOWED,
    *("kubeconfig", "context", "namespace", "image", "image_pull_secret", "service_account", "data_claim", "node_selector"),
    *("katib_namespace", "hosts", "host_command", "host_python", "address", "sbatch", "setup", "submit_host", "folder"),
    "device_resource",
)
OF_WORKLOADS = ("command", "package", "arguments", "mark", "fill_folder", "kinds", "dataset", "device", "noise", "epoch_seconds")
OF_METERS = ("cpuinfo", "root", "path", "url", "command", "cpu", "watts", "rapl", "model")
METERS = ("auto", "model", "constant", "rapl", "replay", "command", "prometheus", "codecarbon", "nvml")
COMMANDS = (
    ("reproduce", ARCHIVE),
    ("reproduce", ARCHIVE, "--plan"),
    ("reproduce", ARCHIVE, "--all", "--adapter", "{adapter}"),
    ("reproduce", ARCHIVE, "--adapter", "{adapter}@{platform}", "--seed", "7", "--output", "again"),
    ("report", "stranger", "--text", "--must-retry"),
    ("verify", "stranger"),
)
EVIL = "open({path!r}, 'w').close()\nclass X: ...\n"


class Texts:
    """Draws hostile texts for a place."""

    def __init__(self, place: Place, chance: random.Random) -> None:
        exec = {"apiVersion": "client.authentication.k8s.io/v1beta1", "command": "touch", "args": ["OWNED"]}
        kubeconfig = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "c",
            "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{PORT}"}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "users": [{"name": "u", "user": {"exec": {**exec, "interactiveMode": "Never"}}}],
        }
        self.kubeconfig = json.dumps(kubeconfig)
        self._known = {"mine": place.kept / "mine", "work": place.work, "kubeconfig": self.kubeconfig}
        self.chance = chance

    def text(self) -> str:
        return self.chance.choice(TEXTS).format_map(self._known)

    def value(self) -> Any:
        """Return a JSON value in which each text is hostile."""
        text = self.text()
        return self.chance.choice((text, text, [text], {"url": text}, {"kind": "redis", "url": text}, {text: 1}, ["x", [text]]))

    def options(self, names: Sequence[str], allowed: Sequence[str] = ()) -> dict[str, Any]:
        chosen = self.chance.sample(names, min(len(names), self.chance.choice((1, 1, 2, 4))))
        found = {name: self.value() for name in chosen}
        others = [name for name in chosen if name not in allowed]
        if others and self.chance.random() < 0.3:  # the name alone makes it hostile
            found[others[0]] = self.chance.choice(WORDS)
        return {self.text() or "x": 1, **found} if self.chance.random() < 0.1 else found


def _adapter(spec: RunSpec, texts: Texts) -> RunSpec:
    return replace(spec, adapter=texts.text(), adapter_target=texts.text())


def _platform(spec: RunSpec, texts: Texts) -> RunSpec:
    return replace(spec, platform=texts.chance.choice((texts.text(), *PLATFORMS)))


def _options(spec: RunSpec, texts: Texts) -> RunSpec:
    return replace(spec, options=texts.options(OPTIONS, ALLOWED))


def _workload(spec: RunSpec, texts: Texts) -> RunSpec:
    return _with(spec, workload=replace(spec.experiment.workload, name=texts.text()))


def _workload_options(spec: RunSpec, texts: Texts) -> RunSpec:
    name = texts.chance.choice(WORKLOADS)
    return _with(spec, workload=replace(spec.experiment.workload, name=name, options=texts.options(OF_WORKLOADS, OF_WORKLOADS)))


def _sampler(spec: RunSpec, texts: Texts) -> RunSpec:
    name = texts.chance.choice(("random", "tpe", "default"))
    return _with(spec, sampler=Strategy(name=name, options=texts.options(("folder", "module", "seed"), ("seed",))))


def _pruner(spec: RunSpec, texts: Texts) -> RunSpec:
    name = texts.chance.choice(("none", "asha", "median"))
    return _with(spec, pruner=Strategy(name=name, options=texts.options(("folder", "first_epoch"), ("folder", "first_epoch"))))


def _choices(spec: RunSpec, texts: Texts) -> RunSpec:
    name, choice = texts.chance.choice((("x", texts.text()), (texts.text(), "b")))
    return _with(spec, search_space=SearchSpace({name: Categorical(choices=("a", choice))}))


def _configurations(spec: RunSpec, texts: Texts) -> RunSpec:
    return _with(spec, sampler=Strategy(name="fixed"), configurations=({"x": texts.value()},) * 3)


def _with(spec: RunSpec, **changes: Any) -> RunSpec:
    return replace(spec, experiment=replace(spec.experiment, **changes))


PARTS: Mapping[str, Callable[[RunSpec, Texts], RunSpec]] = {
    "adapter": _adapter,
    "platform": _platform,
    "options": _options,
    "workload": _workload,
    "workload options": _workload_options,
    "sampler": _sampler,
    "pruner": _pruner,
    "choices": _choices,
    "configurations": _configurations,
}


def ask(place: Place, chance: random.Random, main: Main | None = None, parts: Sequence[str] | None = None) -> list[str]:
    """Write a stranger's bundle, run a command on it, and return what is wrong with the answer.

    `parts`: what is hostile of that which acts (None: some of them); the texts that tell are hostile in any case.
    """
    texts = Texts(place, chance)
    _set_traps(place, texts)
    if parts is None:
        parts = chance.sample(sorted(PARTS), chance.choice((1, 1, 1, 2, 4)))
    spec = replace(example_a()[1], adapter=chance.choice(ADAPTERS) if parts else "serial")
    if parts:
        objective = replace(spec.experiment.objective, metric=texts.text())
        spec = _with(spec, objective=objective, variant={texts.text(): texts.value()}, task_digest=texts.text())
        spec = replace(spec, local_options=(texts.text(), *OPTIONS))
    for part in parts:
        spec = PARTS[part](spec, texts)
        oracle.seen(f"hostile {part}")
    _write(place, spec, texts)
    before = sorted(place.work.iterdir())
    command = chance.choice(COMMANDS) if parts else COMMANDS[0]
    argv = [word.format(adapter=spec.adapter or "x", platform=spec.platform) for word in command]
    answer = call_forked(main or command_line, argv, place, seconds=20)
    wrong = ["it would run a run"] if "\nto run: " in answer.out else []
    if sorted(place.work.iterdir()) != before:
        wrong.append(f"it made {', '.join(path.name for path in place.work.iterdir() if path not in before)}")
    return oracle.failures(f"hostile {argv[0]}", answer, wrong)


def _set_traps(place: Place, texts: Texts) -> None:
    """Lay what hostile texts name: a secret, a module and a pipe beside the bundle, kubeconfigs that run a command."""
    mine = place.kept / "mine"
    mine.mkdir()
    (mine / "secret").write_text("SECRET-7391\n")
    (mine / "kubeconfig").write_text(texts.kubeconfig)
    (place.home / ".kube").mkdir()
    (place.home / ".kube" / "config").symlink_to(mine / "kubeconfig")
    (place.work / "kc").symlink_to(mine / "kubeconfig")
    (place.work / "evil.py").write_text(EVIL.format(path=str(mine / "owned")))
    os.mkfifo(place.work / "fifo")


def _write(place: Place, spec: RunSpec, texts: Texts) -> None:
    """Write the folder and its bundle, and change each text that only tells into a hostile one."""
    meter = texts.chance.choice((*METERS, texts.text()))
    power = {"meter": meter, "options": texts.options(OF_METERS), "interval_seconds": 0.2}
    content = {"adapters": [texts.text()], texts.text(): texts.value(), "workload": texts.value()}
    said: dict[str, Any] = {"label": texts.text()}
    plan = {"name": texts.text(), "path": texts.text(), "content": content, "power": power}
    folder = folder_of(place.work / "stranger", spec, said, plan)
    for record in folder.glob("runs/*/*/end.json"):
        _change(record, "environment", texts)
    for name in ("log.txt", "outside.txt", "leftovers.jsonl"):
        (next(folder.glob("runs/*/*")) / name).write_text(texts.text() + "\n")
    write_bundle(place.work / ARCHIVE, {"results": folder}, plan_id=texts.text())


def _change(record: Path, part: str, texts: Texts) -> None:
    content = json.loads(record.read_text())
    content[part] |= {"versions": {texts.text() or "x": texts.text()}, "data": {"sha256": {texts.text(): texts.text()}}}
    content[part] |= {"python": texts.text(), "machine": texts.text(), "libc": texts.text(), "workload": {"sha256": texts.text()}}
    content["versions"] = {"framework": texts.text()}
    record.write_text(json.dumps(content))
