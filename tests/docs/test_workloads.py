"""docs/workloads.md: its training is planned and run as it stands there."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from command_line import Call, caller

PAGE = (Path(__file__).parents[2] / "docs" / "workloads.md").read_text()


@pytest.fixture
def call(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Call:
    """Return a function that runs a command in a folder with the page's two files."""
    (code,) = re.findall(r"^```python\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL)
    (file,) = re.findall(r"^```yaml\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL)
    (tmp_path / "my_training.py").write_text(code)
    (tmp_path / "my.yaml").write_text(file)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "my_training", raising=False)
    return caller(capsys)


def test_the_file_can_be_planned(call: Call) -> None:
    answer = call("plan", "my.yaml", "--json")
    assert (answer.code, answer.err) == (0, "")
    assert len([run for run in json.loads(answer.out)["runs"] if not run["spec"].get("warm_up")]) >= 20


@pytest.mark.slow
def test_the_training_runs_and_repeats(call: Call, tmp_path: Path) -> None:
    file = (tmp_path / "my.yaml").read_text() + "sampler: fixed\nconfigurations: {sample: 2, seed: 0}\nwarm_up: false\n"
    (tmp_path / "my.yaml").write_text(file.replace("trials: 20, ", "").replace("count: 10", "count: 1"))
    assert call("compare", "my.yaml", "--output", "results", "--no-report").code == 0
    assert "EQUAL" in call("check", "--controls", "results").out.splitlines()[0]
