"""The map of a plan: it fits, one sign per run where there is room, and no failure is hidden where there is none."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tuneoff.tell.live.screen import IMPORTANCE, LEAST_LABEL, SIGNS, STYLES, Picture, cut, most_important, picture
from tuneoff.tell.live.state import STATUSES, SeedCell, SeedRow


def row(text: str, statuses: str, adapter: str = "serial") -> SeedRow:
    """Return a row by its signs; a blank is no run."""
    of = {sign: status for status, sign in SIGNS.items()}
    cells = [
        SeedCell(run_id=f"{text}{seed}", name=text, seed=seed, status=of[sign]) if sign in of else None
        for seed, sign in enumerate(statuses)
    ]
    return SeedRow(text=text, adapter=adapter, cells=tuple(cells))


def texts(found: Picture) -> list[str]:
    return ["".join(text for text, _ in line) for line in found.lines]


def test_a_row_per_cell_of_the_matrix_where_they_fit() -> None:
    found = picture([row("serial random", "##F>."), row("optuna", "#- ..")], 40, 5)
    assert texts(found) == ["serial random ##F>.", "optuna        #- .."]
    assert found.runs_per_sign == 1


def test_rows_stand_side_by_side_where_the_lines_are_few() -> None:
    rows = [row(f"row{number}", "#.") for number in range(6)]
    assert texts(picture(rows, 40, 3)) == ["row0 #.  row3 #.", "row1 #.  row4 #.", "row2 #.  row5 #."]


def test_a_long_label_is_cut_in_its_middle() -> None:
    rows = [row("adapter-with-a-long-name random training_set=300", "#" * 10)]
    (line,) = texts(picture(rows, 30, 4))
    assert (len(line), line[-10:]) == (30, "#" * 10)
    assert line.startswith("adapter-w")
    assert ".." in line


def test_a_large_plan_has_lines_per_adapter() -> None:
    rows = [row(f"{adapter} variant {number}", "#" * 20, adapter) for adapter in ("serial", "optuna") for number in range(30)]
    found = picture(rows, 80, 8)
    assert found.runs_per_sign > 1
    assert len(found.lines) <= 8
    assert texts(found)[0].startswith("serial ")


STATUS_SIGNS = "".join(SIGNS.values())
rows_of = st.lists(
    st.tuples(
        st.text(min_size=1, max_size=30), st.text(alphabet=STATUS_SIGNS + " ", min_size=1, max_size=40), st.sampled_from("abcdef")
    ),
    min_size=1,
    max_size=40,
)


@given(rows=rows_of, width=st.integers(10, 200), most=st.integers(1, 20))
def test_the_map_fits_and_shows_every_status_that_needs_attention(
    rows: list[tuple[str, str, str]], width: int, most: int
) -> None:
    longest = max(len(signs) for _, signs, _ in rows)
    made = [row(text, signs.ljust(longest), adapter * 3) for text, signs, adapter in rows]
    found = picture(made, width, most)
    assert len(found.lines) <= most
    assert all(len(line) <= width for line in texts(found))
    present = {cell.status for one in made for cell in one.cells if cell is not None}
    shown = "".join(text for line in found.lines for text, style in line if style)
    if present:
        assert SIGNS[most_important(list(present))] in shown
    if found.runs_per_sign == 1:
        assert sorted(shown) == sorted(sign for _, signs, _ in rows for sign in signs.replace(" ", ""))


def test_a_failure_is_never_hidden_by_what_went_well() -> None:
    found = picture([row("x", "#" * 400 + "F" + "." * 400)], 40, 1)
    assert "F" in texts(found)[0]
    assert "F" not in texts(picture([row("x", "#" * 400 + "#" + "." * 400)], 40, 1))[0]


def test_every_status_has_a_sign_of_its_own_and_a_place() -> None:
    assert set(SIGNS) == set(STYLES) == set(IMPORTANCE) == set(STATUSES)
    assert len(set(SIGNS.values())) == len(SIGNS)


def test_a_text_is_cut_to_its_width() -> None:
    assert cut("abcdefghijkl", 10) == "abcd..ijkl"
    assert cut("abcdefghijkl", 5) == "abcde"
    assert cut("short", LEAST_LABEL) == "short"
