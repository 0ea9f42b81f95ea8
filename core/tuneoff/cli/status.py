"""What stands in a results folder now: each planned run, the table of figures, what was declared beside what was found."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tuneoff.base.format import counted
from tuneoff.base.json_values import plain
from tuneoff.base.output import filled_columns, plain_line, printable

if TYPE_CHECKING:
    from tuneoff.experiment.plan import Plan
    from tuneoff.judge.results import Results
    from tuneoff.run.run_ends import RunEnd


def status_json(results: Path, *, with_declared: bool) -> dict[str, Any]:
    """Return the folder and each planned run as JSON values, with what was declared beside what was found where that is asked."""
    from tuneoff.cli.matrix import to_json
    from tuneoff.judge.results import read_results
    from tuneoff.measure.stored import read_run

    contents = read_results(results)
    ends = contents.ends
    values = to_json(contents, ends)
    folders = {end.run_id: end.folder for end in ends}
    for run in values["runs"] if with_declared else ():
        folder = folders[run["run_id"]]
        run["declared"] = plain(read_run(folder).declared) if folder is not None else []
    return values


def figures_text(results: Path) -> str:
    """Return the table of figures."""
    from tuneoff.cli.matrix import table
    from tuneoff.judge.results import read_results

    return f"{table(read_results(results))}\n{results.resolve()}"


def declared_text(results: Path) -> str:
    """Return what was declared next to what the runs show."""
    from tuneoff.cli.matrix import names
    from tuneoff.judge.results import read_results
    from tuneoff.measure.stored import read_run
    from tuneoff.tell.report.declared import HEADER, declared_rows, mismatches

    contents = read_results(results)
    named = names(contents.plan, contents.ends)
    runs = [(named[end.run_id], read_run(end.folder)) for end in contents.ends if end.folder is not None]
    rows = list(declared_rows(runs))
    if not rows:
        return f"no run has a record of declared variables\n\n{results.resolve()}"
    lines = mismatches(runs)
    summary = f"{len(lines)} {'mismatch' if len(lines) == 1 else 'mismatches'}:" if lines else "no mismatch"
    table = filled_columns(HEADER, rows, optional=("runs",))
    return "\n".join([table, "", summary, *(f"  {line}" for line in lines), "", str(results.resolve())])


def runs_text(results: Path) -> str:
    """Return each planned run with its status and why it is not done, each framework's figures so far, and how to go on."""
    from tuneoff.judge.results import read_results

    contents = read_results(results)
    plan, ends = contents.plan, contents.ends
    counts = Counter(end.status for end in ends)
    summary = f"{counts['done']} of {counted(len(ends), 'run')} done" + "".join(
        f", {count} {status}" for status, count in counts.items() if status != "done"
    )
    now = "".join(f"{plain_line(line)}\n" for line in _now(plan, results))
    return f"{_table(plan, ends)}{_reasons(plan, ends)}\n\n{_by_framework(contents)}\n\n{now}{summary}; {results.resolve()}"


def _now(plan: Plan, results: Path) -> Iterator[str]:
    """Yield what goes on in the folder, or how to go on; nothing where all planned runs have ended."""
    from tuneoff.tell.live.sentences import now
    from tuneoff.tell.live.state import Activity
    from tuneoff.tell.live.watcher import Watcher

    state = Watcher(results, plan).look()
    if state.activity is not Activity.FINISHED:
        yield from now(state)


def _table(plan: Plan, ends: Sequence[RunEnd]) -> str:
    from tuneoff.experiment.names import strategy_text, variant_text
    from tuneoff.record.flag_meanings import marked

    labels = plan.label_texts
    specs = {run.run_id: run.spec for run in plan.counted}
    rows = []
    for end in ends:
        spec = specs[end.run_id]
        rows.append(
            (
                end.run_id,
                labels[end.label],
                strategy_text(spec.experiment),
                variant_text(spec.experiment.variant),
                str(spec.seed),
                end.status,
                ", ".join(marked(end.flags)),
            )
        )
    header = ("run", "adapter", "sampler", "variant", "seed", "status", "flags")
    return filled_columns(header, rows, optional=("variant", "flags"))


def _by_framework(results: Results) -> str:
    """Return for each framework and sampler how many runs are done, the median job time of all, and the best value of all."""
    from tuneoff.base.format import number, score
    from tuneoff.experiment.names import strategy_text, variant_text
    from tuneoff.judge.groups import grouped, job_time_and_best

    rows = []
    for group in grouped(results):
        experiment = group.spec.experiment
        time, best = job_time_and_best(group.runs)
        median = "" if time is None else "failed" if math.isinf(time) else number(time)
        names = (group.label, strategy_text(experiment), variant_text(experiment.variant))
        rows.append((*names, f"{len(group.done)}/{len(group.runs)}", median, "" if best is None else score(best)))
    header = ("adapter", "sampler", "variant", "done", "job time, s", "best value")
    return filled_columns(header, rows, optional=("variant",))


def _reasons(plan: Plan, ends: Sequence[RunEnd]) -> str:
    """Return why runs are not done, each reason once."""
    from tuneoff.cli.matrix import names, reason
    from tuneoff.tell.report.declared import together

    named, runs_by_reason = names(plan, ends), dict[str, list[str]]()
    for end in ends:
        if reason(end):
            runs_by_reason.setdefault(f"{end.status}: {reason(end)}", []).append(named[end.run_id])
    return "".join(f"\n{printable(f'{together(runs)}: {why}')}" for why, runs in runs_by_reason.items())
