"""The processes that a training starts: they end with its trial, whatever it forgot, and with its process, whatever that died of.

So a process that runs trials adopts what is orphaned below it, and leads a session, by which what it has left is found.
"""

from __future__ import annotations

import contextlib
import gc
import itertools
import os
import sys
import threading
import time
from collections.abc import Callable, Collection
from typing import Any

from tuneoff.base.processes import (
    become_subreaper,
    children,
    end_all,
    in_group,
    in_session,
    is_alive,
    is_resource_tracker,
    process_started_ns,
    session_of,
    with_mark,
)

_MARK = "TUNEOFF_TRIAL_PROCESS"  # environment variable of what such a process starts
_GOING_SECONDS = 0.2  # in which what ends by itself has ended
_CLOSE_SECONDS = 1.0  # a pool of which a process was killed may hang


def hold_children(execution_id: str, *, in_container: bool = False) -> None:
    """Keep what this process starts together, from now on; in a container that is the container's work."""
    become_subreaper()
    main = sys.modules["__main__"]  # what a training spawns would import this program, with all that it imports
    main.__spec__ = None
    vars(main).pop("__file__", None)
    if not in_container:
        with contextlib.suppress(PermissionError):  # it leads a group already
            os.setsid()
        os.environ[_MARK] = f"{execution_id}-{os.getpid()}"


def left_by(execution_id: str, pid: int, started_ns: int = 0) -> list[int]:
    """Return the living processes that a dead one, which held its children, has left on this machine.

    They are marked, of its group, or of a session that began after it did, `started_ns`: where it could lead none as it led a
    group (in Ray), that in which it was is another's. 0: it led one.
    """
    marked = with_mark(_MARK, f"{execution_id}-{pid}")
    sessions = {session: in_session(session) for session in {*map(session_of, marked)} - {0, os.getsid(0)}}
    theirs = [members for members in sessions.values() if all(process_started_ns(member) >= started_ns for member in members)]
    own = () if is_alive(pid) else (*in_session(pid), *in_group(pid))  # else the number is used again
    return sorted({*marked, *itertools.chain(*theirs), *own})


def own_children() -> frozenset[int]:
    """Return the children of this process, and what its fork servers have started for it, zombies too.

    By one system call, which reaps nobody, where there are none.
    """
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return frozenset()
    direct = children(os.getpid())
    return frozenset((*direct, *(pid for server in _servers() if server in direct for pid in children(server))))


def end_children(spared: Collection[int] = frozenset(), *, keeps: bool = False) -> bool:
    """End the children of this process but `spared`, and all below them; return whether a training counts on some that it kept.

    What nothing refers to any more ends by itself. `keeps`: what a training has kept (a pool in a variable of its module) ends
    with this process. A fork server ends, which has the folder and the umask of its start. Resource trackers end with this
    process too, and then remove what semaphores and shared memory are left.
    """
    if not own_children().difference(spared):
        return False
    gc.collect()
    servers = _servers()
    deadline = time.monotonic() + _GOING_SECONDS
    while (is_held := any(pid not in servers or children(pid) for pid in _living(spared))) and time.monotonic() < deadline:
        time.sleep(0.005)
    holders = _holders(spared) if is_held else []
    if keeps and holders:
        spared = {*spared, *servers, *(pid for _, pids, _ in holders for pid in pids)}
    else:
        for holder, _, close in holders:
            thread = threading.Thread(target=close, args=(holder,), daemon=True)
            thread.start()
            thread.join(_CLOSE_SECONDS)
    end_all(lambda: _living(spared))
    for pid in own_children().difference(spared).intersection(servers):
        with contextlib.suppress(OSError):
            servers[pid]._stop()
    for pid in own_children().difference(spared):
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)
    return bool(holders)


def end_tracker() -> None:
    """Have this process's resource tracker remove now what semaphores and shared memory are left, and end."""
    for module in _modules("multiprocessing.resource_tracker", "_resource_tracker"):
        module._resource_tracker._stop()


def _servers() -> dict[int, Any]:
    return {module._forkserver._forkserver_pid: module._forkserver for module in _modules(".forkserver", "_forkserver")}


def _living(spared: Collection[int]) -> list[int]:
    """Return the children that have not ended; `multiprocessing` collects those of its own that have."""
    for module in _modules(".process", "active_children"):
        module.active_children()
    return [pid for pid in own_children().difference(spared) if is_alive(pid) and not is_resource_tracker(pid)]


def _holders(spared: Collection[int]) -> list[tuple[Any, set[int], Callable[[Any], None]]]:
    """Return the living objects that have processes: with these, and how they are closed, lest they start others or raise."""
    kinds = {
        **{module.Pool: lambda pool: pool.terminate() for module in _modules(".pool", "ThreadPool")},
        **{module.BaseManager: lambda manager: manager.shutdown() for module in _modules(".managers", "BaseManager")},
        **{module.ProcessPoolExecutor: _shut_down for module in _modules(".process", "ProcessPoolExecutor")},
        **{module.ProcessPoolExecutor: _shut_down for module in _modules(".process_executor", "ProcessPoolExecutor")},  # loky's
        **{
            module._MultiProcessingDataLoaderIter: lambda batches: batches._shutdown_workers()
            for module in _modules("torch.utils.data.dataloader", "_MultiProcessingDataLoaderIter")
        },
    }
    holders = []
    for holder in gc.get_objects() if kinds else ():
        close = next((close for kind, close in kinds.items() if issubclass(type(holder), kind)), None)
        if close is None:
            continue
        names = ("_pool", "_workers", "_processes", "_process")
        held = next((value for name in names if (value := getattr(holder, name, None))), ())
        processes = held.values() if isinstance(held, dict) else held if isinstance(held, list) else [held]
        pids = {pid for process in processes if (pid := getattr(process, "pid", None)) is not None and is_alive(pid)}
        if pids and not pids.intersection(spared):  # none of a pool of threads, or of one that is closed
            holders.append((holder, pids, close))
    return holders


def _shut_down(executor: Any) -> None:
    executor.shutdown(wait=False)


def _modules(end: str, attribute: str) -> list[Any]:
    """Return the modules of this name that were imported: of `multiprocessing`, and of what was made after it."""
    return [module for name, module in list(sys.modules.items()) if name.endswith(end) and hasattr(module, attribute)]
