"""Results folders and adapters made by hand: nothing is run."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from builders.made_results import ANALYSIS
from builders.made_runs import made_run, made_spec, planned_run, results_of
from tuneoff.adapter import Adapter, Capabilities, Offer, Support
from tuneoff.base.capabilities import State
from tuneoff.experiment.spec import RunSpec, Workers
from tuneoff.judge.answers.answer import Answers
from tuneoff.judge.answers.compute import answers
from tuneoff.judge.results import Results
from tuneoff.record.flag_meanings import EXCLUDING
from tuneoff.record.run_record import RunRecord
from tuneoff.registry import AdapterClass, AdapterListing, Plugin

FILE = "made.yaml"
SEEDS = tuple(range(10))
FROZEN: Mapping[str, Any] = {name: value for name, value in ANALYSIS.items() if name != "format"}
MACHINE: Mapping[str, Any] = {
    "cpu": {"vendor": "V", "family": 6, "model": 1, "name": "Processor", "stepping": 1, "logical_count": 2},
    "machine": "x86_64",
    "cpus_available": [0, 1],
    "versions": {"tuneoff": "0.1.0", "numpy": "2.0"},
    "machine_before": {"load_1min": 0.0, "sentinel_ns": 1000},
}


def runs_of(
    adapter: str,
    *,
    seconds: float = 1.0,
    quality: float = 0.9,
    seeds: Sequence[int] = SEEDS,
    failed: Sequence[int] = (),
    trial_seconds: float = 0.5,
    workers: int = 2,
    spread: float = 0.01,
    platform: str = "local",
    **more: Any,
) -> list[tuple[RunSpec, RunRecord]]:
    """Return runs with times around `seconds` (log-normal, by `spread`) and a quality around `quality`, by seed."""
    found = []
    for seed in seeds:
        chance = random.Random(f"{adapter} {seed}")
        spec = replace(made_spec(adapter, seed=seed, workers=Workers(count=workers), **more), platform=platform)
        metrics = {
            "time.jct": 1000 * seconds * chance.lognormvariate(0, spread),
            "trial_execution.median": 1000 * trial_seconds,
        }
        curves = [[{"validation_accuracy": 0.5 + seed / 100}]]
        flags = EXCLUDING if spec.platform == "emulated" else ()
        value = quality + chance.gauss(0, spread / 10)
        record = made_run(spec, curves, value, metrics=metrics, environment=dict(MACHINE), flags=flags)
        if seed in failed:
            record = replace(record, status="failed", reason="planted", charged="framework", metrics={})
        found.append((spec, record))
    return found


def made_results(
    *groups: Sequence[tuple[RunSpec, RunRecord | None]],
    folder: Path = Path("made"),
    analysis: Mapping[str, Any] = FROZEN,
) -> Results:
    """Return what `read_results` would; runs on platform `emulated` have the flag that keeps them out of comparisons."""
    runs = [one for group in groups for one in group]
    planned = [planned_run(spec) for spec, _ in runs]
    seeds = sorted({spec.seed for spec, _ in runs})
    records = [record for _, record in runs if record is not None]
    return results_of(records, planned, folder=folder, analysis={**analysis, "seeds": seeds})


def made_folder(*groups: Sequence[tuple[RunSpec, RunRecord | None]], **more: Any) -> Answers:
    """Return the answers of a results folder."""
    return answers(made_results(*groups, **more))


def listing(name: str, *, state: State = "ready", text: str = "", **declared: Any) -> AdapterListing:
    """Return an adapter that offers random search and resumes, unless declared otherwise."""
    offers = {"samplers": {"random": Offer()}, "pruners": {"none": Offer()}, "retry": Support.YES}
    capabilities = Capabilities(framework=name.title(), install=f"{name}-library", **{**offers, **declared})
    plugin = Plugin(name=name, target=f"{name}:Adapter")
    adapter: AdapterClass = type(name, (Adapter,), {"capabilities": capabilities})
    return AdapterListing(plugin=plugin, state=state, text=text, framework=name.title(), adapter=adapter)
