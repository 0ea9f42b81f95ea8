"""Fuzz results folders: 2 000 damaged ones, and each reader answers with one line per problem and a documented exit code.

A handful of small real results is made once (done, pruned, failed, retried, interrupted, killed, repeated). Each case damages a
copy: bytes, values of any type at any place, files removed, exchanged, copied, replaced by pipes, links and folders. `status`,
`verify`, `export` and `compare --resume` are asked in guarded children: at most 10 s and 1 GB, nothing written outside it,
no stranger killed, no network. And `verify` must say VERIFIED of each undamaged copy, and never where a raw or derived file was
touched.

    python tests/fuzz/fuzz_results.py --count 2000 --seed 0
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # as pytest has it


def main(arguments: list[str] | None = None) -> int:
    from fuzz.engine import parser, run_all
    from fuzz.folder_cases import run_case
    from fuzz.sources import make_sources

    made = parser(__doc__, 2000)
    made.add_argument("--sources", type=Path, metavar="DIR", help="the results to damage, made where there are none; kept")
    made.add_argument("--small", action="store_true", help="only of results that take no time to make")
    options = made.parse_args(arguments)
    sources = options.sources or Path(tempfile.mkdtemp(prefix="tuneoff-fuzz-sources-"))
    make_sources(sources, small=options.small)
    code = run_all(run_case, options, f"python tests/fuzz/fuzz_results.py --sources {sources}", sources)
    if code == 0 and options.sources is None:
        shutil.rmtree(sources)
    return code


if __name__ == "__main__":
    sys.exit(main())
