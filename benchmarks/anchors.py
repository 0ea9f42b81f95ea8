"""Measure the anchors of regret of a file's tasks: python -m benchmarks.anchors FILE [--seeds 20] [--longer 10]

`random_search` is the median over seeds of the validation value that random search selects with the task's full budget;
`best_known` is the best value of these runs and of longer ones (`--longer` times the trials, five seeds). All runs are made by
`serial`, the plain pool, with seeds that no matrix uses (from 1000 on). Prints YAML to be put into the file. The values depend
on no clock, so the machine may be busy; about three minutes per task of the digits.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from tuneoff.cli.main import main as tuneoff
from tuneoff.errors import TuneoffError
from tuneoff.experiment.load import load_matrix
from tuneoff.experiment.variants import TASK, TASKS, expand
from tuneoff.experiment.yaml_reader import read_merged
from tuneoff.measure.stored import read_runs

FIRST_SEED, FIRST_LONG_SEED, LONG_SEEDS = 1000, 2000, 5
DROPPED = ("matrix", "zip", "anchors", "analysis", "power", "carbon", "prices")


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--seeds", type=int, default=20, metavar="N", help="runs with the full budget; default: 20")
    parser.add_argument("--longer", type=int, default=10, metavar="N", help="times the trials of the longer runs; default: 10")
    parser.add_argument("--task", nargs="+", help="of these tasks alone")
    options = parser.parse_args(arguments)
    try:
        print(yaml.safe_dump(anchors(options.file, options.seeds, options.longer, options.task), sort_keys=False), end="")
    except TuneoffError as error:
        print(f"anchors: {error}", file=sys.stderr)
        return error.exit_code
    return 0


def anchors(path: Path, seeds: int, longer: int, only: list[str] | None) -> dict[str, Any]:
    """Return what the file is to include: `anchors` of the file, or of each of its tasks."""
    load_matrix(path)
    content = {key: value for key, value in read_merged(path).items() if key not in DROPPED}
    by_task = {}
    for chosen, variant in expand(content):
        name = chosen.get(TASK, "")
        if only is None or name in only:
            print(f"{name or path.stem} ...", file=sys.stderr)
            variant.pop("anchors", None)
            by_task[name] = {"anchors": measured(variant, seeds, longer)}
    return by_task.get("", {TASKS: by_task})


def measured(task: Mapping[str, Any], seeds: int, longer: int) -> dict[str, Any]:
    """Return the anchors of one task, given its content."""
    content = {**task, "adapters": ["serial"], "sampler": "random", "pruner": "none", "warm_up": False, "power": "none"}
    trials = content["budget"]["trials"]
    usual, mode = values({**content, "seeds": {"first": FIRST_SEED, "count": seeds}})
    longer_budget = {**content["budget"], "trials": trials * longer}
    long, _ = values({**content, "budget": longer_budget, "seeds": {"first": FIRST_LONG_SEED, "count": LONG_SEEDS}})
    best = max if mode == "max" else min
    source = (
        f"serial, random search: median of {seeds} seeds with {trials} trials; "
        f"best of these and of {LONG_SEEDS} seeds with {trials * longer} trials"
    )
    return {"random_search": round(statistics.median(usual), 6), "best_known": round(best(usual + long), 6), "source": source}


def values(content: Mapping[str, Any]) -> tuple[list[float], str]:
    """Run a file and return the selected validation value of each run, and the objective's mode."""
    with tempfile.TemporaryDirectory() as folder:
        file, results = Path(folder) / "anchors.yaml", Path(folder) / "results"
        file.write_text(yaml.safe_dump(dict(content)))
        stdout, sys.stdout = sys.stdout, sys.stderr  # the table of the runs is not the answer
        try:
            code = tuneoff(["compare", str(file), "--output", str(results), "--no-report"])
        finally:
            sys.stdout = stdout
        if code:
            raise SystemExit(code)
        records = list(read_runs(results))
        qualities = [record.metrics["quality.validation"].value for record in records]
        mode = records[0].run_spec().experiment.objective.mode
    return [value for value in qualities if value is not None], mode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
