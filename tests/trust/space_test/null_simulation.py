"""How often an adapter without a defect is rejected: core's own draws, judged again and again under other seeds.

PYTHONPATH=tests python tests/trust/space_test/null_simulation.py --repetitions 200 --draws 5000
"""

from __future__ import annotations

import argparse

from trust.space_test.every_kind import PROBED, SEEDS, core_sample
from tuneoff.trust.space_test.judge import judge
from tuneoff.trust.space_test.statistics import FALSE_DISCOVERY_RATE

FIRST_SEED = 1_000_000  # far from the seeds of the tests


def false_alarms(repetitions: int, draws: int, first_seed: int = FIRST_SEED) -> list[tuple[int, str]]:
    """Return (repetition, first finding) of each repetition that is not accepted."""
    found = []
    for repetition in range(repetitions):
        judgement = judge(PROBED, core_sample(draws, first_seed + repetition * SEEDS))
        if judgement.verdict != "accepted":
            found.append((repetition, judgement.findings[0].text))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--repetitions", type=int, default=200)
    parser.add_argument("--draws", type=int, default=5000)
    arguments = parser.parse_args()
    found = false_alarms(arguments.repetitions, arguments.draws)
    for repetition, text in found:
        print(f"repetition {repetition}: {text}")
    count = f"{len(found)} false alarms in {arguments.repetitions} repetitions of {arguments.draws} draws"
    print(f"{count}; at most {FALSE_DISCOVERY_RATE * arguments.repetitions:g} expected")


if __name__ == "__main__":
    main()
