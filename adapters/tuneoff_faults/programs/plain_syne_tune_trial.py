"""The script that Syne Tune starts for each trial of its plain program."""

from __future__ import annotations

import argparse

from syne_tune import Reporter

from tuneoff_faults.plain import PlainTask


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--index", type=int, required=True)
    parser.add_argument("--folder", required=True)
    options, _ = parser.parse_known_args()
    report = Reporter()
    for epoch, metrics in PlainTask.read(options.folder).train(options.index):
        report(epoch=epoch, **metrics)


if __name__ == "__main__":
    main()
