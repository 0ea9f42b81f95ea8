"""HTML read as a browser would read it, and what must hold of a page: the checks, which say what is wrong in one line each."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from itertools import pairwise

VOID = frozenset(("meta", "link", "br", "hr", "img", "input", "wbr", "col", "base", "area", "embed", "source", "track"))
LOADING = {"src", "srcset", "data", "action", "formaction", "poster", "background", "ping", "manifest"}
SCHEME = re.compile(r"\s*[a-zA-Z][a-zA-Z0-9+.-]*:")


@dataclass(slots=True)
class Element:
    """An element with its attributes, the elements above it, and all text in it."""

    tag: str
    attributes: dict[str, str]
    above: tuple[str, ...]
    text: str = ""
    children: list[str] = field(default_factory=list)


class Document(HTMLParser):
    """The elements of a page, and where its tags do not nest."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[Element] = []
        self.faults: list[str] = []
        self._open: list[Element] = []
        self.feed(text)
        self.close()
        self.faults += [f"<{one.tag}> is never closed" for one in self._open]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        repeated = [name for name, count in Counter(name for name, _ in attrs).items() if count > 1]
        self.faults += [f"<{tag}> has {name!r} twice" for name in repeated]
        found = Element(tag, {name: value or "" for name, value in attrs}, tuple(one.tag for one in self._open))
        if self._open:
            self._open[-1].children.append(tag)
        self.elements.append(found)
        if tag not in VOID:
            self._open.append(found)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self._open.pop()

    def handle_endtag(self, tag: str) -> None:
        if not self._open or self._open[-1].tag != tag:
            self.faults.append(f"</{tag}> closes nothing; open are {', '.join(one.tag for one in self._open[-3:])}")
            if any(one.tag == tag for one in self._open):
                while self._open.pop().tag != tag:
                    pass
            return
        self._open.pop()

    def handle_data(self, data: str) -> None:
        for one in self._open:
            one.text += data

    def all(self, *tags: str) -> list[Element]:
        """Return the elements of these names."""
        return [one for one in self.elements if one.tag in tags]


def faults(text: str) -> list[str]:
    """Return everything that is wrong with a page."""
    document = Document(text)
    return [
        *document.faults,
        *_doctype(text),
        *_headings(document),
        *_anchors(document),
        *_loads(document),
        *_tables(document),
        *_landmarks(document),
        *_names(document),
    ]


def _doctype(text: str) -> Iterator[str]:
    if not text.lstrip().lower().startswith("<!doctype html>"):
        yield "the page does not begin with its doctype"


def _headings(document: Document) -> Iterator[str]:
    levels = [int(one.tag[1]) for one in document.all("h1", "h2", "h3", "h4", "h5", "h6")]
    if levels.count(1) != 1 or levels[:1] != [1]:
        yield f"a page must have one h1, as its first heading, but has {levels[:3]}"
    for before, after in pairwise(levels):
        if after > before + 1:
            yield f"h{after} follows h{before}"


def _anchors(document: Document) -> Iterator[str]:
    ids = Counter(one.attributes["id"] for one in document.elements if "id" in one.attributes)
    yield from (f"id {name!r} is there {count} times" for name, count in ids.items() if count > 1)
    for one in document.elements:
        target = one.attributes.get("href", one.attributes.get("xlink:href", ""))
        if target.startswith("#") and target[1:] not in ids:
            yield f"<{one.tag}> leads to {target}, which is nowhere"
        for name in ("aria-labelledby", "aria-describedby"):
            for wanted in one.attributes.get(name, "").split():
                if wanted not in ids:
                    yield f"{name} names {wanted!r}, which is nowhere"


def _loads(document: Document) -> Iterator[str]:
    """Yield what would be loaded, run or left for: a link may lead into the page, or to a relative path."""
    policies = [one for one in document.all("meta") if one.attributes.get("http-equiv") == "Content-Security-Policy"]
    if len(policies) != 1 or not policies[0].attributes.get("content", "").startswith("default-src 'none'"):
        yield "there is no policy that loads nothing"
    for one in document.elements:
        yield from (f"<{one.tag}> has the handler {name!r}" for name in one.attributes if name.startswith("on"))
        yield from (f"<{one.tag}> loads {one.attributes[name][:40]!r}" for name in LOADING & one.attributes.keys())
        target = one.attributes.get("href", "")
        if one.tag == "link" and not target.startswith("data:"):
            yield f"<link> loads {target[:40]!r}"
        elif one.tag != "link" and (SCHEME.match(target) or target.startswith(("//", "/"))):
            yield f"<{one.tag}> leads out to {target[:40]!r}"
        style = one.attributes.get("style", "") + (one.text if one.tag == "style" else "")
        if re.search(r"url\((?!#)|@import|expression\(", style):
            yield f"the style of <{one.tag}> loads something"
        if one.tag in ("iframe", "object", "embed", "base", "form", "foreignobject"):
            yield f"<{one.tag}> is there"
    if len(document.all("script")) > 1:
        yield f"there are {len(document.all('script'))} scripts"


def _tables(document: Document) -> Iterator[str]:
    for one in document.all("table"):
        if one.children[:1] != ["caption"]:
            yield f"a table begins with {one.children[:1]}, not with its caption"
    for one in document.all("th"):
        if one.attributes.get("scope") not in ("col", "row", "rowgroup", "colgroup"):
            yield f"the heading {one.text[:20]!r} has no scope"
    for one in document.elements:
        if "scroll" in one.attributes.get("class", "").split():
            named = one.attributes.get("tabindex") == "0" and one.attributes.get("role") == "region"
            if not named or not one.attributes.get("aria-label"):
                yield "a region that scrolls cannot be reached by keyboard, or has no name"


def _landmarks(document: Document) -> Iterator[str]:
    for tag in ("main", "header", "footer", "title"):
        count = len([one for one in document.all(tag) if "svg" not in one.above])
        if count != 1:
            yield f"there are {count} of <{tag}>"
    if document.elements and not document.all("html")[0].attributes.get("lang"):
        yield "the language is not named"


def _names(document: Document) -> Iterator[str]:
    for one in document.all("a", "button", "summary", "h1", "h2", "h3"):
        if not one.text.strip():
            yield f"a <{one.tag}> has no text"
    for one in document.all("svg"):
        hidden = one.attributes.get("aria-hidden") == "true"
        if not hidden and not (one.attributes.get("aria-labelledby") or one.attributes.get("aria-label")):
            yield "a drawing has no alternative text"
