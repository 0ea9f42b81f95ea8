"""What an adapter notes of versions reaches the record; a file that is none is not an error."""

from __future__ import annotations

from pathlib import Path

from builders.specs import make_spec
from tuneoff.base.layout import VERSIONS
from tuneoff.record.run_context import note_versions, noted_versions
from tuneoff.run.finish import finish
from tuneoff_adapters.serial import SerialAdapter


def test_notes_add_up_the_later_one_counts_and_the_record_has_them(tmp_path: Path) -> None:
    for text in ("", "[]", "{", "null"):
        (tmp_path / VERSIONS).write_text(text)
        assert noted_versions(tmp_path) == {}
    (tmp_path / VERSIONS).unlink()
    assert noted_versions(tmp_path) == {}
    note_versions(tmp_path, {"server": "1", "image": "a"})
    note_versions(tmp_path, {"image": "b", "digests": ["sha256:0"]})
    assert noted_versions(tmp_path) == {"server": "1", "image": "b", "digests": ["sha256:0"]}
    assert [path.name for path in tmp_path.iterdir()] == [VERSIONS]
    (tmp_path / "events").mkdir()
    versions = finish(tmp_path, make_spec(), None, SerialAdapter).versions
    assert (versions["server"], versions["framework"]) == ("1", "none")  # what core knows is there too
