"""A module is imported once, and whoever needs it meanwhile waits for it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tuneoff.base.targets import load_target


def test_a_thread_waits_for_a_module_that_another_one_imports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "imported_slowly.py").write_text("import time\n\ntime.sleep(0.2)\nNAME = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(load_target, ["imported_slowly:NAME"] * 4)) == [1] * 4
