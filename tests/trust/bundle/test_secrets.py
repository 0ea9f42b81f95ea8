"""Secrets stay out of bundles, wherever in a file of any size they lie, and are never shown."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from builders.bundles import packed
from builders.results_folders import Results
from tuneoff.errors import ResultsError
from tuneoff.trust.bundle import pack
from tuneoff.trust.bundle.pack import check_no_secrets


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("hunter2hunter2", "holds the value of the environment variable MY_API_TOKEN; a bundle is shared"),
        ("https://me:pass-word@example.org/x", "holds an address with a password"),
    ],
)
def test_a_secret_is_refused_and_never_shown(
    results: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, line: str
) -> None:
    monkeypatch.setenv("MY_API_TOKEN", "hunter2hunter2")
    plan = results.path / "matrix.json"
    content = json.loads(plan.read_text())
    plan.write_text(json.dumps({**content, "content": {"power": {"options": {"header": text}}}}))
    with pytest.raises(ResultsError, match=line) as caught:
        packed(results.path, tmp_path / "b.tar.gz")
    assert "hunter2" not in str(caught.value)
    assert "pass-word" not in str(caught.value)
    assert not (tmp_path / "b.tar.gz").exists()


def test_a_long_line_is_searched_for_passwords_in_one_pass() -> None:
    """500 000 letters took 25 minutes when each of them was tried as the beginning of an address."""
    line = b"a" * 500_000
    check_no_secrets({"x": line + b"://" + line, "y": b"a://" * 100_000}, {})
    for text in (line + b"://me:word@host", b"git+https://me:word@host", b"1https://me:word@host", b"-https://me:word@host"):
        with pytest.raises(ResultsError, match="x holds an address with a password"):
            check_no_secrets({"x": text}, {})


@pytest.mark.parametrize("password", ["secret", "$A:secret", "$A$secret", "${A}secret", "$", "${secret", "$-secret"])
@pytest.mark.parametrize("begin", ["redis://:", "postgresql+psycopg://tuneoff:"])
def test_a_password_is_one_unless_it_is_a_name(begin: str, password: str) -> None:
    with pytest.raises(ResultsError, match="x holds an address with a password"):
        check_no_secrets({"x": f'{{"storage": "{begin}{password}@db.example/x"}}'.encode()}, {})
    for name in ("$PGPASSWORD", "${PGPASSWORD}"):
        check_no_secrets({"x": f'{{"storage": "{begin}{name}@db.example/x"}}'.encode()}, {})


@pytest.mark.parametrize("before", range(90, 130, 5))
def test_a_secret_is_found_wherever_it_lies_in_a_file_that_is_read_in_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: int
) -> None:
    monkeypatch.setattr(pack, "PIECE", 100)
    monkeypatch.setattr(pack, "OVERLAP", 20)
    path = tmp_path / "events.jsonl"
    path.write_bytes(b"x" * before + b"hunter2-hunter2" + b"x" * 300)
    with pytest.raises(ResultsError, match="holds the value of the environment variable MY_TOKEN"):
        check_no_secrets({"events.jsonl": path}, {"MY_TOKEN": "hunter2-hunter2"})
