"""How it was measured: meter, carbon and prices, the frozen analysis, and by which digests it can be checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tuneoff.base.identity import canonical_json
from tuneoff.judge.answers.answer import Answers
from tuneoff.judge.results import Results
from tuneoff.tell.page.environment import Facts
from tuneoff.tell.page.texts import confidence
from tuneoff.tell.report.accounting_sources import Circumstances

APART = frozenset(("comparisons", "power", "carbon", "prices", "questions", "anchors"))  # shown otherwise, or too long
KEPT = 160  # characters of a value


def basis(results: Results, answers: Answers, circumstances: Circumstances) -> list[Facts]:
    """Return what the figures rest on."""
    plan = results.plan
    meters = circumstances.meters or ("no run has samples of a meter",)
    return [
        Facts(title="Measured by", rows=(("meter", meters), ("charged by", circumstances.accounting or ("nothing",)))),
        Facts(title="Judged by", rows=tuple(_judged(answers))),
        Facts(
            title="Frozen before the first run",
            rows=tuple((_name(key), (_value(value),)) for key, value in answers.analysis.items() if key not in APART),
        ),
        Facts(
            title="Identity",
            rows=(
                ("file", (plan.path,)),
                ("plan", (plan.plan_id,)),
                ("analysis", (plan.analysis_digest,)),
                ("check it", (f"tuneoff verify {results.folder.name}",)),
            ),
        ),
    ]


def _judged(answers: Answers) -> list[tuple[str, tuple[str, ...]]]:
    questions = tuple(f"{one.name}: {one.metric}, margin {one.margin_text or 'none'}" for one in answers.questions)
    looks = ", ".join(map(str, answers.looks)) or "once, when all planned seeds have ended"
    return [
        ("questions", questions or ("none",)),
        ("confidence", (f"{confidence(answers.confidence)} for a family of {answers.family_size} comparisons, by Bonferroni",)),
        ("looks", (looks,)),
    ]


def _name(key: str) -> str:
    return key.replace("_", " ")


def _value(value: Any) -> str:
    if isinstance(value, list) and all(isinstance(one, str | int) for one in value):
        text = ", ".join(map(str, value)) or "none"
    elif isinstance(value, str | int | float):
        text = str(value)
    else:
        text = canonical_json(dict(value) if isinstance(value, Mapping) else value)
    return text if len(text) <= KEPT else f"{text[:KEPT]} ..."
