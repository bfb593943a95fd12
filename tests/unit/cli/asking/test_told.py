"""Goal: ``why`` and ``gangs`` say what the leader has said, and of the rest what the objects show.

Method: the command line in this process, against a server with the Events of a leader.
"""

import json

import msgspec
import pytest

from quorate.core.model import GangKey
from quorate.core.model.reasons import Explanation, GangState, Members, Reason
from quorate.dialects.common.fields import format_micro_time
from tests.unit.cli.api_server import (
    EVENTS,
    LEASE,
    PODS,
    SAID_S,
    X_GROUPS,
    event,
    group,
    kubeconfig,
    lease,
    listing,
    pod,
    serving,
    small_cluster,
    status,
)
from tools.testing import call

HELD = "room for 1 replacement is held until 12:03:04 UTC on node n1"
SOON_S, PAST_S = 32472144000.0, 1577836800.0
STARTED = {"quorate.dev/attempt": "a-1", "quorate.dev/started": "true"}


@pytest.fixture
def asked(tmp_path, capsys):
    def run(server, *words):
        with serving(server):
            config = kubeconfig(tmp_path, server.url, namespace="team")
            assert call(*words, "--kubeconfig", config) == 0
        out, err = capsys.readouterr()
        assert err == ""
        return out

    return run


@pytest.fixture
def why(asked):
    return lambda server, name: json.loads(asked(server, "why", name, "-o", "json"))


def of_started(count, waiting=0, *, min_member=4, mark=STARTED):
    """A server with a gang of which so many pods run, and so many wait for nodes that are full."""
    pods = [pod(f"train-{number}", node="n1", cpu="1m") for number in range(count)]
    for one in pods:
        one["metadata"]["annotations"] = mark
    pods += [pod(f"train-{count + number}", cpu="9") for number in range(waiting)]
    server = small_cluster()
    server.answers |= {PODS: listing(*pods), X_GROUPS: listing(group(min_member=min_member))}
    server.answers[EVENTS] = listing()
    return server


def said(**fields):
    known = {
        "key": GangKey("team", "x-k8s", "train"),
        "state": GangState.STARTED,
        "reason": Reason.NOT_ENOUGH_ROOM,
        "message": "0/2 nodes are available: 2 Insufficient cpu. 0 of 1 more member fits",
        "members": Members(needed=4, exist=4, bound=3, waiting=1, total=4, unassigned=1),
        "hint": "free or add room",
    }
    return Explanation(**(known | fields))


IN_LINE = {"team/b": (1, -5, 200), "team/a": (1, -5, 100), "far/c": (0, 0, 300), "team/late": ()}
"""What gangs are sorted by, and one that waits for members."""


def of_line(**more):
    """A server with gangs that wait, of which the leader has said what they are sorted by."""
    names = [key.split("/") for key in IN_LINE]
    pods = [pod(f"{name}-0", name, namespace=where, **more) for where, name in names]
    pods += [pod("alone", None), pod("runs-0", "runs", node="n1", requests={"nvidia.com/gpu": 8})]
    server = small_cluster()
    groups = [group(name, 1, namespace=where) for where, name in [*names, ("team", "runs")]]
    server.answers |= {PODS: listing(*pods), X_GROUPS: listing(*groups)}
    waits = Members(needed=1, exist=1, waiting=1, total=1, unassigned=1)
    as_said = {"state": GangState.WAITING, "members": waits}
    keys = [GangKey(where, "x-k8s", name) for where, name in names]
    orders = zip(keys, IN_LINE.values(), strict=True)
    told = [said(key=one, order=order, **as_said) for one, order in orders]
    alone = GangKey("team", "pod", "alone@team-alone")
    told += [said(key=alone, order=(1, 0, 50), **as_said)]
    started = GangKey("team", "x-k8s", "runs")  # since this was said
    return of_leader(server, *told, said(key=started, order=(0, 0, 0)))


def of_leader(server, *said, **more):
    server.answers[EVENTS] = listing(*(event(one, **more) for one in said))
    return server


def test_a_started_gang_stays_started_while_a_replacement_has_no_room(asked, why):
    """It said "Waiting 3/4" and "1 member must start now", and the Event that 0 of 1 more fit."""
    server = of_leader(of_started(3, 1), said())
    found = why(server, "train")
    assert (found["state"], found["message"]) == ("Started", said().message)
    assert (found["saidAt"], found["saidBeforeNews"]) == ("2026-01-01T00:00:00Z", False)
    row = asked(server, "gangs").splitlines()[1].split()
    assert (row[1:4], row[-1]) == (["Started", "3/4", "4"], "NotEnoughRoom")
    assert "scheduler said this" not in asked(server, "why", "train")
    assert "scheduler said this" in asked(server, "why", "train", "-o", "wide")


