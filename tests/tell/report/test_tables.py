"""Tables fit the terminal, figures and names have a form of their own; what tables say: tests/corpus."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence

import pytest

from builders.made_results import Entry
from corpus.scenarios import FOUR, SCENARIOS, choice, runs
from tuneoff.base.format import figure, folded, number, score, shown_unit, wrapped
from tuneoff.judge.answers.compute import answers
from tuneoff.judge.choice.choose import choose
from tuneoff.judge.groups import in_plan_order
from tuneoff.registry import list_adapters
from tuneoff.tell.report.declared import text
from tuneoff.tell.report.tables import LEAST_COLUMNS, TABLE_WIDTH, WIDTH, ending, render, table


@pytest.mark.parametrize("width", [80, 120, None])
@pytest.mark.parametrize("seeds", [1, 3, 10])
def test_the_ending_fits_the_terminal_and_32_lines(width: int | None, seeds: int) -> None:
    entries = [*FOUR, Entry("optuna", runs(4100, 25, "t"), sampler="tpe"), Entry("katib", runs(1, 1, "k"), emulated=True)]
    lines = ending(choose(answers(choice(*entries, seeds=seeds))), width)
    assert max(map(len, lines)) <= (width or TABLE_WIDTH)
    assert max(map(len, lines[lines.index("") :])) <= WIDTH, "below the table are sentences"
    assert len(lines) <= 30  # and the paths of the report and of the results


def test_a_narrow_terminal_has_fewer_columns_and_never_a_cut_one() -> None:
    found = choose(answers(choice(*FOUR)))
    wide, narrow = (table(found, width) for width in (80, 55))
    assert len(narrow) == len(wide)
    assert max(map(len, narrow)) <= 55
    assert all("optuna" in lines[3] for lines in (wide, narrow))
    assert len(table(found, 10)[0].split()) >= LEAST_COLUMNS


def test_of_the_table_of_figures_as_many_columns_are_shown_as_fit_the_most_important_first() -> None:
    rows = in_plan_order(SCENARIOS["four frameworks"]())
    texts = [render(rows, width) for width in (80, 120, None)]
    for width, shown in zip((80, 120), texts, strict=False):
        assert max(map(len, shown.splitlines())) <= width
    heads = [" ".join(shown.partition("───")[0].split()) for shown in texts]
    assert all(name in heads[0] for name in ("test", "JCT", "overhead", "job/", "runs"))
    assert all(name in heads[2] and name not in heads[0] for name in ("deploy", "setup", "collect", "un-deploy"))
    assert len(heads[0]) < len(heads[1]) < len(heads[2])
    assert not any(sign in shown for sign in ("…", "\x1b") for shown in texts)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.0, "0"),
        (0.1, "0.10"),
        (0.0994, "0.099"),
        (0.00123, "0.0012"),
        (1.23e-6, "1.2e-06"),
        (12.3, "12.3"),
        (4321.0, "4321"),
        (9_999_999.0, "9999999"),
        (1.234e9, "1.23e+09"),
        (-0.00123, "-0.0012"),
    ],
)
def test_a_small_figure_keeps_two_digits_and_a_large_one_is_short(value: float, shown: str) -> None:
    assert figure(value) == shown


def test_an_absurd_number_has_few_letters_units_are_the_same_and_names_are_broken_between_words_only() -> None:
    assert [number(value) for value in (1.5e300, 99_999_999_999.0, -3e15)] == ["1.5e+300", "99999999999", "-3e+15"]
    assert (shown_unit("kWh"), shown_unit("J"), shown_unit("%")) == (("J", 3.6e6), ("J", 1.0), ("%", 1.0))
    names = ("a_very_long_adapter.name:Class", "AnAdapterWithALongName", 'optuna{"storage":"x","y":1}')
    assert [*map(folded, names)] == ["a_very_long_\nadapter.name:\nClass", names[1], 'optuna{"storage":\n"x","y":1}']


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.98765, "0.9877"),
        (0.0352, "0.0352"),
        (0.00113, "0.00113"),
        (2.3548e-05, "2.35e-05"),
        (0.0, "0.0000"),
        (1234.5, "1234.5"),
    ],
)
def test_a_score_keeps_four_decimals_or_three_digits(value: float, shown: str) -> None:
    assert (score(value), score(-value)) == (shown, f"-{shown}")


def test_lines_are_wrapped_with_a_hanging_indent_and_a_shell_takes_a_command_as_it_is_broken() -> None:
    long = "  " + "word " * 30
    assert list(wrapped([long, "short"], 60))[1].startswith("    word")
    assert list(wrapped([long], None)) == [long]
    command = "tuneoff compare made.yaml --adapter serial,optuna,ray-tune --trials 10 --seeds 0 1 2 3 4"
    first, *lines = wrapped([f"! Some were busy. To repeat their seeds: {command}"], 60)
    assert (first, len(lines)) == ("! Some were busy. To repeat their seeds:", 2)
    assert max(map(len, lines)) <= 60
    script = "\n".join(["tuneoff() { echo tuneoff $#; }", *lines])
    told = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True).stdout.split()
    assert told == ["tuneoff", str(len(command.split()) - 1)]
    quoted = f"  tuneoff compare 'my {'long ' * 12}name.yaml'"
    assert list(wrapped([quoted], 60)) == [quoted]
    prose = f"{'word ' * 9}: tuneoff watch --runs results/x, which shows every run"
    assert not any(line.endswith("\\") for line in wrapped([prose, f"tuneoff says {'so ' * 20}.", " " * 70], 60))


DIGEST = "0123456789abcdef" * 4


@pytest.mark.parametrize(
    ("value", "parts"),
    [
        ({"a.bin": "0" * 64}, ["1 file (", "... together)"]),
        ({"images": DIGEST, "labels": None}, ["2 files (", "... together, 1 of them unreadable)"]),
        ({"sha256": DIGEST, "url": None, "n": 1.5}, ["sha256 0123456789ab..., n 1.5"]),
        (["cpu", "gpu"], ["cpu, gpu"]),
        ((1, 1), ["1"]),
        ({"options": {}}, ["–"]),
    ],
)
def test_declared_values_are_short_and_digests_are_cut(value: object, parts: Sequence[str]) -> None:
    assert text(value).startswith(parts[0])
    assert text(value).endswith(parts[-1])


def test_every_adapter_of_a_framework_declares_what_it_changes() -> None:
    declared = {one.plugin.name for one in list_adapters() if one.capabilities and one.capabilities.changed_defaults}
    assert declared >= {"serial", "optuna", "ray-tune", "syne-tune", "katib"}
