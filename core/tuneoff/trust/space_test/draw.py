"""`python -m tuneoff.trust.space_test.draw REQUEST.json`: the process in which one adapter draws. It alone imports a framework.

Before it answers it writes `draws.jsonl` into the folder of the run, one configuration a line.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import traceback
from itertools import islice
from pathlib import Path
from typing import Any

from tuneoff.adapter import Adapter
from tuneoff.base.targets import load_target
from tuneoff.errors import ExperimentError
from tuneoff.record.run_context import RunContext, read_context
from tuneoff.run.child import answer_request
from tuneoff.trust.space_test.mapping import WHOLE, mapping_problems

DRAWS = "draws.jsonl"
DRAWN, NOT_OFFERED, OUTSIDE, FAILED = "drawn", "not_offered", "outside", "failed"  # states of an answer


def main(request: dict[str, Any]) -> dict[str, Any]:
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    return _answer(read_context(Path(request["run_dir"])), request["count"])


def _answer(context: RunContext, count: int) -> dict[str, Any]:
    state, text = FAILED, ""
    adapter: Adapter | None = None
    try:
        adapter = load_target(context.spec.adapter_target)(context)
        _write_draws(adapter, context.run_dir / DRAWS, count)
        state = DRAWN
    except NotImplementedError as error:
        state, text = NOT_OFFERED, _line(error)
    except Exception as error:  # a framework may raise anything
        if type(error) is ExperimentError:  # of core's or the adapter's translation: the framework gave what is not in the space
            state, text = OUTSIDE, _line(error)
        else:
            traceback.print_exc()
            text = f"{type(error).__name__}: {_line(error)}"
    return {"state": state, "text": text, "mapping": None if adapter is None else _mapping(adapter)}


def _write_draws(adapter: Adapter, path: Path, count: int) -> None:
    with path.open("w", buffering=1) as file:  # by lines: what a killed process drew is told
        for configuration in islice(adapter.draw(count), count):
            file.write(json.dumps(dict(configuration)) + "\n")  # NaN and infinities too: they are for the test of the bounds


def _mapping(adapter: Adapter) -> dict[str, Any]:
    """Return what is wrong with the translation, by dimension; `problems` is null where the adapter cannot tell its space."""
    try:
        found = mapping_problems(adapter.context.spec.experiment.search_space, adapter.framework_space())
        return {"problems": found, "text": ""}
    except NotImplementedError as error:
        return {"problems": None, "text": _line(error) or "the adapter has no `framework_space`"}
    except Exception as error:  # an adapter's code may raise anything
        traceback.print_exc()
        return {"problems": {WHOLE: [f"the translation failed: {type(error).__name__}: {_line(error)}"]}, "text": ""}


def _line(error: Exception) -> str:
    return " ".join(str(error).split())


if __name__ == "__main__":
    answer_request(main)
    logging.shutdown()
    sys.stdout.flush()
    os._exit(0)  # a framework's threads may not hold up the end
