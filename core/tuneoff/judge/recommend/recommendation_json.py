"""A recommendation as JSON values."""

from __future__ import annotations

from typing import Any

import msgspec

from tuneoff.judge.choice import choice_json
from tuneoff.judge.recommend.recommendation import Family, Recommendation, Weighed
from tuneoff.judge.recommend.recommendation_text import how_to_measure

ASKED = ("platform", "sampler", "pruner", "must_resume", "must_retry", "must_survive", "never_silently_wrong", "prefer")
OF_FAMILY = ("is_exact", "recommended", "dominated", "against", "without_margin", "differs", "unmeasured")
OF_SETTING = ("front", "is_judged", "dominances", "reasons")


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
            **_fields(request, ASKED),
            "faults_by": request.faults_by if request.needs_faults else None,
        },
        "recommended": list(dict.fromkeys(label for family in recommendation.families for label in family.recommended)),
        "settings": [_family(family) for family in recommendation.families],
        "outside": [
            {"of": one.family, "measured": _plain(dict(one.measured)), "beyond": list(one.beyond), "files": list(one.files)}
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
    return {"of": family.name, "measured": [_weighed(one) for one in family.weighed], **_fields(family, OF_FAMILY)}


def _weighed(one: Weighed) -> dict[str, Any]:
    place = {"folder": str(one.setting.folder), "scope": one.setting.scope.text, "sizes": _plain(dict(one.setting.sizes))}
    return {**place, **_fields(one, OF_SETTING)}


def _fields(one: Any, names: tuple[str, ...]) -> dict[str, Any]:
    return {name: _plain(getattr(one, name)) for name in names}


def _plain(value: Any) -> Any:
    return msgspec.json.decode(msgspec.json.encode(value, enc_hook=str))  # of what JSON has not there are paths alone
