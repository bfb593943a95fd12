"""Nodes on their way through the life-cycle, kept by ``quorate cks-nodes`` with its own rights."""

import itertools
import json

import pytest

from quorate.cks.reservations import REASON, hashed
from quorate.cks.states import STEPS
from tests.e2e.cks.conftest import DOCUMENTED, ORGANIZATIONS
from tests.rights import granted, right_of, widened
from tools.controlplane import ApiError
from tools.harness.cks import DESIRED, NAMESPACE, ORG, RESERVED, STATE, Keeper
from tools.harness.world import World
from tools.objects import pod
from tools.testing import manifests, wait_for

pytestmark = [pytest.mark.core, pytest.mark.real]
LEAVING = "qos.coreweave.cloud/pending-preemption"
GPU_NODE = {"cpu": "8", "nvidia.com/gpu": "8"}
KEYS = {"state": STATE, "desired": DESIRED, "reserved": RESERVED}
OUT_AND_BACK = ("debug", "onboard", "seatrial", "zap", "test", "production")
_numbers = itertools.count()


class Fleet:
    """Nodes of one test, as the platform sees and moves them."""

    def __init__(self, cluster) -> None:
        self.cluster = cluster
        self.names: list[str] = []

    def add(self, *, allocatable: dict | None = None, **labels: str | None) -> str:
        """Create a node; ``state`` and ``desired`` are labels of it, production and acme's."""
        asked = {"state": "production", "desired": "acme", **labels}
        name = f"cks-node-{next(_numbers)}"
        given = {KEYS[key]: value for key, value in asked.items() if value}
        self.cluster.create_nodes([name], allocatable=allocatable, labels=given)
        self.names.append(name)
        return name

    def node(self, name: str) -> dict:
        return self.cluster.api("GET", f"/api/v1/nodes/{name}")

    def label(self, name: str, **labels: str | None) -> None:
        """Change labels of a node as the platform."""
        body = {"metadata": {"labels": {KEYS[key]: value for key, value in labels.items()}}}
        self.patch(name, body)

    def patch(self, name: str, body: dict, query: str = "") -> dict:
        path = f"/api/v1/nodes/{name}{query}"
        kind = "application/merge-patch+json"
        return self.cluster.api("PATCH", path, body, content_type=kind)

    def is_kept(self, name: str, reserved: str, reason: str = "") -> bool:
        """Tell whether labels, taint and annotation are those of this reservation."""
        node = self.node(name)
        about = node["metadata"]
        taint = {"key": RESERVED, "value": hashed(reserved), "effect": "NoSchedule"}
        told = about.get("annotations", {}).get(REASON, "").partition(":")[0]
        return (
            about["labels"].get(RESERVED) == reserved
            and taint in node["spec"].get("taints", [])
            and told == reason
        )

    def wait_kept(self, name: str, reserved: str, reason: str = "") -> None:
        what = f"{name} is reserved for {reserved} {reason}"
        wait_for(lambda: self.is_kept(name, reserved, reason), what)

    def events(self, name: str) -> dict[str, str]:
        """Return what was said of a node, by reason."""
        query = f"?fieldSelector=involvedObject.name={name}"
        items = self.cluster.api("GET", f"/api/v1/namespaces/default/events{query}")["items"]
        return {one["reason"]: f"{one['type']} {one['message']}" for one in items}

    def wait_told(self, name: str, reason: str, *words: str) -> None:
        wait_for(lambda: reason in self.events(name), f"an Event says {reason} of {name}")
        said = self.events(name)[reason]
        assert [word for word in words if word not in said] == [], said


@pytest.fixture
def fleet(cluster, keeper):
    made = Fleet(cluster)
    yield made
    for name in made.names:
        cluster.delete(f"/api/v1/nodes/{name}")


