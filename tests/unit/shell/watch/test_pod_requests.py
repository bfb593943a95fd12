"""How much of a node a pod takes, by kube-scheduler's rules, and how pods come to share a spec."""

import copy
import json

from quorate.core.model import HostPort, PodSpec
from quorate.shell.watch.pod import decoding as pods
from quorate.shell.watch.pod.decoding import PodDecoder
from tests.unit.shell.decoded import OWNED, REQUIRED, manifest, pod

GI = 2**30


def node_affinity(**kinds):
    return {"affinity": {"nodeAffinity": kinds}}


def container(**requests):
    return {"containers": [{"name": "c", "resources": {"requests": requests}}]}


def requests(*containers, init=(), **spec):
    made = [{"name": f"c{i}", "resources": {"requests": one}} for i, one in enumerate(containers)]
    decoded = pod({"containers": made, "initContainers": list(init)} | spec)
    return dict(decoded.spec.requests)


def init(always=False, **amounts):
    one = {"name": "i", "resources": {"requests": amounts}}
    return one | ({"restartPolicy": "Always"} if always else {})


def test_requests_follow_kube_schedulers_node_resources_fit():
    assert requests({"cpu": "1"}, {"cpu": "500m", "memory": "1Gi"}) == {"cpu": 1500, "memory": GI}
    # Init containers run one after another, before the containers: the larger counts.
    assert requests({"cpu": "1"}, init=[init(cpu="3"), init(cpu="2")]) == {"cpu": 3000}
    assert requests({"cpu": "4"}, init=[init(cpu="3")]) == {"cpu": 4000}
    # Sidecars stay: they add to the containers, and to init containers declared after them.
    assert requests({"cpu": "1"}, init=[init(True, cpu="2")]) == {"cpu": 3000}
    assert requests({"cpu": "1"}, init=[init(True, cpu="2"), init(cpu="5")]) == {"cpu": 7000}
    assert requests({"cpu": "1"}, init=[init(cpu="5"), init(True, cpu="2")]) == {"cpu": 5000}
    assert requests({"cpu": "1"}, init=[init(True, cpu="2"), init(True, cpu="3")]) == {"cpu": 6000}
    assert requests({"cpu": "1"}, overhead={"cpu": "250m", "memory": "1Mi"}) == {
        "cpu": 1250,
        "memory": 2**20,
    }


def test_pod_level_requests_override_those_of_containers_then_overhead_is_added():
    level = {"requests": {"cpu": "8", "hugepages-2Mi": "4Mi", "nvidia.com/gpu": "9"}}
    assert requests(
        {"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": "2"},
        resources=level,
        overhead={"cpu": "1"},
    ) == {"cpu": 9000, "memory": GI, "hugepages-2Mi": 4 * 2**20, "nvidia.com/gpu": 2}


def test_resources_that_no_node_is_compared_for_are_left_out():
    counted = {"ephemeral-storage": "1Gi", "example.com/foo": "2", "attachable-volumes-csi": "1"}
    ignored = {
        "pods": "5",
        "storage": "1Gi",
        "requests.example.com/foo": "1",
        "nvidia.com/gpu": "0",
    }
    assert requests(counted | ignored) == {
        "ephemeral-storage": GI,
        "example.com/foo": 2,
        "attachable-volumes-csi": 1,
    }
    assert requests({"cpu": 2, "memory": 1024}) == {"cpu": 2000, "memory": 1024}
    assert requests({"cpu": "0.1m"}) == {"cpu": 1}


def running(spec_cpu, *, allocated=None, actual=None, conditions=(), level=None, level_status=None):
    one = {"name": "c"}
    if allocated:
        one["allocatedResources"] = {"cpu": allocated}
    if actual:
        one["resources"] = {"requests": {"cpu": actual}}
    spec = {
        "nodeName": "n1",
        "containers": [{"name": "c", "resources": {"requests": {"cpu": spec_cpu}}}],
    }
    if level:
        spec["resources"] = {"requests": {"cpu": level}}
    status = {"phase": "Running", "containerStatuses": [one], "conditions": list(conditions)}
    decoded = pod(spec, status | (level_status or {}))
    return dict(decoded.spec.requests)["cpu"]


