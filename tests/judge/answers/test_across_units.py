"""What may be taken for independent across tasks: sampler streams; A/A is the control."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from builders.made_results import Draw, Entry, Metrics, over_tasks, results
from builders.present import present
from judge.answers.test_across_tasks import ANCHORS, around, over, p, question
from tuneoff.judge.answers.answer import Answers
from tuneoff.judge.answers.answers_json import to_json
from tuneoff.judge.answers.compute import answers

pytest.importorskip("scipy")
Name = Callable[[int], str | None]
FAR = {"a": (0.97, 1000.0), "b": (0.93, 2000.0)}


def made(
    means: Mapping[str, tuple[float, float]] = FAR,
    stream: Name = lambda task: None,
    again: bool = False,
    draw: Callable[[str, int], Draw] | None = None,
) -> Answers:
    """Return 12 tasks of 3 seeds; `stream`: what a task changes; `again`: with an A/A pair."""
    entries = [
        Entry(
            name,
            draw(name, task) if draw is not None else around(quality, jct, f"{name} {task} {replicate}"),
            variant={"task": f"t{task}"},
            stream=stream(task),
            replicate=replicate,
        )
        for task in range(12)
        for name, (quality, jct) in means.items()
        for replicate in ((0, 1) if again and name == "a" else (0,))
    ]
    return answers(results(entries, seeds=range(3), anchors={f"t{task}": ANCHORS for task in range(12)}))


def controlled(slow: float, **more: Any) -> Answers:
    """Return 6 tasks of `a`, of `a` again and so much slower, and of `b`."""
    entries = over_tasks(6, "ab", lambda name, task: around(0.9, 1000.0, f"{name} {task}"))
    entries += over_tasks(6, "a", lambda name, task: around(0.9, 1000.0 * slow, f"a {task}"), lambda *_: {"replicate": 1})
    return answers(results(entries, **more))


def lucky(label: str, task: int) -> Draw:
    """Return runs in which `a` is a little better, always."""

    def one(seed: int) -> Metrics:
        luck = 0.01 if label == "a" else 0.0
        return {"time.jct": (1 + task) * 1000 * (1 - luck), "quality.validation": 0.92 + luck, "quality.test": 0.92}

    return one


@pytest.mark.parametrize("name", ["quality", "time"])
def test_tasks_that_share_their_sampler_streams_are_no_more_than_their_seeds(name: str) -> None:
    """Twelve tasks and three seeds of one stream: what one seed draws is drawn in all tasks, so three signs are left."""
    shared = question(made(draw=lucky, stream=lambda task: "the same"), name)
    assert present(over(shared).mean).n == 3
    assert p(shared) == 1.0  # 15 * 2 / 2**3
    assert "no pair is shown to differ" in shared.texts[0]
    own = question(made(draw=lucky), name)  # control
    assert p(own) < 0.05


@pytest.mark.slow
def test_an_equal_entry_again_is_a_control_in_no_family() -> None:
    with_control, without = made(again=True), made()
    for name in ("quality", "time"):
        found = question(with_control, name)
        control = over(found, "a#2", "a")
        assert control.is_noise
        assert control.mean is not None
        assert control.mean.confidence == pytest.approx(0.95)
        assert [pair for pair in found.compared if not pair.is_noise] == list(question(without, name).compared)
        assert any(text.startswith("Control (A/A") and "a#2 against a" in text for text in found.texts)
        assert not any("distrust" in text for text in found.texts)


def test_a_control_that_differs_is_warned_of() -> None:
    made_by = controlled(1.5, seeds=range(3))
    found = question(made_by, "time")
    assert any(text.startswith("Control") and "distrust" in text for text in found.texts)
    assert "distrust what is claimed here: a#2 against a, as one in 20 does by chance" in found.texts[0]
    assert "distrust" in made_by.summary[0]


def test_a_control_is_warned_of_exactly_where_its_interval_leaves_out_0() -> None:
    """Six streams of one sign have p = 2 / 2**6 = 0.031: within 0.05."""
    for slow, differs in ((1.5, True), (1.0, False)):
        found = question(controlled(slow, seeds=range(1)), "time")
        assert (present(over(found, "a#2", "a").mean).low > 0) is differs
        assert ("distrust" in found.texts[0]) is differs


def test_the_size_the_interval_and_the_units_of_a_claim_are_in_the_json() -> None:
    across = json.loads(json.dumps(to_json(made())))["across"]
    (time,) = [one for one in across if one["question"] == "time"]
    (pair,) = time["compared"]
    assert pair["mean"]["low"] < pair["mean"]["estimate"] < pair["mean"]["high"] < 0
    assert (pair["mean"]["n"], pair["ahead"], pair["is_noise"]) == (36, [12, 0], False)
