#!/usr/bin/env python3
"""The matrix script: `python benchmarks/compare.py FILE [...]` is `tuneoff compare FILE [...]`."""

from __future__ import annotations

import sys
from pathlib import Path

from tuneoff.cli.main import main

DEFAULT = Path(__file__).parent / "digits.yaml"

if __name__ == "__main__":
    sys.exit(main(["compare", *(sys.argv[1:] or [str(DEFAULT)])]))
