"""The answers as text and as JSON: verdicts first, nothing infinite or missing without its reason, no ranking by itself."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

import pytest

from builders.made_results import Entry, results, steady
from tuneoff.judge.answers.answer import Answers
from tuneoff.judge.answers.answers_json import to_json
from tuneoff.judge.answers.compute import answers
from tuneoff.judge.answers.phrases import lines

pytest.importorskip("scipy")


@pytest.fixture(scope="module")
def made() -> Answers:
    entries = [
        Entry("serial", steady(1000, key="s")),
        Entry("serial", steady(1000, key="s2"), replicate=1),
        Entry("optuna", steady(1010, key="o"), status={2: "failed"}),
        Entry("ray-tune", steady(3000, key="r")),
        Entry("katib", steady(500, key="k"), emulated=True),
    ]
    return answers(results(entries, seeds=range(12)))


def test_the_summary_says_who_is_faster_by_how_much_and_how_sure(made: Answers) -> None:
    (line,) = [line for line in made.summary if "is faster than ray-tune" in line and "serial" in line]
    assert line.startswith(
        "Time (time.jct), random search, 12 seeds: serial (plain pool) is faster than ray-tune by 3.0x (3.0 to 3.0) (robust"
    )
    assert "noise floor 0.99 to 1.01x" in line


def test_the_text_begins_with_the_verdicts_and_ends_with_what_cannot_be_concluded(made: Answers) -> None:
    text = list(lines(made))
    assert text[2].startswith("Time (time.jct), random search, 12 seeds:")
    place = text.index("What cannot be concluded:")
    assert all("katib" not in line for line in text[2:place])


def test_the_json_is_strict_and_every_null_has_its_reason(made: Answers) -> None:
    told = to_json(made)
    assert json.loads(json.dumps(told, allow_nan=False)) == told
    nulls = list(_nulls(told))
    assert nulls
    assert not [path for path, parent, name in nulls if not parent.get(f"{name}_reason_if_null")]


def test_an_infinite_bound_is_null_and_says_which_way(made: Answers) -> None:
    rows = [row for verdict in to_json(made)["verdicts"] for row in verdict["differences"] if row["difference"] is None]
    reasons = {row["difference_reason_if_null"] for row in rows}
    assert reasons == {"infinite: beyond any number", "infinite: below any number"}
    assert any(math.isinf(row.difference or 0.0) for verdict in made.verdicts for row in verdict.differences)


def test_the_json_has_all_verdicts_groups_and_values(made: Answers) -> None:
    told = to_json(made)
    assert len(told["verdicts"]) == len(made.verdicts) == 2 * (3 + 1)
    assert len(told["groups"]) == 5
    assert [len(group["runs"]) for group in told["groups"]] == [12] * 5
    assert told["statuses"] == {"done": 59, "failed": 1}


def _nulls(value: Any, path: str = "", parent: Any = None, name: str = "") -> Iterator[tuple[str, Any, str]]:
    """Yield (path, the mapping it is in, its name) of every null outside the frozen analysis."""
    if value is None:
        yield path, parent, name
    elif isinstance(value, dict):
        for key, item in value.items():
            if key != "analysis":
                yield from _nulls(item, f"{path}.{key}", value, key)
    elif isinstance(value, list):
        for item in value:
            yield from _nulls(item, path, value, name)
