"""The image of the trials, built and run by a real container tool: a trial in it has no rights, and limits that hold."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from adapters.katib.katib_objects import condition, ended, pod, trial
from adapters.katib.test_pod import RATE, SURROGATE, Ended
from builders.katib_specs import plan_of, spec_of
from containers import make_base, need_limits, needs_podman, own_podman, pip_settings
from tuneoff.base.code_digest import code_digest
from tuneoff.errors import InfrastructureError
from tuneoff.experiment.spec import RunSpec, Workers, WorkloadSpec
from tuneoff.record.events import schema
from tuneoff_adapters.katib.manifest import config_map_manifest, experiment_manifest
from tuneoff_adapters.kubernetes.doctor import answer_of
from tuneoff_adapters.kubernetes.endings import PodLimits, ending_of
from tuneoff_adapters.kubernetes.layout import CONFIG_DIR, METRICS_FILE

pytestmark = [pytest.mark.slow(first=True), needs_podman]

ROOT = Path(__file__).parents[3]
IMAGE, BASE = "localhost/tuneoff:test", "localhost/base"
MEMORY_MB = 300
# After the trial, beside it in its container: what the kernel counted there, with either version of control groups.
KILLS = " ; code=$?; grep -h '^oom_kill ' /sys/fs/cgroup/memory/memory.oom_control /sys/fs/cgroup/memory.events >&2; exit $code"
FACTS = """
import json, os
from pathlib import Path
from tuneoff.run.supervisor.cgroups import own_quota
from tuneoff_workloads.mnist_mlp.prepare import cache_root

def is_writable(folder):
    try:
        Path(folder, "new").touch()
    except OSError:
        return False
    return True

status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
folders = ("/", "/etc/tuneoff", "/opt/tuneoff", str(cache_root()), "/tmp", "/tuneoff/run", "/var/log/katib")
print(json.dumps({
    "uid": os.getuid(),
    "rights": int(status["CapBnd"], 16),
    "no_new_rights": status["NoNewPrivs"].strip(),
    "quota": own_quota(),
    "writable": [folder for folder in folders if is_writable(folder)],
}))
"""


class Ran(Ended):
    """A container after its end."""

    @property
    def memory_kills(self) -> int:
        """How many processes of the container the kernel killed for their memory."""
        (count,) = re.findall(r"^oom_kill (\d+)$", self.errors, flags=re.MULTILINE)
        return int(count)


@dataclass(frozen=True)
class Image:
    """The image, and the podman that has it."""

    podman: Any
    build: list[str]  # options of a build here
    name: str = IMAGE

    def run(self, spec: RunSpec, folder: Path, script: str | None = None) -> Ran:
        """Run a trial as its pod does: what the adapter submits, in the shell of Katib's webhook; or a script in its place."""
        plan = plan_of(spec, folder / "runs")
        template = experiment_manifest(plan)["spec"]["trialTemplate"]["trialSpec"]["spec"]["template"]["spec"]
        (container,) = template["containers"]
        (folder / "config").mkdir()
        for name, text in config_map_manifest(plan)["data"].items():
            (folder / "config" / name).write_text(text)
        limits, security = container["resources"]["limits"], container["securityContext"]
        assert security["runAsNonRoot"]
        assert security["readOnlyRootFilesystem"]
        options = [
            "--network=none",
            "--read-only",
            "--read-only-tmpfs=false",
            "--cap-drop=all",
            "--security-opt=no-new-privileges",
        ]
        options += [f"--memory={limits['memory']}", f"--memory-swap={limits['memory']}"]
        options += [f"--cpus={int(limits['cpu'].removesuffix('m')) / 1000:g}"]
        options += [f"--env={entry['name']}={entry['value']}" for entry in container["env"]]
        options += [f"--volume={folder / 'config'}:{CONFIG_DIR}:ro"]
        empty = [mount["mountPath"] for mount in container["volumeMounts"] if mount["mountPath"] != CONFIG_DIR]
        options += [f"--tmpfs={path}:mode=1777" for path in (*empty, str(Path(METRICS_FILE).parent))]
        line = " ".join(container["command"]) if script is None else shlex.join(["python", "-c", script])
        for name, value in {"trial-name": "r0123456789abcdef-x7k2m9qp", "learning_rate": "0.01"}.items():
            line = line.replace(f"${{trialParameters.{name}}}", value)
        done = self.podman("run", "--rm", *options, self.name, "sh", "-c", line + KILLS, check=False)
        return Ran(done.returncode, done.stdout.encode().splitlines(), done.stderr, folder)


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Image]:
    folder = tmp_path_factory.mktemp("containers")
    with own_podman(folder) as podman:
        make_base(podman, folder, BASE)
        need_limits(podman, BASE)
        build = pip_settings(folder)
        arguments = ["TORCH_INDEX=none", "DATASETS=", f"BASE={BASE}"]
        options = ["--layers=false", *build, *(f"--build-arg={argument}" for argument in arguments)]
        command = ["make", "image", f"IMAGE={IMAGE}", f"ARGS={' '.join(options)}"]
        done = subprocess.run(command, cwd=ROOT, env=podman.environment, capture_output=True, text=True, check=False, timeout=280)
        assert done.returncode == 0, done.stdout + done.stderr
        yield Image(podman, build)


