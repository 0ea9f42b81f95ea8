"""What a trial's process used."""

from __future__ import annotations

import resource


def peak_rss_bytes() -> int:
    """Return the largest resident memory that this process had since it began its program.

    `ru_maxrss` would do, but on Linux it survives `exec`: a small process started by a large one has the large one's peak.
    """
    try:
        with open("/proc/self/status") as file:
            for line in file:
                if line.startswith("VmHWM:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass  # no such file system here
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
