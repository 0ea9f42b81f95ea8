"""Fuzz bundles: 1 000 damaged ones, and `reproduce --plan` answers with one line per problem and a documented exit code.

A bundle of the worked examples is made once. Each case damages a copy: bytes of the archive or of what is packed in it, headers
of its members, values of its manifest, results under a manifest that fits, or something that is no file in its place. It is
asked for in guarded children as by `fuzz_results.py`. What is accepted must hold the files that were packed, or be said not
to be verified, and nothing unpacked may stay.

    python tests/fuzz/fuzz_bundles.py --count 1000 --seed 0
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # as pytest has it


def main(arguments: list[str] | None = None) -> int:
    from builders.bundles import packed
    from builders.results_folders import write_examples
    from fuzz.archive_cases import ARCHIVE, run_case
    from fuzz.engine import parser, run_all

    options = parser(__doc__, 1000).parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="tuneoff-fuzz-sources-") as temporary:
        sources = Path(temporary)
        packed(write_examples(sources / "results").path, sources / ARCHIVE)
        return run_all(run_case, options, "python tests/fuzz/fuzz_bundles.py", sources)


if __name__ == "__main__":
    sys.exit(main())
