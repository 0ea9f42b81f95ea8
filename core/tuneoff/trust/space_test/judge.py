"""From what one adapter drew to its verdict: what is certain first, then all p-values together."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from tuneoff.base.findings import Finding
from tuneoff.base.space import Dimension, SearchSpace, describe
from tuneoff.trust.space_test.draw import WHOLE
from tuneoff.trust.space_test.statistics import (
    FALSE_DISCOVERY_RATE,
    Test,
    ValuePlaces,
    distribution_test,
    ends_test,
    independence_tests,
    rejection_threshold,
)

Configurations = Sequence[Mapping[str, Any]]
FEWEST_DRAWS = 100  # of a dimension; with fewer nothing is tested
CHANCE_REPEATS = 1e-6  # expected equal configurations by chance, above which a repeat proves nothing

SpaceCheck = Literal["draws", "bounds", "received", "mapping", "seeds", "distribution", "ends", "independence"]
SpaceVerdict = Literal["accepted", "rejected", "failed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SpaceJudgement:
    """An adapter's verdict with everything that led to it."""

    verdict: SpaceVerdict
    source: str
    seeds: tuple[int, ...]
    findings: tuple[Finding, ...] = ()
    draws: int = 0
    tests: tuple[Test, ...] = ()
    threshold: float = 0.0  # p-values up to this one are rejected
    outside: Mapping[str, int] = field(default_factory=dict)  # draws outside, by dimension
    mapping_tested: bool = False
    notes: tuple[str, ...] = ()  # what was not tested, and why

    @property
    def p_values(self) -> list[float]:
        return [test.p for test in self.tests if test.p is not None]

    def rejected(self, test: Test) -> bool:
        return test.p is not None and test.p <= self.threshold


_DEPARTURES = {
    "distribution": "the values do not follow core's distribution",
    "ends": "the ends do not have their probability",
    "independence": "the two depend on each other",
}


def judge(space: SearchSpace, sample: Sample, rate: float = FALSE_DISCOVERY_RATE) -> SpaceJudgement:
    """Return the verdict on what an adapter drew from `space`.

    Certain findings reject at once: a value outside, a translation that is wrong, a seed that is ignored. All p-values of the
    adapter are one family: its verdict does not depend on which others are tested beside it.
    """
    findings = []
    if sample.failure is not None:
        findings.append(_rejected("draws", sample.failure))
    if sample.outside is not None:
        findings.append(_rejected("bounds", f"the framework left the space: {sample.outside}"))
    if sample.changed:
        text = f"{sample.changed} trials got another configuration than the one that was handed over"
        findings.append(_rejected("received", text))
    for name, texts in (sample.mapping or {}).items():
        findings += [_rejected("mapping", text, *((name,) if name != WHOLE else ())) for text in texts]
    notes = [sample.note] if sample.note else []
    if sample.mapping is None and sample.failure is None:
        notes.append(f"the mapping was not tested: {sample.mapping_text}")
    configurations = sample.configurations
    tests: list[Test] = []
    outside: dict[str, int] = {}
    if sample.failure is None and sample.outside is None:  # else what was drawn until then is not a fair sample
        repeated = _seed_findings(space, sample, notes)
        different = {_text(configuration): configuration for configuration in configurations}
        # Copies are no further evidence on the distribution.
        columns, outside, beyond = _columns(space, list(different.values()) if repeated else configurations)
        findings += [*repeated, *beyond]
        tested: dict[str, Dimension] = {}
        for name, dimension in space.searched.items():
            column = columns[name]
            if len(column) < FEWEST_DRAWS:
                notes.append(f"{name}: {len(column)} draws inside are fewer than the {FEWEST_DRAWS} that a test needs")
                continue
            ends = ends_test(name, dimension, column)
            tests += [distribution_test(name, dimension, column), *([ends] if ends is not None else [])]
            if name not in outside:
                tested[name] = dimension
        tests += independence_tests(tested, columns)
    threshold = rejection_threshold([test.p for test in tests if test.p is not None], rate)
    for test in tests:
        if test.p is None or test.p > threshold:
            continue
        of = " and ".join(f"{name} ({describe(space.dimensions[name])})" for name in test.names)
        text = f"{of}: {_DEPARTURES[test.kind]}: {test.method}, p = {test.p:.2g}"
        if test.ends is not None:
            (low, low_expected), (high, high_expected) = test.ends
            text += f"; {low} draws at the low end ({low_expected:.0f} expected), {high} at the high end ({high_expected:.0f})"
        findings.append(_rejected(test.kind, text, *test.names, p=test.p))
    return SpaceJudgement(
        verdict="failed" if sample.failure is not None else "rejected" if findings else "accepted",
        source=sample.source,
        seeds=tuple(sample.by_seed),
        findings=tuple(findings),
        draws=len(configurations),
        tests=tuple(tests),
        threshold=threshold,
        outside=outside,
        mapping_tested=sample.mapping is not None,
        notes=tuple(notes),
    )


