"""The process that outlives a killed server and kills the processes of its pods: `python -I -S guardian.py NAME=VALUE`.

It reads a pipe from the server. When the pipe ends, it kills every process that carries the mark `NAME=VALUE` in its environment.
So no process has to be announced to it, and none is missed, not even one that was starting or that left its process group.
"""

import contextlib
import os
import secrets
import signal
import subprocess
import sys
import time

VARIABLE = "KATIB_EMULATED_NODE"
"""The environment variable that every process of a pod has; never set in the server's own environment."""

SCANS_WITHOUT_A_FIND = 2  # a process between fork and exec shows another environment for a moment: one scan proves nothing
PAUSE_SECONDS = 0.01
GIVE_UP_SECONDS = 5.0


class NodeGuardian:
    """The guardian process, as the server sees it. It starts with the object, and ends when the server ends, in whatever way."""

    def __init__(self) -> None:
        self.mark = secrets.token_hex(8)
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", __file__, f"{VARIABLE}={self.mark}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            start_new_session=True,  # what kills the server's own group must not kill it
        )

    def dismiss(self) -> None:
        """Let it kill what is left, and wait for its end. May be called twice."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def kill_marked(mark: bytes) -> None:
    """Kill until no process with the mark in the environment of its start is left, but for this one."""
    until, empty = time.monotonic() + GIVE_UP_SECONDS, 0
    while empty < SCANS_WITHOUT_A_FIND and time.monotonic() < until:
        empty += 1
        for pid in set(map(int, filter(str.isdigit, os.listdir("/proc")))) - {os.getpid()}:
            with contextlib.suppress(OSError), open(f"/proc/{pid}/environ", "rb") as file:  # it has ended, or is another user's
                if mark in file.read().split(b"\0"):
                    empty = 0
                    os.kill(pid, signal.SIGKILL)
        time.sleep(PAUSE_SECONDS)


if __name__ == "__main__":
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    while os.read(0, 1):
        pass
    kill_marked(sys.argv[1].encode())
