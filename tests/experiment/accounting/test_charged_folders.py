"""From an execution's folder, with its samples and accounting, to carbon and cost."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from builders.present import present
from builders.worked_examples import accounting_a, write_example
from tuneoff.adapter import Capabilities
from tuneoff.errors import ResultsError
from tuneoff.experiment.accounting.declared import Accounting, Intensity, of_run, read_accounting, write_accounting
from tuneoff.measure.derived import derive_folder
from tuneoff.record.metric_value import MetricValue


def derived(folder: Path, accounting: Accounting | None = None) -> dict[str, MetricValue]:
    """Return the metrics of example A, with an accounting of its own where one is given."""
    spec = write_example(folder, "A")
    if accounting is not None:
        write_accounting(folder, accounting)
    return dict(derive_folder(folder, spec).record.metrics)


def test_other_prices_and_another_grid_are_a_matter_of_the_one_file(tmp_path: Path) -> None:
    before = derived(tmp_path / "before")
    given = accounting_a()
    intensity = present(given.intensity)
    twice = msgspec.structs.replace(intensity, values=tuple(2 * value for value in intensity.values))
    prices = msgspec.structs.replace(present(given.prices), usd_per_vcpu_hour=0.3)
    after = derived(tmp_path / "after", msgspec.structs.replace(given, intensity=twice, prices=prices))
    changed = {name for name, value in after.items() if value.value != before[name].value}
    assert {name.partition(".")[0] for name in changed} == {"carbon", "cost", "waste"}
    assert after["carbon.job"].value == pytest.approx(2 * (before["carbon.job"].value or 0))
    assert after["cost.job"].value == pytest.approx(3 * (before["cost.job"].value or 0))


def test_a_folder_without_the_file_has_neither_carbon_nor_cost_and_says_why(tmp_path: Path) -> None:
    spec = write_example(tmp_path, "A")
    (tmp_path / "accounting.json").unlink()
    found = derive_folder(tmp_path, spec).record.metrics
    assert found["carbon.job"].reason_if_null == "no carbon intensity was recorded with this run"
    assert found["cost.job"].reason_if_null == "no prices were recorded with this run"


@pytest.mark.parametrize(("head_node", "database"), [(True, False), (False, True)])
def test_a_run_is_charged_what_its_framework_needs(head_node: bool, database: bool) -> None:
    needs = of_run(accounting_a(), Capabilities(framework="x", head_node=head_node, database=database))
    assert (needs.head_node, needs.database, needs.prices) == (head_node, database, accounting_a().prices)


def test_what_is_written_is_read_back_and_damage_is_one_line(tmp_path: Path) -> None:
    accounting = Accounting(intensity=Intensity(kind="constant", values=(1.5,)), head_node=True)
    path = write_accounting(tmp_path, accounting)
    assert read_accounting(tmp_path) == accounting
    path.write_text(path.read_text().replace("1.5", '"much"'))
    with pytest.raises(ResultsError, match=r"accounting\.json is damaged: Expected `float`, got `str`"):
        read_accounting(tmp_path)
    path.write_text('{"format_version": 9}')
    with pytest.raises(ResultsError, match="has format version 9"):
        read_accounting(tmp_path)


@pytest.mark.parametrize(
    ("intensity", "rule"),
    [
        ({"kind": "series", "values": [1.0], "end": 5}, "a series must have a value for each time, but has 1 for 0"),
        ({"kind": "series", "values": [], "times": [], "end": 5}, "a series must have a value for each time"),
        ({"kind": "series", "values": [1.0, 2.0], "times": [3, 2], "end": 5}, "the times of a series and its end must increase"),
        ({"kind": "series", "values": [1.0], "times": [3]}, "the times of a series and its end must increase"),
        ({"kind": "zone", "values": []}, "an intensity of kind zone must have one value, but has 0"),
    ],
)
def test_an_intensity_that_nobody_could_read_is_refused_in_one_line(tmp_path: Path, intensity: object, rule: str) -> None:
    write_accounting(tmp_path, Accounting())
    path = tmp_path / "accounting.json"
    path.write_bytes(msgspec.json.encode({**msgspec.json.decode(path.read_bytes()), "intensity": intensity}))
    with pytest.raises(ResultsError, match=f"is damaged: {rule}"):
        read_accounting(tmp_path)
