"""The templates travel with the package."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from importlib.resources import files
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[3]


@pytest.mark.slow
def test_a_built_wheel_has_every_template_and_every_page(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(tmp_path)]
    subprocess.run(command, cwd=REPOSITORY, check=True, capture_output=True, timeout=120)
    (wheel,) = tmp_path.glob("*.whl")
    packed = set(zipfile.ZipFile(wheel).namelist())
    own = {f"tuneoff/tell/page/templates/{path.name}" for path in (files("tuneoff.tell.page") / "templates").iterdir()}
    assert len(own) >= 9
    assert own <= packed
    assert {f"tuneoff/docs/{path.name}" for path in (REPOSITORY / "docs").glob("*.md")} <= packed  # `tuneoff explain docs/...`
    assert not [name for name in packed if name.startswith("docs/") or "example_report" in name]


def test_commands_start_without_the_packages_of_the_report() -> None:
    code = (
        "import sys\nfrom tuneoff.cli.main import main\nmain(['report', '--help'])\n"
        "print([name for name in ('jinja2', 'markupsafe', 'scipy') if name in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=60)
    assert found.stdout.splitlines()[-1] == "[]"
