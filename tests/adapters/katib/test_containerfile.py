"""The image of the trials, as far as it can be judged without a container engine."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


def instructions(text: str) -> list[tuple[str, str]]:
    """Return (instruction, arguments), with continued lines joined and comments left out."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    joined = "\n".join(lines).replace("\\\n", " ")
    return [(word, rest.strip()) for word, _, rest in (line.partition(" ") for line in joined.splitlines() if line.strip())]


@pytest.fixture(scope="module")
def image() -> list[tuple[str, str]]:
    return instructions((ROOT / "Containerfile").read_text())


def test_all_that_is_copied_is_there_and_not_ignored(image: list[tuple[str, str]]) -> None:
    ignored = (ROOT / ".dockerignore").read_text().split()
    copied = [rest.split()[:-1] for word, rest in image if word == "COPY" and not rest.startswith("--from=")]
    names = [name for names in copied for name in names]
    assert "core" in names
    for name in names:
        assert (ROOT / name).exists(), name
        assert f"!{name}" in ignored, name


def test_it_runs_as_a_numbered_user_that_is_not_root(image: list[tuple[str, str]]) -> None:
    last_stage = image[max(index for index, (word, _) in enumerate(image) if word == "FROM") :]
    (user,) = [rest for word, rest in last_stage if word == "USER"]
    assert int(user.split(":")[0]) > 0  # runAsNonRoot refuses a name: only a number tells that it is not root


def test_no_secret_is_built_in_and_no_package_is_looked_up_in_two_indexes(image: list[tuple[str, str]]) -> None:
    secret = re.compile(r"password|passwd|token|secret|credential|api_?key", re.IGNORECASE)
    assert not any(secret.search(rest) for word, rest in image if word in ("ARG", "ENV", "LABEL"))
    for command in (command for word, rest in image if word == "RUN" for command in rest.split("&&")):
        assert "--extra-index-url" not in command
        assert "--index-url" not in command or "--no-deps" in command


DIGEST = re.compile(r"\S+@sha256:[0-9a-f]{64}")


def test_what_the_image_is_built_of_is_pinned(image: list[tuple[str, str]]) -> None:
    (base,) = [rest.removeprefix("BASE=") for word, rest in image if word == "ARG" and rest.startswith("BASE=")]
    assert DIGEST.fullmatch(base)
    assert not DIGEST.fullmatch("docker.io/library/python:3.11-slim")  # the test can fail
    assert {rest.split()[0] for word, rest in image if word == "FROM"} == {"${BASE}", "packages"}
    commands = [command for word, rest in image if word == "RUN" for command in rest.split("&&")]
    commands = [command for command in commands if re.search("pip (install|wheel)", command)]
    for command in commands:
        assert "--constraint constraints.txt" in command or "--no-build-isolation" in command, command
    constrained = {line.partition("==")[0] for line in (ROOT / "constraints.txt").read_text().splitlines()}
    assert {"hatchling", "packaging", "pathspec", "pluggy", "trove-classifiers"} <= constrained  # the build tools


def test_each_stage_that_uses_a_build_argument_asks_for_it(image: list[tuple[str, str]]) -> None:
    names = {rest.partition("=")[0] for word, rest in image[: [word for word, _ in image].index("FROM")] if word == "ARG"}
    assert names == {"BASE", "TORCH_INDEX", "DATASETS", "EXTRAS"}
    asked: set[str] = set()
    for word, rest in image:
        if word == "FROM":
            asked = set()
        elif word == "ARG":
            asked.add(rest)
        elif word == "RUN":
            assert {name for name in names if f"${{{name}" in rest} <= asked  # else it would be empty there
