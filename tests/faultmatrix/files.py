"""The file of faults, and others made of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tuneoff.experiment.include import read_merged

REPOSITORY = Path(__file__).parents[2]
FILE = REPOSITORY / "benchmarks" / "faults.yaml"


def changed(folder: Path, **changes: Any) -> Path:
    """Write the file with these changes into a folder and return its path."""
    path = folder / "faults.yaml"
    path.write_text(json.dumps({**read_merged(FILE), **changes}))
    return path
