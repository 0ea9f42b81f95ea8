"""The environment of a run, for its record: versions, machine, GPUs, threads, git commit. Starts no process."""

from __future__ import annotations

import contextlib
import functools
import os
import platform
import re
import socket
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import tuneoff
from tuneoff.base import clock
from tuneoff.base.files import read_regular
from tuneoff.base.packages import COMMON_PACKAGES, canonical, distributions, installed_version

MEGABYTE = 1e6
MOST_BYTES = 1 << 26  # of a file that is read: a folder's own `.git`, or a power meter's option, may name any
_COMMIT = re.compile(r"[0-9a-f]{40,64}")  # what else a reference's file holds is not told
THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "OMP_PROC_BIND",
    "KMP_AFFINITY",
    "CUDA_VISIBLE_DEVICES",
    "PYTHONHASHSEED",
)
SECRET_NAME = re.compile(r"TOKEN|SECRET|PASSW|API_?KEY|ACCESS_?KEY|PRIVATE_?KEY|CREDENTIAL", re.IGNORECASE)  # of variables
_VECTOR = re.compile(r"sse4_2|avx\w*|fma|f16c|amx_\w+|asimd\w*|sve\w*|bf16|i8mm")  # numbers may depend on them


def capture(packages: Iterable[str] = (), lock: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Return the environment as JSON values; what cannot be read is None, and nothing here fails.

    `packages`: distributions beyond the common ones whose versions belong in the record: the framework's, the adapter's.
    `lock`: all distributions of the environment that a run had of its own, by their canonical names; else this process's.
    """
    folder = None
    with contextlib.suppress(OSError):  # it was removed
        folder = Path.cwd()
    return {
        **_fixed(),
        "versions": {"tuneoff": tuneoff.__version__}
        | {name: _version(name) if lock is None else lock.get(canonical(name)) for name in (*COMMON_PACKAGES, *packages)},
        "distributions": distributions(sys.path) if lock is None else dict(lock),
        "cpus_available": sorted(os.sched_getaffinity(0)),
        "memory_available_bytes": memory()[0],
        "load_average_1min": os.getloadavg()[0],
        "niceness": os.nice(0),
        "threads": {name: os.environ[name] for name in THREAD_VARIABLES if name in os.environ},
        "git": git_state(folder) if folder is not None else None,
    }


@functools.cache
def _fixed() -> dict[str, Any]:
    """Return what does not change while the process lives."""
    return {
        "python": platform.python_version(),
        "python_implementation": sys.implementation.name,
        "system": platform.system(),
        "kernel": platform.release(),
        "machine": platform.machine(),
        "libc": " ".join(platform.libc_ver()).strip() or None,
        "host": socket.gethostname(),
        "boot_id": clock.boot_id(),
        "cpu": cpu(),
        "accelerators": accelerators(),
        "memory_total_bytes": memory()[1],
        "container": container(),
        "virtual_machine": virtual_machine(),
    }


def cpu(path: Path = Path("/proc/cpuinfo")) -> dict[str, Any]:
    """Return the first processor's vendor, family, model, name and vector instructions, and how many logical processors
    there are."""
    names = {"vendor_id": "vendor", "cpu family": "family", "model": "model", "model name": "name", "stepping": "stepping"}
    first = first_processor(path)
    fields: dict[str, Any] = {name: first.get(key) for key, name in names.items()}
    fields = {name: int(text) if text is not None and text.isdecimal() else text for name, text in fields.items()}
    flags = first.get("flags", first.get("Features"))  # the latter on ARM
    sets = None if flags is None else sorted(word for word in flags.split() if _VECTOR.fullmatch(word))
    governor = (_read(Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")) or "").strip() or None
    return {**fields, "instruction_sets": sets, "logical_count": os.cpu_count(), "governor": governor}


def first_processor(path: Path = Path("/proc/cpuinfo")) -> dict[str, str]:
    """Return what the kernel tells of the first processor, by its own names; empty where it does not tell."""
    lines = (_read(path) or "").partition("\n\n")[0].splitlines()
    return {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}


def memory(proc: Path = Path("/proc")) -> tuple[int | None, int | None]:
    """Return (available, total) bytes of memory; None where the kernel does not tell."""
    sizes: dict[str, int] = {}
    with contextlib.suppress(ValueError, IndexError):
        for line in (_read(proc / "meminfo") or "").splitlines():
            name, _, value = line.partition(":")
            if name in ("MemAvailable", "MemTotal"):
                sizes[name] = int(value.split()[0]) * 1024
    return sizes.get("MemAvailable"), sizes.get("MemTotal")


def container() -> str | None:
    """Return the hint that this is a container ("docker", "podman", "kubernetes", ...), or None without one."""
    if "KUBERNETES_SERVICE_HOST" in os.environ:
        return "kubernetes"
    for path, name in (("/.dockerenv", "docker"), ("/run/.containerenv", "podman")):
        if os.path.exists(path):
            return name
    groups = _read(Path("/proc/1/cgroup")) or ""
    hints = ("kubepods", "docker", "lxc", "containerd", "libpod")
    return next((hint for hint in hints if hint in groups), None)


def virtual_machine() -> str | None:
    """Return the hint that this is a virtual machine (the product's name, else "hypervisor"), or None without one."""
    if "hypervisor" not in first_processor().get("flags", "").split():
        return None
    return (_read(Path("/sys/class/dmi/id/product_name")) or "").strip() or "hypervisor"


def git_state(folder: Path) -> dict[str, Any] | None:
    """Return {"commit", "branch"} of the git work tree that holds `folder`, or None outside of one.

    Whether files differ from the commit is not told: that would read the whole tree.
    """
    entry, common = _git_folders(folder)
    head = (_read(entry / "HEAD") or "").strip()
    if not head.startswith("ref:"):
        return {"commit": head, "branch": None} if _COMMIT.fullmatch(head) else None
    reference = head.removeprefix("ref:").strip()
    packed = (line.partition(" ") for line in (_read(common / "packed-refs") or "").splitlines())
    commits = (_read(entry / reference), _read(common / reference), *(commit for commit, _, name in packed if name == reference))
    commit = next((text.strip() for text in commits if text and _COMMIT.fullmatch(text.strip())), None)
    return {"commit": commit, "branch": reference.removeprefix("refs/heads/")}  # None: a branch without a commit


def git_remote(folder: Path) -> str | None:
    """Return the URL of the remote `origin` (else of the first one) of the work tree that holds `folder`, without credentials."""
    config = _read(_git_folders(folder)[1] / "config") or ""
    urls = dict(re.findall(r'^\[remote "(.+?)"\][^\[]*?^\s*url\s*=\s*(\S+)', config, flags=re.MULTILINE))
    url = urls.get("origin") or next(iter(urls.values()), None)
    scheme, separator, rest = (url or "").partition("://")
    if not separator:
        return url  # `git@host:path` has no password
    host, slash, path = rest.partition("/")
    return f"{scheme}://{host.rpartition('@')[2]}{slash}{path.partition('?')[0].partition('#')[0]}"


def _git_folders(folder: Path) -> tuple[Path, Path]:
    """Return the folder of the HEAD of the work tree that holds `folder`, and the one that it shares with linked work trees.

    Neither need be there: outside of a work tree it is one that is not.
    """
    entries = (parent / ".git" for parent in (folder, *folder.parents))
    entry = next(filter(os.path.exists, entries), folder / ".git")  # false too where the folder may not be looked into
    text = _read(entry) if os.path.isfile(entry) else None
    if text is not None and text.startswith("gitdir:"):  # a linked work tree or a submodule
        entry = entry.parent / text.removeprefix("gitdir:").strip()
    return entry, entry / (_read(entry / "commondir") or ".").strip()


@functools.cache
def _version(package: str) -> str | None:
    return installed_version(package)


def _read(path: Path) -> str | None:
    try:
        return read_regular(path, MOST_BYTES, follow=True).decode(errors="replace")
    except OSError:
        return None


def accelerators() -> list[dict[str, Any]] | None:
    """Return {"name", "memory_mb"} of each NVIDIA GPU; empty without one, None where NVML or its package cannot tell."""
    try:
        import pynvml  # type: ignore[import-untyped,import-not-found,unused-ignore]
    except ImportError:
        return None
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError_LibraryNotFound:
        return []
    except pynvml.NVMLError:
        return None
    try:
        handles = [pynvml.nvmlDeviceGetHandleByIndex(index) for index in range(pynvml.nvmlDeviceGetCount())]
        names = [pynvml.nvmlDeviceGetName(gpu) for gpu in handles]
        return [
            {
                "name": name.decode() if isinstance(name, bytes) else name,  # bytes: of old releases
                "memory_mb": pynvml.nvmlDeviceGetMemoryInfo(gpu).total / MEGABYTE,
            }
            for name, gpu in zip(names, handles, strict=True)
        ]
    except pynvml.NVMLError:
        return None
    finally:
        pynvml.nvmlShutdown()
