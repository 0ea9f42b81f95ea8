"""Images and containers of the real `podman`, in a storage of the test's own, on a base that is made of this machine's Python."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

MISSING = [name for name in ("podman", "runc") if shutil.which(name) is None]
needs_podman = pytest.mark.skipif(
    bool(MISSING), reason=f"not installed: {', '.join(MISSING)}; run: .ci/install Podman podman runc"
)

SHELL = ("sh", "mkdir", "grep", "head")  # what the Containerfile and Katib's webhook need, and the tests
LIBRARIES = ("libstdc++.so.6", "libgcc_s.so.1", "libdl.so.2", "libpthread.so.0", "librt.so.1", "libutil.so.1")  # of wheels
LEFT_OUT = ("site-packages", "test", "tests", "idlelib", "lib2to3", "tkinter", "config-*", "*.a")
# Some machines allow no higher limits, or mount both versions of control groups, which only runc bears.
SETTINGS = """
[containers]
default_ulimits = ["nofile=4096:4096", "nproc=4096:4096"]
[engine]
runtime = "runc"
"""


@dataclass(frozen=True)
class Podman:
    """Podman with a storage of its own; `environment` is what a program needs to use the same."""

    environment: dict[str, str]
    folder: Path  # where it is run: where a container is killed for its memory, conmon leaves a file

    def __call__(self, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        command = ["podman", *arguments]
        done = subprocess.run(
            command, env=self.environment, cwd=self.folder, capture_output=True, text=True, timeout=120, check=False
        )
        assert not check or done.returncode == 0, done.stderr
        return done


@contextmanager
def own_podman(folder: Path) -> Iterator[Podman]:
    """Yield a podman whose images and containers are removed at the end; `folder` has its settings.

    They lie at a short path: at one of 51 bytes no container's end is noted, and podman waits 20 s for that.
    """
    names = {"CONTAINERS_CONF": "containers.conf", "CONTAINERS_STORAGE_CONF": "storage.conf"}
    settings = {name: str(folder / file) for name, file in names.items()}
    podman = Podman({**os.environ, **settings, "BUILDAH_ISOLATION": "chroot"}, folder)
    (folder / "containers.conf").write_text(SETTINGS)
    with tempfile.TemporaryDirectory(prefix="podman-") as short:
        storage = f'[storage]\ndriver = "overlay"\ngraphroot = "{short}/images"\nrunroot = "{short}/run"\n'
        (folder / "storage.conf").write_text(storage)
        try:
            yield podman
        finally:
            podman("rm", "--all", "--force", check=False)
            podman("rmi", "--all", "--force", check=False)


def pip_settings(folder: Path) -> list[str]:
    """Return the options of a build that give pip in it this machine's settings: index, certificates."""
    listed = subprocess.run([sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=True).stdout
    settings = {key.rpartition(".")[2]: value for key, value in re.findall(r"^(\S+)='(.*)'$", listed, flags=re.MULTILINE)}
    (folder / "pip.conf").write_text("\n".join(["[global]", *(f"{key} = {value}" for key, value in settings.items()), ""]))
    files = {str(folder / "pip.conf"): "/etc/pip.conf", **({settings["cert"]: settings["cert"]} if "cert" in settings else {})}
    return ["--network=host", *(f"--volume={source}:{target}:ro" for source, target in files.items())]


def make_base(podman: Podman, folder: Path, name: str) -> None:
    """Make an image of this machine's Python without its packages, of a shell, and of the libraries that these need."""
    root, prefix = folder / "root", Path(sys.base_prefix)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    python = root / "usr/local/bin/python3"
    python.parent.mkdir(parents=True)
    shutil.copy(prefix / "bin" / version, python)
    stdlib = Path(sysconfig.get_path("stdlib"))
    shutil.copytree(stdlib, root / "usr/local/lib" / version, ignore=shutil.ignore_patterns(*LEFT_OUT))
    programs = [_found(name) for name in SHELL]
    for path in [*programs, *_needed([*programs, python, *(stdlib / "lib-dynload").glob("*.so")]), *_libraries()]:
        (root / path.lstrip("/")).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, root / path.lstrip("/"))
    (root / "tmp").mkdir()
    (root / "tmp").chmod(0o1777)
    (folder / "Containerfile").write_text("FROM scratch\nCOPY root /\nENV PATH=/usr/local/bin:/usr/bin:/bin\n")
    podman("build", "--tag", name, str(folder))
    shutil.rmtree(root)


def need_limits(podman: Podman, base: str) -> None:
    """Skip the test where podman itself cannot run a container with limits, whatever is in that."""
    limits = ("--memory=100m", "--memory-swap=100m", "--cpus=0.5", "--network=none")
    done = podman("run", "--rm", *limits, base, "sh", "-c", ":", check=False)
    if done.returncode in (125, 126):  # podman's own codes, and the runtime's
        pytest.skip(f"podman cannot run a container with limits here: {done.stderr.strip().splitlines()[-1]}")
    assert done.returncode == 0, done.stderr


def _found(name: str) -> str:
    path = shutil.which(name, path="/bin:/usr/bin")
    assert path is not None
    return path


def _needed(programs: Sequence[str | Path]) -> set[str]:
    told = subprocess.run(["ldd", *map(str, programs)], capture_output=True, text=True, check=False).stdout
    return set(re.findall(r"(/\S+) \(0x", told))


def _libraries() -> list[str]:
    """Return the paths of `LIBRARIES`, as the loader finds them."""
    known = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=True).stdout
    found = [re.search(rf"^\s*{re.escape(name)} .*=> (\S+)$", known, flags=re.MULTILINE) for name in LIBRARIES]
    return [match[1] for match in found if match is not None]
