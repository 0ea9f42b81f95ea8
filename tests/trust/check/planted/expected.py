"""Which planted adapter must fail in which check, and in which runs that is seen at the latest."""

from __future__ import annotations

from dataclasses import dataclass

from tuneoff.trust.check.planned_runs import DRAWS, REFUSALS, repetitions

ONE, TWO = repetitions(1)[0], repetitions(2)[0]


@dataclass(frozen=True, slots=True)
class Control:
    """A planted adapter, the one check that it must fail, and some runs among those which that check reads."""

    adapter: str  # "module:Class" below trust.check.planted
    check: str
    runs: tuple[str, ...]

    @property
    def target(self) -> str:
        return f"trust.check.planted.{self.adapter}"


CONTROLS = (
    Control("stepping:EntersAgain", "steps.order", (TWO,)),
    Control("stepping:FailsInMetrics", "steps.succeed", (TWO,)),
    Control("stepping:SubmitsInDeploy", "steps.trials-inside", (TWO,)),
    Control("stepping:SwallowsFailures", "steps.failure-surfaces", ("failed-trial",)),
    Control("undeploying:NeedsItsSetup", "undeploy.after-failure", ("honest-max", "failed-deploy")),
    Control("undeploying:RemovesTwice", "undeploy.twice", ("undeployed-twice",)),
    Control("undeploying:NeedsItsInstance", "undeploy.fresh-process", ("honest-max", "coordinator-killed")),
    Control("undeploying:HangsInUndeploy", "undeploy.in-time", ("honest-max", "interrupted")),
    Control("recording:OwnEvents", "records.schema", ("retried",)),
    Control("recording:DropsEvents", "records.no-gaps", (TWO,)),
    Control("recording:AnnouncesTwice", "trials.announced", (TWO,)),
    Control("recording:EndsTwice", "trials.ended", (TWO,)),
    Control("failing:BeginsCompletedAgain", "trials.once", (TWO,)),
    Control("spending:OneTrialMore", "budget.trials", (TWO,)),
    Control("spending:OneEpochMore", "budget.epochs", (TWO,)),
    Control("spending:PrunesEarlyEnds", "budget.early-ends", ("early-ends",)),
    Control("spending:GoesOnAfterTheTime", "budget.wall-clock", ("wall-clock",)),
    Control("spending:GoesOnAfterTheGoal", "budget.goal", ("goal",)),
    Control("spending:SaysThatItStops", "budget.goal", ("goal",)),
    Control("spending:StopsAtTheFirst", "budget.goal", ("goal-reported",)),
    Control("proposing:RepeatsOne", "configurations.listed", ("honest-max", "honest-min")),
    Control("proposing:IgnoresFirst", "configurations.first", ("first",)),
    Control("proposing:LearnsNothing", "configurations.first", ("first", "first-min")),
    Control("proposing:PassesOnAnother", "configurations.received", (ONE,)),
    Control("proposing:OneBeyond", "space.inside", (ONE, DRAWS)),
    Control("proposing:ExclusiveUpper", "space.distribution", (ONE, DRAWS)),
    Control("choosing:NamesAnUnknown", "best.among-trials", ("honest-min",)),
    Control("choosing:NamesTheLast", "best.is-best", ("honest-max",)),
    Control("choosing:MixesUpMinAndMax", "best.direction", ("honest-min",)),
    Control("choosing:LosesTies", "best.ties", ("odd-values",)),
    Control("choosing:PrefersNan", "best.nan", ("odd-values",)),
    Control("choosing:NamesPruned", "best.completed-only", ("scripted",)),
    Control("choosing:TakesTheLastReport", "best.value", ("honest-min",)),
    Control("choosing:LetsCoreChoose", "best.by-framework", ("honest-min",)),
    Control("collecting:ReadsAnotherFile", "best.by-framework", ("honest-min",)),
    Control("failing:IgnoresStops", "stops.obeyed", ("scripted",)),
    Control("failing:StopsAnother", "stops.only-scripted", ("scripted",)),
    Control("failing:ForgetsFailedTrials", "failures.recorded", ("faulty",)),
    Control("failing:FailsWithADrawnTrial", "failures.others-intact", ("faulty",)),
    Control("careless:KeepsWhatTrialsChange", "process.fresh", ("careless",)),
    Control("careless:HasDaemons", "process.children", ("careless",)),
    Control("careless:SharesItsChoices", "configurations.own", ("careless",)),
    Control("careless:LooksChoicesUp", "configurations.choices", ("careless",)),
    Control("careless:SwallowsAnyEnd", "failures.any-end", ("careless",)),
    Control("careless:ReadsNumbers", "failures.no-number", ("careless",)),
    Control("careless:LosesWhatFollowsOutput", "records.any-output", ("careless",)),
    Control("careless:HidesOutput", "records.own-output", ("careless",)),
    Control("recording:CountsNoItems", "records.phases", ("honest-max",)),
    Control("failing:StopsWhatIsTriedAgain", "retries.infrastructure", ("retried",)),
    Control("failing:OneRetryMore", "retries.at-most", ("retried",)),
    Control("failing:RetriesWhatRaised", "retries.workload-never", ("retried",)),
    Control("proposing:Unseeded", "seeds.repeat", (*repetitions(1)[:2], TWO)),
    Control("proposing:IgnoresSeed", "seeds.differ", (ONE, "other-seed")),
    Control("proposing:SeedsByWorker", "seeds.trial-values", (ONE, TWO)),
    Control("working:OneWorkerMore", "workers.at-most", ("scripted",)),
    Control("working:OneWorkerLess", "workers.all-used", ("scripted",)),
    Control("working:SeesOneDevice", "workers.devices", ("devices",)),
    Control("working:TwoThreads", "threads.per-trial", ("honest-max",)),
    Control("working:OwnTimeLimit", "limits.time", ("faulty",)),
    Control("working:RetriesOutOfMemory", "limits.memory", ("faulty",)),
    Control("working:PinsToNoProcessor", "limits.processors", ("honest-max",)),
    Control("working:IgnoresInterruption", "interruption.in-time", ("interrupted",)),
    Control("working:ForgetsOnInterruption", "interruption.keeps-trials", ("interrupted",)),
    Control("working:PrunesOnInterruption", "interruption.charged-to-user", ("interrupted",)),
    Control("refusing:AcceptsAnySampler", "refusal.undeclared", (REFUSALS,)),
    Control("refusing:AcceptsAnyOption", "refusal.adapter-options", (REFUSALS,)),
    Control("refusing:AcceptsAnySamplerOption", "refusal.sampler-options", (REFUSALS,)),
    Control("refusing:ImportsToPlan", "refusal.starts-nothing", (REFUSALS,)),
    Control("choosing:TestsTwice", "test.best-tested", ("honest-min",)),
    Control("choosing:PeeksAtTheTest", "test.split-unseen", ("honest-min",)),
    Control("choosing:RetrainsForTheTest", "test.own-checkpoint", ("honest-max",)),
    Control("leaving:LeaksAProcess", "left.processes", (TWO,)),
    Control("leaving:LeavesAPort", "left.ports", ("honest-max",)),
    Control("leaving:LeavesSharedMemory", "left.shared-memory", (TWO,)),
    Control("leaving:LeavesATemporaryFile", "left.temporary-files", (TWO,)),
    Control("leaving:LeavesAHomeFile", "left.home-files", (TWO,)),
    Control("leaving:LeavesACluster", "left.outside", (TWO,)),
    Control("leaving:ListensToTheNetwork", "ports.loopback-only", ("honest-max",)),
)

EXPECTED = {control.adapter: control.check for control in CONTROLS}
