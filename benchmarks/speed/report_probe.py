"""Write the report of a results folder in a process of its own: `python -m benchmarks.speed.report_probe FOLDER TRIALS`.

Its time is that of the process: interpreter and imports included.
"""

from __future__ import annotations

import json
import resource
import sys
from pathlib import Path

from benchmarks.speed.derive_probe import peak_bytes
from tuneoff.judge.results import read_results
from tuneoff.tell.page.report import write_report


def main(folder: Path, trials: int) -> None:
    page = write_report(folder)
    used = resource.getrusage(resource.RUSAGE_SELF)
    counted = sum(len(record.trials) for record in read_results(folder).records)
    if counted != trials:
        raise SystemExit(f"the report must be over {trials} trials, but its folder has {counted}")
    print(
        json.dumps(
            {
                "page_bytes": page.stat().st_size,
                "cpu_seconds": used.ru_utime + used.ru_stime,
                "peak_bytes": peak_bytes(),
            }
        )
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
