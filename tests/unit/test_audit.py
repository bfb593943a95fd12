"""The audit: pins and hashes and licences always, vulnerabilities where the service answers."""

import json
import threading
import tomllib
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from tools import audit

HASH = f"--hash=sha256:{'0' * 64}"
DAY_S = 86400.0
NOW_S = 1_795_262_400.0
LOCKED = {"left": "1.0", "right": "2.0"}


@contextmanager
def service(*answers):
    """An advisory service; each answer is a status and a body. Gives its address and requests."""
    asked, left = [], list(answers)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            status, body = left.pop(0)
            self.send_response(status)
            self.end_headers()
            self.wfile.write(body if isinstance(body, bytes) else json.dumps(body).encode())

        def log_message(self, *args):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1/querybatch", asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


NOTHING = (200, {"results": [{}, {}]})
SOMETHING = (200, {"results": [{}, {"vulns": [{"id": "X-1"}, {"id": "X-2"}]}]})


def test_our_own_lock_and_licences_pass():
    versions = audit.locked((audit.ROOT / "requirements.lock").read_text())
    projects = [tomllib.loads(file.read_text()) for file in audit.project_files()]
    assert tuple(project["project"]["name"] for project in projects) == audit.OURS
    for project in projects:
        audit.check_requirements(project, versions)
    found = audit.licences(audit.OURS[0], audit.EXTRAS)
    audit.check_licences(found)
    assert (
        {"aiohttp", "numpy", "cryptography", "idna", "typer", "common-expression-language"}
        <= set(found)
        <= set(versions)
    )
    assert "pytest" not in found


def test_the_images_lock_is_a_part_of_the_whole_one():
    whole = audit.locked((audit.ROOT / "requirements.lock").read_text())
    image = audit.locked((audit.ROOT / "requirements-image.lock").read_text())
    assert image.items() <= whole.items(), "run: make lock"
    needed = audit.licences(audit.OURS[0], ["devices"])
    assert set(needed) <= set(image)
    assert not {"pytest", "cryptography"} & set(image)


def test_nothing_that_replaces_asyncios_loop_is_installed():
    """uvloop closed descriptors that belonged to other connections; see docs/adr/0001."""
    versions = audit.locked((audit.ROOT / "requirements.lock").read_text())
    assert not {"uvloop", "winloop", "rloop"} & set(versions)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (f"left>=1.0 {HASH}", "not pinned"),
        (f"left {HASH}", "not pinned"),
        ("left==1.0", "no sha256 hash"),
        ("left==1.0 --hash=md5:00", "no sha256 hash"),
        (f"left==1.0 {HASH} --hash=sha256:12", "no sha256 hash"),
        (f"left @ https://example.com/left.whl {HASH}", "not pinned"),
        ("--index-url https://example.com/simple", "not pinned"),
        ("-e ./left", "not pinned"),
        (f"right==2.0 {HASH}", "twice"),
    ],
)
def test_a_lock_that_is_not_whole_is_refused(line, says):
    good = f"right==2.0 ; python_version < '4' \\\n    {HASH}\n    # via left\n"
    assert audit.locked(good) == {"right": "2.0"}
    with pytest.raises(audit.AuditError, match=says):
        audit.locked(f"{good}{line}\n")


@pytest.mark.parametrize(
    ("dependency", "says"),
    [
        ("left", "give it a range"),
        ("left<2", "give it a range"),
        ("left==1.0", "give it a range"),
        ("left===1.0", "give it a range"),
        ("left>=0.9,==1.0", "give it a range"),
        ("left>=1.1", "the lock has 1.0"),
        ("left>=0.9,<1", "the lock has 1.0"),
        ("missing>=1.0", "the lock has None"),
        ("left @ https://example.com/left.whl", "give it a range"),
        ("left===", "left==="),
    ],
)
@pytest.mark.parametrize("extra", ["", "cli"])
def test_what_people_install_has_a_range_with_the_locked_version_in_it(extra, dependency, says):
    wanted = ["right>=1.5,<3", "quorate-scheduler[cli]", "pocket"]
    project = {"project": {"dependencies": [] if extra else wanted}}
    project["project"]["optional-dependencies"] = {extra: wanted} if extra else {}
    audit.check_requirements(project, LOCKED, ["quorate-scheduler", "pocket"])
    wanted.append(dependency)
    with pytest.raises(audit.AuditError, match=says):
        audit.check_requirements(project, LOCKED, ["quorate-scheduler", "pocket"])


