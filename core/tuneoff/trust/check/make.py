"""Check adapters: make the evidence, judge it, and try once more what failed at a time limit: the machine may have been busy.

Each run is made in a process of its own, two side by side where their times do not matter.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import msgspec

from tuneoff import registry
from tuneoff.base.capabilities import framework_status
from tuneoff.base.findings import Finding, Report, failed, not_tested, out_of_reach
from tuneoff.base.interrupting import as_ended, asked_to_end
from tuneoff.base.output import one_line
from tuneoff.base.packages import canonical, installed_version
from tuneoff.base.reading import Refused, read
from tuneoff.base.targets import load_target
from tuneoff.errors import ExperimentError, MissingPackageError, TuneoffError, UnsupportedError
from tuneoff.experiment.schema import AdapterPart
from tuneoff.experiment.skip_check import SkipCheck
from tuneoff.experiment.spec import RunSpec, run_spec_to_json
from tuneoff.experiment.variants import named
from tuneoff.measure.stored import read_run
from tuneoff.record.endings import Ruling
from tuneoff.record.run_record import RunRecord
from tuneoff.run.environments import built_for, ready
from tuneoff.run.finish import finish
from tuneoff.run.supervisor.guardian import Announce, temporary_folder, watching
from tuneoff.trust.check.checks import CHECKS
from tuneoff.trust.check.evidence import AdapterCheck, AdapterEvidence, FinishedRun, Refusals, Subject
from tuneoff.trust.check.fault_injection import wrapped_target
from tuneoff.trust.check.footprint import Leftover, ListeningSocket, own_folders
from tuneoff.trust.check.one_run import ask_run
from tuneoff.trust.check.planned_runs import DRAWS, MANY, REFUSALS, CheckRun, planned_runs, random_search
from tuneoff.trust.space_test.draw import DRAWN, FAILED, NOT_OFFERED, Drawing
from tuneoff.trust.space_test.verify import draw_in_process

DRAW_COUNT, DRAW_SECONDS = 1000, 180.0
REFUSAL_SECONDS = 60.0
SIDE_BY_SIDE = 2
_FINISHING = threading.Lock()

Tell = Callable[[str], None]
ONE_AT_A_TIME = 1  # runs of the second try
AGAIN = "again"  # the folder of runs that are made a second time


def subject_of(name: str, platform: str | None = None, options: Mapping[str, Any] | None = None) -> Subject:
    """Return the adapter of that name, or at "module:Class", on a platform: `platform`, or as NAME@PLATFORM, else its first one.

    As NAME==VERSION it has an environment of its own.

    Raises:
        ExperimentError: two different platforms are given, or a version is none.
        UnknownNameError, PluginError: see `registry.adapter_class`.
        MissingPackageError: its framework is missing, or of another version.
        UnsupportedError: it does not offer the platform, or cannot serve a plain random search there.
    """
    try:
        part: AdapterPart = read(AdapterPart, named(name))
    except Refused as error:
        raise ExperimentError(f"{name}: {error}") from error
    name, written = part.name, part.platform
    if platform and written and platform != written:
        raise ExperimentError(f"one platform must be named, but got {written} and {platform}; remove one")
    adapter = registry.adapter_class(name)
    platform = platform or written or adapter.platforms()[0]
    capabilities = adapter.capabilities_on(platform)
    target = f"{adapter.__module__}:{adapter.__qualname__}"
    subject = Subject(
        name=name,
        target=target,
        platform=platform,
        capabilities=capabilities,
        options=dict(options or {}),
        environment=part.environment,
    )
    status = framework_status(name, capabilities)
    if status.state != "ready" and part.environment is None:
        raise MissingPackageError(status.text)
    reason = SkipCheck().reason(run_spec(subject, CheckRun("plain", random_search(8))), adapter)
    if reason is not None:
        raise UnsupportedError(reason)
    return subject


def run_spec(subject: Subject, run: CheckRun, notes: Path | None = None) -> RunSpec:
    """Return the specification of a run of this adapter."""
    experiment = run.experiment
    if notes is not None:
        options = {**experiment.workload.options, "notes": str(notes)}
        experiment = replace(experiment, workload=replace(experiment.workload, options=options))
    return RunSpec(
        experiment=experiment,
        adapter=subject.name,
        adapter_target=wrapped_target(run.plant, subject.target) if run.plant is not None else subject.target,
        platform=subject.platform,
        seed=run.seed,
        options=dict(subject.options),
        environment=subject.environment,
        reports=run.reports or subject.capabilities.reports_with(experiment.pruner.name),
    )


def make_evidence(
    subject: Subject,
    checks: Sequence[AdapterCheck],
    folder: Path,
    tell: Tell = lambda text: None,
    announce: Announce = lambda folder: None,
    at_once: int = SIDE_BY_SIDE,
) -> AdapterEvidence:
    """Make what these checks read, under `folder`, and return it; `announce` is told of each temporary folder beside it.

    `at_once`: how many runs are made side by side, where their times do not matter.

    Raises:
        KeyboardInterrupt: SIGINT, SIGTERM or SIGHUP; every run has been un-deployed and every process has ended then.
    """
    names = {name for check in checks for name in check.reads}
    planned = planned_runs(subject.capabilities)
    absences = ((name, run.absence(subject.capabilities, subject.platform)) for name, run in planned.items())
    missing = {name: absence for name, absence in absences if absence is not None}
    runs = [run for name, run in planned.items() if name in names and name not in missing]
    with asked_to_end() as interrupt:
        refusals = _refusals(subject, folder, interrupt) if REFUSALS in names else None
        drawn = _drawn(subject, interrupt, tell, announce) if DRAWS in names else None
        _check(interrupt)
        if drawn is None and DRAWS in names:
            runs.append(planned[MANY])
        ended = _make_all(subject, runs, folder, interrupt, tell, announce, at_once)
    finished_runs = {name: item for name, item in ended.items() if isinstance(item, FinishedRun)}
    missing |= without_trials(planned, ended)
    if drawn is None and DRAWS in names:
        many = finished_runs.get(MANY)
        if many is not None and many.stored is not None:
            received = [trial.configuration for trial in many.stored.trials]
            drawn = Drawing(state=DRAWN, source="runs", configurations=received)
        else:
            drawn = missing.get(MANY) or not_tested("no configuration was received")
    missing |= {name: item for name, item in ((REFUSALS, refusals), (DRAWS, drawn)) if isinstance(item, Finding)}
    return AdapterEvidence(
        subject=subject,
        runs=finished_runs,
        drawn=drawn if isinstance(drawn, Drawing) else None,
        refusals=refusals if isinstance(refusals, Refusals) else None,
        missing=missing,
    )


def without_trials(planned: Mapping[str, CheckRun], ended: Mapping[str, FinishedRun | Finding]) -> dict[str, Finding]:
    """Return what each run without a trial, or without one that its script asked for, shows: nothing, which is not a pass.

    Where no run has one it is a failure of the adapter. Runs into which a failure was planted may have none.
    """
    findings = {}
    for name, item in ended.items():
        if isinstance(item, Finding):
            findings[name] = item
        elif "script" in item.experiment.workload.options and item.stored is not None and not item.notes:
            text = "trials run on another machine, and sampler 'fixed' is not offered: no fault can be planted"
            findings[name] = out_of_reach(text)
        elif (run := item.stored) is not None and not (planned[name].plant or any(trial.used_ticket for trial in run.trials)):
            findings[name] = not_tested(f"run {name} had no trial; it is {run.status}: {run.reason}")
    sound = {name: item for name, item in ended.items() if planned[name].plant is None}
    if all(name in findings for name in sound):
        for name, item in sound.items():
            if isinstance(item, FinishedRun) and item.stored is not None and item.stored.charged == "framework":
                findings[name] = failed(findings[name].text)
    return findings


def _check(interrupt: threading.Event) -> None:
    if interrupt.is_set():
        raise KeyboardInterrupt


def _make_all(
    subject: Subject,
    runs: Sequence[CheckRun],
    folder: Path,
    interrupt: threading.Event,
    tell: Tell,
    announce: Announce,
    at_once: int,
) -> dict[str, FinishedRun | Finding]:
    ended: dict[str, FinishedRun | Finding] = {}

    def note(name: str, result: FinishedRun | Finding) -> None:
        _check(interrupt)  # a run that a signal ended is not made
        ended[name] = result
        tell(f"{len(ended)} of {len(runs)} runs made; {name}")

    with ThreadPoolExecutor(at_once) as pool:
        waiting = {pool.submit(_make, subject, run, folder, interrupt, announce): run.name for run in runs if not run.is_alone}
        for future in as_ended(waiting):
            note(waiting[future], future.result())
    for run in runs:
        if run.is_alone:
            note(run.name, _make(subject, run, folder, interrupt, announce))
    _check(interrupt)
    return ended


def _make(subject: Subject, run: CheckRun, folder: Path, interrupt: threading.Event, announce: Announce) -> FinishedRun | Finding:
    run_folder = folder / run.name
    notes = run_folder / "notes"
    notes.mkdir(parents=True)
    spec = run_spec(subject, run, notes)
    request = {
        "run": run_spec_to_json(spec),
        "results": str(run_folder / "results"),
        "act": run.act,
        "is_loaded": run.is_loaded,
        "without_groups": run.without_groups,
    }
    with own_folders(announce) as folders:
        answer = ask_run(interrupt, "tuneoff.trust.check.one_run", run_folder, {**request, "folders": asdict(folders)})
    if isinstance(answer, str):
        return not_tested(f"run {run.name} was not made: {answer}")
    execution = Path(answer["folder"])
    ruling = None if answer["ruling"] is None else Ruling(**answer["ruling"])
    record: RunRecord | None = None
    problem = ""
    try:
        with _FINISHING:
            finish(execution, spec, ruling, load_target(subject.target), {"limits": answer["limits"]})
            record = read_run(execution)  # as everybody else will read it
    except (TuneoffError, ValueError) as error:
        problem = one_line(f"{type(error).__name__}: {error}")
    return FinishedRun(
        name=run.name,
        experiment=spec.experiment,
        folder=execution,
        notes_folder=notes,
        stored=record,
        problem=problem,
        listeners=tuple(ListeningSocket(**item) for item in answer["listeners"]),
        leftovers=tuple(Leftover(**item) for item in answer["left"]),
        end_seconds=answer["end_seconds"],
        is_loaded=run.is_loaded,
    )


def _refusals(subject: Subject, folder: Path, interrupt: threading.Event) -> Refusals | Finding:
    request_folder = folder / REFUSALS
    request_folder.mkdir(parents=True)
    spec = run_spec(subject, CheckRun(REFUSALS, random_search(8)))
    answer = ask_run(interrupt, "tuneoff.trust.check.refusals", request_folder, {"run": run_spec_to_json(spec)}, REFUSAL_SECONDS)
    if isinstance(answer, str):
        return not_tested(f"nothing could be asked: {answer}")
    return msgspec.convert(answer, Refusals)


def _drawn(subject: Subject, interrupt: threading.Event, tell: Tell, announce: Announce) -> Drawing | Finding | None:
    """Return draws of the adapter's own sampler; None where it cannot draw without running trials."""
    tell(f"drawing {DRAW_COUNT} configurations")
    spec = run_spec(subject, CheckRun(DRAWS, random_search(DRAW_COUNT)))
    way_out = f"let it give {DRAW_COUNT} in that time"
    answer = draw_in_process(spec, DRAW_COUNT, spec.seed, DRAW_SECONDS, way_out, announce, interrupt.is_set)
    if answer.state == NOT_OFFERED:
        return None
    if answer.state == FAILED and not answer.configurations:
        return not_tested(f"the adapter's `draw` gave nothing: {answer.text}")
    return answer


