"""Stored runs as a site: whole, without a word of the machine, and never written over."""

from __future__ import annotations

import fcntl
import json
import os
import platform
import re
from collections.abc import Iterator
from contextlib import contextmanager
from html import unescape
from pathlib import Path
from typing import Any, NoReturn

import pytest
from msgspec.structs import replace

from netdyno.kit.errors import UserError
from netdyno.kit.files import lock_folder
from netdyno.model.profile import Profile, Profiled, Stack
from netdyno.model.run import Run
from netdyno.store import profiles
from netdyno.verbs import publish
from tests.support.builders.hostile_run import hostile
from tests.support.builders.made_claims import claims_run
from tests.support.builders.made_run import made_run
from tests.support.builders.stored import stored
from tests.support.edit_store import edit_store

LINK = re.compile(r"""\b(?:href|src)="([^"]*)\"""")


@pytest.fixture
def results(tmp_path: Path) -> Path:
    return tmp_path / "results"


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "site"


def small(run: Run, blocks: int = 1) -> Run:
    """Return a run of the last scenario alone, of which little is drawn."""
    scenario = run.experiment.scenarios[-1]
    trials = tuple(trial for trial in run.trials if trial.scenario == scenario.name and trial.block <= blocks)
    return replace(run, experiment=replace(run.experiment, scenarios=(scenario,)), trials=trials)


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def read_page(folder: Path) -> str:
    """Return a folder's page without the marks of words that do not break."""
    return re.sub(r'<span class="whole">(.*?)</span>', r"\1", (folder / "index.html").read_text())


def test_each_run_has_its_page_its_report_and_every_trial(results: Path, target: Path) -> None:
    place = f"{results}/build -I/home/{os.getpid()}x/include"
    run = small(made_run())
    run = replace(run, environment={**run.environment, "build": place})
    runs = [run, replace(small(claims_run()), run_id="claims")]
    folders = [str(stored(stored_run, results)) for stored_run in runs]
    assert publish.run(folders, target, results) == 0

    listed = json.loads((target / "site.json").read_text())
    assert (listed["format"], listed["version"]) == ("netdyno-site", 3)
    assert [(row["run_id"], row["version"]) for row in listed["runs"]] == [(run.run_id, 1), ("claims", 1)]
    assert [claim["verdict"] for claim in listed["runs"][1]["claims"]] != []
    for stored_run, entry in zip(runs, listed["runs"], strict=True):
        exported = json.loads((target / entry["folder"] / "export.json").read_text())
        assert len(exported["trials"]) == len(stored_run.all_trials)
        assert (target / entry["folder"] / "export.csv").read_bytes().startswith(b"table,question,")
        page = read_page(target / entry["folder"])
        about = (entry["machine"], entry["started_at"][:10], f"<code>./netdyno run {entry['experiment']} --results ")
        assert all(text in page for text in about)
        assert about[2] in read_page(target)
        assert all(answer["text"] in unescape(page) for answer in entry["answers"] + entry["claims"])

    pages = list(target.rglob("*.html"))
    assert len(pages) == 1 + 2 * len(runs)
    for page_file in pages:
        for link in map(unescape, LINK.findall(page_file.read_text())):
            name = link.partition("#")[0]
            assert not re.match(r"[a-z]+:|/", name) or link.startswith("data:"), link
            assert not name or link.startswith("data:") or (page_file.parent / name).is_file(), link
    everything = b"".join(content(target).values()).decode()
    assert str(results) not in everything
    assert f"/home/{os.getpid()}x" not in everything
    assert "…/include" in everything


