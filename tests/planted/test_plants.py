"""Every plant can be planted: what it changes is there, once, and is a program afterwards."""

from __future__ import annotations

import ast
from collections import Counter

from planted.plants import ROOT, plants


def test_each_plant_applies() -> None:
    refused = {}
    for plant in plants():
        try:
            text = plant.planted(ROOT)
            if plant.file.endswith(".py"):
                ast.parse(text)
        except (OSError, SyntaxError, ValueError) as error:
            refused[plant.name] = str(error)
    assert refused == {}


def test_no_plant_is_there_twice() -> None:
    assert max(Counter((plant.file, plant.old, plant.new) for plant in plants()).values()) == 1
