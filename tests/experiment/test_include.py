"""`include:`: relative paths, deep merge, the including file wins, cycles are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from builders.refusals import refusal
from tuneoff.experiment.yaml_reader import read_merged


def _write(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        path = folder / f"{name.replace('__', '/')}.yaml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return folder / "main.yaml"


def test_the_including_file_wins_mappings_are_merged_and_another_type_or_name_replaces_the_whole(tmp_path: Path) -> None:
    path = _write(
        tmp_path,
        parts__inner="budget: {trials: 5, epochs_per_trial: 3}\nseeds: [1, 2]\nsampler: {name: tpe, n_startup_trials: 3}",
        parts__outer="include: inner.yaml\nsearch_space: {x: {type: float, low: 0, high: 1}}",
        main="include: parts/outer.yaml\nbudget: {trials: 9}\nsearch_space: {x: {type: constant, value: 1}}\nsampler: random",
    )
    assert read_merged(path) == {
        "budget": {"trials": 9, "epochs_per_trial": 3},
        "seeds": [1, 2],
        "search_space": {"x": {"type": "constant", "value": 1}},
        "sampler": {"name": "random"},
    }


@pytest.mark.parametrize(
    ("files", "problem"),
    [
        ({"main": "include: main.yaml"}, "main.yaml -> main.yaml; remove one"),
        ({"main": "include: b.yaml", "b": "include: main.yaml"}, "main.yaml -> b.yaml -> main.yaml"),
        ({"main": "include: none.yaml"}, "main.yaml: include: "),
        ({"main": "include: none.yaml"}, "none.yaml: the file cannot be read: No such file or directory; check the path"),
        ({"main": "include: b.yaml", "b": "include: none.yaml"}, "b.yaml: include: "),
        ({"main": "include: [1]"}, "include: must be a path or a list of paths, but got [1]"),
        ({"main": "include: []"}, "include: must be a path"),
        (
            {
                **{f"level{n}": f"include: [{', '.join([f'level{n + 1}.yaml'] * 10)}]" for n in range(9)},
                "level9": "a: 1",
                "main": "include: level0.yaml",
            },
            "at most 100 files may be included",
        ),
    ],
)
def test_cycles_wrong_paths_and_includes_that_multiply_are_one_line(tmp_path: Path, files: dict[str, str], problem: str) -> None:
    assert problem in refusal(read_merged, _write(tmp_path, **files))


def test_links_in_a_circle_are_one_line(tmp_path: Path) -> None:
    (tmp_path / "main.yaml").symlink_to("main.yaml")
    assert "main.yaml: the file cannot be read: Too many levels of symbolic links" in refusal(read_merged, tmp_path / "main.yaml")