@pytest.mark.parametrize("mark", [STARTED, {"quorate.dev/attempt": "a-1"}])
@pytest.mark.parametrize(("runs", "minimum"), [(2, 2), (2, 3)])
def test_a_gang_that_lost_a_member_for_good_is_started(why, mark, runs, minimum):
    """It said "Waiting 2/2, NotEnoughMembers" of a gang that runs."""
    found = why(of_started(runs, min_member=minimum, mark=mark), "train")
    assert (found["state"], found["reason"]) == ("Started", "")
    assert found["message"] == "all 2 members that exist have a node"


def test_a_gang_that_runs_beside_a_gated_pod_is_started(why):
    server = of_started(3, mark={"quorate.dev/attempt": "a-1"})
    gated = pod("train-9", schedulingGates=[{"name": "quota"}])
    server.answers[PODS] = listing(*server.answers[PODS][1]["items"], gated)
    assert why(server, "train")["state"] == "Started"


def test_pods_that_another_scheduler_bound_start_no_gang(why):
    found = why(of_started(2, min_member=3, mark={}), "train")
    assert (found["state"], found["reason"]) == ("Waiting", "NotEnoughMembers")


def test_words_that_are_older_than_the_pods_say_so(asked, why):
    """Since then two pods more have come: the counts are those of now, and the words are dated."""
    server = of_leader(of_started(3, 3), said())
    found = why(server, "train")
    assert (found["state"], found["message"]) == ("Started", said().message)
    assert (found["members"]["total"], found["saidBeforeNews"]) == (6, True)
    text = asked(server, "why", "train")
    assert "  note      the scheduler said this " in text
    assert " ago, and pods have come, gone or got nodes since" in text


def test_a_gang_amid_its_binds_is_starting_whatever_was_said_before(why):
    waits = Members(needed=4, exist=4, waiting=4, total=4, unassigned=4)
    before = said(state=GangState.WAITING, members=waits)
    half = of_started(2, 2, mark={"quorate.dev/attempt": "a-1"})
    assert why(of_leader(half, before), "train")["state"] == "Starting"
    found = why(of_started(2, 2, mark={"quorate.dev/attempt": "a-1"}), "train")
    assert (found["state"], found["reason"]) == ("Starting", "Starting")
    assert found["message"] == "2 of 4 members are bound"


def test_where_nothing_was_said_nothing_is_made_up(asked, why):
    """It said "Starting: there is room; the next cycle places it", by itself."""
    found = why(of_started(0, 4), "train")
    assert (found["state"], found["reason"], found["hint"]) == ("Waiting", "", "")
    assert found["message"] == "4 members wait; no scheduler has said anything of them yet"
    server = of_started(0, 4)
    server.answers[LEASE] = 200, lease("")
    text = asked(server, "why", "train")
    assert "  note      no quorate scheduler holds its lease: is one running?\n" in text


def test_the_last_words_of_a_scheduler_that_is_gone_have_their_age(asked):
    server = of_leader(of_started(3, 1), said())
    server.answers[LEASE] = status(404, "NotFound", "no lease")
    assert "  note      the scheduler said this " in asked(server, "why", "train")


@pytest.mark.parametrize(
    ("events", "held"),
    [
        ([], ""),
        ([(1, HELD, SOON_S)], HELD),
        ([(1, HELD, SOON_S), (2, "", 0.0)], ""),
        ([(3, HELD, SOON_S), (2, "", 0.0)], HELD),
        ([(1, HELD, PAST_S)], ""),
    ],
)
def test_what_is_held_is_what_was_said_last_until_its_end(asked, why, events, held):
    server = of_started(3)
    server.answers[EVENTS] = listing(
        *(
            event(said(held=words, held_until_s=until_s), SAID_S + second)
            for second, words, until_s in events
        )
    )
    assert why(server, "train")["held"] == held
    if held:
        assert f"  held      {held}\n" in asked(server, "why", "train")
        server.answers[LEASE] = 200, lease("")
        assert why(server, "train")["held"] == "", "it ends with the leader"


