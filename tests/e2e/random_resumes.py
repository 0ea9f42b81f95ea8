"""Kill a run at random moments, continue it (`--resume --continue`), and compare it with one that was not interrupted.

Each kill is by SIGKILL: of the command alone, of all its processes at once, or of the coordinator alone, a random while
after a random epoch of the run's 30, the first submission and the last epoch included: so the moments lie everywhere in the
work, whatever a framework takes to start. One in four continued runs is killed again. Configurations are given (`fixed`)
and drawn (`random`) in turn. Prints one line per kill and one table row; exit code 0 if nothing was lost or repeated, the
budget was kept, and the best trial is the best.

    python tests/e2e/random_resumes.py --adapter serial --kills 50 --seed 1
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tuneoff.base.processes import GUARDIAN, command_line, descendants, kill
from tuneoff.record.run_record import RunRecord
from tuneoff.record.store import read_runs

sys.path.insert(0, str(Path(__file__).parents[1]))  # as a script it would find its own folder alone

from e2e.following import Following
from e2e.matrix_runs import Broken
from e2e.resume_checks import Outcome, outcome

MATRIX = Path(__file__).with_name("resume_matrix.yaml")
EPOCHS = 30  # of ten trials
SAMPLERS = ("fixed", "random")
VICTIMS = ("command", "everything", "coordinator")
SECOND_KILLS = 0.25  # share of continued runs that are killed again
LATEST_SECONDS = 0.4  # after the epoch: longer than one takes
LONGEST_SECONDS = 180.0
GONE_WITHIN_SECONDS = 10.0
MOST_TOO_LATE = 3


@dataclass
class Tally:
    """What came of all kills of an adapter."""

    kills: int = 0
    begun_anew: int = 0  # no trial had finished: there was nothing to continue
    kept: int = 0  # finished trials that were taken over, over all kills
    again: int = 0  # trials begun again
    victims: dict[str, int] = field(default_factory=lambda: dict.fromkeys(VICTIMS, 0))
    wrong: list[Outcome] = field(default_factory=list)

    def row(self, adapter: str) -> str:
        """Return the row of docs/resume.md."""
        lost, repeated = (sum(bool(getattr(one, name)) for one in self.wrong) for name in ("lost", "repeated"))
        budget, best = (sum(bool(getattr(one, name)) for one in self.wrong) for name in ("budget", "incumbent"))
        other = sum(bool(one.other) for one in self.wrong)
        counts = " | ".join(map(str, (self.kills, self.begun_anew, self.kept, self.again, lost, repeated, budget, best, other)))
        return f"| {adapter} | {counts} | {bound(self.kills):.1%} |" if not self.wrong else f"| {adapter} | {counts} | – |"


HEAD = (
    "| adapter | kills | begun anew | trials kept | begun again | lost | repeated | budget not kept | other best | else "
    "| failure rate at most |"
)


def bound(kills: int) -> float:
    """Return the failure rate below which the true one lies with 95 % confidence when none of so many failed."""
    return float(1 - 0.05 ** (1 / kills)) if kills else 1.0


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--adapter", required=True, help="a framework by its adapter's name, NAME@PLATFORM, or module:Class")
    parser.add_argument("--kills", type=int, default=50, help="how many times to kill (default: 50)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the random moments (default: 1)")
    parser.add_argument("--samplers", nargs="+", default=SAMPLERS, help="samplers, in turn (default: fixed random)")
    options = parser.parse_args(arguments)
    folder = Path(tempfile.mkdtemp(prefix="resumes-", dir="/var/tmp"))
    try:
        tally = kill_many(options.adapter, folder, options.kills, random.Random(options.seed), options.samplers)
    except Broken as broken:
        print(f"BROKEN: {broken} (kept: {folder})")
        return 1
    print(f"{HEAD}\n|{'---|' * (HEAD.count('|') - 1)}\n{tally.row(options.adapter)}")
    if tally.wrong:
        print(f"kept: {folder}")
        return 1
    shutil.rmtree(folder)
    return 0


def kill_many(
    adapter: str,
    folder: Path,
    kills: int,
    generator: random.Random,
    samplers: Sequence[str] = SAMPLERS,
    references: Mapping[str, RunRecord] | None = None,
) -> Tally:
    """Kill and continue until so many kills came in time. `references`: runs that were not interrupted, else they are made.

    Raises:
        Broken: a reference run failed, or most kills came too late.
    """
    if references is None:
        references = {sampler: reference(adapter, folder / f"reference-{sampler}", sampler) for sampler in samplers}
    tally, late, number = Tally(), 0, 0
    while tally.kills < kills:
        sampler = samplers[number % len(samplers)]
        number += 1
        results = folder / f"{number}-{sampler}"
        made, text = _one(adapter, sampler, results, generator, kills - tally.kills)
        if not made:
            late += 1
            if late > MOST_TOO_LATE + kills:
                raise Broken(f"{late} kills came too late")
            shutil.rmtree(results)
            continue
        found = outcome(results, references[sampler])
        last = max(read_runs(results), key=lambda record: record.started_at or "")
        tally.kills += len(made)
        for victim in made:
            tally.victims[victim] += 1
        if last.continues is None:
            tally.begun_anew += 1
        else:
            tally.kept += len(last.continues.finished)
            tally.again += len(last.continues.begun_again)
        print(f"{tally.kills:3d} {sampler}: {text}; wrong: {found.text()}", flush=True)
        if found.is_right:
            shutil.rmtree(results)
        else:
            tally.wrong.append(found)
    return tally


def _one(adapter: str, sampler: str, results: Path, generator: random.Random, most: int) -> tuple[list[str], str]:
    """Kill a run once or twice and let it come to its end; return the victims of the kills that came in time, and a line."""
    made: list[str] = []
    words = []
    while not made or (len(made) < min(2, most) and generator.random() < SECOND_KILLS):
        victim, epochs, after = generator.choice(VICTIMS), generator.randint(0, EPOCHS), generator.uniform(0.0, LATEST_SECONDS)
        if not kill_once(adapter, sampler, results, victim, epochs, after):
            break
        made.append(victim)
        words.append(f"{victim} killed {after:.2f} s after epoch {epochs}")
    if made:
        process = start(adapter, sampler, results)
        try:
            _, errors = process.communicate(timeout=LONGEST_SECONDS)
        except subprocess.TimeoutExpired as error:
            process.kill()
            raise Broken(f"{results}: the continued run did not end within {LONGEST_SECONDS:g} s") from error
        if process.returncode != 0:
            words.append(f"exit code {process.returncode}: {errors.decode()[-300:]}")
    return made, ", ".join(words)


def reference(adapter: str, results: Path, sampler: str) -> RunRecord:
    """Return the record of a run that is not interrupted.

    Raises:
        Broken: it failed.
    """
    process = start(adapter, sampler, results)
    _, errors = process.communicate(timeout=LONGEST_SECONDS)
    record = next(iter(read_runs(results)), None) if process.returncode == 0 else None
    if record is None or record.status != "done":
        raise Broken(f"the run without a kill must be done: {errors.decode()[-300:]}")
    return record


def kill_once(adapter: str, sampler: str, results: Path, victim: str, epochs: int, after: float) -> bool:
    """Start or continue a run and kill so many seconds after so many epochs of it, earlier ones included.

    0 epochs: after its first submission. False: it had ended by then.
    """
    before = set(results.glob("runs/*/*/events"))
    following = Following()
    process = start(adapter, sampler, results)
    try:
        if not _wait_for_epochs(process, results, before, epochs):
            return False
        time.sleep(after)
        if process.poll() is not None or _has_recorded(results, before):
            return False
        _kill(process, victim)
    finally:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.communicate(timeout=60.0)
    deadline = time.monotonic() + GONE_WITHIN_SECONDS
    while left := following.left():
        if time.monotonic() > deadline:
            raise Broken(f"left {GONE_WITHIN_SECONDS:g} s after a kill in {results}: {', '.join(left)}")
        time.sleep(0.05)
    return True


def _kill(process: subprocess.Popen[bytes], victim: str) -> None:
    below = [pid for pid in descendants(process.pid) if GUARDIAN not in command_line(pid, None)]
    if victim != "coordinator":
        process.kill()
    if victim != "command":
        for pid in below:
            if victim == "everything" or "tuneoff.run.lifecycle" in command_line(pid):
                kill(pid)


def _wait_for_epochs(process: subprocess.Popen[bytes], results: Path, before: set[Path], epochs: int) -> bool:
    deadline = time.monotonic() + LONGEST_SECONDS
    while process.poll() is None:
        new = set(results.glob("runs/*/*/events")) - before
        if _count(new, b'"trial_submitted"') and _count(new | before, b'"type":"epoch"') >= epochs:
            return True
        if time.monotonic() > deadline:
            process.kill()
            raise Broken(f"{results}: {epochs} epochs were not trained within {LONGEST_SECONDS:g} s")
        time.sleep(0.02)
    return False


def _count(folders: set[Path], text: bytes) -> int:
    return sum(path.read_bytes().count(text) for folder in folders for path in folder.glob("*.jsonl"))


def _has_recorded(results: Path, before: set[Path]) -> bool:
    return any((folder.parent / "run.json").exists() for folder in set(results.glob("runs/*/*/events")) - before)


def start(adapter: str, sampler: str, results: Path) -> subprocess.Popen[bytes]:
    """Start the run, or continue it where it was begun."""
    file = results.with_suffix(".yaml")
    if not file.exists():
        name, _, platform = adapter.partition("@")
        entry = f"{{name: {name!r}, platform: {platform}}}" if platform else repr(name)
        given = "configurations: {sample: 10, seed: 0}\n" if sampler == "fixed" else ""
        file.write_text(f"include: {MATRIX}\nsampler: {sampler}\n{given}adapters: [{entry}]\n")
    resume = ["--resume", "--continue"] if (results / "matrix.json").exists() else []
    options = ["--no-report", "--json", "--output", str(results), *resume]  # an answer in words takes a second more
    command = [sys.executable, "-m", "tuneoff", "compare", str(file), *options]
    tests = str(Path(__file__).parents[1])
    path = os.pathsep.join([tests, *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "PYTHONPATH": path}
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment)


if __name__ == "__main__":
    sys.exit(main())
