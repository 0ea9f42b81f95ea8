"""`python tests/trust/check/cross_table.py RESULTS.jsonl`: every planted adapter against every check, as a table for the docs.

All runs of the kit are made for each of them, which takes a minute or more. Each one's findings are a line of the results file:
what it has already is not made again. Exit code 1: one did not fail in exactly its own check, or an honest one failed.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

TESTS = Path(__file__).parents[2]
sys.path.insert(0, str(TESTS))  # as pytest does


from trust.check.controls import make, planted_surroundings  # noqa: E402
from trust.check.planted.expected import CONTROLS  # noqa: E402
from tuneoff.registry import adapter_class  # noqa: E402
from tuneoff.trust.check.checks import CHECKS  # noqa: E402

HONEST = {"serial": "the reference", "trust.check.planted.base:Altered": "the base of planted adapters, without a defect"}
ROWS: Mapping[str, str | None] = {**dict.fromkeys(HONEST), **{control.target: control.check for control in CONTROLS}}

Findings = Mapping[str, list[str]]  # verdict and text of each check


def main(results: Path) -> int:
    known = _known(results)
    for number, target in enumerate(ROWS, 1):
        if target in known:
            continue
        started = time.monotonic()
        known[target] = _findings(target)
        with results.open("a") as file:
            file.write(json.dumps({"adapter": target, "findings": known[target]}) + "\n")
        failed = ", ".join(_failed(known[target])) or "nothing"
        print(f"{number} of {len(ROWS)}: {target} failed in {failed}; {time.monotonic() - started:.0f} s", file=sys.stderr)
    print("\n".join(table(known)))
    return int(any(_failed(known[target]) != ([check] if check else []) for target, check in ROWS.items()))


def _known(results: Path) -> dict[str, Findings]:
    lines = results.read_text().splitlines() if results.exists() else []
    return {entry["adapter"]: entry["findings"] for entry in map(json.loads, lines)}


def _findings(target: str) -> Findings:
    with tempfile.TemporaryDirectory(prefix="cross-") as folder, planted_surroundings(Path(folder) / "home"):
        evidence = make(target, CHECKS, Path(folder) / "runs")
        return {finding.id: [finding.verdict, finding.text] for finding in (check.finding(evidence) for check in CHECKS)}


def _failed(findings: Findings) -> list[str]:
    return [check for check, (verdict, _) in findings.items() if verdict == "failed"]


def table(known: Mapping[str, Findings]) -> Iterator[str]:
    """Yield the lines of the table: of each adapter what it does, where it failed, and what the other checks said."""
    yield "| adapter | what it does | fails in | passed | not tested |"
    yield "|---|---|---|---|---|"
    for target in ROWS:
        findings = known[target]
        counts = Counter(verdict for verdict, _ in findings.values())
        failed = ", ".join(f"`{check}`" for check in _failed(findings)) or "–"
        untested = ", ".join(f"`{check}`" for check, (verdict, _) in findings.items() if verdict == "not tested") or "–"
        what = HONEST.get(target) or (adapter_class(target).__doc__ or "").strip().splitlines()[0]
        yield f"| {target.rpartition(':')[2]} | {what} | {failed} | {counts['passed']} | {untested} |"


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(Path(sys.argv[1])))
