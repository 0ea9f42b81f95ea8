"""Label and field selectors of the Kubernetes API."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from katib_emulation.objects import Object
from katib_emulation.statuses import bad_request

Selector = Callable[[Object], bool]

FIELDS = {
    "metadata.name",
    "metadata.namespace",
    "status.phase",
    "spec.nodeName",
    "involvedObject.kind",
    "involvedObject.namespace",
    "involvedObject.name",
    "involvedObject.uid",
    "involvedObject.apiVersion",
    "involvedObject.resourceVersion",
    "involvedObject.fieldPath",
    "reason",
    "type",
}

_NAME = r"(?:[A-Za-z0-9][-A-Za-z0-9_.]*/)?[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?"
_VALUE = r"(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?)?"
_EQUALITY = re.compile(rf"\s*({_NAME})\s*(==|=|!=)\s*({_VALUE})\s*")
_SET = re.compile(rf"\s*({_NAME})\s+(in|notin)\s*\(([^()]*)\)\s*")
_EXISTS = re.compile(rf"\s*(!?)\s*({_NAME})\s*")


def label_selector(text: str | None) -> Selector:
    """Return the test of a `labelSelector`: `a=b`, `a!=b`, `a in (b,c)`, `a notin (b)`, `a`, `!a`, joined by commas.

    Raises:
        ApiError: 400, it cannot be parsed.
    """
    tests = [_label_test(part) for part in _parts(text or "")]
    return lambda obj: all(test(obj["metadata"].get("labels") or {}) for test in tests)


def field_selector(text: str | None) -> Selector:
    """Return the test of a `fieldSelector`: `metadata.name=x,involvedObject.kind!=Pod`.

    Raises:
        ApiError: 400, it cannot be parsed, or names a field by which nothing is selected.
    """
    tests: list[Selector] = []
    for part in filter(None, (text or "").split(",")):
        match = re.fullmatch(r"\s*([A-Za-z.]+)\s*(==|=|!=)(.*)", part)
        if match is None:
            raise bad_request(f"invalid selector: '{text}'; can't understand '{part}'")
        name, operator, value = match.groups()
        if name not in FIELDS:
            raise bad_request(f"field label not supported: {name}")
        tests.append(_field_test(name.split("."), value.strip(), operator == "!="))
    return lambda obj: all(test(obj) for test in tests)


def _parts(text: str) -> list[str]:
    """Split at the commas outside of parentheses."""
    return [part for part in re.split(r",(?![^()]*\))", text) if part.strip()]


def _label_test(part: str) -> Callable[[Mapping[str, str]], bool]:
    if match := _EQUALITY.fullmatch(part):
        name, operator, value = match.groups()
        if operator == "!=":
            return lambda labels: labels.get(name) != value
        return lambda labels: labels.get(name) == value
    if match := _SET.fullmatch(part):
        name, operator, listed = match.groups()
        values = {value.strip() for value in listed.split(",")}
        if operator == "in":
            return lambda labels: labels.get(name) in values
        return lambda labels: labels.get(name) not in values
    if match := _EXISTS.fullmatch(part):
        absent, name = match.groups()
        return lambda labels: (name in labels) != bool(absent)
    raise bad_request(
        f"unable to parse requirement: found '{part.strip()}', expected a label selector such as a=b, a!=b, a in (b,c) or a"
    )


def _field_test(path: list[str], value: str, negated: bool) -> Selector:
    def test(obj: Object) -> bool:
        found: Any = obj
        for step in path:
            found = (found or {}).get(step)
        return ((found or "") == value) != negated

    return test