def check_adapter(
    subject: Subject,
    checks: Sequence[AdapterCheck],
    keep: Path | None = None,
    tell: Tell = lambda text: None,
    *,
    offline: bool = False,
) -> Report:
    """Make the runs that these checks read, and return what they say; what fails at a time limit is tried again, once.

    `keep`: an empty folder for the runs, else they are removed. `offline`: no environment is made for them.
    """
    runs = planned_runs(subject.capabilities).values()
    specs = [run_spec(subject, run) for run in runs if run.absence(subject.capabilities, subject.platform) is None]
    with (
        ready(specs, tell, offline=offline),
        watching() as announce,
        temporary_folder(announce, "tuneoff-check-") if keep is None else nullcontext(keep.absolute()) as folder,
    ):
        started = time.monotonic()
        evidence = make_evidence(subject, checks, folder, tell, announce)

        def again(late: Sequence[AdapterCheck]) -> AdapterEvidence:
            tell(f"trying again: {', '.join(check.id for check in late)}")
            return make_evidence(subject, late, folder / AGAIN, tell, announce, ONE_AT_A_TIME)

        findings = tried_again(checks, evidence, again)
        seconds, built = time.monotonic() - started, built_for(specs[0])
    count, package, framework = len(evidence.runs), subject.capabilities.package, "no framework"
    if package:
        version = installed_version(package) if built is None else built.packages.get(canonical(package))
        framework = f"{subject.capabilities.framework} {version or 'of unknown version'}"
    return Report(
        label=subject.label,
        findings=findings,
        check_count=len(CHECKS),
        about=f"{count} runs, {seconds:.0f} s ({framework})",
        values={
            "adapter": subject.name,
            "label": subject.label,
            "platform": subject.platform,
            "framework": framework,
            "runs": count,
            "seconds": round(seconds, 1),
        },
    )


