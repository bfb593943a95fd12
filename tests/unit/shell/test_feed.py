"""The feed turns what watches say into changes: also what a new list no longer has."""

from quorate.core.changes import PodChanged, PodGone
from quorate.shell.kube.watching import Added, Listed
from quorate.shell.watch.feed import Feed
from tests.unit.shell.scripted_server import ManualClock

PATH = "/api/v1/pods"
POD = b'{"metadata":{"namespace":"n","name":"%s","uid":"uid-%s"},"spec":{"containers":[]}}'


def pod(name):
    return POD % (name.encode(), name.encode())


def test_what_a_new_list_does_not_have_is_gone():
    told = []
    feed = Feed(
        None,  # type: ignore[arg-type]  nothing is asked for
        frozenset({"quorate"}),
        on_change=told.append,
        on_object=lambda key: None,
        clock=ManualClock(),
        chance=lambda: 0.5,
    )
    tell = feed.reflectors[PATH]._on_event
    tell(Listed([pod("a"), pod("b")], "1"))
    tell(Added(pod("c")))
    told.clear()
    tell(Listed([pod("b")], "2"))
    assert {one.pod.uid for one in told if isinstance(one, PodChanged)} == {"uid-b"}
    assert {one.uid for one in told if isinstance(one, PodGone)} == {"uid-a", "uid-c"}