def test_what_is_published_stays_and_what_has_changed_is_a_new_version(
    results: Path, target: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = small(made_run())
    stored(run, results)
    publish.run([run.run_id], target, results)
    first = content(target)
    publish.run([run.run_id], target, results)
    assert content(target) == first
    assert "published already, as version 1" in capsys.readouterr().out

    longer = small(made_run(), blocks=2)
    longer_results = results / "longer"
    stored(longer, longer_results)
    (target / "runs" / run.run_id / "2").mkdir()  # left by a publication that was cut short
    publish.run([run.run_id], target, longer_results)
    now = content(target)
    for name, before in first.items():
        assert name in ("index.html", "site.json", "summary.md") or now[name] == before
    listed = json.loads(now["site.json"])["runs"]
    assert [row["version"] for row in listed] == [1, 3]
    index = now["index.html"].decode()
    assert index.index(f'runs/{run.run_id}/3/index.html"') < index.index(f'runs/{run.run_id}/1/index.html">version 1')


def test_its_profiles_are_published_without_a_word_of_the_machine(
    results: Path, target: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(platform, "node", lambda: "enigma")
    run = small(made_run())
    folder = stored(run, results)
    publish.run([run.run_id], target, results)
    (question,) = (scenario.name for scenario in run.experiment.scenarios)
    secret = f"/home/{os.getpid()}x"
    stacks: dict[Stack, float] = {
        ("main", f"LazyCompile:*handler {secret}/app.js:3", "enigma"): 1.0,
        ("main", "LazyCompile:*handler /opt/elsewhere/app.js:3", "enigma"): 2.0,
    }
    made = Profile(server=run.trials[0].contestant, sort="on-cpu", stacks=stacks, unnamed=(f"{results}/libours.so",))
    recorded = Profiled(question=question, load="echo", profiles=(made, replace(made, sort="off-cpu")))
    profiles.write(recorded, folder, f"profile-{question}")
    (folder / "profile-gone.json").write_text("{")
    publish.run([run.run_id], target, results)
    output = capsys.readouterr()
    assert "published as version 2" in output.out
    assert "netdyno: profile-gone.json is damaged" in output.err
    page = (target / "runs" / run.run_id / "2" / "report.html").read_text()
    functions = re.findall('<th scope="row" class="function">(.*?)</th><td[^>]*>(.*?)</td>', page)
    assert set(functions) == {("…", "100%"), ("LazyCompile:*handler …/app.js:3", "0%"), ("main", "0%")}
    assert "profile-gone.json is damaged" in page
    assert secret not in page
    assert str(results) not in page
    publish.run([run.run_id], target, results)
    assert "published already, as version 2" in capsys.readouterr().out


def test_a_run_that_calls_itself_otherwise_stays_in_the_site(results: Path, target: Path) -> None:
    evil = "</script><script>alert(1)</script>"
    run = replace(hostile(small(made_run()), evil), run_id=f"out..{evil.replace('/', '')}")
    folder = results / "evil"
    stored(replace(run, run_id="evil"), results)
    with edit_store(folder / "run.sqlite") as connection:
        connection.execute("UPDATE run SET run_id = ?", (run.run_id,))
    connection.close()
    publish.run([str(folder)], target, results)
    assert sorted(path.name for path in target.parent.iterdir()) == ["results", "site"]
    assert "<script" not in (target / "index.html").read_text()
    (page,) = target.glob("runs/*/1/index.html")
    assert "<script" not in page.read_text()
    assert "<script" not in (target / "summary.md").read_text()


def test_a_folder_of_something_else_is_left_alone(results: Path, target: Path) -> None:
    run = small(made_run())
    stored(run, results)
    target.mkdir()
    (target / "thesis.txt").write_text("mine")
    with pytest.raises(UserError, match="no site of netdyno, and not empty"):
        publish.run([run.run_id], target, results)
    (target / "thesis.txt").rename(target / "site.json")
    with pytest.raises(UserError, match="cannot be understood"):
        publish.run([run.run_id], target, results)
    (target / "site.json").write_text('{"format": "netdyno-site", "version": 99, "more": 1}')
    with pytest.raises(UserError, match="newer netdyno"):
        publish.run([run.run_id], target, results)
    assert list(content(target)) == ["site.json"]


def test_where_one_run_cannot_be_read_nothing_is_written(results: Path, target: Path) -> None:
    run = small(made_run())
    stored(run, results)
    with pytest.raises(UserError, match="no such run"):
        publish.run([run.run_id, "gone"], target, results)
    stored(replace(run, run_id="empty", trials=()), results)
    with pytest.raises(UserError, match="no trial yet"):
        publish.run([run.run_id, "empty"], target, results)
    assert not target.exists()


def test_a_folder_in_which_the_first_was_cut_short_is_a_site(
    results: Path, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> NoReturn:
        raise OSError(28, "No space left on device")

    folder = str(stored(small(made_run()), results))
    with monkeypatch.context() as patched:
        patched.setattr(Path, "rename", full)
        with pytest.raises(UserError, match="cannot be written: No space left on device"):
            publish.run([folder], target, results)
    assert publish.run([folder], target, results) == 0
    (listed,) = json.loads((target / "site.json").read_text())["runs"]
    assert (listed["version"], (target / listed["folder"] / "index.html").is_file()) == (1, True)


def test_a_run_that_another_process_adds_meanwhile_stays_in_the_site(
    results: Path, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = small(made_run()), replace(small(made_run()), run_id="second")
    for run in (first, second):
        stored(run, results)

    @contextmanager
    def lock_after_another(folder: Path) -> Iterator[None]:
        monkeypatch.undo()
        publish.run(["second"], target, results)
        with lock_folder(folder):
            yield

    monkeypatch.setattr(publish, "lock_folder", lock_after_another)
    assert publish.run([first.run_id], target, results) == 0
    listed = json.loads((target / "site.json").read_text())["runs"]
    assert [entry["run_id"] for entry in listed] == ["second", first.run_id]


def test_the_folder_is_locked_while_the_site_is_changed(
    results: Path, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_run = publish._add_run

    def add_locked(*arguments: Any) -> Any:
        folder = os.open(target, os.O_RDONLY)
        with pytest.raises(BlockingIOError):
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.close(folder)
        return add_run(*arguments)

    monkeypatch.setattr(publish, "_add_run", add_locked)
    run = small(made_run())
    stored(run, results)
    assert publish.run([run.run_id], target, results) == 0


@pytest.mark.parametrize("name", ["index.html", "summary.md", "site.json", "runs", "runs/x"])
@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_nothing_is_written_or_read_through_a_link_or_a_pipe_of_a_foreign_site(
    name: str, kind: str, results: Path, target: Path, tmp_path: Path
) -> None:
    run = small(made_run())
    stored(run, results)
    assert publish.run([run.run_id], target, results) == 0
    stored(replace(run, run_id="next"), results)
    victim = tmp_path / "victim"
    place = target / name
    if place.is_dir():
        place.rename(victim)
    else:
        place.unlink(missing_ok=True)
        victim.write_text("mine")
    if kind == "link":
        place.symlink_to(victim)
    else:
        os.mkfifo(place)
    before = content(tmp_path)
    with pytest.raises(UserError, match="a symbolic link" if kind == "link" else "a pipe"):
        publish.run(["next"], target, results)
    assert content(tmp_path) == before


@pytest.mark.parametrize("folder", ["javascript:alert(1)//", "../elsewhere/1", "/etc", "runs/x/2"])
def test_a_site_whose_list_leads_elsewhere_is_not_added_to(folder: str, results: Path, target: Path) -> None:
    run = small(made_run())
    stored(run, results)
    assert publish.run([run.run_id], target, results) == 0
    site = json.loads((target / "site.json").read_text())
    site["runs"].append(site["runs"][0] | {"run_id": "x", "folder": folder})
    (target / "site.json").write_text(json.dumps(site))
    before = content(target)
    with pytest.raises(UserError, match="is not that of version 1 of the run 'x': take another folder"):
        publish.run([run.run_id], target, results)
    assert content(target) == before
