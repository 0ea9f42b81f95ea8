"""The shipped table of zones, and the script that makes it."""

from __future__ import annotations

import json
import re

import pytest

from benchmarks.intensity_table import make_table, table_text
from builders.refusals import refusal
from tuneoff.experiment.accounting.declared import WORLD
from tuneoff.experiment.accounting.resolve import TABLE, zone


def mix(name: str, intensity: float, generated: float, year: int = 2023) -> dict[str, object]:
    return {"country_name": name, "carbon_intensity": intensity, "total_TWh": generated, "year": year}


def test_every_zone_of_the_table_is_plausible() -> None:
    table = json.loads(TABLE.read_text())
    assert len(table["zones"]) > 200
    for code, (name, value, year) in table["zones"].items():
        assert code == WORLD or re.fullmatch("[A-Z]{3}", code)
        assert name
        assert 0 < value < 1500
        assert 2000 < year <= 2023
    assert 400 < zone(WORLD).values[0] < 550
    assert {"source", "license", "made_by", "unit"} <= set(table)
    assert "Permission is hereby granted" in (TABLE.parent / "LICENSES.txt").read_text()
    assert table_text(table) == TABLE.read_text()


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [("Germany", "did you mean DEU (Germany)?; a zone"), ("grmany", "did you mean DEU"), ("UK", "'UK'; a zone")],
)
def test_an_unknown_zone_names_the_nearest_one_by_name_if_there_is_any(wrong: str, hint: str) -> None:
    assert hint in refusal(zone, wrong)


def test_the_script_weights_the_world_by_generation_and_leaves_out_what_was_rounded_to_nothing() -> None:
    mixes = {"AAA": mix("A", 100.0, 3.0), "BBB": mix("B", 500.0, 1.0, 2021), "CCC": mix("C", 0.0, 9.0), "DDD": mix("D", 9.0, 0.0)}
    assert make_table(mixes, "9.9")["zones"] == {
        "WORLD": ["World, mean of 2 zones by generation, 75 % of it of 2023", 200.0, 2023],
        "AAA": ["A", 100.0, 2023],
        "BBB": ["B", 500.0, 2021],
    }
