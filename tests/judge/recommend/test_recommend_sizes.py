"""Sizes of a request: only settings that were measured at it or around it are used, and beyond them nothing is said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from builders.made_choices import FILE, ask, made_folder, runs_of
from judge.recommend.test_recommend import fast_and_slow
from tuneoff.judge.recommend.recommend import to_json
from tuneoff.judge.recommend.recommendation_text import lines

pytest.importorskip("scipy")


@pytest.mark.parametrize(
    ("asked", "range_text"),
    [
        ({"workers": 8}, "measured were 2 workers"),
        ({"trials": 1000}, "measured were 10 trials"),
        ({"trial_seconds": 60.0}, "measured were 0.50 s per trial"),
        ({"workers": 1}, "measured were 2 workers"),
    ],
)
def test_beyond_what_was_measured_there_is_a_refusal_with_the_range_and_the_file(asked: dict[str, Any], range_text: str) -> None:
    found = ask(fast_and_slow(), **asked)
    assert found.exit_code == 1
    assert found.families == ()
    assert found.headline[0].startswith("not measured, so nothing is said: ")
    assert range_text in found.headline[1]
    assert any(f"tuneoff compare {FILE}" in line for line in lines(found))
    assert to_json(found)["recommended"] == []


def test_inside_the_range_only_the_measured_settings_around_are_used_and_named() -> None:
    low, high = (fast_and_slow(workers=workers, variant={"workers.count": workers}) for workers in (1, 4))
    far = fast_and_slow(workers=16, variant={"workers.count": 16})
    found = ask(low, high, far, workers=2)
    (family,) = found.families
    assert not family.is_exact
    assert [one.setting.sizes["workers"] for one in family.weighed] == [(1.0, 1.0), (4.0, 4.0)]
    assert family.recommended == ("plain",)
    assert any("measured around what was asked for, nothing beyond" in line for line in lines(found))


def test_where_the_order_turns_round_between_the_settings_nobody_is_recommended_and_it_is_said() -> None:
    low = made_folder(runs_of("plain", seconds=1.0, workers=1), runs_of("optuna", seconds=2.0, workers=1), folder=Path("low"))
    high = made_folder(runs_of("plain", seconds=2.0, workers=4), runs_of("optuna", seconds=1.0, workers=4), folder=Path("high"))
    found = ask(low, high, workers=2)
    (family,) = found.families
    assert family.recommended == ()
    assert "disagree" in found.headline[0]
    assert len(family.differs) == 1
    assert "plain is better than optuna in time at random (1 worker" in family.differs[0].text
    assert {run.folder for run in family.differs[0].runs} == {Path("low"), Path("high")}
    assert found.exit_code == 1


def test_who_was_measured_on_one_side_alone_is_not_recommended_in_between() -> None:
    low = made_folder(runs_of("plain", workers=1), runs_of("optuna", workers=1))
    high = made_folder(runs_of("plain", workers=4))
    (family,) = ask(low, high, workers=2).families
    assert family.recommended == ("plain",)
    assert any(text.startswith("optuna was not measured at random (4 workers") for text in family.unmeasured)


def test_settings_of_other_samplers_do_not_surround_a_request() -> None:
    low, high = (made_folder(runs_of("plain", workers=workers, sampler=name)) for workers, name in ((1, "random"), (4, "fixed")))
    found = ask(low, high, workers=2)
    assert len(found.outside) == 2
    assert found.exit_code == 1


def test_each_setting_of_a_folder_is_weighed_by_its_own_verdicts() -> None:
    few: dict[str, Any] = {"workers": 1, "variant": {"workers.count": 1}}
    many: dict[str, Any] = {"workers": 4, "variant": {"workers.count": 4}}
    folder = made_folder(
        runs_of("plain", seconds=1.0, **few),
        runs_of("optuna", seconds=2.0, **few),
        runs_of("plain", seconds=2.0, **many),
        runs_of("optuna", seconds=1.0, **many),
    )
    assert ask(folder, workers=1).families[0].recommended == ("plain",)
    assert ask(folder, workers=4).families[0].recommended == ("optuna",)
    assert ask(folder).families[0].recommended == ()