def test_the_state_goes_only_where_the_life_cycle_goes(fleet):
    name = fleet.add(state=None, desired=None)

    def goes(state: str) -> bool:
        try:
            fleet.patch(name, {"metadata": {"labels": {STATE: state}}}, "?dryRun=All")
        except ApiError as error:
            refusals.append((error.status, error.reason))
            return False
        return True

    refusals: list[tuple[int, str]] = []

    assert {state for state in (*STEPS, "broken", "acme") if goes(state)} == {*STEPS}
    for before, following in STEPS.items():
        fleet.label(name, state=None)
        fleet.label(name, state=before)
        assert {state for state in STEPS if goes(state)} == {before, *following}
    assert set(refusals) == {(422, "Invalid")}


def test_a_refused_step_says_where_the_node_goes_and_the_way_out(fleet, tenants):
    name = fleet.add()
    said = tenants.platform.refused("label", "node", name, f"{STATE}=zap", "--overwrite")
    assert "a node goes from production to triage or production-reboot, not to zap" in said
    assert "remove the label first" in said


def test_users_neither_move_a_node_nor_ask_for_one(fleet, tenants):
    name = fleet.add()
    fleet.wait_kept(name, "acme")
    before = fleet.node(name)
    for label in (f"{STATE}=triage", f"{DESIRED}=zeta", f"{RESERVED}=zeta"):
        said = tenants.zed.refused("label", "node", name, label, "--overwrite")
        assert "(Forbidden)" in said
        assert DOCUMENTED in said
    after = fleet.node(name)
    assert after["metadata"]["labels"] == before["metadata"]["labels"]
    assert after["spec"] == before["spec"]


def test_out_of_production_a_node_is_reserved_for_its_state_and_then_its_organization_again(fleet):
    name = fleet.add()
    fleet.wait_kept(name, "acme")
    for state in ("triage", *OUT_AND_BACK[:-1]):
        fleet.label(name, state=state)
        fleet.wait_kept(name, state)
    fleet.label(name, state="production")
    fleet.wait_kept(name, "acme")
    fleet.wait_told(name, "Reserved", "Normal", "reserved for ")


def test_nodes_with_and_without_gpus_and_the_older_label_of_the_type(fleet):
    with_gpus, without = fleet.add(allocatable=GPU_NODE), fleet.add()
    fleet.patch(with_gpus, {"metadata": {"labels": {"node.kubernetes.io/instance-type": "gd-8x"}}})
    expected = {
        with_gpus: {"key": "is_gpu", "value": "true", "effect": "PreferNoSchedule"},
        without: {"key": "is_cpu_compute", "effect": "NoSchedule"},
    }
    for name, taint in expected.items():
        fleet.wait_kept(name, "acme")
        taints = [one for one in fleet.node(name)["spec"]["taints"] if one["key"] != RESERVED]
        assert taints == [taint]

    def has_type() -> bool:
        return fleet.node(with_gpus)["metadata"]["labels"].get("node.kubernetes.io/type") == "gd-8x"

    wait_for(has_type, "the older label is kept equal")


@pytest.mark.parametrize(
    ("labels", "reserved", "reason", "words"),
    [
        ({"state": None}, "triage", "NoState", f"it has no label {STATE}"),
        ({"desired": "nobody"}, "control-plane", "UnknownOrganization", "'nobody'"),
        ({"desired": None, "reserved": "triage"}, "control-plane", "NoOrganization", DESIRED),
    ],
)
def test_labels_that_say_too_little_or_nonsense_give_the_node_to_nobody_and_say_why(
    fleet, labels, reserved, reason, words
):
    name = fleet.add(**labels)
    fleet.wait_kept(name, reserved, reason)
    fleet.wait_told(name, reason, "Warning", words)
    fleet.label(name, state="production", desired="zeta")
    fleet.wait_kept(name, "zeta")


