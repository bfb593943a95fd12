"""Which nodes take a pod: kube-scheduler's rules, one table for each, as of 1.36."""

import pytest

from quorate.core.model import HostPort, Requirement, SelectorTerm, Toleration
from tests.unit.core.world import TEAM, World, pairs


def takes(spec=None, pod=None, running=(), **node) -> bool:
    """Whether a cluster of this one node takes a pod of this spec."""
    w = World()
    w.node("n0", **node)
    for index, other in enumerate(running):
        w.running(f"other-{index}", "n0", **{"cpu": 0, **other})
    w.pod("p", spec=spec or {}, **(pod or {}))
    return w.cycle() == {"p": "n0"}


@pytest.mark.parametrize(
    ("toleration", "taint", "fits"),
    [
        (None, "gpu:NoSchedule", False),
        (None, "gpu:NoExecute", False),
        (None, "gpu:PreferNoSchedule", True),
        (Toleration(operator="Exists"), "gpu:NoSchedule", True),
        (Toleration(operator="Exists"), "gpu:NoExecute", True),
        (Toleration(operator="Exists", effect="NoExecute"), "gpu:NoSchedule", False),
        (Toleration(key="gpu", operator="Exists"), "gpu=x:NoSchedule", True),
        (Toleration(key="cpu", operator="Exists"), "gpu=x:NoSchedule", False),
        (Toleration(key="gpu", value="x"), "gpu=x:NoSchedule", True),
        (Toleration(key="gpu", value="y"), "gpu=x:NoSchedule", False),
        (Toleration(key="gpu"), "gpu=x:NoSchedule", False),
        (Toleration(key="gpu"), "gpu:NoSchedule", True),
        (Toleration(key="gpu", operator="", value="x"), "gpu=x:NoSchedule", True),
        (Toleration(key="gpu", value="x", effect="NoExecute"), "gpu=x:NoSchedule", False),
        (Toleration(key="gpu", value="x", effect="NoSchedule"), "gpu=x:NoSchedule", True),
        (Toleration(value="x"), "gpu=x:NoSchedule", True),
        (Toleration(key="gpu", operator="Gt", value="1"), "gpu=2:NoSchedule", False),
    ],
)
def test_taints_and_tolerations(toleration, taint, fits):
    spec = {"tolerations": (toleration,) if toleration else ()}
    assert takes(spec, taints=[taint]) is fits


def test_every_taint_must_be_tolerated():
    spec = {"tolerations": (Toleration(key="a", operator="Exists"),)}
    assert not takes(spec, taints=["a:NoSchedule", "b:NoExecute"])
    assert takes(spec, taints=["a:NoSchedule", "b:PreferNoSchedule"])


@pytest.mark.parametrize(
    ("toleration", "fits"),
    [
        (None, False),
        (Toleration(key="node.kubernetes.io/unschedulable", operator="Exists"), True),
        (Toleration(operator="Exists"), True),
        (Toleration(operator="Exists", effect="NoExecute"), False),
    ],
)
def test_a_cordoned_node_takes_only_pods_that_tolerate_it(toleration, fits):
    assert takes({"tolerations": (toleration,) if toleration else ()}, cordoned=True) is fits


LABELS = {"zone": "a", "gen": "7", "empty": ""}


@pytest.mark.parametrize(
    ("selector", "fits"),
    [
        ({}, True),
        ({"zone": "a"}, True),
        ({"zone": "b"}, False),
        ({"absent": "a"}, False),
        ({"empty": ""}, True),
        ({"absent": ""}, False),
        ({"zone": "a", "gen": "7"}, True),
        ({"zone": "a", "gen": "8"}, False),
    ],
)
def test_node_selector(selector, fits):
    assert takes({"node_selector": pairs(selector)}, labels=LABELS) is fits


