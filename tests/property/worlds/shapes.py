"""Random nodes and pod specs. ``Taste`` says how often each feature is drawn in a world."""

from __future__ import annotations

import random

import msgspec

from quorate.core.model import (
    HostPort,
    Node,
    PodSpec,
    PreferredTerm,
    Requirement,
    SelectorTerm,
    Taint,
    Toleration,
)
from tests.unit.core.random_terms import random_terms
from tests.unit.core.terms import apart, near, pods, spread

GPU = "nvidia.com/gpu"
BACKED = "example.com/backed"
"""An extended resource that a device class may back."""
ZONES, RACKS = ("a", "b", "c"), ("r0", "r1", "r2")
POD_LABELS = ((), (("app", "db"),), (("app", "web"),), (("app", "web"), ("rev", "1")))
PORTS = (HostPort("TCP", "0.0.0.0", 80), HostPort("TCP", "10.0.0.1", 80), HostPort("UDP", "::", 9))
SOFT, HARD = Taint(key="t", effect="PreferNoSchedule"), Taint(key="t", effect="NoSchedule")
EXECUTE = Taint(key="t", effect="NoExecute", value="x")


class Taste(msgspec.Struct):
    """Probabilities of features, and how large nodes and pods are."""

    cpu: tuple[int, ...] = (1, 1, 2, 3)
    node_cpu: tuple[int, ...] = (1, 2, 4, 9)
    node_pods: tuple[int, ...] = (1, 2, 4, 7, 110, 110)
    terms: float = 0.1
    tied: float = 0.0
    """Rules of topology that one node's labels, taints or end decide."""
    selector: float = 0.15
    required: float = 0.05
    preferred: float = 0.05
    tolerates: float = 0.2
    ports: float = 0.05
    gpu: float = 0.1
    memory: float = 0.1
    odd: float = 0.0
    """Resources that no node has, or that come and go."""
    volumes: float = 0.0
    devices: float = 0.0
    extended: float = 0.0
    taints: float = 0.15
    cordons: float = 0.1
    kinds: int = 0
    """So many specs that differ in nothing that matters; 0: no such difference."""
    pool: int = 0
    """So many specs are there in a world; 0: each is drawn anew."""
    pool_seed: int = 0
    alike: float = 0.0
    """How often a pod is labelled as most others are."""
    zoned: float = 0.85
    """How many nodes are in a zone."""


def has_cron_job(key):
    """Whether the owners of a gang's pods are runs of one CronJob; else they are one gang."""
    return key.name in ("x", "v", "m")


def random_node(chance, name, taste):
    found = {
        "cpu": chance.choice(taste.node_cpu),
        "memory": chance.randint(1, 8),
        "pods": chance.choice(taste.node_pods),
    }
    if chance.random() < 0.5 and taste.gpu:
        found[GPU] = chance.randint(0, 4)
    if chance.random() < 0.3 and taste.extended:
        found[BACKED] = chance.randint(0, 2)
    if chance.random() < taste.odd:
        found[f"example.com/r{chance.randrange(6)}"] = chance.randint(1, 4)
    return Node(
        name=name,
        allocatable=tuple(sorted(found.items())),
        labels=random_labels(chance, name, taste),
        taints=random_taints(chance, taste),
        unschedulable=chance.random() < taste.cordons,
    )


def random_taints(chance, taste):
    if chance.random() >= taste.taints:
        return ()
    return (chance.choice([SOFT, HARD, HARD, EXECUTE]),)


def random_labels(chance, name, taste):
    """A zone and a host, mostly; both by the names that tests and that kube-scheduler use."""
    found = {}
    if chance.random() < taste.zoned:
        found["zone"] = found["topology.kubernetes.io/zone"] = chance.choice(ZONES[:2] * 2 + ZONES)
    if chance.random() < 0.9:
        found["host"] = found["kubernetes.io/hostname"] = name
    if chance.random() < 0.3:
        found["rack"] = chance.choice(RACKS)
    if chance.random() < 0.2:
        found["size"] = chance.choice(["1_6", "9", "7", " 9", "x"])
    return tuple(sorted(found.items()))


def pod_labels(chance, taste):
    return POD_LABELS[2] if chance.random() < taste.alike else chance.choice(POD_LABELS)


