"""The way from nothing to a first result on a cluster and back, as docs/katib.md prints it; its names are ours."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
KATIB = (ROOT / "docs" / "katib.md").read_text()
BENCHMARK = "benchmarks/digits_katib_cluster.yaml"


def section(title: str) -> str:
    (found,) = re.findall(rf"^## {re.escape(title)}\n(.*?)(?=^## )", KATIB, re.MULTILINE | re.DOTALL)
    return str(found)


def test_the_way_back_undoes_what_the_way_there_made() -> None:
    text = section("A cluster to try it on")
    assert f" {BENCHMARK} > mine.yaml" in text
    assert (ROOT / BENCHMARK).read_text().count("tuneoff:0.1.0") == 1  # what its `sed` replaces
    made = re.findall(r"^    (kind|k3d|gcloud \w+) .*\bcreate\b", text, re.MULTILINE)
    assert sorted(made) == sorted(re.findall(r"^    (kind|k3d|gcloud \w+) .*\bdelete\b", text, re.MULTILINE))
    assert len(made) == 4


def test_every_variable_of_the_cluster_s_tests_and_every_build_argument_is_documented() -> None:
    sources = [path.read_text() for path in (ROOT / "tests" / "e2e").glob("*cluster*.py")]
    variables = set(re.findall(r"TUNEOFF_TEST_[A-Z]+", "".join(sources)))
    assert len(variables) == 3
    assert {name for name in variables if f"{name}=" not in section("The tests on a cluster")} == set()
    arguments = set(re.findall(r"^ARG ([A-Z_]+)", (ROOT / "Containerfile").read_text(), re.MULTILINE))
    assert "EXTRAS" in arguments
    assert {name for name in arguments if f"`--build-arg {name}=" not in section("The trials' image")} == set()
