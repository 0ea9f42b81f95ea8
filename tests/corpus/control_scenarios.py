"""Results in memory, one for each situation that the controls and the filters of a choice must tell apart."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from builders.made_choices import FROZEN, SEEDS, listing, made_folder, runs_of
from builders.made_runs import METRIC, Curve, made_run, made_spec, planned, results_of
from tuneoff.adapter import Offer, Support
from tuneoff.experiment.variants import TASK
from tuneoff.judge.answers.answer import Answers
from tuneoff.judge.choice.request import Request
from tuneoff.judge.fault_results import NO_SUCH_PART, FaultResult
from tuneoff.judge.results import Results
from tuneoff.record.flag_meanings import EXCLUDING
from tuneoff.record.run_record import RunRecord, TestRecord
from tuneoff.registry import AdapterListing

# --- controls ---

ANALYSIS = {"quality_margin": 0.01, "confidence": 0.95, "primary_metric": "time.jct"}
CURVES: list[Curve] = [[{METRIC: 0.5, "loss": 1.25}, {METRIC: 0.75, "loss": 0.5}], [{METRIC: 0.1, "loss": 2.0}] * 2]


def run(adapter: str, curves: Sequence[Curve] = CURVES, *, replicate: int = 0, seed: int = 0, **changes: Any) -> RunRecord:
    """Return a run of listed configurations."""
    flags = EXCLUDING if changes.pop("emulated", False) else ()
    spec = made_spec(adapter, sampler="fixed", listed=len(CURVES), epochs=2, replicate=replicate, seed=seed)
    return made_run(spec, curves, flags=flags, **changes)


def with_value(trial: int, epoch: int, metric: str, value: float | None) -> list[Curve]:
    """Return the curves with one value replaced."""
    curves = [[dict(metrics) for metrics in curve] for curve in CURVES]
    curves[trial][epoch - 1][metric] = value
    return [list(curve) for curve in curves]


def drawn(
    adapter: str,
    *,
    shift: float = 0.0,
    scores: float = 0.0,
    jct: float = 1000.0,
    seeds: Sequence[int] = range(12),
    failed: Sequence[int] = (),
    **more: Any,
) -> list[RunRecord]:
    """Return random searches of quality 0.9 and scores of 0.5, both with chance of their own, moved by the shifts."""
    flags = EXCLUDING if more.pop("emulated", False) else ()
    found = []
    for seed in seeds:
        chance = random.Random(f"{adapter} {more.get('replicate', 0)} {more.get('sampler', 'random')} {seed}")
        curves = [[{METRIC: 0.5 + scores + chance.gauss(0, 0.1)}] for _ in range(6)]
        spec = made_spec(adapter, seed=seed, **{"sampler": "random", **more})
        times = {"time.jct": jct + chance.gauss(0, 5)}
        made = made_run(spec, curves, 0.9 + shift + chance.gauss(0, 0.004), metrics=times, flags=flags)
        found.append(replace(made, status="failed", reason="planted", metrics={}) if seed in failed else made)
    return found


def counted(adapter: str, right: Sequence[int], more: float = 0.0) -> list[RunRecord]:
    """Return runs that differ in their seed and in how many of 360 test images they name right."""
    return [made_run(made_spec(adapter, seed=seed), [], count / 360 + more) for seed, count in enumerate(right)]


def control(*runs: RunRecord | list[RunRecord], analysis: Mapping[str, Any] = ANALYSIS) -> Results:
    records = [record for one in runs for record in (one if isinstance(one, list) else [one])]
    return results_of(records, planned(records), analysis, folder=Path("made"))


def stopped() -> Results:
    ended = made_spec("serial", sampler="fixed", listed=1, epochs=3, pruner="median")
    other = made_run(replace(ended, adapter="optuna"), [CURVES[0][:1]])
    return control(made_run(ended, CURVES[:1]), replace(other, trials=(replace(other.trials[0], state="pruned"),)))


def tested(*digests: str) -> Results:
    tests = [TestRecord(trial="t0", scores={}, tested_ns=1, checkpoint_sha256=digest) for digest in digests]
    return control(*(run(name, test=test) for name, test in zip(("serial", "optuna", "ray-tune"), tests, strict=True)))


def turned() -> RunRecord:
    made = run("optuna")
    return made_run(made.run_spec(), CURVES, trials=made.trials[::-1])


LOSS_9 = with_value(0, 1, "loss", 9.0)
CONTROLS: Mapping[str, Callable[[], Results]] = {
    "equal bits": lambda: control(turned(), run("serial"), run("ray-tune")),
    "a training that ends by itself": lambda: control(run("serial", [CURVES[0], CURVES[1][:1]]), run("optuna")),
    "a trial that was stopped": stopped,
    "the next number": lambda: control(
        run("serial"), run("optuna"), run("ray-tune", with_value(0, 2, "loss", math.nextafter(0.5, 1)))
    ),
    "a value that is not finite": lambda: control(run("serial"), run("optuna", with_value(0, 2, "loss", None))),
    "zeros of two signs": lambda: control(
        run("serial", with_value(0, 1, METRIC, 0.0)), run("optuna", with_value(0, 1, METRIC, -0.0))
    ),
    "a metric of one alone": lambda: control(run("serial"), run("optuna", with_value(1, 1, "another", 1.0))),
    "an emulated one differs": lambda: control(run("serial"), run("optuna"), run("katib", LOSS_9, emulated=True)),
    "an emulated one is first": lambda: control(run("katib", emulated=True), run("optuna"), run("ray-tune")),
    "they differ where the reference failed": lambda: control(
        *(run(name, seed=1) for name in ("serial", "optuna", "ray-tune")),
        run("serial", status="failed", reason="boom"),
        run("optuna"),
        run("ray-tune", with_value(0, 2, "loss", 0.9)),
    ),
    "a run is not done": lambda: control(run("serial"), run("optuna"), run("ray-tune", status="failed", reason="boom")),
    "nothing in common": lambda: control(run("serial"), run("optuna", [])),
    "the same entry again": lambda: control(
        *(run("serial", LOSS_9 if seed else CURVES, seed=seed, replicate=again) for seed in (0, 1) for again in (0, 1))
    ),
    "models that were tested": lambda: tested("aa", "aa", "bb"),
    "many values differ": lambda: control(run("serial"), run("optuna", [[{METRIC: 0.0, "loss": 0.0}] * 2] * 2)),
    "equal searches": lambda: control(drawn("serial"), drawn("optuna"), drawn("ray-tune")),
    "another quality": lambda: control(drawn("serial"), drawn("optuna"), drawn("broken", shift=-0.05)),
    "another quality within the margin": lambda: control(drawn("serial"), drawn("optuna", shift=0.006)),
    "another quality of two seeds": lambda: control(drawn("serial", seeds=[0, 1]), drawn("optuna", seeds=[0, 1], shift=0.02)),
    "the same images in two seeds": lambda: control(counted("serial", (320, 180)), counted("optuna", (315, 175))),
    "equal images but for rounding": lambda: control(counted("serial", (320, 180), 2**-53), counted("optuna", (320, 180))),
    "other scores": lambda: control(drawn("serial"), drawn("optuna"), drawn("skewed", scores=0.1)),
    "failed searches": lambda: control(
        drawn("serial", failed=[3]), drawn("optuna", failed=[3, 4]), drawn("ray-tune"), drawn("other", failed=[3])
    ),
    "a search again": lambda: control(drawn("serial"), drawn("serial", replicate=1), drawn("optuna")),
    "a search again that differs": lambda: control(drawn("serial"), drawn("serial", replicate=1, shift=0.1)),
    "an emulated search": lambda: control(drawn("serial"), drawn("optuna"), drawn("katib", emulated=True, shift=-0.5)),
    "effects": lambda: control(
        drawn("serial"), drawn("optuna", jct=1500), drawn("optuna", sampler="default", shift=0.03, jct=1600), drawn("ray-tune")
    ),
    "no margin of quality": lambda: control(drawn("serial"), drawn("optuna"), analysis={}),
    "a confidence that no interval has": lambda: control(
        drawn("serial"), drawn("optuna"), analysis={**ANALYSIS, "confidence": 0.3}
    ),
}

# --- filters ---

KNOWN = [listing("plain"), listing("optuna"), listing("ray-tune")]
KATIB = listing("katib", platforms=("kubernetes", "emulated"))
CLUSTER = listing("katib", platforms=("kubernetes",))
NO_MARGIN = {key: value for key, value in FROZEN.items() if key != "quality_margin"}


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What is asked of a folder. `known`: the adapters here; `faults`: what was found under faults."""

    folder: Callable[[], Answers]
    request: Mapping[str, Any]
    known: Sequence[AdapterListing]
    faults: Sequence[FaultResult]

    @property
    def request_of(self) -> Request:
        return Request(**self.request)


