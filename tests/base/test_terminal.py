"""What a terminal shows of a line at last."""

from __future__ import annotations

import pytest

from tuneoff.base.terminal import last_shown, shown_line


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("loss=0.5\r\n", "loss=0.5"),
        ("\r 50%|###  |\r100%|#####|\rloss=0.5\n", "loss=0.5"),
        ("loss=0.5\r", "loss=0.5"),
        ("\x1b[2K\r\x1b[1;32mloss\x1b[0m=\x1b[38;5;4m0.5\x1b[0m\x1b[K\n", "loss=0.5"),
        ("\x1b]0;a title\x07\x1b]8;;http://x\x1b\\loss=0.5\x1b]8;;\x1b\\", "loss=0.5"),
        ("\x1b[?25l\x1b[A\x1b7loss=0.5\x1b8\x1b[?25h", "loss=0.5"),
        ("\x9b31mloss=0.5\x9b0m", "loss=0.5"),
        ("1/3\b\b\b2/3\b\b\bloss=0.5", "loss=0.5"),
        ("\b\b\bloss=0.5", "loss=0.5"),
        ("\0\0loss=\x070.5\x7f", "loss=0.5"),
        ("loss=0.5\x1b[", "loss=0.5"),
        ("\x1b[0m \r \n", ""),
        ("a\tb  c", "a\tb  c"),
    ],
)
def test_codes_and_what_was_drawn_over_are_gone(line: str, shown: str) -> None:
    assert shown_line(line) == shown


def test_the_last_line_with_something_in_it_is_shown() -> None:
    assert last_shown("first\n\x1b[31mValueError: x\x1b[0m\n\r   \r\n\n") == "ValueError: x"
    assert last_shown("\x1b[0m\n") == last_shown("") == ""