def test_what_was_changed_by_hand_comes_back_and_taints_of_others_stay(fleet):
    name = fleet.add()
    fleet.wait_kept(name, "acme")
    others = {"key": "example.com/leak", "value": "water", "effect": "NoExecute"}
    fleet.patch(name, {"spec": {"taints": [others]}, "metadata": {"labels": {RESERVED: "zeta"}}})
    fleet.wait_kept(name, "acme")
    fleet.patch(name, {"spec": {"taints": [others]}})
    fleet.wait_kept(name, "acme")
    assert fleet.node(name)["spec"]["taints"][0] == others
    fleet.wait_told(name, "Corrected", "Normal", "set taints")


def test_a_node_that_is_given_to_and_fro_is_held(fleet):
    name = fleet.add()
    owners = itertools.cycle(ORGANIZATIONS)

    def is_held() -> bool:
        fleet.label(name, desired=next(owners))
        return fleet.is_kept(name, "triage", "Unsteady")

    wait_for(is_held, "it is nobody's")
    fleet.wait_told(name, "Unsteady", "Warning", "to and fro")
    fleet.wait_kept(name, "triage", "Unsteady")


def test_a_node_outside_of_the_life_cycle_is_left_alone(fleet):
    outside, inside = fleet.add(state=None, desired=None), fleet.add()
    fleet.wait_kept(inside, "acme")
    assert RESERVED not in fleet.node(outside)["metadata"]["labels"]
    assert not fleet.node(outside)["spec"].get("taints")


def test_two_organizations_and_a_node_that_leaves_production_and_comes_back(
    cluster, fleet, tenants, quorate, keeper
):
    """The story: jane's job, a node in triage, the way back, and then the node becomes zed's."""
    of_acme, of_zeta = (
        World(cluster, quorate, tenants.name()),
        World(cluster, quorate, tenants.name()),
    )
    users = {"acme": (tenants.jane, of_acme), "zeta": (tenants.zed, of_zeta)}
    for organization, (_, world) in users.items():
        cluster.kubectl("label", "namespace", world.namespace, f"{ORG}={organization}")

    def starts(organization: str, name: str) -> None:
        user, world = users[organization]
        made = pod(name, scheduler="quorate", requests={"cpu": "4"})
        user.kubectl("-n", world.namespace, "create", "-f", "-", manifest=made)

    four_cpus = {"cpu": "4"}
    first, second = (fleet.add(allocatable=four_cpus) for _ in range(2))
    third = fleet.add(allocatable=four_cpus, desired="zeta")
    for name, organization in ((first, "acme"), (second, "acme"), (third, "zeta")):
        fleet.wait_kept(name, organization)

    starts("acme", "a")
    of_acme.wait_bound(1)
    at = of_acme.where()["a"]
    [other] = {first, second} - {at}
    fleet.label(other, state="triage")
    fleet.wait_kept(other, "triage")
    starts("acme", "b")
    of_acme.settle()
    assert of_acme.where() == {"a": at}, "the node of zeta is free, and the other is in triage"

    for state in OUT_AND_BACK:
        fleet.label(other, state=state)
    fleet.wait_kept(other, "acme")
    of_acme.wait_bound(2)
    assert of_acme.where()["b"] == other

    fleet.label(other, desired="zeta")
    fleet.wait_kept(other, "control-plane", "Pending")
    fleet.wait_told(other, "Pending", "Normal", "zeta")
    starts("zeta", "c")
    starts("zeta", "d")
    of_zeta.wait_bound(1)
    of_zeta.settle()
    assert set(of_zeta.where().values()) == {third}, "pods of acme are on the other"
    fleet.wait_kept(fleet.add(desired="zeta", allocatable={"cpu": "1"}), "zeta")
    assert fleet.is_kept(other, "control-plane", "Pending")

    of_acme.delete_pod("b", wait=True)
    fleet.wait_kept(other, "zeta")
    of_zeta.wait_bound(2)
    assert set(of_zeta.where().values()) == {third, other}
    assert of_acme.where() == {"a": at}, "who was there stayed"
    asks_for_what_it_was_granted(keeper)


