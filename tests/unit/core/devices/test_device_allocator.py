"""Which devices a claim gets on a node: the first that do, in the order of pools and slices."""

import numpy as np
import pytest
from msgspec.structs import replace

from quorate.core.model import Taint, Toleration
from quorate.core.model.changes import ObjectChanged
from quorate.core.model.devices import Capacity, Nodes
from quorate.core.room.devices.cel.programs import Broken
from quorate.core.rules.filtering import pod_slots
from tests.unit.core.device_world import (
    DRIVER,
    Nodes2,
    choice,
    claim,
    device,
    first_of,
    gpu_class,
    on,
    reached_by,
    request,
    spec,
    zone,
)

BIG = f'device.capacity["{DRIVER}"].memory.isGreaterThan(quantity("40Gi"))'
MODEL_A = f'device.attributes["{DRIVER}"].model == "a"'
MODEL = f"{DRIVER}/model"


def two(**more):
    return on(
        "n0", device("d0", attributes={"model": "a"}), device("d1", attributes={"model": "b"})
    )


TAINTED = {"taints": (Taint("bad", "NoSchedule"),)}
SHARED = {"shareable": True}
PART = Capacity("memory", "40Gi", default="10Gi", smallest="10Gi", step="10Gi")

TABLE = {
    "the first device in order": ([two()], [spec()], [["d0"]]),
    "one that a selector matches": (
        [two()],
        [spec(request(MODEL_A.replace('"a"', '"b"')))],
        [["d1"]],
    ),
    "by capacity": (
        [on("n0", device("d0", memory="40Gi"), device("d1", memory="80Gi"))],
        [spec(request(BIG))],
        [["d1"]],
    ),
    "two of a count": ([two()], [spec(request(count=2))], [["d0", "d1"]]),
    "more than there are": ([two()], [spec(request(count=3))], None),
    "two claims take different devices": ([two()], [spec(), spec()], [["d0"], ["d1"]]),
    "a later request makes an earlier one choose again": (
        [two()],
        [spec(request(name="r0"), request(MODEL_A, name="r1"))],
        [["d1", "d0"]],
    ),
    "all that match": ([two()], [spec(request(MODEL_A, count=None))], [["d0"]]),
    "all, and none matches": ([two()], [spec(request("false", count=None))], None),
    "the first choice of a list that fits": (
        [two()],
        [spec(first_of(choice(name="three", count=3), choice(name="two", count=2)))],
        [["d0", "d1"]],
    ),
    "equal values of an attribute": (
        [
            on(
                "n0",
                device("d0", attributes={"model": "a"}),
                device("d1", attributes={"model": "b"}),
                device("d2", attributes={"model": "b"}),
            )
        ],
        [spec(request(count=2), match=[MODEL])],
        [["d1", "d2"]],
    ),
    "no equal values": ([two()], [spec(request(count=2), match=[MODEL])], None),
    "different values of an attribute": (
        [
            on(
                "n0",
                device("d0", attributes={"model": "a"}),
                device("d1", attributes={"model": "a"}),
                device("d2", attributes={"model": "b"}),
            )
        ],
        [spec(request(name="r0"), request(name="r1"), distinct=[MODEL])],
        [["d0", "d2"]],
    ),
    "what was tried before changes what a constraint of different values admits": (
        [on("n0", *(device(f"d{i}", attributes={"model": one}) for i, one in enumerate("abaa")))],
        [spec(request(MODEL_A)), spec(request(count=3), distinct=[MODEL])],
        [["d2"], ["d0", "d1", "d3"]],
    ),
    "a taint keeps it away": (
        [on("n0", device("d0", **TAINTED), device("d1"))],
        [spec()],
        [["d1"]],
    ),
    "a tolerated taint does not": (
        [on("n0", device("d0", **TAINTED))],
        [spec(request(tolerations=(Toleration("bad", "Exists"),)))],
        [["d0"]],
    ),
    "counters for one of two partitions": (
        [
            on("n0", device("d0", uses={"m": "30Gi"}), device("d1", uses={"m": "20Gi"}), slices=2),
            on("n0", name="counters", slices=2, counters={"m": "40Gi"}),
        ],
        [spec(request(count=2))],
        None,
    ),
    "counters for both": (
        [
            on("n0", device("d0", uses={"m": "20Gi"}), device("d1", uses={"m": "20Gi"}), slices=2),
            on("n0", name="counters", slices=2, counters={"m": "40Gi"}),
        ],
        [spec(request(count=2))],
        [["d0", "d1"]],
    ),
    "shares of one device": (
        [on("n0", device("d0", memory=PART, **SHARED))],
        [
            spec(request(capacity=(("memory", "15Gi"),))),
            spec(request(capacity=(("memory", "20Gi"),))),
        ],
        [["d0"], ["d0"]],
    ),
    "more shares than it has": (
        [on("n0", device("d0", memory=PART, **SHARED))],
        [
            spec(request(capacity=(("memory", "25Gi"),))),
            spec(request(capacity=(("memory", "20Gi"),))),
        ],
        None,
    ),
    "a newer generation hides the older": (
        [on("n0", device("old")), on("n0", device("new"), name="z", generation=2)],
        [spec()],
        [["new"]],
    ),
    "a pool of which a slice is missing": ([on("n0", device("d0"), slices=2)], [spec()], None),
    "a name that occurs twice in a pool": (
        [on("n0", device("d0"), device("d0"))],
        [spec()],
        Broken("invalid resource pools were encountered"),
    ),
    "another node's devices": ([on("n1", device("d0"))], [spec()], None),
    "a device of the zone": ([reached_by(zone("a"), device("z0"))], [spec()], [["z0"]]),
    "a device of another zone": ([reached_by(zone("b"), device("z0"))], [spec()], None),
    "each device has its nodes": (
        [
            reached_by(
                None, device("x", nodes=Nodes("n1")), device("y", nodes=Nodes(everywhere=True))
            )
        ],
        [spec()],
        [["y"]],
    ),
}


