"""Ray's start, which waits for its node as long as the run's deploy may take; as a program, `ray start` on a host.

Ray itself waits 30 s, fixed in its sources (`raylet_start_wait_time_s` in `Node.__init__`), and no setting changes that.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator
from typing import Any


@contextlib.contextmanager
def patient_start(seconds: float) -> Iterator[None]:
    """Let Ray wait so long for a node that it starts: its look for the node does not return before without one."""
    from ray._private import services

    look, deadline = services.get_node, time.monotonic() + seconds

    def get_node(*arguments: Any) -> Any:
        while True:
            try:
                return look(*arguments)
            except RuntimeError:  # it has not joined yet
                if time.monotonic() > deadline:
                    raise

    services.get_node = get_node
    try:
        yield
    finally:
        services.get_node = look


def main(seconds: str, *words: str) -> None:
    """Be `ray WORDS`, with so much patience."""
    from ray.scripts.scripts import main as ray

    sys.argv = ["ray", *words]
    with patient_start(float(seconds)):
        ray()


if __name__ == "__main__":
    main(*sys.argv[1:])
