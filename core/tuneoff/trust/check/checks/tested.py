"""The test: the best trial's own checkpoint, once, by nobody else."""

from __future__ import annotations

from collections.abc import Iterator

from tuneoff.record.events import schema
from tuneoff.run.trial.checkpoint import checkpoint_path, read_checkpoint
from tuneoff.trust.check.evidence import AdapterEvidence, Made
from tuneoff.trust.check.model import Finding, check, judged, not_applicable, not_tested, of_runs

RUN = "honest-max"
READ = (RUN, "honest-min", "scripted")


@check(
    "test.best-tested",
    rule="the named best trial is the one that is tested, once",
    reason="the headline is the test score of what the framework chose",
    way_out="inherit Adapter.test",
    reads=(RUN, "honest-min"),
)
@of_runs(RUN, "honest-min")
def _best_tested(made: Made) -> Iterator[str]:
    best, tested = made.record.best, made.of(schema.Tested)
    if len(tested) != 1:
        yield f"{made.name}: {len(tested)} tests were recorded, not 1"
    elif best is not None and tested[0].trial != best.trial:
        yield f"{made.name}: {tested[0].trial} was tested, but {best.trial} was named"


@check(
    "test.split-unseen",
    rule="no trial reads the test split",
    reason="a choice that knew the test split has no test",
    way_out="let trials train and validate only; run_trial does",
    reads=READ,
    needs_all=False,
)
def _unseen(evidence: AdapterEvidence) -> Finding:
    problems = []
    for made in evidence.some(*READ):
        if not made.notes:
            return not_applicable("trials run on another machine, where what they read cannot be seen")
        early = [note for note in made.notes if note["what"] == "test" and note["t"] < _trials_ended(made)]
        if early:
            problems.append(f"{made.name}: the test split was read {len(early)} times before the trials had ended")
    return judged(problems)


@check(
    "test.own-checkpoint",
    rule="the test scores the trial's own checkpoint; nothing is trained for it",
    reason="a model that is trained again for the test is another model",
    way_out="inherit Adapter.test, which scores the checkpoint of the best trial's best epoch",
    reads=(RUN,),
)
def _own_checkpoint(evidence: AdapterEvidence) -> Finding:
    made = evidence.runs[RUN]
    best, tested = made.record.best, made.record.test
    if best is None or best.trial is None or tested is None:
        return not_tested("no best trial was tested")
    problems = []
    checkpoint = read_checkpoint(checkpoint_path(made.folder, best.trial))
    if tested.checkpoint_sha256 != checkpoint.sha256:
        problems.append("the checkpoint that was tested is not the one that the best trial has left")
    if not made.notes:
        return judged(problems, "by its digest")
    end = _trials_ended(made)
    trained = [note for note in made.notes if note["what"] == "train" and note["t"] > end]
    if trained:
        problems.append(f"{len(trained)} epochs were trained after the trials had ended")
    born = {note["born"] for note in made.notes if note["what"] == "load" and note["t"] < end}
    restored = [note["born"] for note in made.notes if note["what"] == "restore" and note["t"] > end]
    if not trained and (not restored or restored[-1] not in born or restored[-1] != checkpoint.texts["born"]):
        problems.append("the state that was tested comes from no trial of the run")
    return judged(problems)


def _trials_ended(made: Made) -> int:
    """Return when the last trial had ended, on the machine's clock."""
    return max((event.t for event in made.of(schema.TrialEnded)), default=0)


CHECKS = (_best_tested, _unseen, _own_checkpoint)
