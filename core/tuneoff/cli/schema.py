"""`tuneoff schema`: the JSON Schema of what people write, or of what tuneoff writes."""

from __future__ import annotations

import argparse

from tuneoff.base.output import write_json

NAME = "schema"
HELP = "print the JSON Schema of the experiment file, of a price file, or of run.json"
EXAMPLE = "tuneoff schema --run"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--run", action="store_true", help="of a run's record, run.json, instead of the experiment file")
    group.add_argument("--prices", action="store_true", help="of a price file, which the key `prices` of the experiment names")


def execute(arguments: argparse.Namespace) -> int:
    if arguments.run:
        from tuneoff.record.store import run_json_schema

        write_json(run_json_schema())
    elif arguments.prices:
        from tuneoff.experiment.matrix_parts import price_file_schema

        write_json(price_file_schema())
    else:
        from tuneoff.experiment.schema import json_schema

        write_json(json_schema())
    return 0
