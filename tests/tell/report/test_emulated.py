"""An emulated platform is labelled in every table and in the picture, and never placed by its speed."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from builders.event_logs import example_a
from builders.made_runs import results_of
from tuneoff.experiment.plan import PlannedRun
from tuneoff.judge.summary_rows import summary_rows
from tuneoff.measure.derived import with_metrics
from tuneoff.record.derive import derive
from tuneoff.record.run_record import RunRecord
from tuneoff.record.store import encode, read_run, write_run
from tuneoff.tell.frames.columns import TABLES
from tuneoff.tell.report import export_rows as rows
from tuneoff.tell.report.tables import render

MEANING = "emulated: a local stand-in for the platform; its figures are not the framework's, and are in no ranking or comparison."
Make = Callable[..., RunRecord]


@pytest.fixture(scope="module")
def make() -> Make:
    log, base = example_a()

    def make(adapter: str, share: float = 1.0, *, platform: str = "local", emulated: bool = False, **changes: Any) -> RunRecord:
        """Return a run whose parts took `share` of the example's time."""
        run = with_metrics(derive(log.pairs(), replace(base, adapter=adapter, platform=platform)))
        metrics = {
            name: replace(item, value=(item.value or 0.0) * share) if name.startswith("time.") else item
            for name, item in run.metrics.items()
        }
        return replace(run, execution_id=f"{adapter}-1", metrics=metrics, emulated=emulated, **changes)

    return make


def test_the_table_labels_an_emulated_row_and_says_what_it_is(make: Make) -> None:
    text = render(summary_rows(results_of([make("serial"), make("katib", platform="emulated", emulated=True)])))
    assert any(line.startswith("katib@emulated") for line in text.splitlines())
    assert f"katib@emulated is {MEANING}" in text.splitlines()
    assert "serial is" not in text


def test_a_platform_whose_name_does_not_say_it_is_marked(make: Make) -> None:
    text = render(summary_rows(results_of([make("other", platform="pretended", emulated=True)])))
    assert any(line.startswith("(emulated)") for line in text.splitlines())
    assert f"other@pretended (emulated) is {MEANING}" in text


@pytest.mark.parametrize("label", ["katib", "katib@kubernetes"])
def test_the_record_s_word_counts_where_the_plan_took_the_platform_for_real(make: Make, label: str) -> None:
    run = make("katib", platform="kubernetes", emulated=True)
    (row,) = summary_rows(results_of([run], [PlannedRun(run_id=run.run_id, spec=run.run_spec(), label=label, block=0)]))
    assert (row.emulated, row.label) == (True, "katib@kubernetes (emulated)")
    assert f"katib@kubernetes (emulated) is {MEANING}" in render([row]).splitlines()
    real = make("katib", platform="kubernetes")
    (row,) = summary_rows(results_of([real], [PlannedRun(run_id=real.run_id, spec=real.run_spec(), label=label, block=0)]))
    assert (row.emulated, row.label) == (False, label)


def test_a_real_platform_has_no_mark(make: Make) -> None:
    """Control: the same platform name, but a record that is not emulated."""
    text = render(summary_rows(results_of([make("katib", platform="kubernetes")])))
    assert "kubernetes" in text
    assert "emulated" not in text


def test_every_exported_table_says_which_rows_are_emulated(make: Make, tmp_path: Path) -> None:
    write_run(tmp_path, make("katib", platform="emulated", emulated=True))
    run = read_run(tmp_path)
    tables = ([rows.run_row(run, True)], rows.trial_rows(run, True, {}), rows.epoch_rows(run, True), rows.metric_rows(run, True))
    for table, name in zip(tables, ("runs", "trials", "epochs", "metrics"), strict=True):
        assert "emulated" in TABLES[name]
        found = list(table)
        assert found
        assert {(row["emulated"], row["label"]) for row in found} == {(True, "katib@emulated")}
    real = rows.run_row(make("katib", platform="kubernetes"), True)
    assert (real["emulated"], real["label"]) == (False, "katib")


def test_a_record_keeps_the_mark_and_an_older_one_has_none(make: Make, tmp_path: Path) -> None:
    run = make("katib", platform="emulated", emulated=True)
    write_run(tmp_path, run)
    assert read_run(tmp_path).emulated
    older = json.loads(b"".join(encode(run)))
    del older["emulated"]
    (tmp_path / "run.json").write_text(json.dumps(older))
    assert not read_run(tmp_path).emulated
