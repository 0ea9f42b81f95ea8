"""The kinds of no, by what adapters declare."""

from __future__ import annotations

from typing import Any

import pytest

from builders.made_choices import listing
from tuneoff.capabilities import Offer, Support
from tuneoff.errors import ExperimentError, UnknownNameError
from tuneoff.judge.recommend.eligibility import No, candidate, check_request
from tuneoff.judge.recommend.request import Request
from tuneoff.registry import AdapterListing, list_adapters


def kinds(one: AdapterListing, **asked: Any) -> list[No]:
    return [obstacle.kind for obstacle in candidate(one, Request(**asked)).obstacles]


def test_an_adapter_that_can_all_has_no_obstacle() -> None:
    found = candidate(listing("a"), Request(must_retry=True, sampler="random", pruner="none", platform="local"))
    assert found.is_capable
    assert found.platforms == ("local",)


@pytest.mark.parametrize(("support", "kind"), [(Support.NOT_BY_FRAMEWORK, No.FRAMEWORK), (Support.NOT_BY_TUNEOFF, No.TUNEOFF)])
def test_the_framework_and_tuneoff_lack_different_things(support: Support, kind: No) -> None:
    assert kinds(listing("a", retry=support), must_retry=True) == [kind]
    lacking = listing("a", samplers={"tpe": Offer(support=support, note="why")}, pruners={"asha": Offer(support=support)})
    assert kinds(lacking, sampler="tpe", pruner="asha") == [kind, kind]
    assert candidate(lacking, Request(sampler="tpe")).obstacles[0].text == "sampler 'tpe': why"
    assert kinds(lacking) == []


def test_what_is_not_asked_for_stands_against_nobody() -> None:
    assert kinds(listing("a", retry=Support.NOT_BY_FRAMEWORK, platforms=("cluster",), samplers={})) == []


def test_a_platform_that_the_adapter_lacks_says_nothing_of_the_framework() -> None:
    assert kinds(listing("a", platforms=("local",)), platform="kubernetes") == [No.TUNEOFF]


def test_a_stand_in_is_no_platform_to_recommend() -> None:
    katib = listing("katib", platforms=("kubernetes", "emulated"), emulated_platforms=("emulated",))
    assert kinds(katib, platform="emulated") == [No.UNKNOWN]
    assert candidate(katib, Request()).platforms == ("kubernetes",)


def test_a_framework_that_is_missing_here_is_a_note_with_the_command() -> None:
    text = "adapter 'a' needs the a package; run: pip install a-library"
    found = candidate(listing("a", state="missing", text=text), Request())
    assert found.is_capable
    assert found.notes == (text,)


def test_a_package_that_a_sampler_needs_is_a_note_with_the_command() -> None:
    found = candidate(listing("a", samplers={"cmaes": Offer(needs=("no_such_module",))}), Request(sampler="cmaes"))
    assert found.is_capable
    assert found.notes == ("sampler 'cmaes' of adapter 'a' needs no_such_module; run: pip install a-library",)


def test_a_mistyped_name_is_refused_and_the_nearest_named() -> None:
    known = [listing("a", platforms=("kubernetes",))]
    with pytest.raises(UnknownNameError, match="no platform named 'kubernets'; did you mean 'kubernetes'"):
        check_request(Request(platform="kubernets"), known)
    with pytest.raises(UnknownNameError, match="no sampler named 'x'"):
        check_request(Request(sampler="x"), known)
    check_request(Request(platform="kubernetes", sampler="random", pruner="none"), known)


@pytest.mark.parametrize("size", ["workers", "trial_seconds", "trials"])
@pytest.mark.parametrize("value", [0, -1, float("nan"), float("inf")])
def test_a_size_that_is_none_is_refused(size: str, value: Any) -> None:
    with pytest.raises(ExperimentError, match="must be above 0"):
        Request(**{size: value})


def test_the_built_in_adapters_answer_a_request_of_each_kind() -> None:
    by_name = {one.plugin.name: one for one in list_adapters()}
    assert kinds(by_name["katib"], must_retry=True) == [No(by_name["katib"].capabilities.retry.value)]  # type: ignore[union-attr]
    assert kinds(by_name["nevergrad"], platform="kubernetes") == [No.TUNEOFF]
    assert kinds(by_name["serial"], must_retry=True) == []
    assert kinds(by_name["serial"], platform="kubernetes", must_retry=True) == []
    assert kinds(by_name["katib"], platform="kubernetes") == []
    assert kinds(by_name["syne-tune"], sampler="cmaes") == [No.FRAMEWORK]
