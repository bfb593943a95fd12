"""What each dialect writes into its object's status, and when it writes nothing."""

import json

import msgspec
import pytest

from quorate.core.model import GangKey, Owner
from quorate.core.model.reasons import GangState, GangView, Members, Reason
from quorate.dialects import by_name

NOW_S = 1_700_000_000.0
NOW = "2023-11-14T22:13:20Z"
EARLIER = "2023-01-01T00:00:00Z"


def view(dialect="x-k8s", *, reason=Reason.NONE, state=GangState.WAITING, admitted=True, **counts):
    counts.setdefault("exist", counts.get("total", 0))
    return GangView(
        key=GangKey("team-a", dialect, "g"),
        uid="u1",
        state=state,
        members=Members(**counts),
        admitted=admitted,
        reason=reason,
        message="0 of 4 members fit",
        created_s=0.0,
        owner=Owner("kubeflow.org/v1", "PyTorchJob", "job1"),
    )


def raw(status=None, uid="u1"):
    obj = {"metadata": {"namespace": "team-a", "name": "g", "uid": uid, "generation": 3}}
    return json.dumps(obj | ({"status": status} if status is not None else {})).encode()


def written(dialect, seen, status=None):
    patch = by_name(dialect).object.status(seen, raw(status), NOW_S)
    return json.loads(patch.body)["status"] if patch else None


MACHINE = [
    ("", dict(needed=4), {"phase": "Pending"}),
    ("", dict(needed=0), {"phase": "Pending"}),
    ("Pending", dict(needed=4, total=3), None),
    ("Pending", dict(needed=4, total=4), {"phase": "Scheduling", "occupiedBy": "team-a/job1"}),
    ("", dict(needed=4, total=4), {"phase": "Scheduling", "occupiedBy": "team-a/job1"}),
    (
        "Pending",
        dict(needed=2, total=2, bound=2, running=2),
        {"phase": "Running", "occupiedBy": "team-a/job1", "running": 2},
    ),
    ("Running", dict(needed=4, total=3, bound=3, running=3), {"phase": "Pending", "running": 3}),
    ("PreScheduling", dict(needed=2, total=2, running=1, failed=1), "Failed"),
    ("Running", dict(needed=2, total=2, bound=2, running=1), "Scheduling"),
    ("Running", dict(needed=2, total=3, running=1, succeeded=1), "Running"),
    ("Running", dict(needed=2, total=2, running=1, failed=1), "Failed"),
    ("Running", dict(needed=2, total=2, succeeded=2), "Finished"),
    ("Running", dict(needed=2, total=3, succeeded=2, failed=1), "Finished"),
    ("Running", dict(needed=0, total=1, running=1), "Running"),
    ("Running", dict(needed=3, total=3, failed=1, running=1), "Scheduling"),
    ("Finished", dict(needed=2, total=2, running=2), None),
    ("Failed", dict(needed=2, total=2, running=2), None),
]


@pytest.mark.parametrize("dialect", ["x-k8s", "sigs"])
@pytest.mark.parametrize(("phase", "counts", "expected"), MACHINE)
def test_pod_group_phases_follow_scheduler_plugins(dialect, phase, counts, expected):
    found = written(dialect, view(dialect, **counts), {"phase": phase})
    if isinstance(expected, str):
        assert (found or {}).get("phase", phase) == expected
    else:
        assert found == expected


@pytest.mark.parametrize(
    ("dialect", "status", "expected"),
    [
        ("x-k8s", None, {"phase": "Pending"}),
        ("sigs", None, {"phase": "Pending"}),
        ("x-k8s", {"phase": "Running", "running": 2}, None),
        ("volcano", None, None),
        ("native", None, None),
    ],
)
def test_who_may_be_anybodys_gets_a_first_phase_and_no_more(dialect, status, expected):
    """Kubeflow's operator made no pods: it waited for its PodGroup to change, and nobody did it."""
    seen = msgspec.structs.replace(view(dialect, needed=2), scheduler_known=False)
    assert written(dialect, seen, status) == expected


def test_status_goes_where_each_crd_has_it():
    seen = {name: view(name, needed=4, total=1) for name in ("x-k8s", "sigs", "volcano", "native")}
    found = {name: by_name(name).object.status(one, raw(), NOW_S) for name, one in seen.items()}
    assert {name: (one.subresource, one.fallback_to_main) for name, one in found.items()} == {
        "x-k8s": (True, False),
        "sigs": (True, True),
        "volcano": (False, False),
        "native": (True, False),
    }


