"""What pandas reads back from every format, by the lines of the page, is what `tuneoff.load` gives."""

from __future__ import annotations

import json
from pathlib import Path

import pandas
import pytest
from pandas.testing import assert_frame_equal

import tuneoff
from builders.odd_folders import HOSTILE, export_to
from tuneoff.tell.frames.export import ParquetTable, schema
from tuneoff.tell.frames.tables import TABLES

pytestmark = pytest.mark.slow


def from_csv(path: Path, table: str) -> pandas.DataFrame:
    dtypes = {name: column.dtype for name, column in TABLES[table].items()}
    return pandas.read_csv(path, dtype=dtypes, keep_default_na=False, na_values=[""])


def from_json(path: Path, table: str) -> pandas.DataFrame:
    dtypes = {name: column.dtype for name, column in TABLES[table].items()}
    return pandas.DataFrame(json.loads(path.read_text()), columns=list(dtypes)).astype(dtypes)


def plain(frame: pandas.DataFrame) -> pandas.DataFrame:
    """Return a frame whose keys are texts: the order of their categories is not a part of the content."""
    return frame.astype({name: "str" for name, dtype in frame.dtypes.items() if dtype == "category"})


@pytest.mark.parametrize("table", TABLES)
def test_csv_json_and_parquet_hold_the_same_frames(odd: Path, table: str) -> None:
    expected = plain(getattr(tuneoff.load(odd), table))
    assert_frame_equal(plain(from_json(export_to(odd, "json") / f"{table}.json", table)), expected, check_exact=True)
    assert_frame_equal(plain(pandas.read_parquet(export_to(odd) / f"{table}.parquet")), expected, check_exact=True)
    assert_frame_equal(plain(from_csv(export_to(odd, "csv") / f"{table}.csv", table)), expected, check_exact=True)


def test_hostile_texts_survive_as_they_are(odd: Path) -> None:
    for _ in range(2):
        frames = tuneoff.load(odd)
        (row,) = frames.trials[frames.trials["trial"] == "hostile"].to_dict("records")
        assert (row["cause"], row["framework_id"], row["state"]) == (HOSTILE, HOSTILE, "failed")
        assert json.loads(row["configuration"])[HOSTILE] == HOSTILE
        assert HOSTILE in set(frames.runs["reason"])
        export_to(odd)


def test_rows_of_many_runs_lie_together_and_a_large_run_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pyarrow import parquet

    monkeypatch.setattr("tuneoff.tell.frames.export.ROW_GROUP", 10)
    monkeypatch.setattr("tuneoff.tell.frames.export.ROWS_AT_ONCE", 4)
    columns = {name: TABLES["steps"][name] for name in ("run_id", "execution_id", "milliseconds")}
    table = ParquetTable(tmp_path / "x.parquet", columns)
    made = [(f"run{run}", row) for run in range(7) for row in range(3 if run else 25)]
    for run in range(7):
        rows = ({"run_id": name, "execution_id": "1", "milliseconds": row} for name, row in made if name == f"run{run}")
        table.write(rows)
    table.close()
    file = parquet.ParquetFile(tmp_path / "x.parquet")
    sizes = [file.metadata.row_group(place).num_rows for place in range(file.num_row_groups)]
    assert sizes == [12, 12, 10, 9]
    assert [*zip(*file.read(["run_id", "milliseconds"]).to_pydict().values(), strict=True)] == made
    assert file.schema_arrow == schema(columns)


def test_a_count_beyond_the_exact_floats_is_exported(odd: Path) -> None:
    from builders.stored import write_run
    from tuneoff.measure.stored import read_run
    from tuneoff.record.metric_value import metric_value

    path = sorted(odd.glob("runs/*/1/run.json"))[0]
    record = read_run(path.parent)
    from dataclasses import replace

    write_run(path.parent, replace(record, metrics={"huge": metric_value(2.0**60 + 1024, "count")}))
    frame = pandas.read_parquet(export_to(odd) / "metrics.parquet")
    assert frame.loc[frame["name"] == "huge", "value"].tolist() == [2.0**60 + 1024]


def test_a_value_that_fits_no_table_is_one_line(odd: Path) -> None:
    from tuneoff.errors import ResultsError

    path = sorted(odd.glob("runs/*/1/run.json"))[0]
    path.write_text(path.read_text().replace('"slot":0', f'"slot":{2**63}'))
    with pytest.raises(ResultsError, match="a value of `slot` fits no table") as caught:
        export_to(odd)
    assert "\n" not in str(caught.value)
