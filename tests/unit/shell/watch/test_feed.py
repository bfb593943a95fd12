"""The feed turns what watches say into changes: also what a new list no longer has."""

import json
import math

import pytest

from quorate.core.model.changes import (
    DialectServed,
    GangGone,
    KindServed,
    PodChanged,
    PodGone,
)
from quorate.shell.kube.errors import ApiError, Unreachable
from quorate.shell.kube.lists.events import (
    Absent,
    Added,
    Failing,
    ListBegins,
    Listed,
    Modified,
    Recovered,
    SomeListed,
)
from quorate.shell.watch import feed as feed_module
from quorate.shell.watch.feed import Feed
from quorate.shell.watch.objects import watched_kinds
from quorate.shell.watch.pod.decoding import PodDecoder
from tests.unit.shell.scripted_server import ManualClock, no_defect, whole_list

PATH = "/api/v1/pods"
GROUP = b'{"metadata":{"namespace":"n","name":"%s","uid":"uid-%s"},"spec":{"minMember":2}}'
POD = b'{"metadata":{"namespace":"n","name":"%s","uid":"uid-%s"},"spec":{"containers":[]}}'


def pod(name):
    return POD % (name.encode(), name.encode())


def hearing(path=PATH):
    """Return what is told, and what tells it: the handler of a path's events."""
    _, told, tell = feeding(path)
    return told, tell


def feeding(path, note=no_defect):
    told = []
    feed = Feed(
        None,  # type: ignore[arg-type]  nothing is asked for
        watched_kinds(frozenset({"quorate"})),
        on_change=told.append,
        on_object=lambda key: None,
        clock=ManualClock(),
        chance=lambda: 0.5,
        note=note,
    )
    handle = feed.reflectors[path]._on_event

    def tell(*events):
        for event in events:
            handle(event)

    return feed, told, tell


def test_what_a_new_list_does_not_have_is_gone():
    told, tell = hearing()
    tell(*whole_list(pod("a"), pod("b")))
    tell(Added(pod("c")))
    told.clear()
    tell(*whole_list(pod("b")))
    assert {one.pod.uid for one in told if isinstance(one, PodChanged)} == {"uid-b"}
    assert {one.uid for one in told if isinstance(one, PodGone)} == {"uid-a", "uid-c"}


def test_what_only_a_list_had_that_began_and_did_not_end_is_gone():
    told, tell = hearing()
    tell(ListBegins(), SomeListed([pod("a")]), ListBegins())
    assert not [one for one in told if isinstance(one, PodGone)]
    tell(SomeListed([pod("b")]), Listed("2"))
    assert [one.uid for one in told if isinstance(one, PodGone)] == ["uid-a"]


def test_an_object_that_a_new_list_has_in_an_unreadable_version_keeps_its_defect():
    told, tell = hearing("/api/v1/persistentvolumeclaims")
    claim = b'{"metadata":{"namespace":"n","name":"c"},"spec":{"volumeName":%s}}'
    tell(*whole_list(claim % b'"v"'))
    told.clear()
    tell(*whole_list(claim % b"7"))
    [gone] = told
    assert gone.name == "c"
    assert "volumeName" in gone.defect


def test_an_event_of_nobody_knows_which_object_makes_a_new_list_due_and_a_list_does_not():
    feed, _, tell = feeding(PATH)
    reflector = feed.reflectors[PATH]
    tell(*whole_list(b'{"metadata":7}'))
    assert reflector._relist_due_s is None
    tell(Added(b'{"metadata":7}'))
    assert reflector._relist_due_s is not None


FINISHED = (
    b'{"metadata":{"namespace":"n","name":"a","uid":"u","labels":{%s}},'
    b'"spec":{%s"containers":[]},"status":{"phase":"Succeeded"}}'
)
OURS = b'"schedulerName":"quorate",'
MEMBER = b'"scheduling.x-k8s.io/pod-group":"g"'


def test_a_finished_pod_of_another_scheduler_is_left_out_and_one_that_finishes_is_gone():
    told, tell = hearing()
    tell(*whole_list(FINISHED % (b"", b"")))
    assert not told
    tell(Modified(FINISHED.replace(b"Succeeded", b"Running") % (b"", b"")))
    assert [type(one) for one in told] == [PodChanged]
    tell(Modified(FINISHED.replace(b"Succeeded", b"Failed") % (b"", b"")))
    assert told[1:] == [PodGone("u")]
    tell(*whole_list(FINISHED % (b"", b"")))
    assert told[2:] == []


