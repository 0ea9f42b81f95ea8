"""Peak memory of a process."""

from __future__ import annotations

import resource
import subprocess
import sys

from tuneoff.trial.usage import peak_rss_bytes

MEGABYTE = 10**6
PRINT_BOTH = """
import resource
from tuneoff.trial.usage import peak_rss_bytes
print(peak_rss_bytes(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
"""


def test_memory_that_was_freed_again_counts() -> None:
    before = peak_rss_bytes()
    ballast = bytearray(b"x" * (before + 100 * MEGABYTE))
    del ballast
    assert peak_rss_bytes() >= before + 100 * MEGABYTE


def test_a_small_process_of_a_large_one_has_its_own_peak() -> None:
    ballast = bytearray(b"x" * (300 * MEGABYTE))
    done = subprocess.run([sys.executable, "-c", PRINT_BOTH], capture_output=True, text=True, check=True)
    peak, kernels = (int(text) for text in done.stdout.split())
    assert len(ballast) > 0
    assert peak < 100 * MEGABYTE
    assert kernels > 290 * MEGABYTE  # what would have been recorded
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 > 290 * MEGABYTE
