"""Why there is no leader: said once, with who can do what."""

import asyncio
import json

import pytest
from structlog.testing import capture_logs

from quorate.shell.kube.errors import error_from_response
from quorate.shell.lease.status import LeaseError, LeaseStatus, failure_of, timed_out
from tests.unit.shell.lease_server import LeaseServer, candidates
from tests.unit.shell.scripted_server import answer, refusal

NO_NAMESPACE = {"name": "sys", "kind": "namespaces"}
GOING = {"causes": [{"reason": "NamespaceTerminating"}]}
NO_RIGHT = 'leases.coordination.k8s.io is forbidden: User "q" cannot create resource "leases"'

pytestmark = pytest.mark.virtual


def failure(status, message="sorry", verb="get", name="quorate", details=None):
    said = {"reason": "X", "message": message, "details": details or {}}
    error = error_from_response(status, json.dumps(said).encode())
    return failure_of(error, verb, "sys", name)


@pytest.mark.parametrize(
    ("status", "verb", "message", "kind", "hint"),
    [
        (404, "create", NO_NAMESPACE, "NamespaceMissing", "create the namespace"),
        (403, "create", GOING, "NamespaceMissing", "create the namespace"),
        (403, "create", NO_RIGHT, "Forbidden", "grant 'create' on leases of coordination.k8s.io"),
        (403, "update", NO_RIGHT, "Forbidden", "'update' on leases"),
        (401, "get", "who?", "Unauthorized", "token or client certificate"),
        (404, "create", "no such path", "NotFound", ""),
        (409, "update", "modified", "Conflict", ""),
        (422, "update", "odd", "Refused", ""),
        (429, "get", "slower", "Throttled", ""),
        (503, "get", "etcd", "ServerError", ""),
    ],
)
def test_each_error_has_a_kind_and_where_people_can_act_a_hint(status, verb, message, kind, hint):
    is_text = isinstance(message, str)  # else what tells the cause, whatever the words are
    found = failure(
        status, message if is_text else "sorry", verb, details=None if is_text else message
    )
    assert found.kind == kind
    assert found.problem.startswith(f"cannot {verb} lease sys/quorate: ")
    assert hint in found.hint
    if kind in ("NamespaceMissing", "Forbidden"):
        command = "quorate manifests --namespace sys --only rbac | kubectl apply -f -"
        assert command in found.hint


def test_a_right_on_a_lease_of_another_name_is_not_in_the_manifests():
    found = failure(403, NO_RIGHT, "get", "mine")
    assert found.hint == "grant 'get' on leases of coordination.k8s.io in namespace sys"


def test_what_a_server_says_is_one_line_of_bounded_length():
    found = failure(503, "\\u001b[2J\\n" + "x" * 1500)
    assert found.problem.isprintable()
    assert len(found.problem) < 700


def test_trouble_is_logged_when_it_begins_changes_and_ends():
    status, counted = LeaseStatus("a", "sys/q"), []
    status.on_error = counted.append
    with capture_logs() as logged:
        for _ in range(3):
            status.failed(failure(403))
        for text in ("etcd", "etcd again"):
            status.failed(failure(503, text))
        status.failed(failure(409))
        status.worked()
        status.worked()
        status.failed(failure(403))
    assert [(one["log_level"], one.get("kind")) for one in logged] == [
        ("error", "Forbidden"),
        ("warning", "ServerError"),
        ("info", None),
        ("error", "Forbidden"),
    ]
    assert "grant 'get'" in logged[0]["hint"]
    assert counted == ["Forbidden"] * 3 + ["ServerError"] * 2 + ["Conflict", "Forbidden"]


def test_a_standby_says_who_leads_once_for_each_leader():
    status = LeaseStatus("a", "sys/q")
    assert "not read yet" in status.unready_reason(leads=False)
    with capture_logs() as logged:
        for holder in ("b", "b", "c", "", "a", "c"):
            status.saw(holder)
    assert [one["leader"] for one in logged] == ["b", "c", "c"]
    assert status.unready_reason(leads=False) is None
    assert status.note(leads=False) == "standing by: c leads"
    assert status.note(leads=True) == ""


def test_the_cause_of_a_loss_is_who_has_it_or_what_failed_last():
    status = LeaseStatus("a", "sys/q")
    status.saw("a")
    status.lost(10.0)
    assert status.why_lost == "it was not renewed for 10 s"
    status.failed(timed_out(5.0, "update", "sys", "q"))
    status.lost(10.0)
    assert "not renewed for 10 s: cannot update lease sys/q: no answer within 5 s; check" in (
        status.why_lost
    )
    status.saw("b")
    status.lost(10.0)
    assert status.why_lost == "b has taken it"


@pytest.mark.parametrize(
    ("status", "details", "kind"),
    [(404, NO_NAMESPACE, "NamespaceMissing"), (403, {}, "Forbidden")],
)
async def test_a_candidate_that_may_not_create_the_lease_says_why_until_it_may(
    status, details, kind
):
    server = LeaseServer()
    server.refuse = {"POST": answer(status, {"kind": "Status", "details": details})}
    counted = []
    with capture_logs() as logged:
        async with candidates(server, "a") as (a,):
            a.elector.status.on_error = counted.append
            a.start()
            while len(counted) < 3:
                await asyncio.sleep(0.01)
            reason = a.elector.status.unready_reason(leads=a.leads)
            assert reason.startswith("not leading: cannot create lease sys/q: ")
            server.refuse = {}
            await a.started.wait()
            assert a.elector.status.unready_reason(leads=a.leads) is None
    assert set(counted) == {kind}
    assert [one["event"] for one in logged] == [
        "the lease was not taken or renewed",
        "the lease can be taken and renewed again",
    ]


async def test_a_leader_that_may_renew_no_more_says_so_at_once_and_when_it_is_over():
    server = LeaseServer()
    async with candidates(server, "a", "b") as (a, b):
        a.start()
        await a.started.wait()
        b.start()
        while not b.elector.status.holder:
            await asyncio.sleep(0.01)
        assert b.elector.status.note(leads=b.leads) == "standing by: a leads"
        server.refuse = {"PUT": refusal(403, "Forbidden", "no more")}
        await a.task
        assert "not renewed for 0.6 s: cannot update lease sys/q: " in a.elector.status.why_lost
        assert a.elector.status.failure.kind is LeaseError.FORBIDDEN


async def test_a_leader_whose_lease_was_taken_says_who_has_it():
    server = LeaseServer()
    async with candidates(server, "a") as (a,):
        a.start()
        await a.started.wait()
        server.store({**server.lease, "spec": {**server.spec, "holderIdentity": "thief"}})
        await a.task
        assert a.elector.status.why_lost == "thief has taken it"