def test_a_gang_that_waits_is_told_which_nodes_are_not_open_to_it_and_why(
    cluster, fleet, tenants, quorate
):
    world, four_cpus = World(cluster, quorate, tenants.name()), {"cpu": "4"}
    cluster.kubectl("label", "namespace", world.namespace, f"{ORG}=acme")

    def starts(*pods: dict) -> None:
        for one in pods:
            tenants.jane.kubectl("-n", world.namespace, "create", "-f", "-", manifest=one)

    pending = fleet.add(allocatable=four_cpus)
    fleet.wait_kept(pending, "acme")
    starts(pod("holder", scheduler="quorate", requests=four_cpus))
    world.wait_bound(1)
    fleet.label(pending, desired="zeta")
    fleet.wait_kept(pending, "control-plane", "Pending")
    leaving, in_triage, of_zeta, is_open = (
        fleet.add(allocatable=four_cpus),
        fleet.add(allocatable=four_cpus, state="triage"),
        fleet.add(allocatable=four_cpus, desired="zeta"),
        fleet.add(allocatable=four_cpus),
    )
    for name, reserved in ((leaving, "acme"), (in_triage, "triage"), (of_zeta, "zeta")):
        fleet.wait_kept(name, reserved)
    fleet.wait_kept(is_open, "acme")
    fleet.patch(leaving, {"metadata": {"labels": {LEAVING: "true"}}})
    world.cordon(leaving)

    starts(*world.gang("train", 2, requests=four_cpus))
    told = (
        ("about to leave", leaving),
        ("in triage", in_triage),
        ("pending for zeta", pending),
        ("reserved for zeta", of_zeta),
    )
    words = ", ".join(f"1 node {why}" for why, _ in told)
    world.wait_condition(f"not open to it: {words}")
    said = world.why("train")
    assert (said["reason"], said["blockers"][0]["fit"]) == ("NotEnoughRoom", 1)
    seen = [(one["why"], *one["some"]) for one in said["blockers"][0]["closed"]]
    assert seen == [*told]
    assert "uncordon" not in said["hint"]
    text = world.quorate_cli("why", "train", "-n", world.namespace).stdout
    lines = [f"not open to it, {why}: {name}\n" for why, name in told]
    assert [line for line in lines if line not in text] == []
    table = world.quorate_cli("nodes", "-l", STATE).stdout
    rows = {line.split()[0]: line for line in table.splitlines() if line.startswith("cks-node-")}
    phases = {**dict((name, why) for why, name in told), in_triage: "triage", of_zeta: "zeta"}
    assert [name for name, phase in phases.items() if phase not in rows[name]] == []


def asks_for_what_it_was_granted(keeper: Keeper) -> None:
    """All rights of the manifests were asked for, and none beside them."""
    proxy = keeper.recorded
    assert not proxy.refused
    text = manifests("--component=cks-nodes", f"--rules={keeper.rules}")
    rights = {widened(right_of(*one), NAMESPACE) for one in proxy.requests}
    by_admission = {one for one in granted(text) if one.group == "rules.quorate.dev"}
    assert rights == {*granted(text)} - by_admission


def test_the_next_replica_goes_on_where_the_first_stops(cluster, fleet, keeper, tmp_path):
    second = Keeper(cluster, tmp_path, ORGANIZATIONS)
    second.kubeconfig = keeper.kubeconfig
    name = fleet.add()
    fleet.wait_kept(name, "acme")
    second.start()
    try:
        wait_for(lambda: "standing by" in second.page("/readyz"), "it stands by")
        assert json.dumps("synced") not in second.log(), "it watches nothing"
        assert keeper.stop() == 0
        wait_for(second.leads, "the second leads")
        fleet.label(name, state="triage")
        fleet.wait_kept(name, "triage")
    finally:
        assert second.stop() == 0
        keeper.start()
    wait_for(keeper.leads, "it leads again")
    assert not second.complaints()
