"""What could change the choice, worst first, one short line each, and the command that would decide it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tuneoff.base.clock import MILLISECONDS
from tuneoff.base.commands import command
from tuneoff.base.format import counted, listed
from tuneoff.experiment.plan import Plan
from tuneoff.experiment.seeds import seeds_text
from tuneoff.judge.answers.answer import Answers, EstimatedGroup
from tuneoff.judge.answers.caveats import added, failed_before
from tuneoff.judge.answers.judging import FEWEST_SEEDS
from tuneoff.judge.answers.run_values import disturbance, why_unknown
from tuneoff.judge.choice.choice import Certainty, Deciding, Setting
from tuneoff.judge.controls.compute import controls
from tuneoff.judge.results import Results
from tuneoff.measure.incumbent import NO_TEST
from tuneoff.record.flag_meanings import WRONG_RESULT
from tuneoff.record.run_record import TrialRecord
from tuneoff.run.run_ends import UNFINISHED

WITHOUT_MODEL = "sampler_without_model"
MOST_SEEDS = 100  # more are no advice
WHOLE = "time.jct"


@dataclass(frozen=True, slots=True, kw_only=True)
class Unfinished:
    """How many runs of a folder have not ended."""

    waiting: int
    planned: int

    @property
    def text(self) -> str:
        return f"{self.waiting} of {counted(self.planned, 'run')} {'has' if self.waiting == 1 else 'have'} not ended"


def unfinished(answers: Answers) -> Unfinished | None:
    """Return how many runs have not ended; None: all have."""
    waiting = sum(answers.statuses.get(status, 0) for status in UNFINISHED)
    return Unfinished(waiting=waiting, planned=sum(answers.statuses.values())) if waiting else None


def caveat_lines(results: Results, answers: Answers, settings: Sequence[Setting]) -> Iterator[str]:
    """Yield the caveats of a folder; `settings`: of its choice, the main one first."""
    groups = [group for group in answers.groups if group.same_as is None]
    names = {row.label: row.name for setting in settings for row in setting.rows}
    if controls(results).contradicts:
        shown = command("controls", results.folder)
        yield f"The same configurations or the same algorithm gave other results by framework: {shown}"
    if waiting := unfinished(answers):
        yield f"{waiting.text}."
    yield from added(results)
    yield from _disturbed(results, groups, is_over=waiting is None)
    for flag, meaning in WRONG_RESULT.items():
        if text := _flagged(groups, names, flag):
            yield f"{text}: {meaning}."
    if text := _flagged(groups, names, WITHOUT_MODEL):
        yield f"{text}: too few trials for the sampler's model, so this was random search."
    if any(NO_TEST in group.estimates["quality.test"].reasons for group in groups):
        yield f"Quality is of validation, which the choice of the best trial favours: {NO_TEST}."
    failed = [f"{count} of {names.get(group.label, group.label)}" for group in groups if (count := _failed(group))]
    if failed:
        yield f"Runs failed: {listed(failed)}; a failed run counts as worse than any other."
    yield from failed_before(results, groups, names)
    yield from _failed_trials(groups, names)
    emulated = list(dict.fromkeys(names.get(group.label, group.label) for group in groups if group.emulated))
    if emulated:
        yield f"{listed(emulated)} ran on an emulated platform: in no comparison."
    estimated = [question.name for question in answers.questions if any(group.is_estimated(question.metric) for group in groups)]
    if estimated:
        yield f"Estimated by a model, not measured (~): {listed(estimated)}."


def _disturbed(results: Results, groups: Sequence[EstimatedGroup], *, is_over: bool) -> Iterator[str]:
    """Say that times are wrong; `is_over`: all runs have ended, so that these can be repeated."""
    runs = [run for group in groups if not group.emulated for run in group.runs]
    found = disturbance(runs)
    if found.disturbed:
        unknown = f", and it is unknown in {len(found.unknown)}" if found.unknown else ""
        way_out = (
            f" To repeat their seeds: {results.plan.resume_command(results.folder, '--retry', 'flagged')}" if is_over else ""
        )
        yield (
            f"Other programs were busy in {len(found.disturbed)} of {counted(len(found.runs), 'run')}{unknown}: "
            f"times are too long, differences and ratios may be wrong too.{way_out}"
        )
    elif found.unknown:
        yield (
            f"Whether other programs were busy is unknown in {len(found.unknown)} of {counted(len(found.runs), 'run')} "
            f"({why_unknown(runs)}): times may be too long."
        )


def _flagged(groups: Sequence[EstimatedGroup], names: dict[str, str], flag: str) -> str:
    """Return who has a flag in how many runs: `Optuna, tpe, 10 of 10 runs`; "" for nobody."""
    flagged: dict[str, list[tuple[str, int, int]]] = {}
    for group in groups:
        ended = [run for run in group.runs if run.execution_id is not None]
        if count := sum(flag in run.flags for run in ended):
            flagged.setdefault(group.label, []).append((group.scope.text, count, len(ended)))
    found = []
    for label, scopes in flagged.items():
        (text, count, runs), *others = scopes
        where = f"{text}, {count} of {counted(runs, 'run')}" if not others else f"in {counted(len(scopes), 'setting')}"
        found.append(f"{names.get(label, label)}, {where}")
    return "; ".join(found)


def _failed(group: EstimatedGroup) -> int:
    return sum(run.is_failure for run in group.runs)


def _failed_trials(groups: Sequence[EstimatedGroup], names: dict[str, str]) -> Iterator[str]:
    """Say how many trials failed in runs that are done, and why most of them did."""
    found: dict[str, list[TrialRecord]] = {}
    for group in groups:
        done = [run.record for run in group.runs if run.record is not None and run.status == "done"]
        found.setdefault(names.get(group.label, group.label), []).extend(trial for record in done for trial in record.trials)
    failed = {name: [trial for trial in trials if trial.state == "failed"] for name, trials in found.items()}
    if causes := Counter(trial.cause for trials in failed.values() for trial in trials):
        who = listed([f"{len(trials)} of {len(found[name])} of {name}" for name, trials in failed.items() if trials])
        yield f"Trials failed: {who}; most often: {causes.most_common(1)[0][0]}."


def deciding(results: Results, answers: Answers, settings: Sequence[Setting]) -> Deciding | None:
    """Return what would decide the main setting; None where it is decided, or no number of seeds that is reasonable would."""
    if not settings or settings[0].certainty not in (Certainty.DESCRIBED, Certainty.NOT_DECIDED):
        return None
    seeds = results.plan.seeds
    needed = _needed(answers, settings[0], len(seeds) - len(results.plan.added_seeds))
    if needed is None or not seeds or results.plan.is_of_bundle:
        return None
    return Deciding(
        command=results.plan.compare_command(results.folder, seeds=more_seeds(results.plan, needed)),
        seconds=_seconds(results, len(seeds), needed),
    )


def more_seeds(plan: Plan, needed: int) -> list[str]:
    """Return as many seeds as are needed, those of a plan first, as `--seeds` takes them."""
    seeds = plan.seeds
    return [seeds_text([*seeds, *(seed for seed in range(needed + len(seeds)) if seed not in seeds)][:needed])]


def _needed(answers: Answers, setting: Setting, planned: int) -> int | None:
    if setting.certainty is Certainty.DESCRIBED:
        return FEWEST_SEEDS if planned < FEWEST_SEEDS else None
    found = [
        verdict.seeds_to_decide
        for verdict in answers.verdicts
        if not verdict.is_noise
        and verdict.scope in setting.scopes
        and {verdict.one, verdict.other} <= set(setting.chosen)
        and verdict.question.metric.startswith("time.")
    ]
    known = [number for number in found if number is not None and planned < number <= MOST_SEEDS]
    return max(known, default=None)


def _seconds(results: Results, planned: int, needed: int) -> float | None:
    """Return the time of all runs in sequence, with one warm-up each, by those that are done."""
    totals = [
        value.value
        for run in results.planned
        if (record := results.standing.get(run.run_id)) is not None
        and (value := record.metrics.get(WHOLE)) is not None
        and value.value is not None
    ]
    return sum(totals) / MILLISECONDS / planned * (needed + 1) if totals else None
