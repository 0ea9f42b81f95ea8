"""The best trial as the framework names it, and its test: its own checkpoint, once, by nobody else."""

from __future__ import annotations

from collections.abc import Iterator

from tuneoff.base.findings import Finding, check, judged, not_tested, out_of_reach
from tuneoff.base.identity import is_finite
from tuneoff.record.derive import VALUE_TOLERANCE
from tuneoff.record.events import schema
from tuneoff.record.run_record import TrialRecord
from tuneoff.run.trial.checkpoint import checkpoint_path, read_checkpoint
from tuneoff.trust.check.evidence import AdapterEvidence, FinishedRun, run_check

BOTH = ("honest-max", "honest-min")
ODD = "odd-values"
RUN = "honest-max"
READ = (RUN, "honest-min", "scripted")
NOT_NAMED = "optimum_not_completed"  # flag: the framework named none that completed, and core's best completed one was taken


def _named(run: FinishedRun) -> TrialRecord | None:
    """Return the trial that the framework named, or None: it named none, or one that does not exist."""
    best = run.record.best
    return next((trial for trial in run.record.trials if best is not None and trial.trial == best.trial), None)


@run_check(
    "best.among-trials",
    rule="the named best trial is one of the run's",
    reason="only a trial of the run has a checkpoint that can be tested",
    way_out="return Best with the id under which the trial was submitted",
    reads=BOTH,
)
def _among(run: FinishedRun) -> Iterator[str]:
    best = run.record.best
    if best is None or best.trial is None:
        yield f"{run.name}: no trial was named, though {len(run.record.trials)} ran"
    elif _named(run) is None:
        yield f"{run.name}: {best.trial!r} was named, which is not a trial of the run"


def _values(run: FinishedRun) -> list[float]:
    return [trial.value for trial in run.record.trials if trial.state == "completed" and trial.value is not None]


def _ends(run: FinishedRun) -> tuple[float, float]:
    """Return the best and the worst value of the completed trials."""
    values = _values(run)
    best, worst = max(values), min(values)
    return (best, worst) if run.experiment.objective.mode == "max" else (worst, best)


def _judged_if_named(problems: list[str], evidence: AdapterEvidence) -> Finding:
    """Return a failure that names the problems; a pass only where each honest run named one of its trials."""
    if not problems and any(_named(run) is None for run in evidence.some(*BOTH)):
        return not_tested("no trial was named: see best.among-trials")
    return judged(problems)


def _worst_named(evidence: AdapterEvidence) -> tuple[list[str], bool]:
    """Return where the worst trial was named, and whether the runs together show a reversed direction.

    An adapter that turns the direction around names the worst in both, one that ignores it the worst in one and the best in the
    other. One that names, say, the last trial may meet the worst in one run, but then hardly an end of the other.
    """
    problems, is_reversed = [], True
    for run in evidence.some(*BOTH):
        named, (best, worst) = _named(run), _ends(run)
        if named is None or best == worst:
            continue
        if named.value == worst:
            problems.append(f"{run.name}: the worst trial, {named.trial} with {worst:.6g}, was named as the best")
        is_reversed = is_reversed and named.value in (best, worst)
    return problems, bool(problems) and is_reversed


@check(
    "best.is-best",
    rule="no other completed trial has a better value",
    reason="what is tested has to be what the framework found",
    way_out="name the completed trial with the best value over its epochs, not the last one",
    reads=BOTH,
)
def _is_best(evidence: AdapterEvidence) -> Finding:
    if _worst_named(evidence)[1]:
        return not_tested("the worst trial was named: see best.direction")
    problems = []
    for run in evidence.some(*BOTH):
        named, (best, _) = _named(run), _ends(run)
        if named is not None and named.value not in (best, None):
            problems.append(f"{run.name}: {named.trial} with {named.value:.6g} was named, but {best:.6g} was reached")
    return _judged_if_named(problems, evidence)


@check(
    "best.direction",
    rule="under `min` and under `max`: the best is named, not the worst",
    reason="a framework that is asked to maximize a loss looks bad through no fault of its own",
    way_out="give the framework objective.mode, and compare by objective.is_better",
    reads=BOTH,
)
def _direction(evidence: AdapterEvidence) -> Finding:
    problems, is_reversed = _worst_named(evidence)
    if problems and not is_reversed:
        return not_tested("the worst trial was named, but not as under a reversed direction: see best.is-best")
    return _judged_if_named(problems, evidence)


@check(
    "best.ties",
    rule="of equal best values one is named",
    reason="equal values must not lead to a third trial",
    way_out="keep the first of equal values; do not rely on sorting what cannot be compared",
    reads=(ODD,),
)
def _ties(evidence: AdapterEvidence) -> Finding:
    run = evidence.runs[ODD]
    named, (best, _) = _named(run), _ends(run)
    if _values(run).count(best) < 2:
        return not_tested("no two trials had the same best value")
    if named is None:
        return judged([f"of the trials with {best:.6g} none was named"])
    wrong = named.state == "completed" and named.value != best
    return judged([f"{named.trial} with {named.value} was named, but two trials have {best:.6g}"] if wrong else [])


