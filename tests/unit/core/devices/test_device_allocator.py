"""Which devices a claim gets on a node: the first that do, in the order of pools and slices."""

import numpy as np
import pytest
from msgspec.structs import replace

from quorate.core.model import Taint, Toleration
from quorate.core.model.changes import ObjectChanged
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
    request,
    spec,
)

BIG = f'device.capacity["{DRIVER}"].memory.isGreaterThan(quantity("40Gi"))'
MODEL_A = f'device.attributes["{DRIVER}"].model == "a"'


def two(**more):
    return on(
        "n0", device("d0", attributes={"model": "a"}), device("d1", attributes={"model": "b"})
    )


TAINTED = {"taints": (Taint("bad", "NoSchedule"),)}

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
    "a device that is given to nobody": (
        [on("n0", device("d0", closed="consumesCounters"), device("d1"))],
        [spec()],
        [["d1"]],
    ),
    "all but those that are given to nobody": (
        [on("n0", device("d0", closed="allowMultipleAllocations"), device("d1"))],
        [spec(request(count=None))],
        [["d1"]],
    ),
    "all, and one is tainted": (
        [on("n0", device("d0", **TAINTED), device("d1"))],
        [spec(request(count=None))],
        None,
    ),
    "a pool that several nodes reach": (
        [replace(on("n0", device("d0")), node="")],
        [spec()],
        None,
    ),
    "a pool with slices of two nodes": (
        [on("n0", device("d0"), pool="p"), on("n1", device("d0"), pool="p")],
        [spec()],
        None,
    ),
    "another node's devices": ([on("n1", device("d0"))], [spec()], None),
}


@pytest.mark.parametrize(("objects", "specs", "given"), TABLE.values(), ids=TABLE)
def test_what_claims_get_on_a_node(objects, specs, given):
    assert Nodes2(*objects).given(*specs) == given


def test_a_device_in_use_is_not_given_again():
    world = Nodes2(two())
    first, room = world.ask(spec())
    row = world.cluster.nodes.rows["n0"]
    room.device_room.take(first.id, first.device_needs, [row], ["n0"])
    [(_, allocation)] = room.device_room.pop_allocations(first.id, row)
    world.tell(ObjectChanged(claim("theirs", allocation=allocation)))
    assert world.given(spec()) == [["d1"]]
    world.tell(ObjectChanged(claim("theirs", version="2")))
    assert world.given(spec()) == [["d0"]]


def test_an_expression_that_is_broken_for_a_device_says_so_and_for_which_owner():
    world = Nodes2(two(), gpu_class("device.attributes['x'].nope", name="picky"))
    found = world.given(spec(request(cls="picky")))
    assert isinstance(found, Broken)
    assert found == "class picky: selector #0: CEL runtime error: no such key: nope"


def test_slots_count_pods_that_follow_one_another():
    world = Nodes2(two(), on("n1", *(device(f"d{i}") for i in range(5))))
    assert world.slots(spec(request(count=2))) == [1, 2]
    assert world.slots(spec()) == [2, 5]


def test_nodes_with_equal_devices_are_judged_once():
    world = Nodes2(
        *(on(n, device("d0", attributes={"uuid": n, "model": "a"})) for n in ("n0", "n1"))
    )
    pod_class, room = world.ask(spec(request(MODEL_A)))
    _, found = room.device_room.for_one_pod(pod_class.device_needs, np.arange(2))
    assert found[0] is found[1]
    assert pod_slots(pod_class, room).tolist() == [1, 1]