@pytest.mark.parametrize(("labels", "spec"), [(MEMBER, b""), (b"", OURS)], ids=["gang", "ours"])
def test_finished_members_of_gangs_and_pods_of_ours_are_told_of(labels, spec):
    told, tell = hearing()
    tell(*whole_list(FINISHED % (labels, spec)))
    assert [type(one) for one in told] == [PodChanged]


def test_of_gangs_objects_only_what_a_status_is_written_by_is_kept():
    feed, _, tell = feeding(PODGROUPS)
    group = {
        "metadata": {
            "namespace": "n",
            "name": "g",
            "uid": "u",
            "resourceVersion": "7",
            "generation": 3,
            "annotations": {"large": "x" * 100_000},
        },
        "spec": {"minMember": 2},
        "status": {"phase": "Pending", "conditions": []},
    }
    tell(Added(json.dumps(group).encode()))
    [kept] = feed.objects.values()
    del group["metadata"]["annotations"], group["spec"]
    assert json.loads(kept) == group


# Kinds that cannot be listed

CLAIMS = "/api/v1/persistentvolumeclaims"
PODGROUPS = "/apis/scheduling.x-k8s.io/v1alpha1/podgroups"
DEVICES = "/apis/resource.k8s.io/v1/resourceclaims"
FORBIDDEN = ApiError(403, "Forbidden", "no")


def started(*but):
    """Return a feed that was told all kinds but these, what it tells, and what tells it more."""
    feed, told, _ = feeding(PATH)
    for path, reflector in feed.reflectors.items():
        if path not in but:
            reflector.is_synced = True
            for event in whole_list():
                reflector._on_event(event)
    told.clear()
    return feed, told, lambda path, event: feed.reflectors[path]._on_event(event)


def served(told):
    return [one for one in told if isinstance(one, KindServed | DialectServed)]


@pytest.mark.parametrize("status", [401, 403, 500, 200])
def test_a_kind_that_cannot_be_listed_does_not_keep_the_others_after_a_fair_try(status):
    feed, told, tell = started(CLAIMS)
    error = ApiError(status, "Why", "it says\x1b no")
    for tries, since_s in ((1, 0.0), (2, 9.0), (9, 4.9)):
        tell(CLAIMS, Failing(error, tries, since_s))
        assert not feed.is_synced
    tell(CLAIMS, Failing(error, 10, 5.0))
    assert feed.is_synced
    assert feed.unready_reason() is None
    assert not feed.is_fresh
    [change] = told
    assert change.kind == "Claim"
    assert "persistentvolumeclaims" in change.problem
    assert change.hint
    assert "\x1b" not in change.problem


def test_a_missing_right_is_named_with_the_remedy_and_said_once():
    _, told, tell = started(CLAIMS)
    for tries in range(10):
        tell(CLAIMS, Failing(FORBIDDEN, tries, 10.0 * tries))
    [change] = told
    assert "not permitted to list and watch persistentvolumeclaims" in change.problem
    assert "quorate manifests --only rbac" in change.hint


@pytest.mark.parametrize("path", [PATH, "/api/v1/nodes"])
def test_nothing_goes_on_without_pods_and_nodes(path):
    feed, told, tell = started(path)
    tell(path, Failing(FORBIDDEN, 1000, 1e6))
    assert not feed.is_synced
    assert path in feed.unready_reason()
    assert not told


def test_a_kind_that_works_again_is_told_of_after_its_objects():
    feed, told, tell = started(CLAIMS)
    tell(CLAIMS, Failing(FORBIDDEN, 10, 10.0))
    claim = b'{"metadata":{"namespace":"n","name":"c"},"spec":{}}'
    for event in whole_list(claim):
        tell(CLAIMS, event)
    assert [type(one).__name__ for one in told] == ["KindServed", "ObjectChanged", "KindServed"]
    assert told[-1] == KindServed("Claim")
    assert not feed.unavailable


def test_gangs_objects_that_cannot_be_listed_are_told_of_by_dialect():
    feed, told, tell = started(PODGROUPS)
    tell(PODGROUPS, Failing(FORBIDDEN, 10, 10.0))
    [change] = told
    assert (change.dialect, change.served) == ("x-k8s", False)
    assert "podgroups.scheduling.x-k8s.io" in change.problem
    assert "x-k8s" not in feed.served
    for event in whole_list():
        tell(PODGROUPS, event)
    assert told[-1] == DialectServed("x-k8s", served=True)
    assert "x-k8s" in feed.served


