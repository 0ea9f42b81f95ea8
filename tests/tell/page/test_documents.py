"""The checks of a page find each planted defect."""

from __future__ import annotations

import pytest

from tell.page.documents import faults

SOUND = """<!doctype html><html lang="en"><head><title>t</title>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'"><style>a{color:red}</style></head><body>
<header><h1 id="x">a</h1></header><nav><a href="#x">x</a></nav><main><h2>b</h2><h3>c</h3>
<div class="scroll" tabindex="0" role="region" aria-label="r">
<table><caption>k</caption><tr><th scope="col">h</th></tr></table></div>
<svg aria-hidden="true"><path d="M0 0"/></svg><a href="../runs/a%20b/run.json">r</a></main><footer>f</footer></body></html>"""
DEFECTS = [
    ("<h3>c</h3>", "<h4>c</h4>", "h4 follows h2"),
    ("<h2>b</h2>", "<h1>b</h1>", "one h1"),
    ('href="#x"', 'href="#y"', "leads to #y"),
    ("<main>", '<main id="x">', "2 times"),
    ("../runs", "https://example.org", "leads out"),
    ("../runs", "javascript:alert(1)", "leads out"),
    ("../runs", "//example.org", "leads out"),
    ("<h3>c</h3>", '<h3>c</h3><img src="x">', "loads"),
    ("<h3>c</h3>", "<h3>c</h3><script>1</script><script>2</script>", "2 scripts"),
    ("<h3>c</h3>", '<h3 onclick="a()">c</h3>', "handler"),
    ("color:red", "background:url(x)", "style of <style>"),
    ("default-src 'none'", "default-src *", "no policy"),
    ("<caption>k</caption>", "", "not with its caption"),
    (' scope="col"', "", "no scope"),
    (' tabindex="0"', "", "keyboard"),
    ("</h2>", "", "closes nothing"),
    ("</footer>", "", "closes nothing"),
    ("<nav>", "<div>", "closes nothing"),
    ('lang="en"', "", "language"),
    (' aria-hidden="true"', "", "alternative"),
    (">x</a>", "></a>", "no text"),
    ("<!doctype html>", "", "doctype"),
]


def test_a_sound_page_has_no_fault() -> None:
    assert faults(SOUND) == []


@pytest.mark.parametrize(("old", "new", "says"), DEFECTS)
def test_a_planted_defect_is_found(old: str, new: str, says: str) -> None:
    assert SOUND.count(old) >= 1
    found = faults(SOUND.replace(old, new, 1))
    assert any(says in one for one in found), found