def test_occupied_by_is_written_once_and_not_fought_over():
    theirs = {"phase": "Running", "occupiedBy": "team-a/rs-1", "running": 2}
    counts = dict(needed=2, total=2, bound=2, running=2)
    assert written("x-k8s", view(**counts), theirs) is None
    assert written("x-k8s", view(**counts), theirs | {"occupiedBy": ""}) == {
        "occupiedBy": "team-a/job1"
    }


@pytest.mark.parametrize("dialect", ["x-k8s", "sigs", "volcano", "native"])
@pytest.mark.parametrize("body", [b"", b"[]", b'{"metadata": {}}', b"{" * 5000])
def test_an_unreadable_object_gets_no_status(dialect, body):
    assert by_name(dialect).object.status(view(dialect, needed=1, total=1), body, NOW_S) is None


@pytest.mark.parametrize("dialect", ["x-k8s", "sigs", "volcano", "native"])
def test_an_object_made_anew_does_not_get_its_predecessors_status(dialect):
    seen = view(dialect, needed=4, total=1)
    assert by_name(dialect).object.status(seen, raw(uid="u2"), NOW_S) is None


def test_volcano_leaves_pending_with_zero_pods_so_that_operators_make_them():
    assert written("volcano", view("volcano", needed=4)) == {"phase": "Inqueue"}
    assert written("volcano", view("volcano", needed=4), {"phase": "Pending"}) == {
        "phase": "Inqueue"
    }
    assert written("volcano", view("volcano", needed=4, admitted=False)) == {"phase": "Pending"}
    not_any_more = view("volcano", needed=4, admitted=False)
    assert written("volcano", not_any_more, {"phase": "Inqueue"}) is None


def test_volcano_says_before_any_pod_exists_that_room_is_short_and_takes_it_back():
    """Nothing was said, so nobody knew why it stays Pending."""
    short = view("volcano", reason=Reason.MIN_RESOURCES_SHORT, needed=2, admitted=False)
    first = written("volcano", short)
    assert first["phase"] == "Pending"
    assert first["conditions"] == [
        {
            "type": "Unschedulable",
            "status": "True",
            "reason": "NotEnoughResources",
            "message": "2/2 tasks in gang unschedulable: 0 of 4 members fit",
            "transitionID": "quorate",
            "lastTransitionTime": NOW,
        }
    ]
    assert written("volcano", short, first) is None

    admitted = view("volcano", reason=Reason.NOT_ENOUGH_MEMBERS, needed=2)
    second = written("volcano", admitted, first)
    assert second["phase"] == "Inqueue"
    (condition,) = second["conditions"]
    assert condition["status"] == "False"
    assert not {"reason", "message"} & condition.keys(), "Volcano's clients leave empty fields out"
    assert written("volcano", admitted, second) is None
    met = view("volcano", reason=Reason.INTERNAL_ERROR, needed=2, admitted=False)
    assert written("volcano", met, first) is None, "a defect of ours is no admission"


def test_volcano_says_that_room_is_short_of_a_gang_whose_pods_are_gone():
    scheduled = {"type": "Scheduled", "status": "True", "reason": "ready", "message": ""}
    short = view("volcano", reason=Reason.MIN_RESOURCES_SHORT, needed=2, admitted=False)
    found = written("volcano", short, {"phase": "Running", "conditions": [scheduled]})
    assert found["phase"] == "Pending"
    assert [(one["type"], one["status"]) for one in found["conditions"]] == [
        ("Scheduled", "False"),
        ("Unschedulable", "True"),
    ]


def test_volcano_after_a_rayjob_ended_is_completed():
    assert written("volcano", view("volcano", needed=0), {"phase": "Running"}) == {
        "phase": "Completed"
    }


