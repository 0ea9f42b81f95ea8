"""Claims across the tasks of a file: not built yet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tuneoff.answers.cells import Matrix
from tuneoff.answers.frozen import Frozen
from tuneoff.answers.model import AcrossTasks, Question, Scope


def across_tasks(matrix: Matrix, questions: Mapping[Scope, Sequence[Question]], plan: Frozen) -> Iterator[AcrossTasks]:
    yield from ()
