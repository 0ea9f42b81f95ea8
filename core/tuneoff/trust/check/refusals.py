"""`python -m tuneoff.trust.check.refusals REQUEST.json`: ask an adapter for what it must refuse or serve, in a fresh process.

The request is a run that it can serve. Each question changes one thing.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from typing import Any

from tuneoff.adapter import Adapter
from tuneoff.base.capabilities import Capabilities, Support, offered
from tuneoff.base.targets import load_target
from tuneoff.errors import ExperimentError
from tuneoff.experiment.skip_check import SkipCheck
from tuneoff.experiment.spec import ExperimentSpec, Failures, RunSpec, Strategy, run_spec_from_json
from tuneoff.experiment.strategies import PRUNERS, SAMPLERS, check_pruner
from tuneoff.run.child import answer_request
from tuneoff.trust.check.evidence import Refusals, RequestAnswer
from tuneoff.trust.check.footprint import Footprint, RunTraces, left_since
from tuneoff.trust.check.planned_runs import EPOCHS, NUMBERS, listed, random_search, scripted, sound

UNKNOWN = "conformance_unknown"
REFUSED, ACCEPTED, BROKEN = "refused", "accepted", "broken"
_UNDECLARED, _ADAPTER_OPTIONS, _SAMPLER_OPTIONS = "undeclared", "adapter-options", "sampler-options"


def main(request: dict[str, Any]) -> dict[str, Any]:
    spec = run_spec_from_json(request["run"])
    before = Footprint.now()
    imported_before = set(sys.modules)
    adapter: type[Adapter] = load_target(spec.adapter_target)
    answers = list(ask(spec, adapter))
    module = adapter.capabilities.module
    imported = bool(module) and module not in imported_before and module in sys.modules
    return asdict(Refusals(answers=answers, framework_imported=imported, leftovers=left_since(before, UNKNOWN, RunTraces())))


def ask(spec: RunSpec, adapter: type[Adapter]) -> Iterator[RequestAnswer]:
    """Yield the answer to each request that must be refused, and to each that must be served."""
    for family, request, changed in _requests(spec, adapter.capabilities):
        if family == _UNDECLARED:  # core refuses it before the adapter is asked
            yield _answer(family, request, SkipCheck().reason, changed, adapter)
        else:
            yield _answer(family, request, adapter.refuse, changed)
    for request, experiment in declared(adapter.capabilities_on(spec.platform)):
        yield _answer("declared", request, adapter.refuse, replace(spec, experiment=experiment))


def declared(capabilities: Capabilities) -> Iterator[tuple[str, ExperimentSpec]]:
    """Yield an experiment for each sampler and pruner that is offered, with default options, in a space that fits all."""
    experiment = replace(random_search(8), search_space=NUMBERS)
    samplers = offered(capabilities.samplers)
    for name in samplers:
        fitting = listed(sound(8)) if name == "fixed" else replace(experiment, sampler=Strategy(name=name))
        yield f"declared sampler {name!r}", fitting
    for name in offered(capabilities.pruners):
        if name != "scripted":
            pruner = check_pruner(Strategy(name=name), EPOCHS, more_names=(name,))
            yield f"declared pruner {name!r}", replace(experiment, pruner=pruner)
        elif "fixed" in samplers:
            yield f"declared pruner {name!r}", scripted()


def _requests(spec: RunSpec, capabilities: Capabilities) -> Iterator[tuple[str, str, RunSpec]]:
    experiment = spec.experiment
    for kind, names, offers in (("sampler", SAMPLERS, capabilities.samplers), ("pruner", PRUNERS, capabilities.pruners)):
        for name in (*names, *offers, UNKNOWN):
            if name not in offered(offers):
                changes: dict[str, Any] = {kind: Strategy(name=name)}
                yield _UNDECLARED, f"{kind} {name!r}", replace(spec, experiment=replace(experiment, **changes))
    yield _UNDECLARED, f"platform {UNKNOWN!r}", replace(spec, platform=UNKNOWN)
    if capabilities.retry is not Support.YES:
        changed = replace(experiment, failures=Failures(retries=1))
        yield _UNDECLARED, "`failures.retries` of 1", replace(spec, experiment=changed)
    yield _ADAPTER_OPTIONS, f"option {UNKNOWN!r}", replace(spec, options={**spec.options, UNKNOWN: 1})
    for name, offer in offered(capabilities.samplers).items():
        wrong: dict[str, object] = {UNKNOWN: 1}
        for option, rule in offer.options.items():
            low = rule.least if rule.least is not None else rule.above
            beyond = low - 1 if low is not None else rule.most + 1 if rule.most is not None else None
            wrong[option] = "not a value of any option" if beyond is None else beyond
        for option, value in wrong.items():
            changed = replace(experiment, sampler=Strategy(name=name, options={option: value}))
            yield _SAMPLER_OPTIONS, f"sampler {name!r} with {option}={value!r}", replace(spec, experiment=changed)


def _answer(family: str, request: str, refuse: Callable[..., Any], *about: object) -> RequestAnswer:
    try:
        reason = refuse(*about)
        outcome = ACCEPTED if reason is None else REFUSED
        if reason is not None and not isinstance(reason, str):
            outcome, reason = BROKEN, f"it must return a text or None, but returned {reason!r}"
    except ExperimentError as error:
        outcome, reason = REFUSED, str(error)
    except Exception as error:  # an adapter's code may raise anything
        outcome, reason = BROKEN, f"{type(error).__name__}: {error}"
    return RequestAnswer(family=family, request=request, outcome=outcome, text=reason or "")


if __name__ == "__main__":
    answer_request(main)