@pytest.mark.parametrize(("objects", "specs", "given"), TABLE.values(), ids=TABLE)
def test_what_claims_get_on_a_node(objects, specs, given):
    assert Nodes2(*objects).given(*specs) == given


def test_a_device_in_use_is_not_given_again_but_to_admins():
    world = Nodes2(two())
    first, room = world.ask(spec())
    row = world.cluster.nodes.rows["n0"]
    assert room.device_room.take(first.id, first.device_needs, [row], ["n0"])
    [(_, allocation)] = room.device_room.pop_allocations(first.id, row)
    world.tell(ObjectChanged(claim("theirs", allocation=allocation)))
    assert world.given(spec()) == [["d1"]]
    assert world.given(spec(request(admin=True))) == [["d0"]]
    world.tell(ObjectChanged(claim("theirs", version="2")))
    assert world.given(spec()) == [["d0"]]


def test_two_shares_of_one_device_in_one_claim_count_both():
    world = Nodes2(on("n0", device("d0", memory=Capacity("memory", "40Gi"), **SHARED)))
    part = request(capacity=(("memory", "15Gi"),))
    assert world.slots(spec(replace(part, name="a"), replace(part, name="b"))) == [1, 0]
    pod_class, room = world.ask(spec(replace(part, name="a"), replace(part, name="b")))
    row = world.cluster.nodes.rows["n0"]
    assert room.device_room.take(pod_class.id, pod_class.device_needs, [row], ["n0"])
    assert not room.device_room.take(pod_class.id, pod_class.device_needs, [row], ["n0"])


def test_an_expression_that_is_broken_for_a_device_says_so_and_for_which_owner():
    world = Nodes2(two(), gpu_class("device.attributes['x'].nope", name="picky"))
    found = world.given(spec(request(cls="picky")))
    assert isinstance(found, Broken)
    assert found == "class picky: selector #0: CEL runtime error: no such key: nope"


def test_slots_count_pods_that_follow_one_another():
    world = Nodes2(two(), on("n1", *(device(f"d{i}") for i in range(5))))
    assert world.slots(spec(request(count=2))) == [1, 2]
    assert world.slots(spec()) == [2, 5]


def test_what_an_admin_uses_is_never_used_up():
    assert Nodes2(two()).slots(spec(request(admin=True)))[0] > 100


def test_nodes_with_equal_devices_are_judged_once():
    world = Nodes2(
        *(on(n, device("d0", attributes={"uuid": n, "model": "a"})) for n in ("n0", "n1"))
    )
    pod_class, room = world.ask(spec(request(MODEL_A)))
    _, found = room.device_room.for_one_pod(pod_class.device_needs, np.arange(2))
    assert found[0] is found[1]
    assert pod_slots(pod_class, room).tolist() == [1, 1]
