"""Write a package or files from templates, in which marks like @NAME@ stand for words."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tuneoff.errors import ExperimentError, ResultsError

if TYPE_CHECKING:
    from tuneoff.registry import Kind

TEMPLATES = Path(__file__).parent / "templates"
SUFFIX = ".tmpl"
NAME_PATTERN = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


def camel_case(name: str) -> str:
    """Return `MyName` for `my-name`."""
    return "".join(word.capitalize() for word in name.split("-"))


def check_name(kind: Kind, what: str, name: str, example: str) -> None:
    """Refuse names that make no package, and those of installed plugins of a kind; `what`: how a user calls it ("an adapter").

    Raises:
        ExperimentError: one line.
    """
    from tuneoff.registry import scan

    if not NAME_PATTERN.fullmatch(name):
        rule = f"{what}'s name must be lower-case words of letters and digits joined by hyphens, but got {name!r}"
        raise ExperimentError(f"{rule}; choose one like {example}")
    if name in {plugin.name for plugin in scan(kind)}:
        raise ExperimentError(f"{what} named {name!r} is installed already; choose another name")


def write_templates(
    sources: Sequence[Path], folder: Path, words: Mapping[str, str], moved: Mapping[str, str] | None = None
) -> list[Path]:
    """Write the templates below `sources` into a new or empty folder and return the files; `moved`: which go elsewhere in it.

    Raises:
        ResultsError: the folder is not empty, or cannot be written.
    """
    written = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise ResultsError(f"{folder} must be a new or empty folder, but has files; choose another --output")
        for base, template in [(one, path) for one in sources for path in sorted(one.rglob(f"*{SUFFIX}"))]:
            name = _filled(str(template.relative_to(base)).removesuffix(SUFFIX), words)
            path = folder / (moved or {}).get(name, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(_filled(template.read_text(), words))
            written.append(path)
    except OSError as error:
        raise ResultsError(f"{folder} cannot be written: {error.strerror}; choose another --output") from error
    return written


def _filled(text: str, words: Mapping[str, str]) -> str:
    for mark, word in words.items():
        text = text.replace(mark, word)
    return text
