"""Small real results, of the corpus: runs that are done, pruned, failed, retried, interrupted, and killed and repeated.

Each source is a folder with `experiment.yaml` and `results`, of which `tuneoff verify` says VERIFIED.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from builders.results_folders import write_examples
from corpus.figures import unpack
from tuneoff.trust.verify.results import verify

FILE, RESULTS = "experiment.yaml", "results"
COMPARE = ("compare", "--no-report", FILE, "--output", RESULTS)
RECORDED = ("pruners", "failed", "retries", "interrupted", "resumed")


def make_sources(folder: Path, *, small: bool = False) -> None:
    """Put the sources into a folder: the worked examples of the metrics, and unless `small` those of the corpus."""
    for name in ("examples", *(() if small else RECORDED)):
        source = folder / name
        source.mkdir(parents=True)
        if name == "examples":
            write_examples(source / RESULTS)
        else:
            unpack(name, source).rename(source / RESULTS)
        content = json.loads((source / RESULTS / "matrix.json").read_text())["content"]
        (source / FILE).write_text(json.dumps(content or {"workload": "null", "adapters": ["serial"], "budget": {"trials": 2}}))
        assert verify(source / RESULTS).is_verified, name


def copy_source(source: Path, folder: Path, temporary: Path) -> None:
    """Copy a source into a case's folder, as if its temporary folders were the case's."""
    shutil.copytree(source / RESULTS, folder / RESULTS, symlinks=True)
    for path in folder.glob(f"{RESULTS}/runs/*/*/leftovers.jsonl"):
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        for line in lines:
            line["value"] = str(temporary / Path(line["value"]).name)
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    shutil.copy(source / FILE, folder)