def test_an_event_that_goes_on_is_as_new_as_its_last_words(why):
    newer = event(said(message="newer"), SAID_S)
    newer["series"] = {"count": 2, "lastObservedTime": format_micro_time(SAID_S + 60)}
    server = of_started(3, 1)
    server.answers[EVENTS] = listing(newer, event(said(message="older"), SAID_S + 30))
    assert why(server, "train")["message"] == "newer"


def test_what_strangers_write_into_events_is_not_taken_for_the_leaders_word(why):
    """An Event of another namespace speaks of this gang; others cannot be read."""
    foreign = event(said(message="a stranger's"))
    foreign["metadata"]["namespace"] = "other"
    unreadable = [event(said()) for _ in range(5)]
    unreadable[0]["metadata"]["annotations"] = {"quorate.dev/explanation": "}"}
    unreadable[1]["metadata"]["annotations"] = {"quorate.dev/explanation": '{"reason": "New"}'}
    del unreadable[2]["metadata"]["annotations"]
    unreadable[3]["eventTime"] = "soon"
    unreadable[4]["series"] = 7
    for number, one in enumerate(unreadable):
        one["metadata"]["name"] = f"e{number}"
    server = of_started(3, 1)
    server.answers[EVENTS] = listing(foreign, *unreadable)
    server.answers["/api/v1/namespaces/team/events"] = listing(foreign, *unreadable)
    assert "no scheduler has said anything" in why(server, "train")["message"]


def test_what_the_leader_owns_is_what_is_shown(asked, why):
    """A gang without a schedulerName started, and was absent; its pod was "not quorate's"."""
    server = of_started(0)
    server.answers[PODS] = listing(pod("train-0", node="n1", scheduler="theirs"))
    assert json.loads(asked(server, "gangs", "-o", "json"))["items"] == []
    server.answers[LEASE] = 200, lease("quorate-0", "quorate,theirs")
    (row,) = asked(server, "gangs").splitlines()[1:]
    assert row.split()[:2] == ["train", "Waiting"]
    assert why(server, "pod/train-0")["schedulerName"] == "theirs"


def test_all_that_a_leader_knows_of_a_gang_comes_through(why):
    """What is written into an Event is read as it was, but for what the objects themselves say."""
    one = said(held=HELD, held_until_s=SOON_S, nodes=2)
    raw = event(one)["metadata"]["annotations"]["quorate.dev/explanation"]
    assert msgspec.json.decode(raw, type=Explanation) == one
    found = why(of_leader(of_started(3, 1), one), "train")
    assert (found["hint"], found["held"], found["nodes"]) == (one.hint, HELD, 2)


@pytest.mark.parametrize(
    ("where", "places"),
    [("-A", ["1/4", "2/4", "3/4", "-", "-"]), ("-nteam", ["1/3", "2/3", "-", "-"])],
)
def test_the_place_in_line_is_that_among_all_that_are_looked_at(asked, where, places):
    """Half-started gangs come first, then priority, then age, as the leader said; started ones,
    and those that wait for members, are in no line. Pods of no gang are, listed or not."""
    rows = asked(of_line(), "gangs", where, "--sort-by", "place").splitlines()[1:]
    assert [row.split()[-3] for row in rows] == places
    names = [row.split()[-8] for row in rows if row.split()[-3] != "-"]
    assert names == (["c", "a", "b"] if where == "-A" else ["a", "b"])


def test_why_says_the_place_in_line(asked, why):
    assert "  place     2 of 3 in line in namespace team\n" in asked(of_line(), "why", "b")
    assert "  place     3 of 4 in line\n" in asked(of_line(), "why", "-A", "b")
    assert "place " not in asked(of_line(), "why", "late")
    line = why(of_line(), "b")["line"]
    assert line == {"place": 2, "length": 3, "namespace": "team"}
    assert why(of_line(), "late")["line"] is None


def test_the_gpus_of_a_gang_are_those_that_its_pods_ask_for(asked, why):
    asking = {"requests": {"nvidia.com/gpu": 4, "amd.com/gpu": 1, "cpu": 7}}
    rows = asked(of_line(**asking), "gangs").splitlines()
    gpus = {row.split()[0]: row.split()[-4] for row in rows}
    assert gpus == {"GANG": "GPUS", "a": "5", "b": "5", "late": "5", "runs": "8"}
    assert why(of_line(**asking), "b")["gpus"] == 5
    rows = asked(of_line(), "gangs").splitlines()
    assert {row.split()[0]: row.split()[-4] for row in rows}["a"] == "-"
    ended = of_line(status={"phase": "Succeeded"}, node="n1", **asking)
    assert why(ended, "b")["gpus"] == 0


