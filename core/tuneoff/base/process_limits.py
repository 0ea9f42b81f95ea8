"""What a trial's process does with itself: limits (threads, processors, control groups), death with its parent, its end."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS")
NOT_JOINED, NOT_PINNED = "cgroup_not_joined", "processors_not_limited"  # flags
VISIBLE = "CUDA_VISIBLE_DEVICES"  # environment variable with the accelerators that a process sees
PARENT = "TUNEOFF_PARENT"  # environment variable with the pid of who starts a process that is to die with it
_PR_SET_PDEATHSIG = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotLimits:
    """What limits the trials of one slot; their process puts it in force when it takes the slot, on itself.

    So a process that lives long and changes its slot changes its limits; between trials it keeps those of its last slot.
    """

    processors: tuple[int, ...] = ()  # those of this slot alone; empty: any
    memory_cgroup: str | None = None  # a folder
    cpu_cgroup: str | None = None  # with a CPU quota; the same folder with cgroup v2
    device: int | None = None  # the accelerator that its trials see alone; for good, so a process stays on slots of one

    def put_in_force(self) -> list[tuple[str, str]]:
        """Limit this process with all its threads; return (flag, text) for each limit that is not in force now."""
        problems = []
        for folder in filter(None, dict.fromkeys((self.memory_cgroup, self.cpu_cgroup))):
            try:
                (Path(folder) / "cgroup.procs").write_text(str(os.getpid()))
            except OSError as error:
                problems.append((NOT_JOINED, f"{folder}: {error.strerror}"))
        problem = run_on(self.processors) if self.processors else None
        if problem is not None:
            problems.append((NOT_PINNED, problem))
        return problems


def die_with_parent(number: int = signal.SIGKILL, parent: int | None = None) -> None:
    """Ask the kernel to send this process a signal when the thread that started it dies. A no-op where there is no such call.

    `parent`: its pid, else that in `PARENT`, which is taken out for what this process starts. If it died before the kernel was
    asked, the signal is sent here.
    """
    parent_text = os.environ.pop(PARENT, None)
    parent = int(parent_text) if parent is None and parent_text is not None else parent
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, number)
        if parent is not None and os.getppid() != parent:
            os.kill(os.getpid(), number)


def as_parent() -> dict[str, str]:
    """Return the variable by which a process that this one starts knows its parent."""
    return {PARENT: str(os.getpid())}


def thread_environment(threads: int) -> dict[str, str]:
    """Return the environment variables that limit the threads of numerical libraries."""
    return dict.fromkeys(THREAD_VARIABLES, str(threads))


def seeing(devices: Iterable[int]) -> dict[str, str]:
    """Return the environment variables by which these accelerators alone are seen, numbered as NVML does; of none: nothing."""
    visible = ",".join(map(str, devices))
    return {VISIBLE: visible, "CUDA_DEVICE_ORDER": "PCI_BUS_ID"} if visible else {}


def fresh_environment(threads: int, temporary: Path, **more: str) -> dict[str, str]:
    """Return the environment of a fresh process: this one's with limited threads, no random hashes, its own temporary folder."""
    limits = {**thread_environment(threads), "TMPDIR": str(temporary), "PYTHONHASHSEED": "0"}
    return {**os.environ, **limits, **more}


def run_on(processors: Collection[int]) -> str | None:
    """Let all threads of this process run on these processors alone; return why it failed, or None.

    Threads and processes that they start later inherit it.
    """
    done: set[str] = set()
    while new := set(os.listdir("/proc/self/task")) - done:  # again: a thread not reached yet may have started another
        for thread in new:
            try:
                os.sched_setaffinity(int(thread), processors)
            except ProcessLookupError:
                pass  # it ended meanwhile
            except OSError as error:
                return f"processors {', '.join(map(str, processors))}: {error.strerror}"
        done |= new
    return None


def end_with(main: Callable[[list[str]], int]) -> None:
    """Run a trial's program with this process's arguments, and end the process: torch takes over a second to tear down."""
    try:
        code = main(sys.argv[1:])
    except SystemExit as error:  # of the workload, or of what it calls: not complete, whatever it says
        code = error.code if isinstance(error.code, int) and error.code != 0 else 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
