"""Other objects that the scheduler watches, from claims of volumes to events and leases."""

from tests.hostile.catalogue.rows import STARTS, Catalogue
from tests.hostile.harness.attacker import Attacker
from tools.objects import claim, pod

OTHERS = Catalogue()
TINY = {"requests": {"cpu": "1m"}}


def mounting(*claims: str) -> dict:
    return {
        "volumes": [
            {"name": f"v{i}", "persistentVolumeClaim": {"claimName": name}}
            for i, name in enumerate(claims)
        ]
    }


@OTHERS.attack("400 claims are too many")
def hundreds_of_volumes(a: Attacker) -> None:
    names = [f"c{i}" for i in range(400)]
    a.create_many(claim(name) for name in names)
    a.create(pod("bomb", **TINY, **mounting(*names)), pod("some", **TINY, **mounting(*names[:200])))


@OTHERS.attack("persistentvolumeclaim")
def claims_of_volumes_of_every_kind(a: Attacker) -> None:
    selector = {
        "matchLabels": {f"l{i}": "x" * 60 for i in range(3_000)},
        "matchExpressions": [
            {"key": f"k{i}", "operator": "In", "values": [f"v{j}" for j in range(50)]}
            for i in range(500)
        ],
    }
    kinds = {
        "selector": {"selector": selector},
        "class": {"storageClassName": "there-is-none"},
        "no-class": {"storageClassName": ""},
        "named": {"volumeName": "there-is-none"},
        "huge": {"resources": {"requests": {"storage": "8Ei"}}},
        "tiny": {"resources": {"requests": {"storage": "1n"}}},
        "block": {"volumeMode": "Block", "accessModes": ["ReadWriteMany", "ReadWriteOncePod"]},
        "source": {"dataSource": {"kind": "PersistentVolumeClaim", "name": "source"}},
    }
    for name, spec in kinds.items():
        a.create(claim(name, **spec), pod(f"p-{name}", **TINY, **mounting(name)))
    a.create(pod("none", **TINY, **mounting("there-is-none")))
    going = claim("going")
    going["metadata"]["finalizers"] = ["example.com/never"]
    a.create(going)
    a.delete(going)
    a.create(pod("p-going", **TINY, **mounting("going")))


@OTHERS.attack()
def annotations_on_claims_that_only_schedulers_write(a: Attacker) -> None:
    keys = ("selected-node", "storage-provisioner", "bind-completed", "bound-by-controller")
    for number, node in enumerate(("node-0", "\x1b[2J", "there-is-none", "x" * 100_000)):
        one = claim(f"c{number}")
        groups = ("volume.kubernetes.io", "pv.kubernetes.io")
        notes = {f"{group}/{key}": node for group in groups for key in keys}
        one["metadata"]["annotations"] = notes
        a.create(one, pod(f"p{number}", **TINY, **mounting(f"c{number}")))


@OTHERS.attack()
def ephemeral_volumes_and_disks(a: Attacker) -> None:
    template = {"spec": claim("x")["spec"]}
    volumes = [{"name": f"e{i}", "ephemeral": {"volumeClaimTemplate": template}} for i in range(30)]
    for number in range(20):
        a.create(pod(f"p{number}", volumes=volumes, **TINY))
    disks = [
        {"name": f"d{i}", "awsElasticBlockStore": {"volumeID": f"vol-{i}"}} for i in range(1_000)
    ]
    a.create(pod("disks", volumes=disks, **TINY))
    inline = [{"name": f"i{i}", "csi": {"driver": f"d{i}.example.com"}} for i in range(1_000)]
    a.create(pod("inline", volumes=inline, **TINY))


@OTHERS.attack(STARTS)
def hundreds_of_services_with_a_pod_each(a: Attacker) -> None:
    """Pods of a profile that spreads them by default, more kinds than are kept."""

    def both(number: int) -> list[dict]:
        service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": f"s{number}"}}
        service["spec"] = {"clusterIP": "None", "selector": {"app": f"a{number}"}}
        labels = {"app": f"a{number}"}
        return [service, pod(f"p{number}", scheduler="plain", labels=labels, **TINY)]

    a.create(pod("waits", scheduler="plain", labels={"app": "a0"}, requests={"cpu": "1000"}))
    a.create_many(one for number in range(300) for one in both(number))
    for one in a.pods()[:100]:
        a.patch(one, {"metadata": {"labels": {"app": f"b{one['metadata']['name']}"}}})
        a.delete(one)


@OTHERS.attack()
def selectors_of_maximum_size_over_all_pods(a: Attacker) -> None:
    expressions = [
        {"key": f"k{i}", "operator": "NotIn", "values": [f"v{j}" for j in range(100)]}
        for i in range(300)
    ]
    selector = {"matchExpressions": expressions}
    for number in range(10):
        budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget"}
        budget["metadata"] = {"name": f"b{number}"}
        a.create(budget | {"spec": {"selector": selector, "minAvailable": "100%"}})
        labels = {"app": f"a{number}"}
        template = {"metadata": {"labels": labels}, "spec": pod("x", **TINY)["spec"]}
        for kind in ("ReplicaSet", "StatefulSet"):
            one = {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": f"o{number}"}}
            spec = {"replicas": 0, "serviceName": "s", "template": template}
            spec["selector"] = {"matchLabels": labels, **selector}
            a.create(one | {"spec": spec})
    for number in range(40):
        a.create(pod(f"p{number}", scheduler="plain", labels={"app": "a1"}, **TINY))


@OTHERS.attack()
def a_flood_of_events(a: Attacker) -> None:
    path = a.path("v1", "events")

    def flood(number: int) -> None:
        involved = {"kind": "Pod", "namespace": a.namespace, "name": f"p{number}"}
        body = {"apiVersion": "v1", "kind": "Event", "metadata": {"generateName": "e"}}
        a.send("POST", path, body | {"involvedObject": involved, "message": "x" * 1_000})

    for _ in range(3):
        a.keep_on(flood)


@OTHERS.attack()
def leases_of_the_schedulers_name(a: Attacker) -> None:
    """In its own namespace; the scheduler's own namespace is closed to it."""
    spec = {"holderIdentity": "mallory", "leaseDurationSeconds": 3600, "leaseTransitions": 7}
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {}, "spec": spec}
    lease["metadata"] = {"name": "quorate"}
    a.create(lease)
    theirs = "/apis/coordination.k8s.io/v1/namespaces/quorate-system/leases/quorate"
    a.send("PATCH", theirs, {"spec": spec}, content_type="application/merge-patch+json")
    assert 403 in a.refused
