"""Each write is spoilt in each way for some seconds: gangs are whole or wait, and all start."""

import time
from collections.abc import Callable, Iterator

import pytest
from aiohttp import web

from tests.hostile.harness.behind import Behind
from tests.hostile.harness.devices import claim
from tests.hostile.harness.faulty_server import FAULTS, OF_WRITES, Spoilt
from tests.hostile.harness.neighbour import MEMBERS, Neighbour
from tools.testing import wait_for

LASTS_S = 1.0
NOT_OF_WRITES = ("odd events", "odd items", "another kind", "another kind, none", "410")
TOLD_LATER = ("404", "no path", "429", "500", "503", "dropped", "lost", "cut", "stuck", "slow")
"""After these a report is sent again; after others it is told with the next change."""
TEMPLATE = "/apis/resource.k8s.io/v1/namespaces/{}/resourceclaimtemplates"


def is_binding(request: web.BaseRequest) -> bool:
    return request.method == "POST" and request.path.endswith("/binding")


WRITES: dict[str, Callable[[web.BaseRequest], bool]] = {
    "binding": is_binding,
    "eviction": lambda request: request.path.endswith("/eviction"),
    "pods, one by one": lambda request: "/pods/" in request.path,
    "pod status": lambda request: "/pods/" in request.path and request.path.endswith("/status"),
    "group status": lambda request: "podgroups" in request.path and request.method == "PATCH",
    "events": lambda request: "/events" in request.path and request.method != "GET",
    "lease": lambda request: "/leases" in request.path,
    "claims": lambda request: "/resourceclaims" in request.path and request.method != "GET",
}
MEANWHILE = ("pod status", "group status", "events", "lease")
"""Gangs start while these are spoilt."""


CASES = [
    (write, fault)
    for write in WRITES
    for fault in (*FAULTS, *OF_WRITES)
    if fault not in NOT_OF_WRITES
]
GATE = set(zip(WRITES, (*OF_WRITES, "500", "cut", "lost", "stuck", "garbled"), strict=True))
"""Each write once, each time in another way; the other cases are for ``make explore``."""


@pytest.fixture
def tenant(behind: Behind, furnished) -> Iterator[Neighbour]:
    """The neighbour, with a template of claims for its gangs."""
    template = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate"}
    template |= {"metadata": {"name": "one"}, "spec": {"spec": claim("x")["spec"]}}
    path = TEMPLATE.format(behind.neighbour.namespace)
    furnished.api("POST", path, template)
    yield behind.neighbour
    furnished.api("DELETE", f"{path}/one")


@pytest.mark.parametrize(
    ("write", "fault"),
    [
        pytest.param(*case, id=" ".join(case), marks=[] if case in GATE else pytest.mark.explore)
        for case in CASES
    ],
)
def test_gangs_are_whole_although_writes_are_spoilt(
    behind: Behind, tenant: Neighbour, write: str, fault: str
):
    before = behind.target.state()
    behind.target.forget_peak()
    (one_eviction if write == "eviction" else one_case)(behind, tenant, write, fault)
    behind.target.check(before)


def one_case(behind: Behind, tenant: Neighbour, write: str, fault: str) -> None:
    behind.proxy.spoil(Spoilt(WRITES[write], fault))
    uses = [{"name": "c", "resourceClaimTemplateName": "one"}]
    options = {"resourceClaims": uses} if write == "claims" else {}
    waits = tenant.create_gang(requests={"cpu": "100000"}) if write == "pod status" else ""
    gang = tenant.create_gang(**options)
    wait_for(lambda: behind.proxy.spoilt, "the fault is met")
    if write in MEANWHILE:
        tenant.wait_started(gang)
    time.sleep(LASTS_S)
    behind.proxy.heal()
    if write == "lease":  # several such cases in a row are as one that lasts until it is lost
        behind.target.wait_renewed()
    tenant.wait_started(gang)
    behind.wait_ready()
    tenant.remove_gang(gang)
    if waits:
        if fault in TOLD_LATER:
            wait_for(lambda: "Insufficient cpu" in tenant.said(waits), "it is told why")
        tenant.remove_gang(waits)


def one_eviction(behind: Behind, tenant: Neighbour, write: str, fault: str) -> None:
    """One member can never be bound: the others are evicted, in the end."""

    def fails(request: web.BaseRequest) -> bool:
        return is_binding(request) and "-0/" in request.path

    behind.proxy.spoil(Spoilt(WRITES[write], fault, fails=fails))
    gang = tenant.create_gang({"scheduleTimeoutSeconds": 1})
    wait_for(lambda: behind.proxy.spoilt, "the fault is met")
    time.sleep(LASTS_S)
    behind.proxy.heal()
    wait_for(lambda: tenant.bound(gang) in (0, MEMBERS), "it is whole or nothing")
    behind.wait_ready()
    tenant.remove_gang(gang)
