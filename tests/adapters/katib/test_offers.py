"""Which samplers, pruners and options Katib is offered with."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from builders.katib_specs import IMAGE, spec_of
from builders.spaces import NUMBERS, SPACE
from katib_emulation import admission
from tuneoff.adapter import Support
from tuneoff.base.space import Categorical, Constant, Float, SearchSpace
from tuneoff.errors import ExperimentError
from tuneoff.experiment.skip_check import declared_reasons
from tuneoff.experiment.spec import Budget, RunSpec, Strategy
from tuneoff.experiment.strategies import PRUNERS, SAMPLERS
from tuneoff_adapters.katib import offers
from tuneoff_adapters.katib.adapter import KatibAdapter
from tuneoff_adapters.katib.options import katib_options
from tuneoff_adapters.katib.plan import early_stopping_of

YES = [name for name, offer in offers.CAPABILITIES.samplers.items() if offer.support is Support.YES]
PLATFORMS = ("kubernetes", "emulated")


def spec_for(sampler: str | Strategy, **changes: Any) -> RunSpec:
    """Return a run that the sampler can serve as far as its space is concerned."""
    name = sampler if isinstance(sampler, str) else sampler.name
    space = NUMBERS if name in ("cmaes", "sobol") else SPACE
    if name == "grid":
        space = SearchSpace({"unordered": SPACE.dimensions["unordered"]})
    return spec_of(sampler, **{"search_space": space, **changes})


def refusal(sampler: str | Strategy = "random", **changes: Any) -> str:
    reason = offers.refusal(spec_for(sampler, **changes)) or ""
    assert "\n" not in reason
    return reason


def test_the_vocabulary_is_answered_and_each_offer_has_an_algorithm() -> None:
    pruners, samplers = offers.CAPABILITIES.pruners, offers.CAPABILITIES.samplers
    assert set(SAMPLERS) <= set(samplers)
    assert set(PRUNERS) == set(pruners)
    assert offers.CAPABILITIES.platforms == PLATFORMS
    assert set(offers.ALGORITHMS) == set(YES)
    assert set(admission.ALGORITHMS) == set(offers.EMULATIONS) <= set(offers.ALGORITHMS.values())
    assert pruners["asha"].support is Support.NOT_BY_FRAMEWORK
    not_built = (pruners["hyperband"], samplers["hyperband"], samplers["pbt"])
    assert all(offer.support is Support.NOT_BY_TUNEOFF and offer.note for offer in not_built)


@pytest.mark.parametrize("sampler", YES)
def test_the_emulation_serves_what_it_has_and_refuses_the_rest_with_that_reason(sampler: str) -> None:
    median = Strategy(name="median")
    spec = spec_for(sampler, platform="emulated", pruner=median)
    reason = next(declared_reasons(spec, offers.capabilities_on("emulated")), None)
    if offers.ALGORITHMS[sampler] in offers.EMULATIONS:
        assert (reason, refusal(sampler, platform="emulated")) == (None, "")
        assert all(name.startswith("emulated ") for name in offers.implementations(spec).values())
    else:
        assert "the emulation lacks; use platform 'kubernetes'" in (reason or "")
    there = offers.implementations(spec_for(sampler, pruner=median))
    assert (there["sampler"].startswith("Katib "), there["pruner"]) == (True, "Katib medianstop")


def test_without_the_emulation_s_own_package_its_platform_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offers, "module_exists", lambda name: False)
    reason = refusal(platform="emulated")
    assert "needs tuneoff-katib-emulation, which is not installed" in reason
    assert "pip install adapters/katib_emulation" in reason
    assert refusal() == ""


MANY, SOME = Budget(trials=100_000, epochs_per_trial=1), Budget(trials=3000, epochs_per_trial=1)
ONE = SearchSpace({"linear": SPACE.dimensions["linear"]})
CONSTANT = SearchSpace({"kind": Constant(value=1)})
ORDERED = SearchSpace({name: Categorical(choices=(1, 2, 4), ordered=True) for name in ("a", "b")})
SERVED = ""


@pytest.mark.parametrize(
    ("sampler", "changes", "words"),
    [
        ("random", {"budget": Budget(trials=8, epochs_per_trial=3, epochs_total=10)}, "budget.epochs_total=10"),
        ("cmaes", {"search_space": SPACE}, "unordered has no order"),
        ("sobol", {"search_space": SPACE}, "unordered has no order"),
        ("cmaes", {"search_space": ORDERED}, SERVED),
        ("cmaes", {"search_space": ONE}, "at least 2"),
        ("sobol", {"search_space": ONE}, SERVED),
        ("random", {"search_space": CONSTANT}, "use sampler 'fixed'"),
        ("fixed", {"search_space": CONSTANT, "configurations": ({"kind": 1},)}, SERVED),
        ("random", {"budget": MANY}, "budget.trials=100000"),
        ("random", {"budget": MANY, "platform": "emulated"}, SERVED),  # without an etcd
        ("random", {"budget": SOME}, "budget.trials=3000"),
        ("fixed", {"budget": SOME}, SERVED),  # one parameter, whatever the space has
        (Strategy(name="tpe", options={"gamma": 1.0}), {}, "must be a number > 0 and <= 0.99"),
        (Strategy(name="multivariate-tpe", options={"n_startup_trials": -1}), {}, "an integer >= 0"),
        (Strategy(name="cmaes", options={"sigma": 0}), {}, "a number > 0"),
        *(
            ("random", {"search_space": SearchSpace({name: Float(low=0.0, high=1.0)}), "platform": platform}, "names of letters")
            for name in ("x; touch y", "$(x)", "a-b", "é", "")  # Katib's webhook joins them into a line of `sh -c`
            for platform in PLATFORMS
        ),
    ],
)
def test_what_katib_cannot_serve_is_refused_with_the_reason(sampler: str | Strategy, changes: dict[str, Any], words: str) -> None:
    reason = refusal(sampler, **changes)
    assert words in reason
    assert bool(reason) == bool(words)


def test_no_early_stopping_without_a_pruner_of_katibs() -> None:
    for pruner in ("none", "scripted"):
        assert early_stopping_of(spec_for("random", pruner=Strategy(name=pruner))) is None


def test_every_option_arrives_and_null_is_as_good_as_nothing() -> None:
    given = {
        "image": IMAGE,
        "kubeconfig": "~/cluster.yaml",
        "context": None,
        "katib_namespace": "katib",
        "namespace": "team-a",
        "image_pull_secret": "registry-key",
        "service_account": "trials",
        "data_claim": "mnist",
        "node_selector": {"node.kubernetes.io/instance-type": "c5.large", "pool": ""},
        "device_resource": "nvidia.com/gpu",
        "api_seconds": 5,
        "pending_seconds": 7.5,
    }
    options = katib_options(spec_of(options=given))
    assert {name: getattr(options, name) for name in given} == {**given, "kubeconfig": Path("~/cluster.yaml").expanduser()}
    assert isinstance(options.api_seconds, float)


@pytest.mark.parametrize(
    ("platform", "options", "words"),
    [
        ("kubernetes", {}, "needs option `image`"),
        ("kubernetes", {"image": IMAGE, "data_claim": "x"}, "option data_claim must name .* give option `namespace` too"),
        ("emulated", {"image": IMAGE, "namespace": "team"}, "option image, namespace has no meaning there"),
        *(
            ("kubernetes", {"image": IMAGE, name: value}, f"option `{name}`")
            for name, values in {
                "api_seconds": (0, "60"),
                "pending_seconds": (float("inf"),),
                "image": ("", "two words"),
                "context": (" x",),
                "kubeconfig": ("a\nb",),
                "katib_namespace": ("Kubeflow",),
                "namespace": ("a.b", "a" * 64),
                "image_pull_secret": ("-x", {"password": "never here"}),
                "service_account": ("a/b",),
                "data_claim": ("a" * 254,),
                "node_selector": ("pool=a", {"pool": True}, {"a b": "a"}, {"pool": "a" * 64}),
                "device_resource": ("cpu", "nvidia.com/"),
            }.items()
            for value in values
        ),
    ],
)
def test_a_wrong_option_is_named_in_one_line(platform: str, options: dict[str, Any], words: str) -> None:
    with pytest.raises(ExperimentError, match=words) as caught:
        katib_options(spec_of(platform=platform, options=options))
    assert "\n" not in str(caught.value)


def test_the_way_to_the_cluster_and_the_patience_are_no_part_of_the_run() -> None:
    def run_id(**options: Any) -> str:
        given = {"image": "any.example/tuneoff:1", **options}
        return replace(spec_of(options=given), local_options=tuple(KatibAdapter.local_options)).run_id

    local = {"kubeconfig": "/a/config", "context": "c", "api_seconds": 1.0, "pending_seconds": 2.0}
    assert set(local) == KatibAdapter.local_options
    assert run_id(**local) == run_id()
    for name, value in {"image": "other.example/tuneoff:1", "namespace": "team", "node_selector": {"pool": "a"}}.items():
        assert run_id(**{name: value}) != run_id()
