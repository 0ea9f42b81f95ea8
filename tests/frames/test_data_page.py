"""docs/data.md has every column as the code has it, and its lines of Python run."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from frames.odd_folders import export_to
from tuneoff.frames.columns import ROWS, RUN_KEYS, TABLES, Columns
from tuneoff.frames.ioh import ATTRIBUTES
from tuneoff.frames.summary import QUARTILES, STATES

PAGE = Path(__file__).parents[2] / "docs" / "data.md"


def lines_of(columns: Columns) -> list[str]:
    """Return the rows of a table on the page."""
    return [
        f"| `{name}` | {column.text} | {column.unit} | {column.dtype}{'' if column.always else ', may be missing'} |"
        for name, column in columns.items()
    ]


def parts() -> dict[str, list[str]]:
    """Return what must stand below each heading, in order."""
    own = {name: {key: columns[key] for key in columns if key not in RUN_KEYS} for name, columns in TABLES.items()}
    return {"In every table": lines_of(RUN_KEYS), **{f"`{name}`: a row per {ROWS[name]}": lines_of(own[name]) for name in own}}


def missing_in(page: str) -> list[str]:
    """Return the headings whose table on the page is not that of the code, with the table that it must have."""
    sections = {text.partition("\n")[0]: text for text in re.split(r"^###? ", page, flags=re.MULTILINE)}
    found = []
    for heading, lines in parts().items():
        table = [line for line in sections.get(heading, "").splitlines() if line.startswith("| `")]
        if table != lines:
            found.append("\n".join([heading, *lines]))
    return found


def test_the_page_has_every_column_with_unit_and_type() -> None:
    assert missing_in(PAGE.read_text()) == []


@pytest.mark.parametrize("column", ["busy_seconds", "is_selected", "reason_if_null"])
def test_a_column_that_is_wrong_on_the_page_is_found(column: str) -> None:
    page = PAGE.read_text()
    line = next(line for line in page.splitlines() if line.startswith(f"| `{column}` |"))
    for wrong in ("", line.replace(" | ", " | minutes: ", 1)):
        assert len(missing_in(page.replace(line, wrong))) == 1


def test_the_page_names_what_a_summary_and_an_export_for_ioh_have() -> None:
    page = PAGE.read_text()
    names = [*STATES, *(f"value_{name}" for name in QUARTILES), *(f"busy_{name}_seconds" for name in QUARTILES), *ATTRIBUTES]
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
