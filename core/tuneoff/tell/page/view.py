"""What the templates show: texts, in their order, with nothing left to compute."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A figure: its text, what stands below it, `~` where it is estimated, and why it is missing."""

    text: str
    below: str = ""
    mark: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A text that leads to a place of the page, or to a file by a relative path; "": to nothing."""

    text: str
    href: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """What a run came to: never told by colour alone."""

    name: str  # also of its CSS class
    symbol: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One seed of a pair."""

    seed: int
    one: Link
    other: Link
    difference: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Sensitivity:
    """Other reasonable choices with one outcome."""

    symbol: str
    css: str
    outcome: str
    choices: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictRow:
    """A pair on a question: what is claimed, and all that it rests on."""

    one: Link
    other: Link
    outcome: str
    css: str
    symbol: str
    estimate: str
    interval: str
    n: int
    failures: str
    disturbance: str
    noise_floor: str
    sensitivities: tuple[Sensitivity, ...]
    robust: str
    seeds: str
    reason: str
    is_noise: bool
    differences: tuple[Difference, ...]
    method: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """Rows that share a scope."""

    scope: str
    rows: tuple[VerdictRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionTable:
    """The verdicts on one question. `judged`: whether any pair is."""

    name: str
    title: str
    about: str
    header: str  # of the column of estimates
    scopes: tuple[Rows, ...]
    judged: bool
    estimates: tuple[EstimateRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimateRow:
    """A framework's own figure on a question, with intervals."""

    label: Link
    scope: str
    median: str
    success: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What is claimed of a pair on a question, in a cell."""

    text: str
    symbol: str
    css: str
    amount: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GlanceScope:
    """The outcomes of a scope, by pair."""

    scope: str
    rows: tuple[tuple[tuple[str, str], tuple[Outcome, ...]], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Glance:
    """All outcomes side by side, a column per question."""

    headings: tuple[str, ...]
    scopes: tuple[GlanceScope, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameworkRow:
    """One adapter in one scope, in a table of figures."""

    label: str
    anchor: str
    emulated: bool
    cells: tuple[Cell, ...]
    same_as: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scoped:
    """Rows of a table of figures that share a scope."""

    scope: str
    rows: tuple[FrameworkRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Heading:
    """A column: its short name, its unit, and what it is."""

    text: str
    unit: str = ""
    title: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureTable:
    """A table with a row per framework."""

    name: str
    caption: str
    headings: tuple[Heading, ...]
    scopes: tuple[Scoped, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedRow:
    """One run of a group with its values."""

    seed: int
    href: str
    file: str
    status: Status
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRuns:
    """The runs behind a group's figures."""

    anchor: str
    title: str
    about: str
    headings: tuple[Heading, ...]
    rows: tuple[SeedRow, ...]
    left_out: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskTable:
    """One question over several tasks."""

    title: str
    scope: str
    about: str
    headings: tuple[Heading, ...]
    rows: tuple[tuple[str, tuple[Cell, ...]], ...]
    pairs: tuple[tuple[str, tuple[Cell, ...]], ...]
    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """A plot with the first of its rows. `svg` is empty where it is too large for the page."""

    name: str
    question: str
    caption: str
    alternative: str
    note: str
    svg: Markup
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    row_count: int
    files: tuple[Link, ...]
    runs: tuple[Link, ...] = ()  # that it shows one by one


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow:
    """A run of the plan."""

    run_id: str
    adapter: str
    sampler: str
    variant: str
    seed: int
    status: Status
    reason: str
    flags: tuple[str, ...]
    file: Link
    executions: int
    group: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """A list of names with their values."""

    title: str
    rows: tuple[tuple[str, tuple[str, ...]], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What the answer says on one question: in each place one line per claim. `question` is "" for what is of none."""

    question: str
    places: tuple[tuple[str, tuple[str, ...]], ...]

    @property
    def count(self) -> int:
        """How many claims there are."""
        return sum(len(texts) for _, texts in self.places)


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Everything on the page, in its order."""

    title: str
    facts: tuple[tuple[str, str], ...]
    statuses: tuple[tuple[Status, int], ...]
    planned: int
    banner: str  # that nothing is judged; "" where something is
    exploratory: tuple[str, ...]
    summary: tuple[Said, ...]
    more_summary: tuple[Said, ...]
    glance: Glance | None
    questions: tuple[QuestionTable, ...]
    tasks: tuple[TaskTable, ...]
    tables: tuple[FigureTable, ...]
    groups: tuple[GroupRuns, ...]
    plots: tuple[Plot, ...]
    runs: tuple[RunRow, ...]
    runs_left_out: int
    environment: tuple[Facts, ...]
    differing: tuple[Facts, ...]
    basis: tuple[Facts, ...]
    limits: tuple[str, ...]