def test_a_pod_on_a_node_counts_what_it_asks_for_or_still_has():
    pending = {"type": "PodResizePending", "status": "True", "reason": "Deferred"}
    infeasible = pending | {"reason": "Infeasible"}
    assert running("2") == 2000
    assert running("2", allocated="4", actual="3") == 4000
    assert running("2", allocated="1", actual="3") == 3000
    assert running("8", allocated="4", actual="4", conditions=[pending]) == 8000
    assert running("8", allocated="4", actual="3", conditions=[infeasible]) == 4000
    assert running("8", allocated="9") == 8000  # no resources reported: an old kubelet
    level_status = {"resources": {"requests": {"cpu": "5"}}, "allocatedResources": {"cpu": "6"}}
    assert running("1", level="2", level_status=level_status) == 6000


def test_the_status_of_a_pod_without_a_node_is_not_looked_at():
    status = {
        "phase": "Pending",
        "containerStatuses": [{"name": "c", "resources": {"requests": {"cpu": "9"}}}],
    }
    assert dict(pod(None, status).spec.requests) == {}


def test_host_ports_of_containers_and_sidecars():
    def ports(*each):
        return [{"containerPort": 1, **one} for one in each]

    decoded = pod(
        {
            "containers": [
                {"name": "a", "ports": ports({"hostPort": 80}, {"hostPort": 0}, {})},
                {
                    "name": "b",
                    "ports": ports({"hostPort": 53, "protocol": "UDP", "hostIP": "10.0.0.1"}),
                },
            ],
            "initContainers": [
                {"name": "s", "restartPolicy": "Always", "ports": ports({"hostPort": 81})},
                {"name": "i", "ports": ports({"hostPort": 82})},
            ],
        }
    )
    assert decoded.spec.host_ports == (
        HostPort("TCP", "0.0.0.0", 80),
        HostPort("TCP", "0.0.0.0", 81),
        HostPort("UDP", "10.0.0.1", 53),
    )


def test_pods_of_one_job_share_one_spec():
    decoder = PodDecoder(OWNED)
    specs = set()
    for index in range(3):
        obj = manifest(
            container(cpu="1")
            | {"volumes": [{"name": f"kube-api-access-{index}", "projected": {}}]},
            uid=f"u{index}",
        )
        obj["spec"]["containers"][0]["env"] = [{"name": "RANK", "value": str(index)}]
        specs.add(id(decoder.decode(json.dumps(obj).encode()).pod.spec))
    assert len(specs) == 1


def test_differently_written_pods_that_are_alike_share_one_spec():
    decoder = PodDecoder(OWNED)
    written = [container(cpu="1"), container(cpu="1000m"), container(cpu=1)]
    found = [decoder.decode(json.dumps(manifest(one)).encode()).pod.spec for one in written]
    assert found[0] is found[1] is found[2]


def test_placed_foreign_pods_are_reduced_to_what_they_take():
    pinned = {"key": "metadata.name", "operator": "In", "values": ["n1"]}
    terms = {"nodeSelectorTerms": [{"matchFields": [pinned]}]}
    spec = container(cpu="1") | node_affinity(**{REQUIRED: terms})
    foreign = pod(spec | {"nodeName": "n1", "schedulerName": "default-scheduler"})
    assert foreign.spec == PodSpec(requests=(("cpu", 1000),), scored=(1000, 200 << 20))
    assert pod(spec | {"nodeName": "n1"}).spec.required_terms is not None


def test_the_caches_are_bounded_and_forgetting_changes_nothing(monkeypatch):
    monkeypatch.setattr(pods, "SPECS_MAX", 2)
    decoder = PodDecoder(OWNED)
    for amount in [*range(1, 8), *range(1, 8)]:
        raw = json.dumps(manifest(container(cpu=str(amount)))).encode()
        assert decoder.decode(raw).pod.spec.requests == (("cpu", amount * 1000),)


def test_a_defect_is_not_remembered_for_the_next_pod():
    decoder = PodDecoder(OWNED)
    bad = manifest(container(cpu="abc"))
    good = copy.deepcopy(bad)
    good["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "1"
    for obj, defective in ((bad, True), (good, False), (bad, True)):
        assert bool(decoder.decode(json.dumps(obj).encode()).pod.defect) is defective
