"""Cases run again, now: all that is not time comes to what was recorded, trial by trial and epoch by epoch."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from corpus.cases import CASES
from corpus.conftest import Recorded
from corpus.figures import call, differences
from tuneoff.base.layout import PLAN

pytestmark = pytest.mark.slow

UNTIMED = {
    "runs": ("adapter", "seed", "platform", "replicate", "variant", "metric", "mode", "status", "charged"),
    "trials": (
        "state",
        "cause",
        "charged",
        "attempts",
        "configuration",
        "digest",
        "value",
        "value_epoch",
        "stop_epoch",
        "ended_early",
    ),
    "epochs": ("attempt", "epoch", "metric", "value", "non_finite", "restored"),
}
AGAIN = {"listed": "serial,optuna", "retries": "serial", "program": "serial"}


@pytest.mark.parametrize("name", AGAIN)
def test_a_case_comes_to_what_was_recorded(
    name: str, recorded: Recorded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = next(case for case in CASES if case.name == name)
    case.write(tmp_path)
    monkeypatch.chdir(tmp_path)
    adapters = AGAIN[name].split(",")
    call(tmp_path, "compare", f"{name}.yaml", "--adapter", *adapters, "--no-report", "--quiet", "--output", "again")
    found = list(
        differences(untimed(recorded(name), tmp_path / "before", adapters), untimed(tmp_path / "again", tmp_path, adapters))
    )
    assert not found, "\n".join(found[:20])
    ends = [json.loads(path.read_text()) for path in (tmp_path / "again").glob("runs/*/*/end.json")]
    plan = json.loads((tmp_path / "again" / PLAN).read_text())
    assert {end["environment"]["analysis_digest"] for end in ends} == {plan["analysis_digest"]}


def untimed(folder: Path, scratch: Path, adapters: list[str]) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of a folder's tables without what depends on time, in an order that does not either."""
    call(folder, "export", str(folder), "--format", "json", "--output", str(scratch))
    tables = {name: json.loads((scratch / f"{name}.json").read_text()) for name in UNTIMED}
    digests = {(row["execution_id"], row["trial"]): row["digest"] for row in tables["trials"]}
    return {
        name: sorted(
            (
                {
                    "run": row["run_id"],
                    "trial": row.get("trial") if len(adapters) == 1 else "",
                    "trained": digests.get((row["execution_id"], row.get("trial"))),
                    **of(row, columns),
                }
                for row in tables[name]
                if row["adapter"] in adapters
            ),
            key=lambda row: json.dumps(row, sort_keys=True),
        )
        for name, columns in UNTIMED.items()
    }


def of(row: dict[str, Any], columns: tuple[str, ...]) -> dict[str, Any]:
    """Return these columns of a row; a process's id is in the cause of a trial, and is another one each time."""
    kept = {name: row[name] for name in columns}
    return kept | ({"cause": "".join(one for one in kept["cause"] if not one.isdigit())} if kept.get("cause") else {})