def random_spec(chance, taste):
    if taste.pool:
        chance = random.Random(f"{taste.pool_seed}/{chance.randrange(taste.pool)}")

    def is_drawn(feature):
        return chance.random() < getattr(taste, feature)

    wanted = random_requests(chance, taste, is_drawn)
    more = random_rules(chance, is_drawn)
    if is_drawn("extended"):
        wanted[BACKED] = chance.randint(1, 2)
    if taste.kinds:
        more["preferred_terms"] = preferred(f"kind-{chance.randrange(taste.kinds)}")
    elif is_drawn("preferred"):
        more["preferred_terms"] = random_preferred(chance)
    return PodSpec(
        requests=tuple(sorted(wanted.items())),
        node_selector=random_selector(chance) if is_drawn("selector") else (),
        required_terms=random_required(chance) if is_drawn("required") else None,
        tolerations=random_tolerations(chance) if is_drawn("tolerates") else (),
        host_ports=(chance.choice(PORTS),) if is_drawn("ports") else (),
        **more,
    )


def preferred(label):
    """Return a preference for nodes with this label."""
    return (PreferredTerm(1, SelectorTerm((Requirement(label, "Exists"),))),)


def random_requests(chance, taste, is_drawn):
    wanted = {"cpu": chance.choice(taste.cpu)}
    if is_drawn("memory"):
        wanted["memory"] = chance.randint(0, 3)
    if is_drawn("gpu"):
        wanted[GPU] = chance.randint(0, 2)
    if is_drawn("odd"):
        wanted[f"example.com/r{chance.randrange(6)}"] = chance.randint(0, 2)
    return wanted


def random_rules(chance, is_drawn):
    """Return what a spec says of other pods, as its fields."""
    more = random_terms(chance) if is_drawn("terms") else {}
    if is_drawn("terms") and chance.random() < 0.2:
        more = coupled_terms(chance)
    return tied_terms(chance) if is_drawn("tied") else more


def coupled_terms(chance):
    """Terms that tie a gang's classes together."""
    web, db = pods(app="web"), pods(app="db")
    return chance.choice(
        [
            near(web, by="rack"),
            near(db, by="zone") | apart(db, by="host"),
            near(web, by="zone") | spread(web, by="host"),
            spread(web, by="rack", min_domains=2),
        ]
    )


def tied_terms(chance):
    """Terms by which pods look at pods like themselves, in a zone or on a host."""
    own, by = pods(app=chance.choice(["web"] * 4 + ["db"])), chance.choice(["zone", "zone", "host"])
    honors = {"honor_taints": chance.random() < 0.5, "honor_affinity": chance.random() < 0.7}
    return chance.choice(
        [
            spread(own, by=by, **honors),
            spread(own, by=by, **honors),
            spread(own, by="zone", min_domains=2, **honors),
            near(own, by=by),
            apart(own, by="zone"),
            near(own, by="zone") | spread(own, by="host", **honors),
        ]
    )


def random_selector(chance):
    return chance.choice(
        [(("zone", "a"),), (("zone", "b"),), (("rack", "r0"),), (("zone", "a"), ("rack", "r1"))]
    )


def random_required(chance):
    one = chance.choice(
        [
            Requirement("zone", "In", ("a", "c")),
            Requirement("zone", "NotIn", ("a",)),
            Requirement("rack", "Exists"),
            Requirement("rack", "DoesNotExist"),
            Requirement("size", "Gt", ("8",)),
            Requirement("size", "Lt", ("8",)),
        ]
    )
    named = Requirement("metadata.name", "In", (f"n{chance.randrange(4)}",))
    return chance.choice(
        [
            (),
            (SelectorTerm((one,)),),
            (SelectorTerm((one,)), SelectorTerm((), (named,))),
            (SelectorTerm((), (named,)),),
        ]
    )


def random_preferred(chance):
    term = SelectorTerm((Requirement("zone", "In", (chance.choice(ZONES),)),))
    return (PreferredTerm(chance.randint(1, 100), term),)


def random_tolerations(chance):
    return chance.choice(
        [
            (Toleration(operator="Exists"),),
            (Toleration(key="t", operator="Exists", effect="NoSchedule"),),
            (Toleration(key="t", operator="Equal", value="x"),),
            (Toleration(key="node.kubernetes.io/unschedulable", operator="Exists"),),
        ]
    )
