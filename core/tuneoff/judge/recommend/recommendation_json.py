"""A recommendation as JSON values."""

from __future__ import annotations

from typing import Any

from tuneoff.judge.choice import choice_json
from tuneoff.judge.recommend.recommendation import Family, Reason, Recommendation, Weighed
from tuneoff.judge.recommend.recommendation_text import how_to_measure


def to_json(recommendation: Recommendation) -> dict[str, Any]:
    """Return everything that the text says, and the runs by folder, run id and execution id."""
    request = recommendation.request
    return {
        "exit_code": recommendation.exit_code,
        "unfinished": [
            {"folder": str(folder.resolve()), "waiting": one.waiting, "planned": one.planned}
            for folder, one in recommendation.unfinished.items()
        ],
        "answer": [line.strip() for line in recommendation.headline],
        "choices": [choice_json.to_json(choice) for choice in recommendation.choices],
        "folders": [str(folder.resolve()) for folder in recommendation.folders],
        "asked": {
            **request.asked,
            "platform": request.platform,
            "sampler": request.sampler,
            "pruner": request.pruner,
            "must_resume": request.must_resume,
            "must_retry": request.must_retry,
            "must_survive": list(request.must_survive),
            "never_silently_wrong": request.never_silently_wrong,
            "faults_by": request.faults_by if request.needs_faults else None,
            "prefer": request.prefer,
        },
        "recommended": list(dict.fromkeys(label for family in recommendation.families for label in family.recommended)),
        "settings": [_family(family) for family in recommendation.families],
        "outside": [
            {
                "of": one.family,
                "measured": {name: list(ends) for name, ends in one.measured},
                "beyond": list(one.beyond),
                "files": list(one.files),
            }
            for one in recommendation.outside
        ],
        "capable": [one.adapter for one in recommendation.capable],
        "notes": {one.adapter: list(one.notes) for one in recommendation.capable if one.notes},
        "left_out": {
            one.adapter: [{"kind": obstacle.kind.value, "reason": obstacle.text} for obstacle in one.obstacles]
            for one in recommendation.excluded
        },
        "not_measured": list(recommendation.not_measured),
        "only_emulated": [{"adapter": one.adapter, "label": one.label, "runs": one.runs} for one in recommendation.on_stand_ins],
        "how_to_measure": list(how_to_measure(recommendation)),
    }


def _family(family: Family) -> dict[str, Any]:
    return {
        "of": family.name,
        "is_exact": family.is_exact,
        "recommended": list(family.recommended),
        "dominated": list(family.dominated),
        "against": [
            {"one": pair.one, "other": pair.other, "better": list(pair.better), "worse": list(pair.worse)}
            | {"undecided": list(pair.undecided), "is_everywhere": pair.is_everywhere, "failed_less": pair.failed_less}
            for pair in family.against
        ],
        "without_margin": dict(family.without_margin),
        "measured": [_weighed(one) for one in family.weighed],
        "differs": [_reason(reason) for reason in family.differs],
        "unmeasured": list(family.unmeasured),
    }


def _weighed(one: Weighed) -> dict[str, Any]:
    return {
        "folder": str(one.setting.folder),
        "scope": one.setting.scope.text,
        "sizes": {name: list(ends) for name, ends in one.setting.sizes.items()},
        "front": list(one.front),
        "is_judged": one.is_judged,
        "dominances": [
            {
                "one": dominance.one,
                "other": dominance.other,
                "better": [verdict.question.name for verdict in dominance.better],
                "as_good": [verdict.question.name for verdict in dominance.as_good],
                "without_figures": list(dominance.without_figures),
            }
            for dominance in one.dominances
        ],
        "reasons": [_reason(reason) for reason in one.reasons],
    }


def _reason(reason: Reason) -> dict[str, Any]:
    runs = [{"folder": str(run.folder), "run_id": run.run_id, "execution_id": run.execution_id} for run in reason.runs]
    return {"text": reason.text, "runs": runs}
