"""Each kind's lists and watches are spoilt in each way: who needs nothing of that kind goes on."""

import time

import pytest
from aiohttp import web

from quorate.shell.watch.objects import watched_kinds
from tests.hostile.harness.behind import Behind
from tests.hostile.harness.faulty_server import FAULTS, Faulty, Spoilt
from tests.hostile.harness.neighbour import Neighbour
from tests.hostile.harness.target import SHIPPED_LEASE
from tools.harness.scheduler import Replicas
from tools.testing import wait_for

KINDS = watched_kinds(frozenset({"quorate"}))
NEEDED = {path for path, kind in KINDS.items() if kind.required}
LASTS_S = 1.5


def is_watch(request: web.BaseRequest) -> bool:
    return request.query.get("watch") == "true"


def spoilt(path: str, verb: str, fault: str) -> Spoilt:
    """Spoil a kind's lists, of which its watches then have need, or its watches."""
    if verb == "watch":
        return Spoilt(lambda request: request.path == path and is_watch(request), fault)
    return Spoilt(
        lambda request: request.path == path and not is_watch(request),
        fault,
        expires=lambda request: request.path == path and is_watch(request),
    )


CASES = [(path, verb, fault) for path in KINDS for verb in ("list", "watch") for fault in FAULTS]
UNNEEDED = [path for path in KINDS if path not in NEEDED]
GATE = {
    (UNNEEDED[number % len(UNNEEDED)], ("list", "watch")[number % 2], fault)
    for number, fault in enumerate(FAULTS)
}
"""Each fault once, each time of another kind; the other cases are for ``make explore``."""


@pytest.mark.parametrize(
    ("path", "verb", "fault"),
    [
        pytest.param(*case, id=" ".join(case), marks=[] if case in GATE else pytest.mark.explore)
        for case in CASES
    ],
)
def test_a_kind_whose_answers_are_spoilt_does_not_stop_the_others(
    behind: Behind, path: str, verb: str, fault: str
):
    before = behind.target.state()
    behind.target.forget_peak()
    one_case(behind, path, verb, fault)
    behind.target.check(before)


SLOW = ("429", "503", "410", "404", "lost", "dropped", "cut", "stuck", "slow", "huge")
"""Not at the start: these may be the server's trouble and not the kind's, or take long."""
AT_THE_START = [(path, fault) for path in UNNEEDED for fault in FAULTS if fault not in SLOW]


@pytest.mark.explore
@pytest.mark.parametrize(
    ("path", "fault"), [pytest.param(*one, id=" ".join(one)) for one in AT_THE_START]
)
def test_a_kind_that_cannot_be_had_from_the_start_is_named_and_the_others_go_on(
    furnished, tmp_path, path: str, fault: str
):
    name = f"start-{AT_THE_START.index((path, fault))}"
    with (
        Faulty(furnished.server, str(furnished.ca)) as proxy,
        Replicas(furnished, tmp_path, name) as replicas,
    ):
        proxy.spoil(spoilt(path, "list", fault))
        election = {"leaderElection": SHIPPED_LEASE}
        running = replicas(election, through=proxy.url, wait_ready=False)
        wait_for(lambda: path in running.page("/readyz"), "/readyz names it")
        wait_for(lambda: running.metric("quorate_watch_lost", resource=path) == 1.0, "is lost")
        wait_for(lambda: running.page("/readyz").startswith("ok"), "it is ready")
        tenant = Neighbour(furnished, f"tenant-{name}", name, objects=False)
        tenant.start_gangs(1)
        assert "going on without a kind" in running.log()
        proxy.heal()
        wait_for(lambda: running.metric("quorate_watch_lost", resource=path) == 0.0, "is back")
        tenant.start_gangs(1)
        tenant.remove()


def one_case(behind: Behind, path: str, verb: str, fault: str) -> None:
    proxy, tenant = behind.proxy, behind.plain
    proxy.spoil(spoilt(path, verb, fault))
    proxy.cut(path)
    wait_for(lambda: proxy.spoilt, "the fault is met")
    gang = tenant.create_gang()
    if path not in NEEDED:
        tenant.wait_started(gang)
    else:
        time.sleep(LASTS_S)
    passed = proxy.passed[path]
    proxy.heal()
    if verb == "watch":
        proxy.cut(path)
    wait_for(lambda: proxy.passed[path] > passed, "it asks again")
    behind.wait_ready()
    tenant.wait_started(gang)
    tenant.remove_gang(gang)
