from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from builders.worked_examples import header, write_example, write_samples
from tuneoff.base.format import figure, number, shown_unit, wrapped
from tuneoff.experiment.accounting.declared import Accounting, Intensity, Prices, write_accounting
from tuneoff.judge.summary_rows import COLUMNS, Figure, SummaryRow
from tuneoff.record.derive import derive
from tuneoff.record.metric_value import Kind
from tuneoff.tell.report.cost_notes import Circumstances, circumstances
from tuneoff.tell.report.tables import render

VALUES = {
    "energy.trial": (1.2e-4, "kWh"),
    "energy.per_completed_trial_without_test": (835.0, "J"),
    "energy.cpu_seconds": (60.0, "s"),
    "energy.reserved_core_seconds": (104.0, "s"),
    "carbon.job": (0.22, "g"),
    "cost.job": (0.0023, "USD"),
    "waste.default.time": (12_000.0, "ms"),
    "waste.default.energy": (7.8e-5, "kWh"),
    "waste.default.cost": (2.7e-4, "USD"),
    "time.jct": (52_000.0, "ms"),
    "slots.idle_share": (20.51, "%"),
    "energy.idle_share": (5.56, "%"),
    "pruning.saved_epochs": (30.0, "count"),
    "pruning.saved_time": (9000.0, "ms"),
    "pruning.saved_energy": (5e-5, "kWh"),
}
ABSENT = "no power was sampled in this run"


def kind_of(metric: str, energy: Kind) -> Kind:
    if metric.startswith(("cost.", "waste.default.cost")):
        return "declared"
    if metric in ("time.jct", "waste.default.time", "slots.idle_share"):
        return "derived"
    return energy


def row(label: str, *, energy: Kind | None = "estimated", factor: float = 1.0, seeds: int = 3, **more: Any) -> SummaryRow:
    """Return a row of runs whose figures are `factor` times VALUES; `energy`: the kind of what a meter gives, None without."""
    figures = {}
    for metric, (amount, unit) in VALUES.items():
        lacks = energy is None and metric.startswith(("energy.", "carbon.", "waste.default.energy", "pruning.saved_energy"))
        value = amount * factor
        figures[metric] = Figure(
            numbers=() if lacks else (value, 0.9 * value, 1.2 * value),
            unit=unit,
            kinds=frozenset() if lacks else frozenset({kind_of(metric, energy or "derived")}),
            reasons={ABSENT: seeds} if lacks else {},
        )
    fields: dict[str, Any] = {
        "label": label,
        "platform": "local",
        "sampler": "random",
        "pruner": "none",
        "runs_planned": seeds,
        "statuses": {"done": seeds},
        "figures": figures,
        **more,
    }
    return SummaryRow(**fields)


def cells(text: str) -> dict[str, str]:
    """Return the figures of the only row, by the metrics of its columns."""
    line = next(line.split() for line in text.splitlines() if line.startswith("a "))
    return dict(zip(COLUMNS, line[2:], strict=False))


def test_what_is_estimated_is_marked_and_the_rest_is_not() -> None:
    text = render([row("a", seeds=1)])
    found = cells(text)
    assert (found["time.jct"], found["energy.trial"], found["energy.per_completed_trial_without_test"]) == (
        "52.0",
        "~432",
        "~835",
    )
    assert (found["energy.cpu_seconds"], found["energy.reserved_core_seconds"], found["carbon.job"]) == ("~60.0", "~104", "~0.22")
    assert [found[f"waste.default.{name}"] for name in ("time", "energy", "cost")] == ["12.0", "~281", "0.27"]
    assert (found["cost.job"], found["slots.idle_share"], found["energy.idle_share"]) == ("2.30", "20.5", "~5.56")
    kinds = (
        "Kinds: derived: JCT, idle, WTT; declared: OC, WTC; estimated (~): job/trial w/o test, TWH, CO2e, WR, WTE, CPU, cores."
    )
    assert kinds in text.splitlines()


@pytest.mark.parametrize("energy", ["measured", "estimated", None])
def test_measured_energy_has_no_mark(energy: Kind | None) -> None:
    text = render([row("a", energy=energy)])
    assert ("~" in text) == (energy == "estimated")


