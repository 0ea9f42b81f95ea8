"""`python -m tuneoff` is the command `tuneoff`."""

from __future__ import annotations

import sys

from tuneoff.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