def tried_again(
    checks: Sequence[AdapterCheck], evidence: AdapterEvidence, make: Callable[[Sequence[AdapterCheck]], AdapterEvidence]
) -> list[Finding]:
    """Return what each check finds; one that fails at a time limit is judged once more, on runs that `make` has made again.

    The text says what was seen at both tries, and what the machine did meanwhile.
    """
    findings = [check.finding(evidence) for check in checks]
    late = [number for number, check in enumerate(checks) if check.has_time_limit and findings[number].verdict == "failed"]
    second = make([checks[number] for number in late]) if late else evidence
    for number in late:
        check, first = checks[number], findings[number]
        again = check.finding(second)
        before = f"the first try, {_others(evidence.some(*check.reads))}: {first.text}"
        now = f"the second try, {_others(second.some(*check.reads))}"
        text = f"{again.text} ({now}; {before})"
        if again.is_good:
            text = f"{again.text + '; ' if again.text else ''}{now}, passed; {before}"
        findings[number] = replace(first, verdict="passed" if again.is_good else "failed", text=text)
    return findings


def _others(runs: Iterable[FinishedRun]) -> str:
    """Return what other programs used during that of some runs in which they used the most."""
    shares = [run.others_percent for run in runs if run.others_percent is not None]
    return f"other programs used {max(shares):.0f} % of the processors" if shares else "what the machine did is not known"
