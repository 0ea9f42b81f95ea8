"""Change the bytes of a file, whatever it holds."""

from __future__ import annotations

import random
from collections.abc import Callable

TOKENS = (
    *(b"null", b"-1", b"1e999", b'""', b"[]", b"{}", b"\n", b"\r\n", b"\r", b"\xff", b"\xfe\xff", b"\x00", b"NaN"),
    *(b"Infinity", b"true", b"\t", b": ", b"- ", b"[", b"]", b"{", b"}", b"&a ", b"*a", b"<<: ", b"!!", b"|\n", b"#"),
    *(b"'", b'"', b",", b"\\", b"\\ud800", b"\\u0000", b"\xed\xa0\x80", b"\xc0\x80", b"\xe2\x80\xa8", b"\xef\xbb\xbf"),
    *(b"\x1b[31m", b"9" * 400, b"9" * 5000, b"[" * 3000, b'{"a":' * 3000),
)
Change = Callable[[bytes, bytes, random.Random], bytes]  # the content, another file's content, chance


def _span(content: bytes, chance: random.Random) -> tuple[int, int]:
    start = chance.randrange(len(content) + 1)
    return start, min(len(content), start + chance.choice((1, 1, 10, 100, 1000)))


def truncate(content: bytes, other: bytes, chance: random.Random) -> bytes:
    return content[: chance.randrange(len(content) + 1)]


def behead(content: bytes, other: bytes, chance: random.Random) -> bytes:
    return content[chance.randrange(len(content) + 1) :]


def flip(content: bytes, other: bytes, chance: random.Random) -> bytes:
    changed = bytearray(content)
    for _ in range(chance.choice((1, 1, 2, 10, 100)) if content else 0):
        changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
    return bytes(changed)


def cut(content: bytes, other: bytes, chance: random.Random) -> bytes:
    start, end = _span(content, chance)
    return content[:start] + content[end:]


def repeat(content: bytes, other: bytes, chance: random.Random) -> bytes:
    start, end = _span(content, chance)
    return content[:end] + content[start:end] * chance.choice((1, 2, 100, 3000)) + content[end:]


def splice(content: bytes, other: bytes, chance: random.Random) -> bytes:
    start, end = _span(content, chance)
    first, last = _span(other, chance)
    return content[:start] + other[first:last] + content[end:]


def token(content: bytes, other: bytes, chance: random.Random) -> bytes:
    for _ in range(chance.choice((1, 1, 3, 20))):
        start, end = _span(content, chance)
        content = content[:start] + chance.choice(TOKENS) + content[end if chance.random() < 0.3 else start :]
    return content


def random_bytes(content: bytes, other: bytes, chance: random.Random) -> bytes:
    start, _ = _span(content, chance)
    return content[:start] + chance.randbytes(chance.choice((1, 16, 500))) + content[start:]


def lines(content: bytes, other: bytes, chance: random.Random) -> bytes:
    """Remove, double, exchange or indent lines, or put one of another file between them."""
    parts = content.split(b"\n")
    for _ in range(chance.choice((1, 1, 3))):
        place, kind = chance.randrange(len(parts)), chance.randrange(5)
        if kind == 0 and len(parts) > 1:
            del parts[place]
        elif kind == 1:
            parts.insert(place, parts[place])
        elif kind == 2:
            second = chance.randrange(len(parts))
            parts[place], parts[second] = parts[second], parts[place]
        elif kind == 3:
            parts[place] = chance.choice((b" ", b"  ", b"\t", b"- ")) + parts[place]
        else:
            parts.insert(place, chance.choice(other.split(b"\n")))
    return b"\n".join(parts)


def ends(content: bytes, other: bytes, chance: random.Random) -> bytes:
    """Change the ends of lines, or what stands before the first and after the last."""
    return chance.choice(
        (
            content.replace(b"\n", b"\r\n"),
            content.replace(b"\n", b"\r"),
            b"\xef\xbb\xbf" + content,
            b"\xef\xbb\xbf\xef\xbb\xbf" + content,
            content + b"\x00" * 1000,
            content + b'{"type":"torn',
            content.rstrip(b"\n"),
            content.replace(b"  ", b"\t"),
            b"\n" * 1000 + content,
            content + content,
        )
    )


def encoding(content: bytes, other: bytes, chance: random.Random) -> bytes:
    text = content.decode("utf-8", errors="replace")
    return text.encode(chance.choice(("utf-16", "utf-16-be", "utf-32", "cp500", "utf-7")), errors="replace")


def nothing(content: bytes, other: bytes, chance: random.Random) -> bytes:
    return chance.choice((b"", b"\n", b"\x00", b" ", b"null", b"{}", b"[]", b"---\n"))


CHANGES: dict[str, Change] = {
    "truncate": truncate,
    "behead": behead,
    "flip": flip,
    "cut": cut,
    "repeat": repeat,
    "splice": splice,
    "token": token,
    "random bytes": random_bytes,
    "lines": lines,
    "ends": ends,
    "encoding": encoding,
    "nothing": nothing,
}
