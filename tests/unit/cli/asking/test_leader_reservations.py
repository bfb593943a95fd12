"""Goal: ``why`` says of held slots what the leader has said, as long as that is true.

Method: the command line against a server with the leader's Events and conditions.
"""

import json

import pytest

from tests.unit.cli.api_server import (
    LEASE,
    PODS,
    kubeconfig,
    listing,
    pod,
    serving,
    small_cluster,
    status,
)
from tools.testing import call

EVENTS = "/apis/events.k8s.io/v1/namespaces/team/events"
NOTE = "room for 1 replacement is held until 12:03:04 UTC on node n1"
WITHHELD = (
    "0/2 nodes are available: 2 Insufficient cpu. "
    "1 member must start now and 0 fit: node n1 holds room for gang other/x until 12:03:04 UTC"
)
SOON, PAST = "2999-01-01T00:00:00Z", "2020-01-01T00:00:00Z"


def event(reason, second, until=SOON, gang="x-k8s/done", note=NOTE):
    annotations = {"quorate.dev/held-for": gang}
    if until:
        annotations["quorate.dev/held-until"] = until
    time = f"2026-01-01T00:00:0{second}.000000Z"
    return {
        "metadata": {"annotations": annotations},
        "eventTime": time,
        "reason": reason,
        "note": note,
    }


@pytest.fixture
def why(tmp_path, capsys):
    def run(server, name, form="json"):
        with serving(server):
            config = kubeconfig(tmp_path, server.url, namespace="team")
            assert call("why", name, "-o", form, "--kubeconfig", config) == 0
        out, err = capsys.readouterr()
        assert err == ""
        return json.loads(out) if form == "json" else out

    return run


RELEASED = event("SlotReleased", 2, until="", note="no room is held for replacements any more")


@pytest.mark.parametrize(
    ("events", "held"),
    [
        ([], ""),
        ([event("SlotHeld", 1)], NOTE),
        ([event("SlotHeld", 1), RELEASED], ""),
        ([event("SlotHeld", 3), RELEASED], NOTE),
        ([event("SlotNotHeld", 1)], NOTE),
        ([event("SlotNotHeld", 1, until=PAST)], ""),
        ([event("SlotHeld", 1, until=PAST)], ""),
        ([event("SlotHeld", 1, until="soon")], ""),
        ([event("SlotHeld", 1, gang="x-k8s/another")], ""),
        ([{"metadata": {}}], ""),
    ],
)
def test_the_newest_event_about_the_gang_counts_until_its_end(why, events, held):
    server = small_cluster()
    server.answers[EVENTS] = listing(*events)
    assert why(server, "done")["held"] == held


def test_it_is_a_line_of_the_text(why):
    server = small_cluster()
    server.answers[EVENTS] = listing(event("SlotHeld", 1))
    assert f"  held      {NOTE}\n" in why(server, "done", "table")


@pytest.mark.parametrize("answer", [status(403, "Forbidden", "no"), (200, "}"), (200, "[]")])
def test_events_that_cannot_be_read_are_left_out(why, answer):
    server = small_cluster()
    server.answers[EVENTS] = answer
    assert why(server, "done")["held"] == ""


def test_nothing_is_held_when_nobody_leads(why):
    server = small_cluster()
    server.answers[EVENTS] = listing(event("SlotHeld", 1))
    server.answers[LEASE] = status(404, "NotFound", "no lease")
    assert why(server, "done")["held"] == ""


def waiting(message):
    """A pod that has room, by a look, with what the leader has said of it."""
    one = pod("late-0", "done")
    condition = {"type": "PodScheduled", "status": "False", "message": message}
    one["status"]["conditions"] = [condition]
    server = small_cluster()
    server.answers[PODS] = listing(pod("done-0", "done", node="n2"), one)
    server.answers["/api/v1/namespaces/team/pods/late-0"] = 200, one
    return server


def test_room_that_seems_free_may_be_held(why):
    said = why(waiting(WITHHELD), "done")
    assert (said["reason"], said["message"]) == ("RoomHeld", WITHHELD)
    assert said["hint"] == "free or add room, or wait"


@pytest.mark.parametrize("message", ["", "0/2 nodes are available: 2 Insufficient cpu."])
def test_other_words_of_the_leader_are_older_than_the_look(why, message):
    assert why(waiting(message), "done")["reason"] == "Starting"