def surrogate(**changes: Any) -> RunSpec:
    workload = changes.pop("workload", SURROGATE)
    workers = Workers(count=1, cpus=0.5, memory_mb=MEMORY_MB)
    return spec_of(workload=workload, workers=workers, search_space=RATE, options={"image": IMAGE}, **changes)


def flags(ran: Ran) -> list[str]:
    return [event.name for event in ran.events if isinstance(event, schema.Flag)]


def test_a_trial_completes_in_it_under_its_limits(image: Image, tmp_path: Path) -> None:
    ran = image.run(surrogate(), tmp_path)
    assert ran.code == 0, ran.errors
    assert isinstance(ran.events[-1], schema.TrialEnded)
    assert ran.events[-1].state == "completed"
    assert ran.checkpoint()
    assert (ran.memory_kills, flags(ran)) == (0, [])


def test_a_trial_that_takes_too_much_memory_is_reported_as_out_of_memory(image: Image, tmp_path: Path) -> None:
    options = {"kinds": ["out_of_memory"], "rate": 1.0, "at_epoch": 2}
    spec = surrogate(workload=WorkloadSpec(name="faulty", target="tuneoff_faults.faulty:Faulty", options=options))
    ran = image.run(spec, tmp_path)
    assert (ran.code, ran.memory_kills) == (137, 1), ran.errors
    assert [event.epoch for event in ran.events if isinstance(event, schema.Epoch)] == [1]
    # what a kubelet makes of that
    its_pod = pod("a", "Failed", ended(ran.code, "OOMKilled" if ran.memory_kills else ""))
    limits = PodLimits(deadline_seconds=900, memory_bytes=MEMORY_MB * 10**6)
    ending = ending_of(trial("a", condition("Failed")), its_pod, limits, 1)
    assert (ending.cause, ending.charged) == (f"out of memory: more than {MEMORY_MB} MB (container)", "workload")


def test_it_runs_without_rights_on_a_file_system_that_is_read_only_with_its_share_of_a_processor(
    image: Image, tmp_path: Path
) -> None:
    ran = image.run(surrogate(), tmp_path, FACTS)
    assert ran.code == 0, ran.errors
    assert json.loads(ran.lines[0]) == {
        "uid": 65532,
        "rights": 0,
        "no_new_rights": "1",
        "quota": 0.5,
        "writable": ["/tmp", "/tuneoff/run", "/var/log/katib"],
    }


def test_an_image_of_another_commit_is_noticed_by_doctor_and_by_its_trials(
    image: Image, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in image.podman.environment.items():
        monkeypatch.setenv(name, value)
    assert answer_of(IMAGE) == [code_digest()]
    changes = {
        "other": "import tuneoff; open(tuneoff.__file__, 'a').write('#')",
        "headless": "import os, shutil; os.remove(shutil.which('head'))",
    }
    for name, change in changes.items():
        text = f'FROM {IMAGE}\nUSER 0\nRUN ["python", "-c", {json.dumps(change)}]\nUSER 65532\n'
        (tmp_path / "Containerfile").write_text(text)
        image.podman("build", *image.build, f"--tag=localhost/{name}", str(tmp_path))
    assert answer_of("localhost/headless") == [code_digest(), "head"]
    (other,) = answer_of("localhost/other")
    assert len(other) == 64
    assert other != code_digest()
    with pytest.raises(InfrastructureError, match="localhost/none does not say which tuneoff it has"):
        answer_of("localhost/none")
    ran = replace(image, name="localhost/other").run(surrogate(), tmp_path)
    assert (ran.code, flags(ran)) == (0, ["other_code"]), ran.errors
