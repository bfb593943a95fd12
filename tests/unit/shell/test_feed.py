"""The feed turns what watches say into changes: also what a new list no longer has."""

from quorate.core.changes import PodChanged, PodGone
from quorate.shell.kube.watching import Added, ListBegins, Listed, SomeListed
from quorate.shell.watch.feed import Feed
from tests.unit.shell.scripted_server import ManualClock, whole_list

PATH = "/api/v1/pods"
POD = b'{"metadata":{"namespace":"n","name":"%s","uid":"uid-%s"},"spec":{"containers":[]}}'


def pod(name):
    return POD % (name.encode(), name.encode())


def hearing(path=PATH):
    """Return what is told, and what tells it: the handler of a path's events."""
    _, told, tell = feeding(path)
    return told, tell


def feeding(path):
    told = []
    feed = Feed(
        None,  # type: ignore[arg-type]  nothing is asked for
        frozenset({"quorate"}),
        on_change=told.append,
        on_object=lambda key: None,
        clock=ManualClock(),
        chance=lambda: 0.5,
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
