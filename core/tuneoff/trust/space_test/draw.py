"""`python -m tuneoff.trust.space_test.draw REQUEST.json`: the process in which one adapter draws. It alone imports a framework.

Before it answers it writes `draws.jsonl` into the folder of the run, one configuration a line.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import traceback
from collections.abc import Sequence
from dataclasses import asdict, dataclass
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """What an adapter gave.

    `problems`: what is wrong with its translation, by dimension; None: that was not tested, `mapping_text` says why.
    """

    state: str
    text: str = ""
    configurations: Sequence[dict[str, Any]] = ()
    problems: dict[str, list[str]] | None = None
    mapping_text: str = ""


def main(request: dict[str, Any]) -> dict[str, Any]:
    """Return the drawing, as far as its configurations, which are in the file."""
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    return asdict(_answer(read_context(Path(request["run_dir"])), request["count"]))


def _answer(context: RunContext, count: int) -> Drawing:
    state, text = FAILED, ""
    adapter: Adapter | None = None
    try:
        adapter = load_target(context.spec.adapter_target)(context)
        with (context.run_dir / DRAWS).open("w", buffering=1) as file:  # by lines: what a killed process drew is told
            for configuration in islice(adapter.draw(count), count):
                file.write(json.dumps(dict(configuration)) + "\n")  # NaN and infinities too: they are for the test of the bounds
        state = DRAWN
    except NotImplementedError as error:
        state, text = NOT_OFFERED, _line(error)
    except Exception as error:  # a framework may raise anything
        if type(error) is ExperimentError:  # of core's or the adapter's translation: the framework gave what is not in the space
            state, text = OUTSIDE, _line(error)
        else:
            traceback.print_exc()
            text = f"{type(error).__name__}: {_line(error)}"
    problems, mapping_text = (None, text) if adapter is None else _mapping(adapter)
    return Drawing(state=state, text=text, problems=problems, mapping_text=mapping_text)


def _mapping(adapter: Adapter) -> tuple[dict[str, list[str]] | None, str]:
    """Return what is wrong with the translation, by dimension, or None and why the adapter cannot tell its space."""
    try:
        return mapping_problems(adapter.context.spec.experiment.search_space, adapter.framework_space()), ""
    except NotImplementedError as error:
        return None, _line(error) or "the adapter has no `framework_space`"
    except Exception as error:  # an adapter's code may raise anything
        traceback.print_exc()
        return {WHOLE: [f"the translation failed: {type(error).__name__}: {_line(error)}"]}, ""


def _line(error: Exception) -> str:
    return " ".join(str(error).split())


if __name__ == "__main__":
    answer_request(main)
    logging.shutdown()
    sys.stdout.flush()
    os._exit(0)  # a framework's threads may not hold up the end
