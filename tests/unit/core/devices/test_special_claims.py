"""Extended resources that device classes back: devices for them, in a claim made for the pod."""

from msgspec.structs import replace

from quorate.core.check.verify import verify_gang
from quorate.core.cluster.devices.special_claims import SpecialRequest, claim_name, requests_of
from quorate.core.model.changes import BindFailed, BindFailure, ObjectChanged, ObjectGone
from quorate.core.model.devices import ContainerDevices, RequestMapping
from tests.unit.core.device_world import device, on
from tests.unit.core.devices.special_claims import BACKS, RESOURCE, asks, backed_world, gives, made
from tests.unit.core.world import TEAM, World, binds_of


def test_each_pod_of_a_gang_gets_a_claim_of_its_own_with_devices_of_its_own():
    w = backed_world(2, 2)
    w.gang("job", 2, **asks(2))
    plan = w.decide()
    found = gives(plan)
    assert sorted(one for given in found.values() for one in given) == [
        f"gpu.example.com/n{n}/d{d}" for n in (0, 1) for d in (0, 1)
    ]
    for bind in binds_of(plan):
        (give,) = bind.gives
        assert (give.claim, give.uid) == (claim_name(w.pods[bind.name]), "")
        assert give.special.requests == (("container-0-request-1", "gpu", 2),)
        assert give.special.mappings == (RequestMapping("c", RESOURCE, "container-0-request-1"),)


def test_a_gang_for_which_there_are_too_few_devices_waits_until_there_are():
    w = backed_world(2, 1)
    key = w.gang("job", 2, **asks(2))
    assert w.cycle() == {}
    assert "none" not in w.why(key).message
    w.observe(ObjectChanged(on("n1", device("d0"), device("d1"), generation=2)))
    assert len(w.cycle()) == 2


def test_what_one_plan_took_is_missing_to_the_next():
    w = backed_world(1)
    w.gang("first", 1, **asks(1))
    w.gang("second", 1, **asks(1))
    assert len(w.cycle()) == 1
    assert w.cycle() == {}


def test_a_node_that_lists_the_resource_gives_it_as_ever():
    w = backed_world(1)
    w.node("n1", **{RESOURCE: 1})
    w.gang("job", 2, **asks(1))
    plan = w.decide()
    assert {bind.node: len(bind.gives) for bind in binds_of(plan)} == {"n0": 1, "n1": 0}


def test_a_class_that_comes_later_wakes_the_pods_that_it_concerns():
    w = World()
    w.node("n0")
    w.observe(ObjectChanged(on("n0", device("d0"))))
    key = w.gang("job", 1, **asks(1))
    assert w.cycle() == {}
    assert "example.com/gpu" in w.why(key).message
    w.observe(ObjectChanged(BACKS))
    assert w.cycle() == {"job-0": "n0"}


def test_a_claim_that_is_left_over_is_deleted_before_the_pod_is_tried_again():
    w = backed_world(1)
    w.gang("job", 1, **asks(1))
    left = made(w, "job-0")
    w.observe(ObjectChanged(left))
    plan = w.decide()
    assert not plan.gangs
    (back,) = plan.take_backs
    assert (back.claim, back.uid, back.version, back.special) == (left.name, "c", "7", True)
    w.observe(ObjectGone("ResourceClaim", TEAM, left.name))
    assert w.cycle() == {"job-0": "n0"}


def test_devices_of_a_bind_that_failed_are_free_again():
    w = backed_world(1)
    w.gang("job", 1, **asks(1))
    plan = w.decide()
    (bind,) = binds_of(plan)
    w.observe(BindFailed(bind.uid, bind.node, BindFailure.REFUSED, "no"))
    w.delete("job-0")
    w.gang("other", 1, **asks(1))
    assert w.cycle() == {"other-0": "n0"}


def test_devices_are_counted_once_when_the_claim_is_there():
    w = backed_world(2)
    w.gang("job", 1, **asks(1))
    plan = w.decide()
    ((give,),) = [bind.gives for bind in binds_of(plan)]
    w.settle(plan)
    w.observe(ObjectChanged(made(w, "job-0")))
    w.observe(ObjectChanged(made(w, "job-0", devices=give.allocation)))
    w.gang("other", 1, **asks(1))
    assert gives(w.decide()) == {"other-0": ["gpu.example.com/n0/d1"]}


def test_verification_misses_a_claim_that_nobody_makes():
    w = backed_world(1)
    w.gang("job", 1, **asks(1))
    (gang,) = w.scheduler.decide(w.now_s).gangs
    assert verify_gang(gang, w.cluster) == []
    bare = replace(gang, binds=tuple(replace(one, gives=()) for one in gang.binds))
    assert verify_gang(bare, w.cluster) == [
        "pod job-0 gets no devices for example.com/gpu on node n0"
    ]


def test_an_init_container_that_ends_uses_devices_of_later_ones_before_it_asks_for_more():
    containers = (
        ContainerDevices("init", brief=True, requests=((RESOURCE, 3, 0),)),
        ContainerDevices("bigger", brief=True, requests=((RESOURCE, 4, 0),)),
        ContainerDevices("main", brief=False, requests=((RESOURCE, 2, 0),)),
    )
    wanted, mappings = requests_of(containers, [RESOURCE])
    assert wanted == (
        SpecialRequest("container-1-request-0", RESOURCE, 2),
        SpecialRequest("container-2-request-0", RESOURCE, 2),
    )
    assert [(one.container, one.request) for one in mappings] == [
        ("main", "container-2-request-0"),
        ("init", "container-2-request-0"),
        ("init", "container-1-request-0"),
        ("bigger", "container-2-request-0"),
        ("bigger", "container-1-request-0"),
    ]


def test_a_name_is_valid_however_long_the_pod_s_is():
    w = World()
    long = w.pod("a" * 253)
    assert len(claim_name(long)) == 253
    assert claim_name(w.pod("a", uid="one")) != claim_name(w.pod("a", uid="two"))
