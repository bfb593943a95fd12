"""Each kind's lists and watches are spoilt in each way: who needs nothing of that kind goes on."""

import os
import random
import time
from pathlib import Path

from aiohttp import web

from quorate.shell.watch.objects import watched_kinds
from tests.e2e.harness.scheduler import Replicas
from tests.e2e.harness.world import wait_for
from tests.hostile.conftest import LONG
from tests.hostile.harness import figures
from tests.hostile.harness.behind import Behind
from tests.hostile.harness.faulty_server import FAULTS, Faulty, Spoilt
from tests.hostile.harness.neighbour import Neighbour
from tests.hostile.harness.target import SHIPPED_LEASE
from tests.property.seeds import SEED, number

BUDGET_S = number("QUORATE_HOSTILE_FAULTS_S", 100_000 if LONG else 30)
"""So long cases are drawn one after the other."""
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


def cases() -> list[tuple[str, str, str]]:
    """Return path, verb and fault of all cases, in an order of this run's seed.

    ``QUORATE_HOSTILE_CASE`` is a part of the words for those that are wanted.
    """
    wanted = os.environ.get("QUORATE_HOSTILE_CASE", "")
    every = [
        (path, verb, fault)
        for path in KINDS
        for verb in ("list", "watch")
        for fault in FAULTS
        if wanted in f"{verb} of {path}, {fault}."
    ]
    random.Random(SEED).shuffle(every)
    return every


def test_a_kind_whose_answers_are_spoilt_does_not_stop_the_others(behind: Behind):
    before = behind.target.state()
    behind.target.forget_peak()
    ends_s = time.monotonic() + BUDGET_S
    done = 0
    for path, verb, fault in cases():
        if time.monotonic() > ends_s:
            break
        try:
            one_case(behind, path, verb, fault)
            behind.target.check(before, errors=False)
        except AssertionError as error:
            raise AssertionError(f"{verb} of {path}, {fault}. {error}") from error
        done += 1
    print(f"{done} of {len(cases())} cases")


AT_THE_START = number("QUORATE_HOSTILE_STARTS", 60 if LONG else 1)
SLOW = ("429", "503", "410", "404", "lost", "dropped", "cut", "stuck", "slow", "huge")
"""Not at the start: these may be the server's trouble and not the kind's, or take long."""


def test_a_kind_that_cannot_be_had_from_the_start_is_named_and_the_others_go_on(
    furnished, tmp_path
):
    of_start = [
        (path, fault)
        for path, verb, fault in cases()
        if verb == "list" and path not in NEEDED and fault not in SLOW
    ]
    for count, (path, fault) in enumerate(of_start[:AT_THE_START]):
        name = f"start-{count}"
        try:
            one_start(furnished, tmp_path, name, path, fault)
        except AssertionError as error:
            raise AssertionError(f"from the start: list of {path}, {fault}. {error}") from error


def one_start(furnished, folder: Path, name: str, path: str, fault: str) -> None:
    with (
        Faulty(furnished.server, str(furnished.ca)) as proxy,
        Replicas(furnished, folder, name) as replicas,
    ):
        proxy.spoil(spoilt(path, "list", fault))
        election = {"leaderElection": SHIPPED_LEASE}
        running = replicas(election, through=proxy.url, wait_ready=False)
        wait_for(lambda: path in running.page("/readyz"), "/readyz names it", 40)
        wait_for(lambda: running.metric("quorate_watch_lost", resource=path) == 1.0, "is lost", 60)
        wait_for(lambda: running.page("/readyz").startswith("ok"), "it is ready", 40)
        tenant = Neighbour(furnished, f"tenant-{name}", name, objects=False)
        tenant.start_gang()
        assert "going on without a kind" in running.log()
        figures.ANSWERS[f"list {fault}"] = figures.ANSWERS.get(f"list {fault}", 0) + proxy.spoilt
        proxy.heal()
        wait_for(lambda: running.metric("quorate_watch_lost", resource=path) == 0.0, "is back", 60)
        tenant.start_gang()
        tenant.remove()


def one_case(behind: Behind, path: str, verb: str, fault: str) -> None:
    proxy, tenant = behind.proxy, behind.plain
    proxy.spoil(spoilt(path, verb, fault))
    proxy.cut(path)
    wait_for(lambda: proxy.spoilt, "the fault is met", 30)
    gang = tenant.create_gang()
    if path not in NEEDED:
        tenant.wait_started(gang)
    else:
        time.sleep(LASTS_S)
    passed = proxy.passed[path]
    behind.heal(f"{verb} {fault}")
    if verb == "watch":
        proxy.cut(path)
    wait_for(lambda: proxy.passed[path] > passed, "it asks again", 40)
    behind.wait_ready()
    tenant.wait_started(gang)
    tenant.remove_gang(gang)