@pytest.mark.parametrize(
    ("counts", "reason", "state", "phase"),
    [
        (dict(needed=2, total=2, bound=2, running=1), Reason.NONE, GangState.STARTED, "Running"),
        # A started gang of which only extras wait must stay Running.
        (
            dict(needed=2, total=3, bound=2, running=2, waiting=1),
            Reason.NOT_ENOUGH_ROOM,
            GangState.STARTED,
            "Running",
        ),
        # A lost member whose replacement does not exist yet, or is being bound, is no Unknown.
        (
            dict(needed=2, total=1, bound=1, running=1),
            Reason.NOT_ENOUGH_MEMBERS,
            GangState.STARTED,
            "Inqueue",
        ),
        (
            dict(needed=2, total=2, bound=1, running=1, assumed=1),
            Reason.STARTING,
            GangState.STARTED,
            "Inqueue",
        ),
        (
            dict(needed=2, total=2, bound=1, running=1, waiting=1),
            Reason.NOT_ENOUGH_ROOM,
            GangState.STARTED,
            "Unknown",
        ),
        (
            dict(needed=2, total=2, bound=2, succeeded=1, failed=1),
            Reason.NONE,
            GangState.STARTED,
            "Completed",
        ),
        (
            dict(needed=2, total=2, bound=2, succeeded=1, running=1),
            Reason.NONE,
            GangState.STARTED,
            "Running",
        ),
        (dict(needed=2, total=2, waiting=2), Reason.NOT_ENOUGH_ROOM, GangState.WAITING, "Inqueue"),
    ],
)
def test_volcano_phases(counts, reason, state, phase):
    seen = view("volcano", reason=reason, state=state, admitted=True, **counts)
    assert written("volcano", seen, {"phase": "Pending"})["phase"] == phase


@pytest.mark.parametrize("counts", [dict(bound=4, running=4), dict(waiting=4)])
def test_what_a_volcano_client_puts_back_without_empty_fields_is_not_written_again(counts):
    """The MPI operator and quorate wrote in turns for ever, five times a second."""
    status: dict = {}
    for members in (dict(waiting=4), counts):
        reason = Reason.NOT_ENOUGH_ROOM if "waiting" in members else Reason.NONE
        seen = view("volcano", reason=reason, needed=4, total=4, **members)
        status |= written("volcano", seen, status) or {}
    put = [{key: it for key, it in one.items() if it} for one in status["conditions"]]
    assert written("volcano", seen, status | {"conditions": put}) is None


@pytest.mark.parametrize("left", [0, 1, 2])
def test_what_volcano_calls_completed_stays_so_while_its_pods_are_cleaned_up(left):
    """It went back to Inqueue, with a condition that its pods cannot be scheduled."""
    seen = view("volcano", needed=3, total=left, bound=left, succeeded=left)
    assert written("volcano", seen, {"phase": "Completed", "succeeded": 3}) is None


def test_a_completed_volcano_gang_that_gets_new_pods_begins_anew():
    """A vcjob that is restarted keeps its PodGroup."""
    seen = view("volcano", needed=3, total=2, past=1, succeeded=1, waiting=1)
    assert written("volcano", seen, {"phase": "Completed"})["phase"] == "Inqueue"


def test_volcano_with_min_zero_is_not_completed_while_its_pods_wait():
    seen = view("volcano", needed=0, total=2, waiting=2)
    assert written("volcano", seen)["phase"] == "Inqueue"


def test_a_started_volcano_gang_never_falls_back_to_pending():
    counts = dict(needed=2, total=1, bound=1, running=1)
    seen = view("volcano", state=GangState.STARTED, admitted=False, **counts)
    assert written("volcano", seen, {"phase": "Running"})["phase"] == "Inqueue"


def test_volcano_says_unschedulable_then_takes_it_back_when_scheduled():
    waiting = view("volcano", reason=Reason.NOT_ENOUGH_ROOM, needed=4, total=5, waiting=5)
    foreign = {"type": "Custom", "status": "True"}
    first = written("volcano", waiting, {"phase": "Inqueue", "conditions": [foreign]})["conditions"]
    assert first == [
        foreign,
        {
            "type": "Unschedulable",
            "status": "True",
            "reason": "NotEnoughResources",
            "message": "4/5 tasks in gang unschedulable: 0 of 4 members fit",
            "transitionID": "quorate",
            "lastTransitionTime": NOW,
        },
    ]
    assert written("volcano", waiting, {"phase": "Inqueue", "conditions": first}) is None

    old = [foreign, first[1] | {"lastTransitionTime": EARLIER}]
    started = view("volcano", state=GangState.STARTED, needed=4, total=5, bound=4, waiting=1)
    ready = written("volcano", started, {"phase": "Inqueue", "conditions": old})
    assert ready["phase"] == "Running"
    assert [(one["type"], one["status"]) for one in ready["conditions"]] == [
        ("Custom", "True"),
        ("Unschedulable", "False"),
        ("Scheduled", "True"),
    ]
    assert ready["conditions"][1]["lastTransitionTime"] == NOW
    assert ready["conditions"][2]["reason"] == "tasks in gang are ready to be scheduled"


