"""The experiment of faults, and others made of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tuneoff.experiment.yaml_reader import read_merged
from tuneoff.trust.faultmatrix.matrix import FILE

REPOSITORY = Path(__file__).parents[3]


def changed(folder: Path, **changes: Any) -> Path:
    """Write the experiment with these changes into a folder and return its path."""
    path = folder / "faults.yaml"
    path.write_text(json.dumps({**read_merged(FILE), **changes}))
    return path
