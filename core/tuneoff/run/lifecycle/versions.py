"""What an adapter learns of versions while a run goes on (a server's, an image's digest), kept for the record."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tuneoff.base.files import read_json, replacing

VERSIONS = "versions.json"  # in the execution's folder


def note_versions(run_dir: Path, values: Mapping[str, Any]) -> None:
    """Add to what is noted, in one step: a kill leaves the file as it was or as it is to be."""
    text = json.dumps({**noted_versions(run_dir), **values}, indent=1) + "\n"
    with replacing(run_dir / VERSIONS) as file:
        file.write(text.encode())


def noted_versions(run_dir: Path) -> dict[str, Any]:
    """Return what was noted; nothing where no adapter noted anything, or somebody else wrote the file."""
    try:
        noted = read_json(run_dir / VERSIONS)
    except (OSError, ValueError):
        return {}
    return noted if isinstance(noted, dict) else {}