@pytest.mark.parametrize(
    ("dependency", "says"),
    [
        ("left", "pin it"),
        ("left>=1.0", "pin it"),
        ("left>=0.9,==1.0", "pin it"),
        ("left==1.1", "the lock has 1.0"),
        ("missing==1.0", "the lock has None"),
        ("left @ https://example.com/left.whl", "pin it"),
    ],
)
def test_what_tests_need_is_pinned_as_it_is_locked(dependency, says):
    extras = {"test": ["right==2.0", "quorate-scheduler[cli]"]}
    project = {"project": {"dependencies": [], "optional-dependencies": extras}}
    audit.check_requirements(project, LOCKED)
    extras["test"].append(dependency)
    with pytest.raises(audit.AuditError, match=says):
        audit.check_requirements(project, LOCKED)


@pytest.mark.parametrize(
    ("licence", "permitted"),
    [
        ("MIT", True),
        ("Apache-2.0 AND MIT", True),
        ("MIT OR GPL-3.0-only", True),
        ("MIT AND GPL-3.0-only", False),
        ("(MIT OR GPL-3.0-only) AND 0BSD", True),
        ("Mozilla Public License 2.0 (MPL 2.0)", True),
        ("GNU Affero General Public License v3", False),
        ("", False),
    ],
)
def test_licences(licence, permitted):
    assert audit.is_permitted(licence) is permitted
    if not permitted:
        with pytest.raises(audit.AuditError, match=r"left: licence .* not permitted"):
            audit.check_licences({"left": licence, "right": "MIT"})


def test_the_service_is_asked_once_a_day_for_each_package_and_version(tmp_path):
    with service(NOTHING, NOTHING, SOMETHING) as (url, asked):
        for _ in range(3):
            answer = audit.known(LOCKED, tmp_path, url, NOW_S)
        assert answer.findings == {}
        assert len(asked) == 1
        audit.known({**LOCKED, "left": "1.1"}, tmp_path, url, NOW_S)
        assert len(asked) == 2
        answer = audit.known(LOCKED, tmp_path, url, NOW_S + DAY_S)
        assert answer.findings == {"right": ["X-1", "X-2"]}
    assert asked[0]["queries"][1] == {
        "package": {"name": "right", "ecosystem": "PyPI"},
        "version": "2.0",
    }


def test_a_known_vulnerability_fails_unless_it_was_accepted_with_a_reason(monkeypatch):
    audit.check_findings({}, LOCKED)
    monkeypatch.setattr(audit, "ACCEPTED", {"X-1": "we do not use that part"})
    audit.check_findings({"right": ["X-1"]}, LOCKED)
    with pytest.raises(audit.AuditError, match=r"right 2\.0: X-2; take a version without it"):
        audit.check_findings({"right": ["X-1", "X-2"]}, LOCKED)
    assert all(reason.strip() for reason in audit.ACCEPTED.values())


def test_without_the_service_the_audit_says_so_passes_and_waits_before_it_asks_again(tmp_path):
    nobody = "http://127.0.0.1:1/v1/querybatch"
    first = audit.known(LOCKED, tmp_path, nobody, NOW_S)
    assert first.findings == {}
    assert first.said.startswith("the advisory service cannot be reached, not checked")
    assert "\n" not in first.said
    with service(SOMETHING) as (url, asked):
        again = audit.known(LOCKED, tmp_path, url, NOW_S + 60)
        assert again.said.endswith("(tried within the last hour)")
        assert not asked
        audit.known(LOCKED, tmp_path, url, NOW_S + 3601)
        assert asked


def test_an_old_answer_counts_while_the_service_cannot_be_reached(tmp_path):
    with service(SOMETHING, (503, b"down")) as (url, _):
        audit.known(LOCKED, tmp_path, url, NOW_S)
        later = audit.known(LOCKED, tmp_path, url, NOW_S + DAY_S)
    assert later.findings == {"right": ["X-1", "X-2"]}
    assert "the answer of 2026-11-21 counts" in later.said


@pytest.mark.parametrize(
    "body",
    [
        b"<html>",
        b"[]",
        b'{"results": []}',
        b'{"results": [1, 2]}',
        b'{"results": [{"vulns": [1]}, {}]}',
    ],
)
def test_an_answer_that_nobody_understands_is_no_all_clear(tmp_path, body):
    with service((200, body)) as (url, _):
        answer = audit.known(LOCKED, tmp_path, url, NOW_S)
    assert "cannot be reached, not checked" in answer.said
