"""What the addresses answer: the report made once per state of the folder, errors as one line, all text escaped."""

from __future__ import annotations

import base64
import hashlib
import re
import shutil
from html import unescape
from pathlib import Path

import pytest

from builders.live_folders import Folder
from builders.live_states import state
from tell.page.documents import Document
from tuneoff.errors import MissingPackageError
from tuneoff.judge.answers.compute import answers
from tuneoff.judge.choice.choose import choose
from tuneoff.judge.results import read_results
from tuneoff.tell.live import site as module
from tuneoff.tell.live.sentences import to_json
from tuneoff.tell.live.site import LIVE, Site, rendered
from tuneoff.tell.live.state import Activity, LiveState
from tuneoff.tell.live.watcher import Watcher
from tuneoff.tell.page.report import LIVE_SCRIPT, live_section, page, render, resource

HOSTILE = "<script>alert(1)</script>\"'&\x1b[2J\x00\u202e<!-- live -->"


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path / "results")


@pytest.fixture(autouse=True)
def _look_whenever_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LOOK_EVERY_SECONDS", 0.0)


def page_of(folder: Folder) -> str:
    return Site(Watcher(folder.path), rendered).answer("/").body.decode()


def section(shown: LiveState) -> str:
    return live_section(to_json(shown), "1")


class Renderer:
    def __init__(self) -> None:
        self.count = 0

    def __call__(self, results: Path) -> str:
        self.count += 1
        return f"report {self.count}{LIVE}"


def test_the_report_is_made_once_per_state_of_the_folder_and_has_the_state_of_the_moment(folder: Folder) -> None:
    folder.take()
    site = Site(Watcher(folder.path), Renderer())
    assert all(b"report 1<" in site.answer("/").body for _ in range(3))
    running = folder.begin("serial", 0)
    assert b"report 2<" in site.answer("/").body  # its table of runs has which one runs
    running.trial("1", value=0.25)
    page = site.answer("/").body
    assert b"report 2<" in page
    assert b"0.25" in page
    folder.end("serial", 0, execution="9")
    assert all(b"report 3<" in site.answer("/").body for _ in range(2))
    folder.leave(ended=False)
    assert b"report 4<" in site.answer("/").body


def test_the_script_sees_by_the_version_that_the_report_is_another_one(folder: Folder) -> None:
    site = Site(Watcher(folder.path), Renderer())

    def versions() -> set[str]:
        return {Document(site.answer(path).body.decode()).all("section")[0].attributes["data-version"] for path in ("/", "/live")}

    before = versions()
    folder.end("serial", 0)
    assert len(before) == len(versions()) == 1
    assert before != versions()


def test_a_record_that_has_become_a_link_out_of_the_folder_is_not_served(folder: Folder, tmp_path: Path) -> None:
    folder.end("serial", 0)
    site = Site(Watcher(folder.path), Renderer())
    (record,) = folder.path.glob("runs/*/*/run.json")
    address = f"/{record.relative_to(folder.path)}"
    assert site.answer(address).status == 200
    secret = tmp_path / "secret"
    secret.write_text("a secret")
    record.unlink()
    record.symlink_to(secret)
    answer = site.answer(address)
    assert answer.status == 503
    assert b"a secret" not in answer.body


def test_an_error_is_one_line(folder: Folder) -> None:
    def lacks(results: Path) -> str:
        raise MissingPackageError("the report needs x; run: pip install x")

    def breaks(results: Path) -> str:
        raise KeyError("<planted>\n")

    lacking = Site(Watcher(folder.path), lacks).answer("/")
    assert (lacking.status, lacking.body) == (503, b"the report needs x; run: pip install x\n")
    broken = Site(Watcher(folder.path), breaks).answer("/")
    assert (broken.status, broken.body.count(b"\n")) == (500, 1)
    assert broken.content_type.startswith("text/plain")
    site = Site(Watcher(folder.path), Renderer())
    shutil.rmtree(folder.path)
    gone = site.answer("/")
    assert (gone.status, gone.body.count(b"\n")) == (503, 1)
    assert b"is gone" in gone.body


def test_a_damaged_record_is_named_below_the_live_state(folder: Folder) -> None:
    folder.end("serial", 0)
    folder.end("optuna", 0).with_name("end.json").write_text("{<script>")
    page = page_of(folder)
    assert "There is no report" in page
    assert "end.json is damaged" in page
    assert "1 of 6 runs ended" in page
    assert len(Document(page).all("script")) == 1


def names_of(document: Document) -> set[str]:
    """Return the names of all attributes."""
    return {name for one in document.elements for name in one.attributes}


def test_what_comes_from_the_folder_is_text(folder: Folder) -> None:
    folder.end("serial", 0, "failed", reason=HOSTILE)
    plain = Document(page_of(folder))
    folder.write_plan(name=HOSTILE)
    text = page_of(folder)
    assert len(Document(text).all("script")) == len(plain.all("script")) == 1
    hostile = section(
        state(folder=HOSTILE, file=HOSTILE, problems=(HOSTILE,), activity=Activity.ELSEWHERE, host=HOSTILE, name=HOSTILE)
    )
    found, expected = Document(hostile), Document(section(state(problems=("x",), activity=Activity.ELSEWHERE)))
    assert names_of(found) == names_of(expected)
    for shown in (text, hostile):
        assert "<script>alert" not in shown
        assert "<script>alert(1)</script>" in unescape(shown)
        assert not re.search("[\x00\x1b\u202e]", shown)
        assert shown.count('id="live"') == 1
        assert len(Document(unescape(shown)).all("script")) > len(Document(shown).all("script"))  # the planted one would be seen


def test_the_policy_allows_the_own_script_alone_and_the_page_loads_nothing(folder: Folder) -> None:
    folder.end("serial", 0)
    page = page_of(folder)
    (script,) = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    assert script.endswith(resource(LIVE_SCRIPT))
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="(.*?)"', page)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in policy
    assert "connect-src 'self'" in policy
    assert not re.search(r"\son[a-z]+=", page)
    assert "https://" not in page.replace(script, "")


def test_the_script_finds_its_ids(folder: Folder) -> None:
    folder.end_all()
    found = [one.attributes["id"] for one in Document(page_of(folder)).elements if "id" in one.attributes]
    assert len(found) == len(set(found))
    wanted = set(re.findall(r'at\("([a-z-]+)"\)', resource(LIVE_SCRIPT)))
    assert len(wanted) >= 9
    assert wanted <= {*found}


def test_without_script_the_page_reloads_itself_and_a_report_in_a_file_does_not(folder: Folder) -> None:
    assert re.search(r'<noscript><meta http-equiv="refresh" content="\d+"></noscript>', page_of(folder))
    report = render(page(choose(answers(read_results(folder.path))), folder.path / "report"))
    assert not re.search("http-equiv=.refresh|connect-src|<section class=.live|fetch", report)


@pytest.mark.parametrize("activity", [Activity.WORKING, Activity.FINISHED])
def test_it_is_said_that_no_verdict_is_given_before_the_end(activity: Activity) -> None:
    assert ("Not judged yet" in section(state(activity=activity))) is (activity is Activity.WORKING)
