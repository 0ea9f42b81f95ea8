"""What an adapter notes of versions reaches the record; a file that is none is not an error."""

from __future__ import annotations

from pathlib import Path

import pytest

from builders.specs import make_spec
from tuneoff.base.layout import VERSIONS
from tuneoff.record.run_context import note_versions, noted_versions
from tuneoff.run.finish import finish
from tuneoff_adapters.serial import SerialAdapter


def test_notes_add_up_and_the_later_one_counts(tmp_path: Path) -> None:
    assert noted_versions(tmp_path) == {}
    note_versions(tmp_path, {"server": "1", "image": "a"})
    note_versions(tmp_path, {"image": "b", "digests": ["sha256:0"]})
    assert noted_versions(tmp_path) == {"server": "1", "image": "b", "digests": ["sha256:0"]}
    assert [path.name for path in tmp_path.iterdir()] == [VERSIONS]


def test_the_record_has_them(tmp_path: Path) -> None:
    (tmp_path / "events").mkdir()
    note_versions(tmp_path, {"server": "1"})
    versions = finish(tmp_path, make_spec(), None, SerialAdapter).versions
    assert versions["server"] == "1"
    assert versions["framework"] == "none"  # what core knows is there too


@pytest.mark.parametrize("text", ["", "[]", "{", "null"])
def test_a_file_that_holds_no_notes_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / VERSIONS).write_text(text)
    assert noted_versions(tmp_path) == {}
