"""What one pod may bring: each bound at, just below and just above its value."""

import json

import pytest

from quorate.core.model import PodSpec, policy
from quorate.core.model.reasons import Reason
from quorate.shell.watch.pod.decoding import PodDecoder
from tests.unit.shell import decoded
from tests.unit.shell.decoded import PREFERRED, REQUIRED

MOST = 3


def decode(spec, *, scheduler="quorate", node="", labels=None):
    known = {"schedulerName": scheduler, "nodeName": node}
    return decoded.decode(decoded.manifest({**known, **spec}, labels=labels or {}))


def resources(count):
    requests = {f"example.com/r{i}": "1" for i in range(count)}
    return {"containers": [{"name": "c", "resources": {"requests": requests}}]}


def containers(count):
    return {"containers": [{"name": f"c{i}"} for i in range(count)]}


def init_containers(count):
    return {"initContainers": [{"name": f"c{i}"} for i in range(count - 1)]}


def ports(count):
    found = [{"containerPort": 80, "hostPort": 8000 + i} for i in range(count)]
    return {"containers": [{"name": "c", "ports": found}]}


def tolerations(count):
    return {"tolerations": [{"key": f"k{i}", "operator": "Exists"} for i in range(count)]}


def claims(count):
    return {
        "volumes": [
            {"name": f"v{i}", "persistentVolumeClaim": {"claimName": f"c{i}"}} for i in range(count)
        ]
    }


def ephemeral(count):
    return {
        "volumes": [
            {"name": f"v{i}", "ephemeral": {"volumeClaimTemplate": {}}} for i in range(count)
        ]
    }


def device_claims(count):
    return {"resourceClaims": [{"name": f"c{i}", "resourceClaimName": "x"} for i in range(count)]}


def pod_term(labels=0, values=0, namespaces=0):
    listed = [{"key": "app", "operator": "In", "values": [f"v{i}" for i in range(values)]}]
    return {
        "topologyKey": "zone",
        "namespaces": [f"n{i}" for i in range(namespaces)],
        "labelSelector": {
            "matchLabels": {f"k{i}": "v" for i in range(labels)},
            "matchExpressions": listed if values else [],
        },
    }


def near(*terms, kind="podAntiAffinity"):
    return {"affinity": {kind: {REQUIRED: list(terms)}}}


def pod_terms(count):
    half = count // 2
    found = near(*[pod_term()] * half)["affinity"] | near(kind="podAffinity")["affinity"]
    weighted = {"weight": 1, "podAffinityTerm": pod_term()}
    found["podAffinity"][PREFERRED] = [weighted] * (count - half)
    return {"affinity": found}


def spread(count, **of_each):
    one = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", **of_each}
    return {"topologySpreadConstraints": [one] * count}


def node_term(expressions=1, values=1):
    written = {"operator": "In", "values": [f"v{i}" for i in range(values)]}
    return {"matchExpressions": [{"key": f"k{i}", **written} for i in range(expressions)]}