@run_check(
    "best.nan",
    rule="a trial without a finite value is never named, and does not hide the best one",
    reason="every comparison with NaN is false, so a careless maximum keeps it",
    way_out="report a trial without a finite value to the framework as failed, and never compare its value",
    reads=(ODD, "faulty"),
)
def _nan(run: FinishedRun) -> Iterator[str]:
    named, best = _named(run), run.record.best
    if named is not None and not is_finite(named.value):
        yield f"{run.name}: {named.trial} was named, which {named.state} without a finite value"
    elif best is not None and best.framework_value is not None and not is_finite(best.framework_value):
        yield f"{run.name}: the value of the best trial was said to be {best.framework_value}"
    elif run.name == "faulty" and named is None:
        yield f"{run.name}: no trial was named, though {len(_values(run))} completed"


@run_check(
    "best.completed-only",
    rule="a pruned trial is never named, however good it was",
    reason="a pruned trial was not trained as long as the others",
    way_out="leave trials out that did not train all planned epochs",
    reads=("scripted",),
)
def _completed(run: FinishedRun) -> Iterator[str]:
    named = _named(run)
    if named is not None and named.state != "completed":
        yield f"{named.trial} was named, which was {named.state}"


@check(
    "best.value",
    rule="the framework's value of it is that of its best epoch, not of its last",
    reason="a trial's value is that of its best epoch, whose checkpoint is kept",
    way_out="set the framework's summary of a trial to the best of its reports, not the last",
    reads=BOTH,
)
def _value(evidence: AdapterEvidence) -> Finding:
    problems = []
    for run in evidence.some(*BOTH):
        named, best = _named(run), run.record.best
        if named is None or best is None or named.value is None or best.framework_value is None:
            continue
        if abs(best.framework_value - named.value) > VALUE_TOLERANCE * max(1.0, abs(named.value)):
            text = f"{named.trial} was said to have {best.framework_value:.6g}, but its best epoch has {named.value:.6g}"
            problems.append(f"{run.name}: {text}")
    return _judged_if_named(problems, evidence)


@run_check(
    "best.by-framework",
    rule="the framework names the best trial itself: it has metrics of completed trials",
    reason="a framework without metrics searches blindly; the best trial that core then takes hides it",
    way_out="give each epoch's objective where the framework looks for it; for Katib's collector: in the file that it reads",
    reads=BOTH,
)
def _by_framework(run: FinishedRun) -> Iterator[str]:
    yield from (f"{run.name}: {flag.text}" for flag in run.record.flags if flag.name == NOT_NAMED)


@run_check(
    "test.best-tested",
    rule="the named best trial is the one that is tested, once",
    reason="the headline is the test score of what the framework chose",
    way_out="inherit Adapter.test",
    reads=(RUN, "honest-min"),
)
def _best_tested(run: FinishedRun) -> Iterator[str]:
    best, tested = run.record.best, run.of(schema.Tested)
    if len(tested) != 1:
        yield f"{run.name}: {len(tested)} tests were recorded, not 1"
    elif best is not None and tested[0].trial != best.trial:
        yield f"{run.name}: {tested[0].trial} was tested, but {best.trial} was named"


@check(
    "test.split-unseen",
    rule="no trial reads the test split",
    reason="a choice that saw the test split is untested",
    way_out="let trials train and validate only; run_trial does",
    reads=READ,
    needs_all=False,
)
def _unseen(evidence: AdapterEvidence) -> Finding:
    problems = []
    for run in evidence.some(*READ):
        if not run.notes:
            return out_of_reach("trials run on another machine, where what they read cannot be seen")
        early = [note for note in run.notes if note["what"] == "test" and note["t"] < run.trials_ended_ns]
        if early:
            problems.append(f"{run.name}: the test split was read {len(early)} times before the trials had ended")
    return judged(problems)


@check(
    "test.own-checkpoint",
    rule="the test scores the trial's own checkpoint; nothing is trained for it",
    reason="a model that is trained again for the test is another model",
    way_out="inherit Adapter.test, which scores the checkpoint of the best trial's best epoch",
    reads=(RUN,),
)
def _own_checkpoint(evidence: AdapterEvidence) -> Finding:
    run = evidence.runs[RUN]
    best, tested = run.record.best, run.record.test
    if best is None or best.trial is None or tested is None:
        return not_tested("no best trial was tested")
    problems = []
    checkpoint = read_checkpoint(checkpoint_path(run.folder, best.trial))
    if tested.checkpoint_sha256 != checkpoint.sha256:
        problems.append("the checkpoint that was tested is not the one that the best trial has left")
    if not run.notes:
        return judged(problems, "by its digest")
    end = run.trials_ended_ns
    trained = [note for note in run.notes if note["what"] == "train" and note["t"] > end]
    if trained:
        problems.append(f"{len(trained)} epochs were trained after the trials had ended")
    born = {note["born"] for note in run.notes if note["what"] == "load" and note["t"] < end}
    restored = [note["born"] for note in run.notes if note["what"] == "restore" and note["t"] > end]
    if not trained and (not restored or restored[-1] not in born or restored[-1] != checkpoint.texts["born"]):
        problems.append("the state that was tested comes from no trial of the run")
    return judged(problems)
