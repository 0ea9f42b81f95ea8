"""A trial of the script of Syne Tune, as traincode_report_end.py of its tutorial: it reports once, at its end."""

from __future__ import annotations

import argparse
import json
import time

from benchmarks.speed.bare.documented.digits import end_at_once, train, trainings


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--index", type=int)
    parser.add_argument("--trainings")
    parser.add_argument("--changed", type=int)
    options, _ = parser.parse_known_args()
    training = trainings(options.trainings)[options.index]
    if options.changed:
        end_at_once()
        report = {"accuracy": train(training), "st_worker_timestamp": time.time(), "st_worker_time": 0.0, "st_worker_iter": 0}
        print(f"[tune-metric]: {json.dumps(report)}", flush=True)
        return
    from syne_tune import Reporter

    Reporter()(accuracy=train(training))


if __name__ == "__main__":
    main()
