"""Fuzz experiment files: 10 000 broken ones, and each is answered by one line and a documented exit code, never by a traceback.

Each case mutates a valid file (of benchmarks/ or the documentation) in its structure or its bytes, or is no file at all, and is
given to `plan`, `compare`, `run` (which start nothing here), `doctor` or `schema` in a guarded child: at most 10 s and 1 GB,
nothing written outside its folder, no network. A failure is printed with the command that repeats it. Exit code 1 on any.

    python tests/fuzz/fuzz_files.py --count 10000 --seed 0
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # as pytest has it


def main(arguments: list[str] | None = None) -> int:
    from fuzz.engine import parser, run_all
    from fuzz.file_cases import run_case

    options = parser(__doc__, 10_000).parse_args(arguments)
    return run_all(run_case, options, "python tests/fuzz/fuzz_files.py")


if __name__ == "__main__":
    sys.exit(main())
