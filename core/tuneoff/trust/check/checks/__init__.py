"""All checks, family by family, in the order of tables."""

from __future__ import annotations

from tuneoff.trust.check.checks import (
    best,
    budget,
    ending,
    failures,
    records,
    refusal,
    seeds,
    space,
    steps,
    stops,
    tested,
    undeploy,
    workers,
)
from tuneoff.trust.check.model import Check, by_id

IDS: tuple[str, ...] = (
    "steps.order",  # the seven steps are entered once each, in order, by one process, and undeploy is the last
    "steps.succeed",  # no step of an honest run fails (undeploy aside)
    "steps.trials-inside",  # trials begin after setup was entered and have ended when run_trials returns; JCT has no hole
    "steps.failure-surfaces",  # what goes wrong inside run_trials (context.submitted raises) fails the step, is not swallowed
    "undeploy.after-failure",  # after a failure in each step undeploy runs to its end, and more is not left than else
    "undeploy.twice",  # a second call on the same instance does nothing and does not fail
    "undeploy.fresh-process",  # works on an instance that did nothing else, after the coordinator was killed
    "undeploy.in-time",  # ends within its limit, also after Ctrl-C
    "records.schema",  # every event and the record can be read back by their schemas
    "records.no-gaps",  # no event line is missing, torn or of another run
    "trials.announced",  # each trial is submitted before it starts, once per attempt
    "trials.ended",  # each attempt that began has exactly one end
    "budget.trials",  # exactly budget.trials trials: none refused, none missing
    "budget.epochs",  # a completed trial trained each planned epoch once, no more
    "budget.wall-clock",  # nothing is proposed once the time is over
    "configurations.listed",  # `fixed`: exactly the given configurations are submitted, once each
    "configurations.received",  # what a trial trains is what was submitted
    "space.inside",  # every random configuration lies in core's space, bounds and types
    "space.bounds-reached",  # both ends of each narrow dimension are drawn
    "space.ends-not-starved",  # the ends of narrow dimensions come as often as core's space says
    "best.among-trials",  # the named best trial is one of the run's
    "best.is-best",  # no other completed trial has a better value
    "best.direction",  # under `min` and under `max`: the best is named, not the worst
    "best.ties",  # of equal best values one is named
    "best.nan",  # a trial without a finite value is never named, and does not hide the best one
    "best.completed-only",  # a pruned trial is never named, however good it was
    "best.value",  # the framework's value of it is that of its best epoch, not of its last
    "incumbent.monotone",  # no completed trial is taken back or run again: the best so far never gets worse
    "stops.obeyed",  # `scripted`: given trials end at the given epoch
    "stops.only-scripted",  # and all others run to their end
    "failures.recorded",  # each failed trial is there with its state, its cause and who is charged
    "failures.others-intact",  # the trials beside failed ones complete, and the run is done
    "retries.infrastructure",  # a trial whose process was killed is tried again where declared; else it fails alone
    "retries.at-most",  # never more often than failures.retries
    "retries.workload-never",  # what the workload raises is not tried again
    "resume.as-declared",  # what is declared as not offered is refused
    "resume.keeps-trials",  # a continued run keeps what had ended, trains nothing again, and keeps its budget
    "seeds.repeat",  # one worker, one seed: the same configurations; the class of determinism is established and told
    "seeds.differ",  # another seed gives other configurations
    "seeds.trial-values",  # the same configuration and seed give the same values in every run
    "workers.at-most",  # never more than workers.count trials at once
    "workers.all-used",  # and that many where there is work
    "threads.per-trial",  # a trial computes in one thread, and is told so by every library's variable
    "limits.time",  # a silent trial and one that is too slow are ended as timed out
    "limits.memory",  # one that takes too much memory is ended, with and without control groups
    "limits.processors",  # what limits the slots is in force and in the record
    "interruption.in-time",  # Ctrl-C ends a run within 15 s
    "interruption.keeps-trials",  # what had completed by then is kept
    "interruption.charged-to-user",  # what it ended is cancelled and nobody else is charged
    "left.processes",  # no process outlives the run
    "left.ports",  # no port stays open
    "left.shared-memory",  # nothing in /dev/shm
    "left.temporary-files",  # nothing in the temporary folder
    "left.home-files",  # nothing in the home folder
    "left.outside",  # nothing in a cluster
    "ports.loopback-only",  # nothing listens beyond this machine
    "refusal.undeclared",  # samplers, pruners, platforms and retries that are not declared are refused
    "refusal.adapter-options",  # an option that the adapter does not have is refused
    "refusal.sampler-options",  # so is one that the sampler does not have
    "refusal.starts-nothing",  # to plan and to refuse imports no framework and starts nothing
    "test.best-tested",  # the named best trial is the one that is tested, once
    "test.split-unseen",  # no trial reads the test split
    "test.own-checkpoint",  # the test scores the trial's own checkpoint; nothing is trained for it
)

_FAMILIES = (steps, undeploy, records, budget, space, best, stops, failures, seeds, workers, ending, refusal, tested)
_BY_ID = by_id([check for family in _FAMILIES for check in family.CHECKS])
CHECKS: tuple[Check, ...] = tuple(_BY_ID[name] for name in IDS)
