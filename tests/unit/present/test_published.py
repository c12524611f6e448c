"""What a published run leaves out, and its place on a site."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from netdyno.model.run import Run
from netdyno.present.export.entries import ClaimEntry
from netdyno.present.published import site
from netdyno.present.published.private import Private, clean_run
from tests.support.builders.analysed import exported
from tests.support.builders.made_canary import beside
from tests.support.builders.made_run import made_run

HERE = Private(("/srv/lab/netdyno", "/srv/lab", "/home/ada"), ("ada", "enigma"))


def publish_note(text: str) -> str:
    run = made_run()
    run = replace(run, environment={"note": text}, trials=run.trials[:1])
    return str(clean_run(run, HERE).environment["note"])


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("/srv/lab/netdyno/build/release", "…/build/release"),
        ("/srv/lab", "…"),
        ("/home/ada/bin/server --port 1", "…/bin/server --port 1"),
        ("-O2 -I/home/grace/include -ffile-prefix-map=/home/ada/src=.", "-O2 -I…/include -ffile-prefix-map=…/src=."),
        ("-isystem/opt/ours/include -B/opt/ours/bin file:///home/grace/run", "-isystem…/include -B…/bin file://…/run"),
        ("PYTHONPATH=/home/x/y:/home/x/z", "PYTHONPATH=…/y:…/z"),
        ("'/opt/my/server' ended", "'…/server' ended"),
        ("cd /home/grace && make", "cd … && make"),
        ("HOME=/Users/grace/ -I/home/grace", "HOME=… -I…"),
        ("/home/grace/bin/server --as grace", "…/server --as …"),
        ("cd ~grace/src; ~1 ms", "cd …/src; ~1 ms"),
        ("USER=grace LOGNAME=grace sudo", "USER=… LOGNAME=… sudo"),
        ("db --at postgres://grace:se:cr@t@10.0.0.1/x", "db --at postgres://…@10.0.0.1/x"),
        ("db --at postgres://grace:s3c/re@t@db/x", "db --at postgres://…@db/x"),
        ("curl grace:s3c@h:1; DSN=grace:se@cret@tcp(h:1)/n", "curl …@h:1; DSN=…@tcp(h:1)/n"),
        ("http://127.0.0.1:8080/a@b and std::vector@plt", "http://127.0.0.1:8080/a@b and std::vector@plt"),
        ("http://token@127.0.0.1:80 and mail@example.org", "http://…@127.0.0.1:80 and mail@example.org"),
        ("ada@enigma", "…@…"),
        ("/usr/bin/g++ and /proc/net/udp and /sys/a/b", "/usr/bin/g++ and /proc/net/udp and /sys/a/b"),
        ("http://127.0.0.1:8080/path and tcp://127.0.0.1:1/2", "http://127.0.0.1:8080/path and tcp://127.0.0.1:1/2"),
        ("--header 'Authorization: Bearer abc.def' x", "--header 'Authorization: …' x"),
        ("X-Api-Key: 1234", "X-Api-Key: …"),
        ("run --results ../acme/results --cluster=../lab", "run --results …/results --cluster=…/lab"),
        ("messages/s, 1/2, R/conn, canada, GET /path", "messages/s, 1/2, R/conn, canada, GET /path"),
    ],
)
def test_places_and_people_are_left_out_and_nothing_else(text: str, left: str) -> None:
    assert publish_note(text) == left


def test_the_command_that_made_a_run_has_no_names_of_people() -> None:
    run = replace(made_run(), typed=("run", "--as", "ada", "--results=/home/ada/r"))
    assert clean_run(run, HERE).typed == ("run", "--as", "…", "--results=…/r")


def test_a_name_that_a_contestant_has_too_stays_the_contestants() -> None:
    run = made_run()
    called = Private((), (run.trials[0].contestant,))
    assert clean_run(run, called).trials[0].contestant == run.trials[0].contestant


def test_the_hosts_of_a_cluster_are_nobodys_business() -> None:
    hosts = {
        "cluster.server": "lab-7 at tls://10.1.2.3:8787, kernel 6.1.0",
        "cluster.client": "lab-8 at 10.1.2.4:8787, kernel 6.1.0",
        "note": "lab-7, lab-70 and tcp://10.1.2.4:41234",
    }
    run = made_run()
    first = replace(run.trials[0], canaries=(beside("tls://10.1.2.4:8787", 1.0),))
    published = clean_run(replace(run, environment=hosts, trials=(first,)), Private())
    assert published.environment == {
        "cluster.server": "… at tls://…:8787, kernel 6.1.0",
        "cluster.client": "… at …:8787, kernel 6.1.0",
        "note": "…, lab-70 and tcp://…:41234",
    }
    assert [canary.host for canary in published.trials[0].canaries] == ["tls://…:8787"]


def test_a_run_without_anything_private_stays_as_it_is() -> None:
    run: Run = made_run()
    assert clean_run(run, HERE) == run


def test_what_has_numbers_for_names_stays_as_it_is() -> None:
    run = made_run()
    trial = next(trial for trial in run.trials if trial.machine is not None)
    assert trial.machine is not None
    trial = replace(trial, machine=replace(trial.machine, softirq_s={3: 0.25}))
    assert clean_run(replace(run, trials=(trial,)), HERE).trials == (trial,)


@pytest.mark.parametrize("name", ["../../etc/passwd", "/etc/passwd", "..", "", "a b\n", "x" * 400])
def test_whatever_a_run_is_called_its_folder_is_in_the_site(name: str) -> None:
    first, folder, version = site.name_folder(name, 3).split("/")
    assert (first, version) == ("runs", "3")
    assert folder not in ("", ".", "..")
    assert not folder.startswith(".")
    assert len(folder) <= 150


def test_the_newest_run_stands_first_whatever_it_is_called() -> None:
    findings = exported(made_run()).findings
    entries = [
        site.make_entry(replace(findings, run_id=name, started_at=started_at), {}, 1, "")
        for name, started_at in (("a-oldest", "2026-01-01"), ("b-newest", "2026-03-01"), ("c-middle", "2026-02-01"))
    ]
    page = site.render_index(site.Site(runs=tuple(entries)))
    places = [page.index(f"runs/{name}/1") for name in ("b-newest", "c-middle", "a-oldest")]
    assert places == sorted(places)


def test_summary_and_index_say_each_answer_and_count_the_claims_by_verdict() -> None:
    findings = exported(made_run()).findings
    sentence = "Take [this] " + 40 * "and that " + "at 1.5 ms. Worse than it: all"
    question = replace(findings.scenarios[0], name="echo", sentence=sentence)
    claims = (
        ClaimEntry(id="A1", text="", verdict="confirmed", reason="", checks=(), by_script=None),
        ClaimEntry(id="A2", text="", verdict="not_testable", reason="", checks=(), by_script=None),
    )
    entry = site.make_entry(replace(findings, question="Who?", scenarios=(question,), claims=claims), {}, 1, "")
    newer = replace(entry, version=2, claims=(*entry.claims, replace(entry.claims[0], name="A3")))
    text = site.render_summary(site.Site(runs=(entry, newer)))
    assert text.count("## Who?") == 1
    assert "* **echo**: Take \\[this\\] and that" in text
    assert "* 2 confirmed: A1, A3\n* 1 not testable: A2\n" in text
    assert max(map(len, text.splitlines())) <= 120
    index = site.render_index(site.Site(runs=(entry, newer)))
    assert "and that at 1.5 ms.</li>" in index
    assert "<p>3 claims: 2 confirmed, 1 not testable.</p>" in index