REQUIREMENTS = [
    ("zone", "In", ("a", "b"), True),
    ("zone", "In", ("b",), False),
    ("zone", "In", (), False),
    ("absent", "In", ("a",), False),
    ("zone", "NotIn", ("a",), False),
    ("zone", "NotIn", ("b",), True),
    ("absent", "NotIn", ("a",), True),
    ("zone", "Exists", (), True),
    ("absent", "Exists", (), False),
    ("zone", "DoesNotExist", (), False),
    ("absent", "DoesNotExist", (), True),
    ("gen", "Gt", ("6",), True),
    ("gen", "Gt", ("7",), False),
    ("gen", "Lt", ("8",), True),
    ("gen", "Lt", ("7",), False),
    ("zone", "Gt", ("1",), False),
    ("gen", "Gt", ("x",), False),
    ("gen", "Lt", (), False),
    ("absent", "Lt", ("8",), False),
    ("zone", "Nonsense", ("a",), False),
]


@pytest.mark.parametrize(("name", "operator", "values", "fits"), REQUIREMENTS)
def test_operators_of_node_affinity(name, operator, values, fits):
    terms = (SelectorTerm((Requirement(name, operator, values),)),)
    assert takes({"required_terms": terms}, labels=LABELS) is fits


ZONE_A = Requirement("zone", "In", ("a",))
ZONE_B = Requirement("zone", "In", ("b",))
NAMED = Requirement("metadata.name", "In", ("n0",))


@pytest.mark.parametrize(
    ("terms", "fits"),
    [
        (None, True),
        ((), False),
        ((SelectorTerm(),), False),
        ((SelectorTerm(), SelectorTerm((ZONE_A,))), True),
        ((SelectorTerm((ZONE_B,)), SelectorTerm((ZONE_A,))), True),
        ((SelectorTerm((ZONE_A, ZONE_B)),), False),
        ((SelectorTerm(fields=(NAMED,)),), True),
        ((SelectorTerm((ZONE_B,), (NAMED,)),), False),
        ((SelectorTerm((ZONE_A,), (NAMED,)),), True),
        ((SelectorTerm(fields=(Requirement("metadata.name", "NotIn", ("n0",)),)),), False),
        ((SelectorTerm(fields=(Requirement("metadata.name", "NotIn", ("n1",)),)),), True),
        ((SelectorTerm(fields=(Requirement("metadata.name", "In", ("n1",)),)),), False),
        ((SelectorTerm(fields=(Requirement("metadata.name", "In", ("n0", "n1")),)),), False),
        ((SelectorTerm(fields=(Requirement("metadata.name", "Exists"),)),), False),
        ((SelectorTerm(fields=(Requirement("metadata.uid", "In", ("n0",)),)),), False),
    ],
)
def test_terms_of_node_affinity(terms, fits):
    assert takes({"required_terms": terms}, labels=LABELS) is fits


def test_selector_and_affinity_must_both_hold():
    spec = {"node_selector": pairs({"gen": "8"}), "required_terms": (SelectorTerm((ZONE_A,)),)}
    assert not takes(spec, labels=LABELS)


def port(number, ip="0.0.0.0", protocol="TCP"):
    return HostPort(protocol, ip, number)


@pytest.mark.parametrize(
    ("wanted", "taken", "fits"),
    [
        (port(80), port(80), False),
        (port(80), port(81), True),
        (port(80), port(80, protocol="UDP"), True),
        (port(80, "10.0.0.1"), port(80), False),
        (port(80), port(80, "10.0.0.1"), False),
        (port(80, "10.0.0.1"), port(80, "10.0.0.1"), False),
        (port(80, "10.0.0.1"), port(80, "10.0.0.2"), True),
    ],
)
def test_host_ports_of_running_pods(wanted, taken, fits):
    running = [{"spec": {"host_ports": (taken,)}}]
    assert takes({"host_ports": (wanted,)}, running=running) is fits


