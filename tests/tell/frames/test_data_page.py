"""docs/data.md: its lines of Python run, and it names what a summary has."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from builders.odd_folders import export_to
from tuneoff.tell.frames.load import QUARTILES, STATES

PAGE = Path(__file__).parents[3] / "docs" / "data.md"


def test_the_page_names_what_a_summary_has() -> None:
    page = PAGE.read_text()
    names = [*STATES, *(f"value_{name}" for name in QUARTILES), *(f"busy_{name}_seconds" for name in QUARTILES)]
    assert [name for name in names if f"`{name}`" not in page] == []


def test_the_examples_on_the_page_run(odd: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are one program, over `results/x`."""
    (tmp_path / "results").mkdir(exist_ok=True)
    os.rename(odd, tmp_path / "results" / "x")
    for format in ("csv", "json", "parquet"):
        export_to(tmp_path / "results" / "x", format)
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), flags=re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 4
    names: dict[str, object] = {}
    for block in blocks:
        exec(block, names)
    assert {"frames", "pandas"} <= names.keys()