@pytest.mark.parametrize("factor", [1e-9, 1.0, 1e9])
def test_units_are_the_same_in_every_table_and_energies_stand_in_one(factor: float) -> None:
    lines = render([row("a", factor=factor)]).splitlines()
    units = next(line.split() for line in lines if line.startswith("adapter"))
    shown = dict(zip(COLUMNS, units[2:], strict=False))
    expected = {
        "energy.trial": "J",
        "energy.per_completed_trial_without_test": "J",
        "energy.reserved_core_seconds": "core-s",
        "cost.job": "mUSD",
    }
    assert {name: shown[name] for name in expected} == expected
    assert (shown_unit("kWh"), shown_unit("J"), shown_unit("%")) == (("J", 3.6e6), ("J", 1.0), ("%", 1.0))


def test_a_small_figure_keeps_two_digits_and_a_large_one_is_short() -> None:
    values = (0.0, 0.1, 0.0994, 0.00123, 1.23e-6, 1.23e-9, 12.3, 4321.0, 9_999_999.0, 1.234e9, -0.00123)
    shown = ["0", "0.10", "0.099", "0.0012", "1.2e-06", "1.2e-09", "12.3", "4321", "9999999", "1.23e+09", "-0.0012"]
    assert [figure(value) for value in values] == shown


def test_lines_below_a_table_fit_the_terminal_with_a_hanging_indent() -> None:
    where = Circumstances(meters=("Meter: " + "modelled " * 22,))
    lines = render([row("a"), row("b", factor=2.0)], 80, where).splitlines()
    assert max(map(len, lines)) <= 80
    assert [line.strip() == line for line in lines if "modelled modelled" in line] == [True, False, False]
    assert any(len(line) > 80 for line in render([row("a")], None, where).splitlines()), "control: no terminal, no wrapping"
    long = "  " + "word " * 30
    assert list(wrapped([long, "short"], 60))[1].startswith("    word")
    assert list(wrapped([long], None)) == [long]


def test_a_shell_takes_a_command_as_it_is_broken() -> None:
    command = "tuneoff compare made.yaml --adapter serial,optuna,ray-tune --trials 10 --seeds 0 1 2 3 4"
    text, *lines = wrapped([f"! Some were busy. To repeat their seeds: {command}"], 60)
    assert (text, len(lines)) == ("! Some were busy. To repeat their seeds:", 2)
    assert max(map(len, lines)) <= 60
    script = "\n".join(["tuneoff() { echo tuneoff $#; }", *lines])
    told = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True).stdout.split()
    assert told == ["tuneoff", str(len(command.split()) - 1)]
    quoted = f"  tuneoff compare 'my {'long ' * 12}name.yaml'"
    assert list(wrapped([quoted], 60)) == [quoted]
    prose = f"{'word ' * 9}: tuneoff status results/x, which shows every run"
    assert not any(line.endswith("\\") for line in wrapped([prose, f"tuneoff says {'so ' * 20}.", " " * 70], 60))


def test_a_line_says_what_the_abbreviations_of_the_shown_columns_mean() -> None:
    (wide,) = (line for line in render([row("a", seeds=1)]).splitlines() if line.startswith("JCT: "))
    for name in ("JCT", "TWH", "job/trial", "CPU", "cores", "CO2e", "OC", "WTT", "WTE", "WTC", "idle", "WR"):
        assert f"{name}: " in wide
    assert "WTC" not in render([row("a", seeds=1)], 80)


def test_an_absurd_figure_has_few_letters() -> None:
    assert [number(value) for value in (1.5e300, 99_999_999_999.0, -3e15)] == ["1.5e+300", "99999999999", "-3e+15"]


def test_a_missing_figure_is_a_dash_with_its_reason_once() -> None:
    text = render([row("a", energy=None), row("b", energy=None)])
    assert text.count(ABSENT) == 1
    assert f"– job/trial w/o test, TWH, CO2e, WR, WTE, CPU, cores: {ABSENT}." in text.splitlines()


def test_a_reason_names_the_rows_where_others_have_the_figure() -> None:
    text = render([row("a", energy=None), row("b")])
    assert f"– job/trial w/o test, TWH, CO2e, WR, WTE, CPU, cores (a random): {ABSENT}." in text.splitlines()