def test_a_port_is_free_again_when_all_its_holders_are_gone():
    w = World()
    w.node("n0")
    spec = {"host_ports": (port(80),)}
    w.running("a", "n0", spec=spec)
    w.running("b", "n0", spec=spec)
    w.pod("p", spec=spec)
    assert w.cycle() == {}
    w.delete("a")
    assert w.cycle() == {}
    w.edit("b", phase="Succeeded")
    assert w.cycle() == {"p": "n0"}


def test_members_with_a_host_port_take_a_node_each():
    w = World()
    for name in ("n0", "n1"):
        w.node(name)
    gang = w.gang("job", 3, spec={"host_ports": (port(80),)})
    assert w.cycle() == {}
    assert w.why(gang).message == (
        "0/2 nodes are available: 2 node(s) didn't have free ports for the requested pod ports "
        "once 2 members are placed. 3 members must start together and 2 fit"
    )
    w.node("n2")
    assert set(w.cycle().values()) == {"n0", "n1", "n2"}


def test_two_gangs_of_one_cycle_do_not_share_a_host_port():
    w = World()
    w.node("n0")
    w.gang("a", 1, spec={"host_ports": (port(80),)})
    w.gang("b", 1, spec={"host_ports": (port(80, "10.0.0.1"), port(82))})
    assert len(w.cycle()) == 1


@pytest.mark.parametrize(
    ("pod", "node", "fits"),
    [
        ({"cpu": 8}, {}, True),
        ({"cpu": 8.001}, {}, False),
        ({"memory": 65}, {}, False),
        ({"gpu": 1}, {}, False),
        ({"gpu": 0}, {}, True),
        ({"gpu": 1}, {"gpu": 1}, True),
        ({"cpu": 0}, {"pods": 0}, False),
        ({"cpu": 0}, {"cpu": 0}, True),
        ({"requests": {"ephemeral-storage": 5}}, {"ephemeral-storage": 4}, False),
        ({"requests": {"hugepages-2Mi": 5}}, {}, False),
        ({"requests": {"hugepages-2Mi": 5}}, {"hugepages-2Mi": 5}, True),
    ],
)
def test_resources_of_an_empty_node(pod, node, fits):
    assert takes(pod=pod, **node) is fits


@pytest.mark.parametrize(
    ("pod", "fits"),
    [({"cpu": 1}, False), ({"cpu": 0}, True), ({"cpu": 0, "memory": 1}, True)],
)
def test_an_overcommitted_node_takes_what_does_not_ask_for_more_of_it(pod, fits):
    assert takes(pod=pod, running=[{"cpu": 12}], cpu=8) is fits


def test_terminating_and_pending_pods_on_a_node_hold_its_room():
    assert not takes(pod={"cpu": 2}, running=[{"cpu": 1, "terminating": True}], cpu=2)


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_finished_pods_hold_no_room(phase):
    w = World()
    w.node("n0", cpu=2)
    w.pod("done", node="n0", phase=phase, cpu=2, spec={"host_ports": (port(80),)})
    w.pod("p", cpu=2, spec={"host_ports": (port(80),)})
    assert w.cycle() == {"p": "n0"}


def test_zero_request_pods_are_bounded_by_the_number_of_pods():
    w = World()
    w.node("n0", pods=3)
    w.running("other", "n0", cpu=0)
    gang = w.gang("job", 2, pods=4, cpu=0)
    assert len(w.cycle()) == 2
    assert w.why(gang).message == (
        "0/1 nodes are available: 1 Too many pods. 0 of 2 more members fit: they can never all run "
        "here: needs 2 pods; the nodes that it may use have 3, 3 in use, 2 of it by its own members"
    )


def test_a_pod_of_ours_that_names_its_node_is_counted_there():
    w = World()
    w.node("n0", cpu=2)
    gang = w.object("job", 2)
    w.pod("fixed", gang, node="n0")
    w.pod("free", gang)
    assert w.cycle() == {"free": "n0"}
    assert w.used("n0") == 2000
    assert w.pods["fixed"].namespace == TEAM