VOLCANO_GROUPS = "/apis/scheduling.volcano.sh/v1beta1/podgroups"
SHORT = "minResources ask for 1 nvidia.com/gpu (0 free)"


def of_empty(*events, minimum=2):
    """A server with a Volcano PodGroup that has no pods, and the leader's Events about it."""
    made = group(min_member=minimum)
    made["apiVersion"] = "scheduling.volcano.sh/v1beta1"
    made["spec"]["minResources"] = {"nvidia.com/gpu": "1"}
    made["status"] = {"phase": "Pending"}
    server = small_cluster()
    server.answers |= {PODS: listing(), X_GROUPS: listing(), VOLCANO_GROUPS: listing(made)}
    server.answers[LEASE] = 200, lease("quorate-0", "quorate,volcano")
    server.answers[EVENTS] = listing(*events)
    return server


def said_of_empty(reason=Reason.MIN_RESOURCES_SHORT, message=SHORT, **more):
    known = {
        "key": GangKey("team", "volcano", "train"),
        "state": GangState.WAITING,
        "reason": reason,
        "message": message,
        "members": Members(needed=2),
        "hint": "free or add that room, or lower spec.minResources",
    }
    return said(**(known | more))


def test_a_gang_whose_clients_wait_to_be_admitted_is_told_by_the_leader(asked, why):
    """It said "0 of 2 members exist; create the other 2", which nobody does before there is room.

    The command line knows no nodes, so it cannot know this by itself.
    """
    server = of_empty(event(said_of_empty(), uid="train"), minimum=3)  # edited since
    found = why(server, "train")
    assert (found["state"], found["reason"]) == ("Waiting", "MinResourcesShort")
    assert (found["message"], found["hint"]) == (SHORT, said_of_empty().hint)
    assert (found["saidAt"], found["saidBeforeNews"]) == ("2026-01-01T00:00:00Z", False)
    assert (found["line"], found["members"]["min"], found["members"]["total"]) == (None, 3, 0)
    row = asked(server, "gangs").splitlines()[1].split()
    assert row[:6] == ["train", "Waiting", "0/0", "3", "-", "-"]
    assert row[-1] == "MinResourcesShort"
    assert SHORT in asked(server, "why", "train")


def test_a_gang_of_no_queue_is_told_so_by_the_leader_who_knows_the_queues(why):
    words = "queue research (spec.queue) does not exist"
    one = said_of_empty(Reason.QUEUE_MISSING, words)
    found = why(of_empty(event(one, uid="train")), "train")
    assert (found["state"], found["reason"], found["message"]) == (
        "Waiting",
        "QueueNotFound",
        words,
    )


def test_the_priority_of_a_gang_and_what_is_odd_about_it_are_as_the_leader_says(asked, why):
    """It knows the class that the object names; its pods may have none."""
    odd = (
        'spec.priorityClassName is "hihg", and there is no PriorityClass of that name: the '
        "priority of the pods counts; create it, or name another one"
    )
    server = of_started(0, 4)
    one = said(priority=20, missing_class="hihg", members=Members(needed=4, total=4, unassigned=4))
    server.answers[EVENTS] = listing(event(one))
    found = why(server, "train")
    assert (found["priority"], found["warnings"]) == (20, [odd])
    assert "20" in asked(server, "gangs", "-o", "wide").splitlines()[1].split()


@pytest.mark.parametrize(
    "events",
    [
        [],
        [event(said_of_empty(), uid="of-one-of-that-name-before")],
        [event(said_of_empty(members=Members(needed=2, total=2, waiting=2)), uid="train")],
        [
            event(said_of_empty(), uid="train"),
            event(said_of_empty(Reason.NOT_ENOUGH_MEMBERS, "0 of 9"), SAID_S + 1, uid="train"),
        ],
    ],
    ids=["nothing said", "said of another object", "said when it had pods", "admitted since"],
)
def test_without_the_leaders_word_of_now_it_is_told_by_its_object(why, events):
    found = why(of_empty(*events), "train")
    assert (found["reason"], found["message"]) == ("NotEnoughMembers", "0 of 2 members exist")
    assert found["saidAt"] is None
