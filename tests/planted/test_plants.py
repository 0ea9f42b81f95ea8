"""Every plant can be planted: what it changes is there, once, and is a program afterwards."""

from __future__ import annotations

import ast
from collections import Counter

import pytest

from planted.plants import ROOT, Plant, plants


@pytest.mark.parametrize("plant", plants(), ids=lambda plant: plant.name)
def test_a_plant_applies(plant: Plant) -> None:
    text = plant.planted(ROOT)
    if plant.file.endswith(".py"):
        ast.parse(text)


def test_no_plant_is_there_twice() -> None:
    assert max(Counter((plant.file, plant.old, plant.new) for plant in plants()).values()) == 1