def test_energies_of_different_kinds_carry_a_note() -> None:
    note = "Energies of different kinds are not to be compared or ranked"
    assert f"{note}: here they are estimated (a random) and derived (b random)." in render([row("a"), row("b", energy="derived")])
    assert note not in render([row("a"), row("b")])


def test_seeds_of_different_kinds_in_one_row_carry_a_note_too() -> None:
    mixed = row("a")
    figures = {name: replace(figure, kinds=figure.kinds | {"derived"}) for name, figure in mixed.figures.items()}
    text = render([replace(mixed, figures=figures), replace(row("b"), figures=figures)])
    assert "not to be compared or ranked: here they are derived and estimated (a random and b random)." in text


def test_waste_is_not_ranked_across_pruners_and_stands_beside_what_pruning_saved() -> None:
    lines = render([row("a"), row("a", pruner="asha")]).splitlines()
    assert any(line.startswith("Waste is not ranked across pruners (none, asha)") for line in lines)
    assert "a random + asha: pruning saved ~30.0 epochs, ~9.00 s, ~180 J (estimated, medians)." in lines
    assert "ranked" not in render([row("a")])


def test_a_sampler_that_is_another_one_refers_to_it_and_a_row_without_runs_has_dashes() -> None:
    same = row("a", sampler="default", same_as="random", statuses={}, figures={})
    failed = row("b", statuses={"failed": 1}, figures={name: Figure() for name in VALUES})
    lines = [line.split() for line in render([row("a"), same, failed]).splitlines()]
    assert ["a", "default", "=", "random"] in lines
    assert ["b", "random", *["–"] * len(COLUMNS), "0/0/0", "0/3"] in lines


def test_without_a_run_that_is_done_nothing_is_said_of_costs() -> None:
    assert "Kinds" not in render([row("a", statuses={"failed": 1})])
    assert "Kinds" in render([row("a")])


def test_meter_intensity_and_prices_stand_below_the_table() -> None:
    said = ["Meter: x.", "Carbon: y.", "Prices: z."]
    lines = render([row("a")], None, Circumstances(meters=(said[0],), accounting=(said[1], said[2]))).splitlines()
    assert [line for line in lines if line in said] == said


def test_circumstances_are_read_once_from_the_runs_own_files(tmp_path: Path) -> None:
    records = []
    for each in range(2):
        folder = tmp_path / "runs" / "r" / f"e{each}"
        spec = write_example(folder, "B")
        record = derive([], spec)
        records.append(type(record)(run_id="r", execution_id=f"e{each}", specification=record.specification, status="done"))
        about = {"detail": "2 J per CPU second", "idle_problem": "the idle power is wrong"}
        write_samples(folder, [header("model", "estimated", source="a table", reason="no RAPL", **about)])
        prices = Prices(name="cheap", source="me", date="2025-01-01", billing_minimum_seconds=60, billing_granularity_seconds=1)
        intensity = Intensity(kind="zone", values=(100.0,), zone="ESP", source="somebody", date="2024")
        write_accounting(folder, Accounting(intensity=intensity, prices=prices))
    found = circumstances(tmp_path, records)
    assert found.meters[0] == "Meter: model (estimated): a table; 2 J per CPU second; no RAPL."
    assert (
        found.meters[1]
        == "The idle power is wrong: it is too high, what is attributed to trials too low, and what rests on it estimated (~)."
    )
    assert len(found.meters) == len(found.accounting) == 2
    assert all(part in found.accounting[0] for part in ("100 gCO2eq/kWh", "ESP", "somebody", "2024"))
    assert all(part in found.accounting[1] for part in ("cheap", "2025-01-01", "; billed at least 60 s and in steps of 1 s."))


def test_no_meter_says_why(tmp_path: Path) -> None:
    folder = tmp_path / "runs" / "r" / "e"
    spec = write_example(folder, "A")
    write_samples(folder, [header("none", "estimated", reason="power: off in the file")])
    (folder / "accounting.json").write_text("{")
    record = derive([], spec)
    record = type(record)(run_id="r", execution_id="e", specification=record.specification, status="done")
    found = circumstances(tmp_path, [record])
    assert found.meters == ("Meter: none; power: off in the file.",)
    assert "is damaged" in found.accounting[0]
    assert circumstances(tmp_path / "elsewhere", [record]).meters == ()
