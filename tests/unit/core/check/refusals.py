"""For each rule of the table a plan that was good, and what happens so that it is not any more.

``REFUSALS`` has one case for each rule that rules nodes out, by the rule's name; a rule without one
fails ``test_every_rule``. In each case pod ``p`` is planned on node ``n0``, the only one.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from quorate.core.model import ClaimUse, HostPort, Requirement, ResourceClaim, SelectorTerm
from quorate.core.model.changes import ObjectChanged
from quorate.core.model.devices import Allocation, PodClaim
from quorate.core.model.storage import READ_WRITE_ONCE_POD, ClaimRef
from tests.unit.core.device_world import request, spec
from tests.unit.core.storage_world import DRIVER, ZONE, StorageWorld, on
from tests.unit.core.terms import HOST, apart, pods, spread
from tests.unit.core.world import TEAM

WEB = {"app": "web"}
PORT = HostPort("TCP", "0.0.0.0", 80)


class Refusal(NamedTuple):
    """What the verifier ``said`` of the plan after ``change``; node and pod as they were before."""

    said: str
    change: Callable[[StorageWorld], None]
    node: Mapping[str, object] = MappingProxyType({})
    pod: Mapping[str, object] = MappingProxyType({})
    before: Callable[[StorageWorld], None] = lambda _: None


def bound_claim(name="c", **fields):
    """Return what makes a claim that is bound to volume ``v``."""

    def make(w):
        w.volume("v", storage_class="fast", claim=ClaimRef(TEAM, name, f"uid-{name}"))
        w.claim(name, volume="v", bound=True, **fields)

    return make


def given_devices(w):
    """Make a claim that has its devices, which nodes of a zone reach."""
    reached = (SelectorTerm((Requirement(ZONE, "In", ("a",)),)),)
    allocation = Allocation((), nodes=reached)
    claim = ResourceClaim(TEAM, "c", "uid-c", "1", spec(request()), allocation=allocation)
    w.observe(ObjectChanged(claim))


CLAIM = {"claims": (ClaimUse("c"),)}
REFUSALS = {
    "NodeUnschedulable": Refusal(
        "node n0 has the taint node.kubernetes.io/unschedulable",
        lambda w: w.node("n0", cordoned=True),
    ),
    "TaintToleration": Refusal(
        "node n0 has the taint a", lambda w: w.node("n0", taints=["a=b:NoSchedule"])
    ),
    "NodeAffinity": Refusal(
        "node n0 does not match the node selector",
        lambda w: w.node("n0", labels={"disk": "hdd"}),
        node={"labels": {"disk": "ssd"}},
        pod={"spec": {"node_selector": (("disk", "ssd"),)}},
    ),
    "NodeDeclaredFeatures": Refusal(
        "node n0 does not declare the feature F",
        lambda w: w.node("n0"),
        node={"features": ("F", "G")},
        pod={"spec": {"node_features": ("F",)}},
    ),
    "NodePorts": Refusal(
        "node n0 would give out host port 80 twice",
        lambda w: w.running("other", "n0", spec={"host_ports": (PORT,)}),
        pod={"spec": {"host_ports": (PORT,)}},
    ),
    "NodeResourcesFit": Refusal(
        "node n0 would hold 8500 of cpu, and has 8000",
        lambda w: w.running("other", "n0", cpu=7.5),
    ),
    "VolumeRestrictions": Refusal(
        "claim team/c is used by pod other, and one pod at a time may use it",
        lambda w: w.running("other", "n0", claims=(ClaimUse("c"),)),
        pod=CLAIM,
        before=bound_claim(access_modes=(READ_WRITE_ONCE_POD,)),
    ),
    "NodeVolumeLimits": Refusal(
        f"node n0 would hold 1 volumes of {DRIVER}, and takes 0",
        lambda w: w.limit("n0", 0),
        pod=CLAIM,
        before=bound_claim(),
    ),
    "VolumeBinding": Refusal(
        "volume v cannot be used on node n0",
        lambda w: w.volume("v", storage_class="fast", affinity=on(HOST, "elsewhere")),
        pod=CLAIM,
        before=bound_claim(),
    ),
    "VolumeZone": Refusal(
        "volume v is not in the zone of node n0",
        lambda w: w.volume("v", storage_class="fast", labels=((ZONE, "b"),)),
        node={"labels": {ZONE: "a"}},
        pod=CLAIM,
        before=bound_claim(),
    ),
    "PodTopologySpread": Refusal(
        f"pod p would not be spread over {ZONE}, on node n0",
        lambda w: w.running("other", "n0", labels=WEB),
        node={"labels": {ZONE: "a"}},
        pod={"labels": WEB, "spec": spread(pods(app="web"), by=ZONE, min_domains=2)},
    ),
    "InterPodAffinity": Refusal(
        "pod p would be beside a pod that it keeps away from, on node n0",
        lambda w: w.running("other", "n0", labels=WEB),
        node={"labels": {HOST: "n0"}},
        pod={"labels": WEB, "spec": apart(pods(app="web"))},
    ),
    "DynamicResources": Refusal(
        "claim c is not available on node n0",
        lambda w: w.node("n0", labels={ZONE: "b"}),
        node={"labels": {ZONE: "a"}},
        pod={"device_claims": (PodClaim("devices", "c", own=False),)},
        before=given_devices,
    ),
}