def test_each_list_of_a_dialect_is_told():
    """Its definition may have been made anew meanwhile: what stood beside it has to be, too."""
    feed, told, tell = started(PODGROUPS)
    numbers = []
    for _ in range(2):
        for event in whole_list():
            tell(PODGROUPS, event)
        numbers.append(feed.served["x-k8s"])
    assert numbers[0] != numbers[1]
    assert told == [DialectServed("x-k8s", served=True)] * 2


def test_a_kind_that_was_known_is_used_for_a_minute_though_its_watch_fails():
    feed, told, tell = started()
    tell(CLAIMS, Failing(FORBIDDEN, 20, 59.0))
    assert not told
    tell(CLAIMS, Failing(FORBIDDEN, 21, 60.0))
    assert [one.kind for one in served(told)] == ["Claim"]
    tell(CLAIMS, Recovered())
    assert told[-1] == KindServed("Claim")
    assert feed.is_synced


def test_a_server_that_is_away_is_no_matter_of_one_kind():
    feed, told, tell = started(CLAIMS, PATH)
    away = Unreachable("nobody there")
    tell(CLAIMS, Failing(away, 100, 100.0))
    assert not told
    feed.reflectors[PATH].is_synced = True
    tell(CLAIMS, Failing(away, 101, 19.0))
    assert not told
    tell(CLAIMS, Failing(away, 101, 20.0))
    assert [one.kind for one in told] == ["Claim"]


def test_a_survey_goes_on_without_no_kind():
    feed, told, tell = started(CLAIMS)
    feed._fair_try_s = math.inf
    tell(CLAIMS, Failing(FORBIDDEN, 100, 1e6))
    assert not told
    assert not feed.is_synced


def test_devices_whose_api_is_not_there_are_told_of_and_budgets_are_not():
    feed, told, tell = started()
    tell(DEVICES, Absent())
    tell("/apis/policy/v1/poddisruptionbudgets", Absent())
    [change] = told
    assert change.kind == "ResourceClaim"
    assert change.problem == "this cluster does not serve resourceclaims of resource.k8s.io/v1"
    assert feed.is_synced


def test_a_kind_is_not_waited_for_while_it_is_listed_anew_and_pods_are():
    feed, _, tell = started()
    feed.reflectors[CLAIMS].is_synced = False
    tell(CLAIMS, ListBegins())
    assert feed.is_synced
    feed.reflectors[PATH].is_synced = False
    assert not feed.is_synced


def test_a_defect_of_ours_in_a_decoder_costs_its_object_alone(monkeypatch):
    """It ended the process, and did so again after each restart."""
    news = PodDecoder.news

    def broken(decoder, raw):
        if raw == pod("poison"):
            raise KeyError("planted")
        return news(decoder, raw)

    monkeypatch.setattr(PodDecoder, "news", broken)
    noted = []
    feed, told, tell = feeding(PATH, lambda *defect: noted.append(defect))
    tell(*whole_list(pod("a"), pod("poison"), pod("b")))
    tell(Modified(pod("poison")), Added(pod("c")))
    assert [one.pod.name for one in told if isinstance(one, PodChanged)] == ["a", "b", "c"]
    assert [(stage, about) for stage, about, _ in noted] == [("watch", "Pod n/poison")] * 2
    assert feed.quarantined["Pod", "n/poison"].endswith("a defect of quorate's own: KeyError")


def test_a_defect_of_ours_after_the_decoder_costs_its_object_alone_too(monkeypatch):
    """The rest of the list was left out, and all in it that was known was told to be gone."""

    def broken(raw):
        if b"poison" in raw:
            raise KeyError("planted")
        return raw

    monkeypatch.setattr(feed_module, "for_status", broken)
    noted = []
    feed, told, tell = feeding(PODGROUPS, lambda *defect: noted.append(defect))
    groups = [GROUP % (name, name) for name in (b"a", b"poison", b"b")]
    for _ in range(2):
        tell(*whole_list(*groups))
    assert {key.name for key in feed.objects} == {"a", "b"}
    assert {one.key.name for one in told if isinstance(one, GangGone)} == {"poison"}
    assert [(stage, about) for stage, about, _ in noted] == [("watch", "PodGroup n/poison")] * 2


def test_a_defect_of_ours_at_the_end_of_a_list_makes_a_new_list_due(monkeypatch):
    noted = []
    feed, told, tell = feeding(PATH, lambda *defect: noted.append(defect))
    monkeypatch.setattr(feed, "_restored", lambda kind: 1 / 0)
    tell(*whole_list(pod("a")))
    assert [one.pod.name for one in told] == ["a"]
    assert [stage for stage, _, _ in noted] == ["watch"]
    assert feed.reflectors[PATH]._relist_due_s is not None