def asked(
    folder: Callable[[], Answers],
    known: Sequence[AdapterListing] = KNOWN,
    faults: Sequence[FaultResult] = (),
    **request: Any,
) -> Asked:
    return Asked(folder=folder, request=request, known=known, faults=faults)


def folder(*groups: tuple[str, Mapping[str, Any]], **more: Any) -> Callable[[], Answers]:
    """Return a folder by (adapter, what its runs are); `more`: of the folder."""
    return lambda: made_folder(*(runs_of(name, **of) for name, of in groups), **more)


def by_time(*adapters: str, **more: Any) -> Callable[[], Answers]:
    """Return a folder in which each adapter takes twice as long as the one before, and no margin says what is as good."""
    return folder(*((name, {"seconds": 2.0**place, **more}) for place, name in enumerate(adapters)), analysis=NO_MARGIN)


def of_size(name: str, workers: int, seconds: float = 1.0, **more: Any) -> tuple[str, Mapping[str, Any]]:
    return name, {"seconds": seconds, "workers": workers, "variant": {"workers.count": workers}, **more}


def sized(*sizes: tuple[int, float, float], **more: Any) -> Callable[[], Answers]:
    """Return a folder in which plain and optuna take so many seconds, by the number of workers."""
    groups = [
        of_size(name, workers, of) for workers, *seconds in sizes for name, of in zip(("plain", "optuna"), seconds, strict=True)
    ]
    return folder(*groups, **more)


