"""What is said where several frameworks remain, where runs are missing, and of platforms that nobody asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from builders.made_choices import FROZEN, SEEDS, listing, made_folder, runs_of
from tuneoff.experiment.spec import RunSpec
from tuneoff.judge.choice.choose import Answered
from tuneoff.judge.recommend.eligibility import No
from tuneoff.judge.recommend.recommend import recommend, to_json
from tuneoff.judge.recommend.recommendation import Recommendation
from tuneoff.judge.recommend.recommendation_text import lines
from tuneoff.judge.recommend.request import Request
from tuneoff.record.run_record import RunRecord
from tuneoff.registry import AdapterListing

pytest.importorskip("scipy")
KNOWN = [listing("plain"), listing("optuna"), listing("ray-tune")]
CLUSTER = listing("katib", platforms=("kubernetes",))
NO_QUALITY_MARGIN = {key: value for key, value in FROZEN.items() if key != "quality_margin"}


def ask(*folders: Answered, known: Sequence[AdapterListing] = KNOWN, **asked: Any) -> Recommendation:
    return recommend(folders, known, [], Request(**asked))


def of_time_alone(*adapters: str, **more: Any) -> Answered:
    """Return a folder in which each adapter takes twice as long as the one before, and no margin says what is as good."""
    groups = [runs_of(name, seconds=2.0**place, **more) for place, name in enumerate(adapters)]
    return made_folder(*groups, analysis=NO_QUALITY_MARGIN)


def against(found: Recommendation) -> list[tuple[str, str, list[str], list[str], list[str]]]:
    (family,) = to_json(found)["settings"]
    return [(one["one"], one["other"], one["worse"], one["better"], one["undecided"]) for one in family["against"]]


def hints(found: Recommendation, word: str) -> list[str]:
    return [line for line in lines(found) if word in line]


def test_who_is_worse_somewhere_and_better_nowhere_is_named_for_every_pair() -> None:
    found = ask(of_time_alone("plain", "optuna", "ray-tune"))
    assert found.families[0].recommended == ("plain", "optuna", "ray-tune")
    assert against(found) == [
        ("optuna", "plain", ["time"], [], ["quality"]),
        ("ray-tune", "plain", ["time"], [], ["quality"]),
        ("ray-tune", "optuna", ["time"], [], ["quality"]),
    ]
    told = hints(found, "better in nothing")
    assert len(told) == 2  # those that are behind the same one share a line
    assert "optuna and ray-tune" in told[0]
    assert to_json(found)["answer"] == [line.strip() for line in found.headline]


def test_a_framework_is_held_to_the_pool_that_uses_none_also_where_it_is_the_only_one() -> None:
    found = ask(of_time_alone("serial", "optuna"))
    assert found.families[0].recommended == ("optuna",)
    assert against(found) == [("optuna", "serial", ["time"], [], ["quality"])]
    (reason,) = found.families[0].weighed[0].reasons
    assert len({run.run_id for run in reason.runs}) == 20  # those of the pool too
    assert against(ask(of_time_alone("optuna", "serial"))) == [("serial", "optuna", ["time"], [], ["quality"])]


def test_the_pool_is_no_floor_on_a_platform_on_which_it_did_not_run() -> None:
    folder = made_folder(runs_of("serial"), runs_of("katib", seconds=2.0, platform="kubernetes"))
    assert against(ask(folder, known=[CLUSTER])) == [("katib", "serial", ["time"], [], [])]
    assert against(ask(folder, known=[CLUSTER], platform="kubernetes")) == []


def test_who_fails_more_often_is_why_the_other_remains() -> None:
    seeds = range(30)
    groups = (runs_of("plain", seeds=seeds, failed=(3,), spread=0.001), runs_of("optuna", seconds=2.0, seeds=seeds, spread=0.001))
    found = ask(made_folder(*groups))
    (pair,) = found.families[0].against
    assert (pair.one, pair.failed_less) == ("optuna", True)
    assert not ask(of_time_alone("plain", "optuna")).families[0].against[0].failed_less


def test_settings_that_turn_round_are_no_sentence_and_those_that_say_less_are_marked() -> None:
    def of(plain: float, optuna: float, workers: int) -> Answered:
        groups = (runs_of(name, seconds=time, workers=workers) for name, time in (("plain", plain), ("optuna", optuna)))
        return made_folder(*groups, analysis=NO_QUALITY_MARGIN, folder=Path(str(workers)))

    assert against(ask(of(1, 2, 1), of(2, 1, 4))) == []
    (same,), (less,) = (ask(of(1, 2, 1), of(1, time, 4)).families[0].against for time in (2.0, 1.0))
    assert (same.one, same.worse, same.is_everywhere) == ("optuna", ("time",), True)
    assert (less.one, less.worse, less.is_everywhere) == ("optuna", ("time",), False)


def test_a_question_without_a_margin_says_the_way_out() -> None:
    found = ask(of_time_alone("plain", "optuna"))
    assert list(to_json(found)["settings"][0]["without_margin"]) == ["quality"]
    assert hints(found, "set analysis.quality_margin")
    undecided = ask(made_folder(runs_of("plain", seconds=1.0, spread=0.5), runs_of("optuna", seconds=9.0, spread=0.5)))
    assert undecided.families[0].weighed[0].undecided == ("quality",)  # and that is for want of seeds, not of a margin
    assert undecided.families[0].without_margin == {}
    assert not hints(undecided, "quality_margin")


def test_prefer_is_hinted_at_where_several_remain_and_it_would_explain_something() -> None:
    several = of_time_alone("plain", "optuna")
    assert len(hints(ask(several), "--prefer")) == 1
    alone = made_folder(runs_of("plain"), runs_of("optuna", seconds=2.0))
    few = made_folder(runs_of("plain", seeds=SEEDS[:9]), runs_of("optuna", seeds=SEEDS[:9]))
    for found in (ask(several, prefer="quality"), ask(alone), ask(few)):
        assert not hints(found, "--prefer")


@pytest.mark.parametrize("is_begun", [False, True])
def test_an_unfinished_folder_is_said_before_any_answer_and_once(is_begun: bool) -> None:
    optuna: list[tuple[RunSpec, RunRecord | None]] = []
    for spec, record in runs_of("optuna"):
        ended = replace(record, status="interrupted", reason="planted") if is_begun else None
        optuna.append((spec, ended if spec.seed < 3 else record))
    found = ask(made_folder(runs_of("plain"), optuna))
    assert lines(found)[0].startswith("unfinished: 3 of 20 runs ")
    assert len(hints(found, "have not ended")) == 1
    assert [(one["waiting"], one["planned"]) for one in to_json(found)["unfinished"]] == [(3, 20)]


def test_of_several_folders_only_the_unfinished_one_is_named() -> None:
    ended = made_folder(runs_of("plain"), folder=Path("ended"))
    at_work = made_folder([*runs_of("plain")[:9], (runs_of("plain")[9][0], None)], folder=Path("at_work"))
    found = ask(ended, at_work)
    assert [Path(one["folder"]).name for one in to_json(found)["unfinished"]] == ["at_work"]
    assert "at_work" in lines(found)[0]
    assert to_json(ask(ended))["unfinished"] == []


def test_the_ids_of_runs_are_in_json_and_in_the_text_only_if_asked_for() -> None:
    found = ask(of_time_alone("plain", "optuna"))
    ids = {run["run_id"] for one in to_json(found)["settings"][0]["measured"][0]["reasons"] for run in one["runs"]}
    assert len(ids) == 20
    assert not any(run in line for run in ids for line in lines(found))
    text = "\n".join(lines(found, with_runs=True))
    assert all(run in text for run in ids)


def test_a_cluster_that_nobody_asked_for_is_suggested_only_where_it_was_measured() -> None:
    known = [*KNOWN, CLUSTER]
    without = ask(made_folder(runs_of("plain")), known=known)
    assert [(one.adapter, [why.kind for why in one.obstacles]) for one in without.excluded] == [("katib", [No.ELSEWHERE])]
    assert "katib" not in without.not_measured
    assert not any("katib" in line for line in to_json(without)["how_to_measure"])
    measured = ask(made_folder(runs_of("plain"), runs_of("katib", platform="kubernetes")), known=known)
    assert (measured.excluded, measured.measured) == ((), ("plain", "katib"))
    assert ask(made_folder(runs_of("plain")), known=known, platform="kubernetes").not_measured == ("katib",)


def test_who_also_runs_here_is_suggested_here() -> None:
    both = listing("both", platforms=("kubernetes", "local"))
    found = ask(made_folder(runs_of("plain")), known=[KNOWN[0], both])
    assert found.not_measured == ("both",)
    assert to_json(found)["how_to_measure"][0].endswith("--adapter plain both")