def on_nodes(*terms):
    return {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": list(terms)}}}}


def preferred_on_nodes(count):
    terms = [{"weight": 1, "preference": node_term()}] * count
    return {"affinity": {"nodeAffinity": {PREFERRED: terms}}}


NODES = "spec.nodeSelector and affinity.nodeAffinity"
PODS = "spec.affinity.podAffinity and podAntiAffinity"
SPREAD = "spec.topologySpreadConstraints"
CASES = {
    "resources": ("RESOURCES_PER_POD_MAX", resources, "spec.containers.resources"),
    "containers": ("CONTAINERS_PER_POD_MAX", containers, "spec.containers"),
    "init containers": ("CONTAINERS_PER_POD_MAX", init_containers, "spec.containers"),
    "host ports": ("PORTS_PER_POD_MAX", ports, "spec.containers.ports"),
    "tolerations": ("TOLERATIONS_PER_POD_MAX", tolerations, "spec.tolerations"),
    "claims": ("VOLUMES_PER_POD_MAX", claims, "spec.volumes"),
    "ephemeral claims": ("VOLUMES_PER_POD_MAX", ephemeral, "spec.volumes"),
    "claims of devices": ("DEVICE_CLAIMS_PER_POD_MAX", device_claims, "spec.resourceClaims"),
    "terms of pods": ("POD_TERMS_PER_POD_MAX", pod_terms, PODS),
    "labels of pods": ("EXPRESSIONS_PER_POD_MAX", lambda n: near(pod_term(labels=n)), PODS),
    "values of pods": ("VALUES_PER_POD_MAX", lambda n: near(pod_term(values=n)), PODS),
    "namespaces": ("VALUES_PER_POD_MAX", lambda n: near(pod_term(namespaces=n)), PODS),
    "spread": ("SPREADS_PER_POD_MAX", spread, SPREAD),
    "labels of spread": (
        "EXPRESSIONS_PER_POD_MAX",
        lambda n: spread(1, labelSelector=pod_term(labels=n)["labelSelector"]),
        SPREAD,
    ),
    "values of spread": (
        "VALUES_PER_POD_MAX",
        lambda n: spread(1, labelSelector=pod_term(values=n)["labelSelector"]),
        SPREAD,
    ),
    "node selector": (
        "EXPRESSIONS_PER_POD_MAX",
        lambda n: {"nodeSelector": {f"k{i}": "v" for i in range(n)}},
        NODES,
    ),
    "expressions of a term": (
        "EXPRESSIONS_PER_POD_MAX",
        lambda n: on_nodes(node_term(expressions=n)),
        NODES,
    ),
    "terms of nodes": ("EXPRESSIONS_PER_POD_MAX", lambda n: on_nodes(*[node_term()] * n), NODES),
    "empty terms of nodes": ("EXPRESSIONS_PER_POD_MAX", lambda n: on_nodes(*[{}] * n), NODES),
    "preferred terms of nodes": ("EXPRESSIONS_PER_POD_MAX", preferred_on_nodes, NODES),
    "values of nodes": ("VALUES_PER_POD_MAX", lambda n: on_nodes(node_term(values=n)), NODES),
}


@pytest.fixture(params=CASES)
def case(request, monkeypatch):
    bound, make, field = CASES[request.param]
    if bound == "VALUES_PER_POD_MAX":
        monkeypatch.setattr(policy, "VALUES_PER_POD_MAX", MOST)
    else:
        monkeypatch.setattr(policy, bound, MOST)
    return make, field


@pytest.mark.parametrize("count", [MOST - 1, MOST])
def test_a_pod_at_the_bound_is_read_whole(case, count):
    make, _ = case
    pod = decode(make(count))
    assert (pod.defect, pod.warning) == ("", "")


def test_a_pod_of_ours_above_it_is_held_and_the_reason_names_the_field(case):
    make, field = case
    pod = decode(make(MOST + 1))
    assert pod.defect.startswith(f"{field}: {MOST + 1} ")
    assert pod.defect.endswith(f" are too many, {MOST} are the most")
    assert pod.defect_reason == Reason.POD_INVALID
    assert pod.spec == PodSpec()


@pytest.mark.parametrize("whose", ["quorate", "another"])
def test_a_pod_that_has_a_node_counts_within_the_bound_and_takes_what_it_takes(case, whose):
    make, _ = case
    requests = {"cpu": "2", "memory": "1Gi"}
    more = make(MOST + 1)
    more["overhead"] = requests
    pod = decode(more, scheduler=whose, node="n0")
    assert pod.defect == ""
    assert {"cpu": 2000, "memory": 2**30}.items() <= dict(pod.spec.requests).items()
    sizes = (pod.spec.host_ports, pod.spec.tolerations, pod.claims, pod.device_claims)
    terms = (*pod.spec.anti_affinity, *pod.spec.affinity, *pod.spec.preferred_affinity)
    assert max(map(len, (*sizes, terms, pod.spec.spread))) <= MOST


def test_resources_of_a_pod_that_has_a_node_are_all_counted(monkeypatch):
    monkeypatch.setattr(policy, "RESOURCES_PER_POD_MAX", MOST)
    assert len(decode(resources(9), scheduler="another", node="n0").spec.requests) == 9


def test_terms_up_to_the_one_that_is_above_are_kept(monkeypatch):
    monkeypatch.setattr(policy, "EXPRESSIONS_PER_POD_MAX", MOST)
    terms = [pod_term(labels=2), pod_term(labels=1), pod_term(labels=1), pod_term()]
    pod = decode(near(*terms), scheduler="another", node="n0")
    assert len(pod.spec.anti_affinity) == 2
    assert "expressions are too many" in pod.warning


def test_the_second_pod_of_a_spec_above_a_bound_is_held_like_the_first(monkeypatch):
    monkeypatch.setattr(policy, "TOLERATIONS_PER_POD_MAX", MOST)
    decoder = PodDecoder(frozenset({"quorate"}))
    texts = []
    for uid in ("u1", "u2"):
        whole = decoded.manifest(tolerations(MOST + 1), name=uid, uid=uid)
        texts.append(decoder.decode(json.dumps(whole).encode()).pod.defect)
    assert texts == ["spec.tolerations: 4 tolerations are too many, 3 are the most"] * 2


def test_a_large_ordinary_pod_is_within_all_bounds():
    spec = resources(12)
    spec["containers"] = [
        *spec["containers"],
        *containers(20)["containers"],
        *ports(16)["containers"],
    ]
    spec |= claims(30) | tolerations(20) | spread(4) | device_claims(8)
    spec["nodeSelector"] = {f"k{i}": "v" for i in range(8)}
    spec["affinity"] = on_nodes(node_term(values=2000))["affinity"] | pod_terms(12)["affinity"]
    pod = decode(spec)
    assert (pod.defect, pod.warning) == ("", "")