def unfinished(waiting: int, begun: bool = False) -> Callable[[], Answers]:
    def made() -> Answers:
        optuna = [
            (
                spec,
                (replace(record, status="interrupted", reason="planted") if begun else None) if spec.seed < waiting else record,
            )
            for spec, record in runs_of("optuna")
        ]
        return made_folder(runs_of("plain"), optuna)

    return made


def fault(adapter: str, outcome: str | None, kind: str = "sigkill", by: str = "adapter", reason: str = "why") -> FaultResult:
    return FaultResult(adapter=adapter, setting=by, fault=kind, outcome=outcome, reason=reason, seconds=1.0, file="faults.json")


FAST = folder(("plain", {}), ("optuna", {"seconds": 2.0}), ("ray-tune", {"seconds": 2.01}))
EQUAL = folder(("plain", {"spread": 0.001}), ("optuna", {"spread": 0.001}))
ALONE = folder(("plain", {}))
EMULATED = folder(("plain", {}), ("katib", {"seconds": 0.1, "platform": "emulated"}))
MISSING = listing("optuna", state="missing", text="adapter 'optuna' needs the optuna package; run: pip install optuna")
SIGKILL = ("sigkill",)
STRUCK = [
    fault("plain", "recovered"),
    fault("optuna", "run aborted"),
    fault("optuna", "recovered", by="defaults"),
    fault('ray-tune{"storage":"redis"}', "trial lost"),
]
FILTERED: Mapping[str, Asked] = {
    "one is shown to be better": asked(FAST),
    "equal": asked(EQUAL),
    "weighed against each other": asked(folder(("plain", {"quality": 0.8}), ("optuna", {"seconds": 2.0}))),
    "not decided": asked(folder(("plain", {"spread": 0.5}), ("optuna", {"spread": 0.5}))),
    "nine seeds": asked(folder(("plain", {"seeds": SEEDS[:9]}), ("optuna", {"seconds": 99.0, "seeds": SEEDS[:9]}))),
    "the faster one fails": asked(folder(("plain", {"failed": (3,)}), ("optuna", {"seconds": 2.0}))),
    "the faster one fails, thirty seeds": asked(
        folder(
            ("plain", {"seeds": range(30), "failed": (3,), "spread": 0.001}),
            ("optuna", {"seconds": 2.0, "seeds": range(30), "spread": 0.001}),
        )
    ),
    "not by tuneoff": asked(FAST, known=[listing("plain", retry=Support.NOT_BY_TUNEOFF), *KNOWN[1:]], must_retry=True),
    "not on the platform": asked(FAST, known=[listing("plain", platforms=("cluster",)), *KNOWN[1:]], platform="local"),
    "not with the sampler": asked(
        FAST,
        known=[listing("plain", samplers={"random": Offer(support=Support.NOT_BY_FRAMEWORK, note="why")}), *KNOWN[1:]],
        sampler="random",
    ),
    "nobody": asked(FAST, known=[listing("plain", retry=Support.NOT_BY_FRAMEWORK)], must_retry=True),
    "of one sampler": asked(
        folder(("plain", {}), ("plain", {"sampler": "grid", "variant": {"sampler": "grid"}})),
        known=[listing("plain", samplers={"random": Offer(), "grid": Offer()})],
        sampler="grid",
    ),
    "able in one of two scopes": asked(
        folder(("plain", {}), ("plain", {"sampler": "grid", "variant": {"sampler": "grid"}})),
        known=[listing("plain", samplers={"random": Offer(), "grid": Offer()}), listing("optuna")],
    ),
    "only on a stand-in, where some failed": asked(
        folder(("plain", {}), ("katib", {"seconds": 0.1, "platform": "emulated", "failed": (3, 4)})),
        known=[*KNOWN, KATIB],
        platform="kubernetes",
    ),
    "a stand-in is asked for": asked(EMULATED, known=[*KNOWN, KATIB], platform="emulated"),
    "a stand-in beside": asked(EMULATED, known=[*KNOWN, KATIB]),
    "not installed here": asked(FAST, known=[KNOWN[0], MISSING, KNOWN[2]]),
    "neither installed nor measured": asked(ALONE, known=[KNOWN[0], MISSING]),
    "a package that a sampler needs": asked(
        folder(("plain", {"sampler": "cmaes"})),
        known=[listing("plain", samplers={"cmaes": Offer(needs=("no_such_module",))})],
        sampler="cmaes",
    ),
    "names that hold control characters": asked(
        folder(("<script>\nx", {}), ("plain", {})), known=[listing("<script>\nx"), KNOWN[0]]
    ),
    "the file's own pruner": asked(
        folder(("plain", {"pruner": "asha"}), ("optuna", {"pruner": "asha"})),
        known=[
            *(listing(name, pruners={"none": Offer(), "asha": Offer()}) for name in ("plain", "optuna")),
            listing("nevergrad"),
        ],
    ),
    "behind without a margin": asked(by_time("plain", "optuna", "ray-tune")),
    "behind the pool": asked(by_time("serial", "optuna")),
    "a cluster that was not asked for": asked(ALONE, known=[*KNOWN, CLUSTER]),
    "a cluster that was measured": asked(folder(("plain", {}), ("katib", {"platform": "kubernetes"})), known=[*KNOWN, CLUSTER]),
    "also here": asked(ALONE, known=[KNOWN[0], listing("both", platforms=("kubernetes", "local"))]),
    "begun": asked(unfinished(3, begun=True)),
    "beyond the trials": asked(FAST, trials=1000),
    "beyond the length": asked(FAST, trial_seconds=60.0),
    "between": asked(sized((1, 1, 2), (4, 1, 2), (16, 2, 1)), workers=2),
    "at a size": asked(sized((1, 1, 2), (4, 2, 1)), workers=4),
    "turned between": asked(sized((1, 1, 2), (4, 2, 1)), workers=2),
    "one of two tasks": asked(
        folder(
            *(
                (name, {"seconds": seconds, "workers": workers, "variant": {TASK: task}})
                for task, workers in {"narrow": 2, "wide": 4}.items()
                for name, seconds in (("optuna", 1.0), ("ray-tune", 2.0))
            )
        ),
        workers=4,
    ),
    "measured on one side": asked(folder(*(of_size(*at) for at in (("plain", 1), ("optuna", 1), ("plain", 4)))), workers=2),
    "nobody on both sides": asked(folder(of_size("optuna", 1), of_size("plain", 4)), workers=2),
    "other samplers do not surround": asked(
        folder(of_size("plain", 1), of_size("plain", 4, sampler="grid")),
        known=[listing("plain", samplers={"random": Offer(), "grid": Offer()})],
        workers=2,
    ),
    "faults": asked(FAST, faults=STRUCK, must_survive=SIGKILL),
    "faults by defaults": asked(FAST, faults=STRUCK, faults_by="defaults", must_survive=SIGKILL),
    "no part to strike": asked(
        FAST, faults=[fault("plain", None, reason=NO_SUCH_PART), fault("optuna", None)], must_survive=SIGKILL
    ),
    "silently wrong": asked(
        FAST,
        faults=[
            *(fault(name, "run aborted", kind) for name in ("plain", "optuna") for kind in ("nan", "inf", "none")),
            fault("optuna", "silently wrong", "late_report"),
            fault("ray-tune", "recovered", "none"),
        ],
        never_silently_wrong=True,
    ),
}