def test_volcano_names_a_shortage_of_pods_as_such():
    short = view("volcano", reason=Reason.NOT_ENOUGH_MEMBERS, needed=4, total=2, waiting=2)
    assert written("volcano", short)["conditions"][0]["reason"] == "NotEnoughTasks"


def test_volcano_conditions_rest_while_binds_are_under_way():
    starting = view("volcano", state=GangState.STARTING, needed=2, total=2, bound=1, assumed=1)
    assert "conditions" not in written("volcano", starting, {"phase": "Pending"})


def test_a_new_sentence_does_not_move_the_transition_time():
    waiting = view("volcano", reason=Reason.NOT_ENOUGH_ROOM, needed=4, total=5, waiting=5)
    old = {"type": "Unschedulable", "status": "True", "message": "other"}
    found = written("volcano", waiting, {"conditions": [old | {"lastTransitionTime": EARLIER}]})
    assert found["conditions"][0]["lastTransitionTime"] == EARLIER
    assert found["conditions"][0]["message"].endswith("0 of 4 members fit")


def test_native_condition_is_never_taken_back():
    waiting = view("native", reason=Reason.NOT_ENOUGH_ROOM, needed=4, total=4, waiting=4)
    foreign = {"type": "DisruptionTarget", "status": "False"}
    found = written("native", waiting, {"conditions": [foreign]})["conditions"]
    assert found == [
        foreign,
        {
            "type": "PodGroupScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": "0 of 4 members fit",
            "observedGeneration": 3,
            "lastTransitionTime": NOW,
        },
    ]
    assert written("native", waiting, {"conditions": found}) is None
    started = view("native", state=GangState.STARTED, needed=4, total=4, bound=4)
    found = written("native", started, {"conditions": found})["conditions"]
    assert (found[1]["status"], found[1]["reason"], found[1]["message"]) == (
        "True",
        "Scheduled",
        "",
    )
    assert written("native", waiting, {"conditions": found}) is None
    assert written("native", started, {"conditions": found}) is None


def test_native_says_nothing_of_an_empty_group_or_while_binds_are_under_way():
    assert written("native", view("native", needed=4)) is None
    assert written("native", view("native", needed=0)) is None
    starting = view("native", state=GangState.STARTING, needed=2, total=2, assumed=2)
    assert written("native", starting) is None


def test_native_condition_is_not_written_for_ever_where_no_generation_is_counted():
    waiting = view("native", reason=Reason.NOT_ENOUGH_ROOM, needed=4, total=4, waiting=4)
    obj = {"metadata": {"namespace": "team-a", "name": "g", "uid": "u1"}}
    patch = by_name("native").object.status(waiting, json.dumps(obj).encode(), NOW_S)
    status = json.loads(patch.body)["status"]
    assert "observedGeneration" not in status["conditions"][0]
    again = json.dumps(obj | {"status": status}).encode()
    assert by_name("native").object.status(waiting, again, NOW_S) is None


EVIL = "a\x1b[2J\n\u202eb\x9b" + "x" * 100_000


@pytest.mark.parametrize("dialect", ["x-k8s", "sigs"])
def test_who_occupies_a_group_is_shown_plain_whatever_a_pod_calls_its_owner(dialect):
    seen = msgspec.structs.replace(
        view(dialect, needed=2, total=2), owner=Owner("batch/v1", "Job", EVIL)
    )
    occupant = written(dialect, seen, {"phase": "Pending"})["occupiedBy"]
    assert occupant.startswith("team-a/a\\x1b[2J\\n\\u202eb\\x9bx")
    assert occupant.isprintable()
    assert len(occupant) <= 512


@pytest.mark.parametrize("dialect", ["volcano", "native"])
def test_what_a_condition_repeats_is_plain(dialect):
    reason = Reason.NOT_ENOUGH_ROOM
    seen = msgspec.structs.replace(
        view(dialect, reason=reason, needed=2, total=2, waiting=2), message=EVIL[:50]
    )
    conditions = written(dialect, seen, {})["conditions"]
    said = " ".join(str(value) for one in conditions for value in one.values())
    assert "\\x1b[2J\\n" in said
    assert said.isprintable()
