"""Why there is no leader: said once, with who can do what."""

import asyncio

import pytest
from structlog.testing import capture_logs

from quorate.shell.kube.errors import error_from_response
from quorate.shell.lease.trouble import LeaseError, Standing, timed_out, trouble_of
from tests.unit.shell.lease_server import LeaseServer, candidates
from tests.unit.shell.scripted_server import refusal

NO_NAMESPACE = 'namespaces "sys" not found'
NO_RIGHT = 'leases.coordination.k8s.io is forbidden: User "q" cannot create resource "leases"'


def trouble(status, message="sorry", verb="get", name="quorate"):
    body = b'{"reason":"X","message":"%s"}' % message.replace('"', '\\"').encode()
    return trouble_of(error_from_response(status, body), verb, "sys", name)


@pytest.mark.parametrize(
    ("status", "verb", "message", "kind", "remedy"),
    [
        (404, "create", NO_NAMESPACE, "NamespaceMissing", "create the namespace"),
        (403, "create", "sys is being terminated", "NamespaceMissing", "create the namespace"),
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
def test_each_error_has_a_kind_and_where_people_can_act_a_remedy(
    status, verb, message, kind, remedy
):
    found = trouble(status, message, verb)
    assert found.kind == kind
    assert found.problem.startswith(f"cannot {verb} lease sys/quorate: ")
    assert remedy in found.remedy
    if kind in ("NamespaceMissing", "Forbidden"):
        command = "quorate manifests --namespace sys --only rbac | kubectl apply -f -"
        assert command in found.remedy


def test_a_right_on_a_lease_of_another_name_is_not_in_the_manifests():
    found = trouble(403, NO_RIGHT, "get", "mine")
    assert found.remedy == "grant 'get' on leases of coordination.k8s.io in namespace sys"


def test_what_a_server_says_is_one_line_of_bounded_length():
    found = trouble(503, "\\u001b[2J\\n" + "x" * 1500)
    assert found.problem.isprintable()
    assert len(found.problem) < 700


def test_trouble_is_logged_when_it_begins_changes_and_ends():
    standing, counted = Standing("a", "sys/q"), []
    standing.on_error = counted.append
    with capture_logs() as logged:
        for _ in range(3):
            standing.failed(trouble(403))
        for text in ("etcd", "etcd again"):
            standing.failed(trouble(503, text))
        standing.failed(trouble(409))
        standing.worked()
        standing.worked()
        standing.failed(trouble(403))
    assert [(one["log_level"], one.get("kind")) for one in logged] == [
        ("error", "Forbidden"),
        ("warning", "ServerError"),
        ("info", None),
        ("error", "Forbidden"),
    ]
    assert "grant 'get'" in logged[0]["remedy"]
    assert counted == ["Forbidden"] * 3 + ["ServerError"] * 2 + ["Conflict", "Forbidden"]


def test_a_standby_says_who_leads_once_for_each_leader():
    standing = Standing("a", "sys/q")
    assert "not read yet" in standing.unready_reason(leads=False)
    with capture_logs() as logged:
        for holder in ("b", "b", "c", "", "a", "c"):
            standing.saw(holder)
    assert [one["leader"] for one in logged] == ["b", "c", "c"]
    assert standing.unready_reason(leads=False) is None
    assert standing.note(leads=False) == "standing by: c leads"
    assert standing.note(leads=True) == ""


def test_the_cause_of_a_loss_is_who_has_it_or_what_failed_last():
    standing = Standing("a", "sys/q")
    standing.saw("a")
    standing.lost(10.0)
    assert standing.why_lost == "it was not renewed for 10 s"
    standing.failed(timed_out(5.0, "update", "sys", "q"))
    standing.lost(10.0)
    assert "not renewed for 10 s: cannot update lease sys/q: no answer within 5 s; check" in (
        standing.why_lost
    )
    standing.saw("b")
    standing.lost(10.0)
    assert standing.why_lost == "b has taken it"


@pytest.mark.parametrize(
    ("status", "message", "kind"),
    [(404, NO_NAMESPACE, "NamespaceMissing"), (403, NO_RIGHT, "Forbidden")],
)
async def test_a_candidate_that_may_not_create_the_lease_says_why_until_it_may(
    status, message, kind
):
    server = LeaseServer()
    server.refuse = {"POST": refusal(status, "X", message)}
    counted = []
    with capture_logs() as logged:
        async with candidates(server, "a") as (a,):
            a.elector.standing.on_error = counted.append
            a.start()
            while len(counted) < 3:
                await asyncio.sleep(0.01)
            reason = a.elector.standing.unready_reason(leads=a.leads)
            assert reason.startswith("not leading: cannot create lease sys/q: ")
            server.refuse = {}
            await a.started.wait()
            assert a.elector.standing.unready_reason(leads=a.leads) is None
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
        while not b.elector.standing.holder:
            await asyncio.sleep(0.01)
        assert b.elector.standing.note(leads=b.leads) == "standing by: a leads"
        server.refuse = {"PUT": refusal(403, "Forbidden", "no more")}
        await a.task
        assert "not renewed for 0.6 s: cannot update lease sys/q: " in a.elector.standing.why_lost
        assert a.elector.standing.trouble.kind is LeaseError.FORBIDDEN


async def test_a_leader_whose_lease_was_taken_says_who_has_it():
    server = LeaseServer()
    async with candidates(server, "a") as (a,):
        a.start()
        await a.started.wait()
        server.store({**server.lease, "spec": {**server.spec, "holderIdentity": "thief"}})
        await a.task
        assert a.elector.standing.why_lost == "thief has taken it"