def _rejected(check: SpaceCheck, text: str, *dimensions: str, p: float | None = None) -> Finding:
    """Return a reason to reject: of which dimensions (none: of the whole); `p` is None where it is certain."""
    return Finding(verdict="failed", id=check, text=text, values={"dimensions": dimensions, "p": p})


def _columns(
    space: SearchSpace, configurations: Sequence[Mapping[str, Any]]
) -> tuple[dict[str, list[float]], dict[str, int], list[Finding]]:
    """Return the places of the values inside by dimension, how many were not, and one finding per dimension with such."""
    columns: dict[str, list[float]] = {name: [] for name, _ in space}
    finders = {name: ValuePlaces(dimension) for name, dimension in space}
    outside: dict[str, int] = {}
    examples: dict[str, str] = {}
    strangers: set[str] = set()
    for configuration in configurations:
        strangers |= set(configuration) - set(columns)
        for name, find in finders.items():
            position = find(configuration[name]) if name in configuration else None
            if position is not None:
                columns[name].append(position)
            else:
                outside[name] = outside.get(name, 0) + 1
                examples.setdefault(name, repr(configuration[name]) if name in configuration else "no value at all")
    findings = [
        _rejected(
            "bounds",
            f"{count} of {len(configurations)} values are outside {describe(space.dimensions[name])}: {examples[name]}",
            name,
        )
        for name, count in outside.items()
    ]
    if strangers:
        findings.append(_rejected("bounds", f"the draws name what is not in the space: {', '.join(sorted(strangers))}"))
    return columns, outside, findings


def _seed_findings(space: SearchSpace, sample: Sample, notes: list[str]) -> list[Finding]:
    """Look for configurations that come again: under other seeds they must not, under the same seed they must."""
    findings = []
    if sample.again is not None:
        first = next(iter(sample.by_seed.items()))
        equal = sum(_text(original) == _text(repeat) for original, repeat in zip(first[1], sample.again, strict=False))
        if equal < len(sample.again):
            text = (
                f"seed {first[0]} was drawn twice, and {len(sample.again) - equal} of {len(sample.again)} configurations differ"
            )
            findings.append(_rejected("seeds", text))
    drawn = len(sample.configurations)
    if space.cardinality is not None and drawn * drawn / (2 * space.cardinality) > CHANCE_REPEATS:
        notes.append("repeats were not tested: the space is so small that configurations come again by chance")
        return findings
    seen: dict[str, int] = {}
    shared: Counter[tuple[int, int]] = Counter()
    for seed, configurations in sample.by_seed.items():
        texts = Counter(map(_text, configurations))
        if len(texts) < len(configurations):
            text = f"under seed {seed} only {len(texts)} of {len(configurations)} configurations are different"
            findings.append(_rejected("seeds", text))
        shared.update((before, seed) for text in texts if (before := seen.setdefault(text, seed)) != seed)
    for (before, seed), count in shared.items():
        findings.append(_rejected("seeds", f"seeds {before} and {seed} gave {count} equal configurations"))
    return findings


def _text(configuration: Mapping[str, Any]) -> str:
    return json.dumps(dict(configuration), sort_keys=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The draws of one adapter, before any judgement.

    `source`: "sampler", from `Adapter.draw`; "runs", received by the trials of real runs, which are fewer; `note` says why.
    `again`: the first draws of the first seed once more, from a fresh process; None where that was not done (`runs`).
    `outside`: the error with which core's or the adapter's own translation refused a value; `failure`: why there are no draws.
    `changed`: trials that got another configuration than was handed over for them (`runs`).
    `mapping`: what is wrong with the translation by dimension; None where it could not be tested, `mapping_text` says why.
    """

    source: Literal["sampler", "runs"] = "sampler"
    note: str = ""
    by_seed: Mapping[int, Configurations]
    again: Configurations | None = None
    outside: str | None = None
    failure: str | None = None
    changed: int = 0
    mapping: Mapping[str, Sequence[str]] | None = None
    mapping_text: str = ""

    @property
    def configurations(self) -> list[Mapping[str, Any]]:
        return [configuration for drawn in self.by_seed.values() for configuration in drawn]
