"""Which samplers, pruners and options Katib is offered with."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from builders.katib_specs import IMAGE, spec_of
from builders.spaces import NUMBERS, SPACE
from tuneoff.adapter import Support
from tuneoff.base.space import Categorical, Constant, Float, SearchSpace
from tuneoff.errors import ExperimentError
from tuneoff.experiment.skip_check import declared_reasons
from tuneoff.experiment.spec import Budget, RunSpec, Strategy
from tuneoff.experiment.strategies import PRUNERS, SAMPLERS
from tuneoff_adapters.katib import offers
from tuneoff_adapters.katib.adapter import KatibAdapter
from tuneoff_adapters.katib.options import katib_options
from tuneoff_adapters.katib.plan import algorithm_of, early_stopping_of

YES = [name for name, offer in offers.CAPABILITIES.samplers.items() if offer.support is Support.YES]
PLATFORMS = ("kubernetes", "emulated")


def spec_for(sampler: str, **changes: Any) -> RunSpec:
    """Return a run that the sampler can serve as far as its space is concerned."""
    space = NUMBERS if sampler in ("cmaes", "sobol") else SPACE
    if sampler == "grid":
        space = SearchSpace({"unordered": SPACE.dimensions["unordered"]})
    return spec_of(sampler, **{"search_space": space, **changes})


def refusal(sampler: str = "random", **changes: Any) -> str | None:
    reason = offers.refusal(spec_for(sampler, **changes))
    assert reason is None or "\n" not in reason
    return reason


def test_every_sampler_and_pruner_of_the_vocabulary_is_answered() -> None:
    assert set(SAMPLERS) <= set(offers.CAPABILITIES.samplers)
    assert set(PRUNERS) == set(offers.CAPABILITIES.pruners)
    assert offers.CAPABILITIES.platforms == PLATFORMS


def test_every_offered_sampler_has_an_algorithm_and_no_other_has() -> None:
    assert set(offers.ALGORITHMS) == set(YES)
    assert set(offers.EMULATIONS) <= set(offers.ALGORITHMS.values())


def test_what_katib_lacks_is_told_from_what_is_not_built() -> None:
    pruners, samplers = offers.CAPABILITIES.pruners, offers.CAPABILITIES.samplers
    assert pruners["asha"].support is Support.NOT_BY_FRAMEWORK
    not_built = (pruners["hyperband"], samplers["hyperband"], samplers["pbt"])
    assert all(offer.support is Support.NOT_BY_TUNEOFF and offer.note for offer in not_built)
    assert "mean" in pruners["median"].note


@pytest.mark.parametrize("sampler", YES)
def test_the_emulation_serves_what_it_has_and_refuses_the_rest_with_that_reason(sampler: str) -> None:
    spec = spec_for(sampler, platform="emulated")
    reason = next(declared_reasons(spec, offers.capabilities_on("emulated")), None)
    if offers.ALGORITHMS[sampler] in offers.EMULATIONS:
        assert reason is None
        assert refusal(sampler, platform="emulated") is None
        assert offers.implementations(spec)["sampler"].startswith("emulated ")
    else:
        assert "the emulation lacks; use platform 'kubernetes'" in (reason or "")


def test_the_emulation_serves_exactly_the_algorithms_that_it_says() -> None:
    from katib_emulation.admission import ALGORITHMS

    assert set(ALGORITHMS) == set(offers.EMULATIONS)


def test_without_the_emulation_s_own_package_its_platform_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offers, "module_exists", lambda name: False)
    reason = refusal(platform="emulated")
    assert "needs tuneoff-katib-emulation, which is not installed" in (reason or "")
    assert "pip install adapters/katib_emulation" in (reason or "")
    assert refusal() is None


def test_a_shared_budget_of_epochs_is_refused() -> None:
    reason = refusal(budget=Budget(trials=8, epochs_per_trial=3, epochs_total=10))
    assert "budget.epochs_total=10" in (reason or "")


@pytest.mark.parametrize("sampler", ["cmaes", "sobol"])
def test_numbers_only_means_that_choices_without_order_are_refused_and_ordered_ones_not(sampler: str) -> None:
    assert "unordered has no order" in (refusal(sampler, search_space=SPACE) or "")
    ordered = SearchSpace({name: Categorical(choices=(1, 2, 4), ordered=True) for name in ("a", "b")})
    assert refusal(sampler, search_space=ordered) is None


def test_cmaes_needs_two_numbers() -> None:
    one = SearchSpace({"linear": SPACE.dimensions["linear"]})
    assert "at least 2" in (refusal("cmaes", search_space=one) or "")
    assert refusal("sobol", search_space=one) is None


def test_a_space_with_nothing_to_search_is_served_as_a_list_only() -> None:
    constant = SearchSpace({"kind": Constant(value=1)})
    assert "use sampler 'fixed'" in (refusal("random", search_space=constant) or "")
    assert refusal("fixed", search_space=constant, configurations=({"kind": 1},)) is None


def test_more_trials_than_one_object_holds_are_refused_where_there_is_an_etcd() -> None:
    many = Budget(trials=100_000, epochs_per_trial=1)
    assert "budget.trials=100000" in (refusal(budget=many) or "")
    assert refusal(budget=many, platform="emulated") is None
    some = Budget(trials=3000, epochs_per_trial=1)
    assert "budget.trials=3000" in (refusal(budget=some) or "")
    assert refusal("fixed", budget=some) is None  # one parameter, whatever the space has


@pytest.mark.parametrize(
    ("sampler", "options", "words"),
    [
        ("tpe", {"gamma": 1.0}, "must be a number > 0 and <= 0.99"),
        ("multivariate-tpe", {"n_startup_trials": -1}, "an integer >= 0"),
        ("cmaes", {"sigma": 0}, "a number > 0"),
    ],
)
def test_options_that_katibs_service_would_refuse_are_refused_here(sampler: str, options: dict[str, Any], words: str) -> None:
    space = NUMBERS if sampler in ("cmaes", "sobol") else SPACE
    spec = spec_of(Strategy(name=sampler, options=options), search_space=space)
    assert words in (offers.refusal(spec) or "")


def test_a_cluster_needs_the_trials_image() -> None:
    with pytest.raises(ExperimentError, match="image"):
        offers.refusal(spec_of(options={}))


def test_sobol_gets_no_seed_because_it_takes_none() -> None:
    assert "random_state" not in algorithm_of(spec_for("sobol")).settings


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("name", ["x; touch y", "$(x)", "a b", "a-b", "é", ""])
def test_a_name_that_a_shell_would_read_otherwise_is_refused(name: str, platform: str) -> None:
    """Katib's webhook joins a trial's command, with the names of its parameters, into a line of `sh -c`."""
    space = SearchSpace({name: Float(low=0.0, high=1.0)})
    options = {"image": IMAGE} if platform == "kubernetes" else {}
    assert "Katib needs names of letters" in (refusal(search_space=space, platform=platform, options=options) or "")


PINNED = {"image": "registry.example/tuneoff@sha256:0123"}


def test_every_option_arrives() -> None:
    given = {
        **PINNED,
        "kubeconfig": "~/cluster.yaml",
        "context": "kind-tuneoff",
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
    assert options.kubeconfig == Path("~/cluster.yaml").expanduser()
    assert options.api_seconds == 5.0
    others = {name: value for name, value in given.items() if name not in ("kubeconfig", "api_seconds")}
    assert {name: getattr(options, name) for name in others} == others


@pytest.mark.parametrize("name", ["image_pull_secret", "service_account", "data_claim"])
def test_what_must_be_there_before_needs_a_namespace_that_is_there(name: str) -> None:
    with pytest.raises(ExperimentError, match=f"option {name} must name something .* give option `namespace` too") as caught:
        katib_options(spec_of(options={**PINNED, name: "x"}))
    assert "\n" not in str(caught.value)
    assert katib_options(spec_of(options={**PINNED, name: "x", "namespace": "team"})).namespace == "team"


def test_emulated_takes_only_the_times() -> None:
    assert katib_options(spec_of(platform="emulated", options={"api_seconds": 3})).api_seconds == 3.0
    with pytest.raises(ExperimentError, match="option image, kubeconfig, namespace has no meaning there"):
        katib_options(spec_of(platform="emulated", options={**PINNED, "kubeconfig": "x", "namespace": "team"}))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("api_seconds", 0),
        ("api_seconds", True),
        ("api_seconds", "60"),
        ("pending_seconds", float("inf")),
        ("pending_seconds", float("nan")),
        ("image", ""),
        ("image", "two words"),
        ("image", 3),
        ("context", " x"),
        ("kubeconfig", "a\nb"),
        ("katib_namespace", "Kubeflow"),
        ("namespace", "a.b"),
        ("namespace", "a" * 64),
        ("namespace", "-a"),
        ("image_pull_secret", "-x"),
        ("image_pull_secret", {"password": "never here"}),
        ("service_account", "a/b"),
        ("data_claim", "a" * 254),
        ("node_selector", "pool=a"),
        ("node_selector", {"pool": 1}),
        ("node_selector", {"pool": True}),
        ("node_selector", {"": "a"}),
        ("node_selector", {"a b": "a"}),
        ("node_selector", {"pool": "a b"}),
        ("node_selector", {"pool": "a" * 64}),
        ("device_resource", 1),
        ("device_resource", "cpu"),
        ("device_resource", "nvidia.com/"),
    ],
)
def test_wrong_value_is_named_in_one_line(name: str, value: Any) -> None:
    with pytest.raises(ExperimentError, match=f"option `{name}`") as caught:
        katib_options(spec_of(options={**PINNED, name: value}))
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


def test_no_early_stopping_without_a_pruner_of_katibs() -> None:
    for pruner in ("none", "scripted"):
        assert early_stopping_of(spec_for("random", pruner=Strategy(name=pruner))) is None


def test_null_is_as_good_as_nothing() -> None:
    assert katib_options(spec_of(options={"image": IMAGE, "context": None})).context is None


def test_the_record_names_the_service_of_each_platform() -> None:
    median = Strategy(name="median")
    assert offers.implementations(spec_for("random", pruner=median)) == {
        "sampler": "Katib random (hyperopt)",
        "pruner": "Katib medianstop",
    }
    emulated = offers.implementations(spec_for("random", platform="emulated", pruner=median))
    assert all(name.startswith("emulated") for name in emulated.values())
