"""The way from a bare cluster to a first result, as docs/katib.md prints it: its file is the benchmark's, its names are ours."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
KATIB = (ROOT / "docs" / "katib.md").read_text()
BENCHMARK = "benchmarks/digits_katib_cluster.yaml"


def section(title: str) -> str:
    (found,) = re.findall(rf"^## {re.escape(title)}\n(.*?)(?=^## )", KATIB, re.MULTILINE | re.DOTALL)
    return str(found)


def test_the_file_that_is_printed_is_the_benchmark() -> None:
    text = section("A cluster on one machine")
    blocks = ["\n".join(line[4:] for line in block.splitlines()) for block in re.findall(r"(?:^    .*\n)+", text, re.MULTILINE)]
    (printed,) = [block for block in blocks if block.startswith("name: ")]
    assert yaml.safe_load(printed) == yaml.safe_load((ROOT / BENCHMARK).read_text())
    assert f"tuneoff run {BENCHMARK}" in text
    assert "export KUBECONFIG=" in text


def test_every_variable_of_the_cluster_s_tests_and_every_build_argument_is_documented() -> None:
    sources = [path.read_text() for path in (ROOT / "tests" / "e2e").glob("*cluster*.py")]
    variables = set(re.findall(r"TUNEOFF_TEST_[A-Z]+", "".join(sources)))
    assert len(variables) == 3
    assert {name for name in variables if f"{name}=" not in section("The tests on a cluster")} == set()
    arguments = set(re.findall(r"^ARG ([A-Z_]+)", (ROOT / "Containerfile").read_text(), re.MULTILINE))
    assert "EXTRAS" in arguments
    assert {name for name in arguments if f"`--build-arg {name}=" not in section("The trials' image")} == set()
