"""Single pods as large and as odd as the API server takes them, of ours and of other schedulers."""

from tests.hostile.catalogue.rows import STARTS, Catalogue
from tests.hostile.harness.attacker import Attacker
from tools.objects import pod

PODS = Catalogue()
FOREIGN = "default-scheduler"
HOST = "kubernetes.io/hostname"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def resources(count: int, prefix: str = "p") -> dict:
    return {"requests": {f"{prefix}.io/r{i}": "1" for i in range(count)}}


def terms(count: int, key: str = "") -> list[dict]:
    return [
        {"topologyKey": key or f"k{i}", "labelSelector": {"matchLabels": {f"l{i}": "x"}}}
        for i in range(count)
    ]


def anti(count: int, key: str = "") -> dict:
    return {"affinity": {"podAntiAffinity": {REQUIRED: terms(count, key)}}}


def node_terms(*terms: dict) -> dict:
    return {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": list(terms)}}}}


@PODS.attack("20000 resources are too many")
def twenty_thousand_extended_resources(a: Attacker) -> None:
    a.create(pod("bomb-0", **resources(20_000)), pod("bomb-1", **resources(20_000, "q")))


@PODS.attack()
def twenty_thousand_extended_resources_of_another_scheduler(a: Attacker) -> None:
    for prefix in "pq":
        a.create(pod(f"bomb-{prefix}", scheduler=FOREIGN, **resources(20_000, prefix)))


@PODS.attack()
def twenty_thousand_resources_on_a_node_of_its_choice(a: Attacker) -> None:
    a.create(pod("bomb", scheduler=FOREIGN, nodeName="node-0", **resources(20_000)))


@PODS.attack("Insufficient")
def many_pods_with_resources_of_their_own(a: Attacker) -> None:
    a.create_many(pod(f"p{i}", **resources(30, f"own{i}")) for i in range(200))


@PODS.attack("10000 terms are too many")
def ten_thousand_terms_of_anti_affinity(a: Attacker) -> None:
    a.create(pod("bomb", **anti(10_000)), pod("same", **anti(10_000, HOST)))


@PODS.attack()
def terms_of_a_pod_of_another_scheduler_with_a_node(a: Attacker) -> None:
    a.create(pod("bomb", scheduler=FOREIGN, nodeName="node-1", **anti(5_000)))


@PODS.attack("10000 terms are too many")
def ten_thousand_preferred_terms(a: Attacker) -> None:
    weighted = [{"weight": 100, "podAffinityTerm": term} for term in terms(10_000, HOST)]
    a.create(pod("bomb", affinity={"podAffinity": {PREFERRED: weighted}}))


@PODS.attack(STARTS)
def sixty_terms_each_in_many_pods(a: Attacker) -> None:
    a.create_many(
        pod(f"p{i}", labels={f"l{i}": "x"}, requests={"cpu": f"{i + 1}m"}, **anti(60, HOST))
        for i in range(100)
    )


@PODS.attack("20000 values are too many")
def namespaces_without_end_in_a_term(a: Attacker) -> None:
    names = [f"ns-{i}" for i in range(20_000)]
    term = {"topologyKey": HOST, "labelSelector": {}, "namespaces": names}
    a.create(pod("bomb", affinity={"podAffinity": {REQUIRED: [term]}}))


@PODS.attack("5000 expressions are too many")
def five_thousand_keys_of_nodes(a: Attacker) -> None:
    keys = [{"key": f"k{i}", "operator": "DoesNotExist"} for i in range(5_000)]
    a.create(pod("keys", **node_terms({"matchExpressions": keys})))
    a.create(pod("terms", **node_terms(*({"matchExpressions": [key]} for key in keys))))


@PODS.attack("50000 values are too many")
def fifty_thousand_values_of_a_node_affinity(a: Attacker) -> None:
    values = [f"node-{i}" for i in range(50_000)]
    one = {"key": HOST, "operator": "In", "values": values}
    a.create(pod("bomb", **node_terms({"matchExpressions": [one]})))


@PODS.attack("node affinity/selector")
def odd_operators_of_a_node_affinity(a: Attacker) -> None:
    odd = ["1_6", "9" * 40, "-9223372036854775808", "9223372036854775807", "+5", "0x10", "1e3"]
    for number, value in enumerate(odd):
        for operator in ("Gt", "Lt"):
            one = {"key": HOST, "operator": operator, "values": [value]}
            name = f"odd-{operator.lower()}-{number}"
            a.create(pod(name, **node_terms({"matchExpressions": [one]})))


@PODS.attack()
def keys_of_its_own_for_each_of_many_pods(a: Attacker) -> None:
    a.create_many(pod(f"p{i}", nodeSelector={f"key-{i}": "x"}) for i in range(400))


@PODS.attack("500 constraints are too many")
def hundreds_of_spread_constraints(a: Attacker) -> None:
    constraints = [
        {
            "maxSkew": 1,
            "topologyKey": f"k{i}",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {f"l{i}": "x"}},
        }
        for i in range(500)
    ]
    a.create(pod("bomb", topologySpreadConstraints=constraints))


@PODS.attack("10002 tolerations are too many")
def thousands_of_tolerations(a: Attacker) -> None:
    tolerations = [{"key": f"k{i}", "operator": "Exists"} for i in range(10_000)]
    a.create(pod("bomb", tolerations=tolerations))


@PODS.attack("host ports are too many")
def thousands_of_host_ports(a: Attacker) -> None:
    ports = [{"containerPort": i, "hostPort": i} for i in range(1, 8_000)]
    a.create(pod("bomb", container={"ports": ports}))


@PODS.attack("3000 containers are too many")
def thousands_of_containers(a: Attacker) -> None:
    made = pod("bomb", requests={"cpu": "1m"})
    [first] = made["spec"]["containers"]
    made["spec"]["containers"] = [first | {"name": f"c{i}"} for i in range(3_000)]
    a.create(made)


@PODS.attack(STARTS)
def labels_and_annotations_to_the_last_byte(a: Attacker) -> None:
    labels = {f"l{i}": "x" * 60 for i in range(8_000)}
    a.create(pod("labels", labels=labels))
    a.create(pod("annotations", annotations={"a": "x" * 260_000}))
    a.create(pod("keys", annotations={f"a{i}": "" for i in range(20_000)}))


@PODS.attack(STARTS)
def a_thousand_labels_on_each_of_many_pods(a: Attacker) -> None:
    a.create_many(
        pod(f"p{i}", labels={f"l{i}-{j}": "x" for j in range(1_000)}, requests={"cpu": "1m"})
        for i in range(40)
    )


@PODS.attack(STARTS, refused=413)
def objects_of_a_megabyte(a: Attacker) -> None:
    env = [{"name": f"E{i}", "value": "v" * 1_000} for i in range(1_000)]
    a.create_many(pod(f"p{i}", container={"env": env}, requests={"cpu": "1m"}) for i in range(12))
    a.create(pod("larger", container={"env": env * 4}))


@PODS.attack("scheduling gates")
def scheduling_gates(a: Attacker) -> None:
    gates = [{"name": f"example.com/g{i}"} for i in range(10_000)]
    a.create(pod("many", schedulingGates=gates))
    a.create_many(pod(f"p{i}", schedulingGates=gates[:3]) for i in range(100))


@PODS.attack("is larger than any machine")
def quantities_at_the_edge(a: Attacker) -> None:
    for number, cpu in enumerate(
        ("9223372036854775807", "8Ei", "1e18", "0.000000001", "0", "1n", "100E", "1e-9")
    ):
        a.create(pod(f"cpu-{number}", requests={"cpu": cpu}))
        a.create(pod(f"memory-{number}", requests={"memory": cpu, "ephemeral-storage": cpu}))
    a.create(pod("overhead", requests={"cpu": "1"}, overhead={"cpu": "9223372036854775807"}))


@PODS.attack(refused=403)
def classes_of_priority(a: Attacker) -> None:
    a.create(pod("system", priorityClassName="system-node-critical"))
    a.create(pod("none", priorityClassName="there-is-none"))
    a.create(pod("number", priority=2_000_001_000))
    a.send("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", {"value": 2_000_000_000})


@PODS.attack()
def nominations_written_by_the_user(a: Attacker) -> None:
    for number in range(60):
        one = pod(f"p{number}", requests={"cpu": "32"}, nodeSelector={"no": "node"})
        a.create(one)
        a.patch(one, {"status": {"nominatedNodeName": f"node-{number}"}}, "/status")
    odd = pod("odd", requests={"cpu": "100000"})
    a.create(odd)
    a.patch(odd, {"status": {"nominatedNodeName": "no such node \x1b[2J"}}, "/status")


@PODS.attack()
def statuses_written_by_the_user(a: Attacker) -> None:
    for number, phase in enumerate(("Running", "Succeeded", "Failed", "Unknown", "Odd\x1b[2J")):
        one = pod(f"p{number}", requests={"cpu": "1m"})
        a.create(one)
        condition = {"type": "PodScheduled", "status": "False", "message": "x" * 30_000}
        a.patch(one, {"status": {"phase": phase, "conditions": [condition]}}, "/status")


@PODS.attack()
def bindings_of_its_own(a: Attacker) -> None:
    """Onto nodes that are full, are not there or have odd names, in the midst of ours."""
    names = ["node-2", "node-2", "there-is-none", "-", "a" * 253]
    for number in range(50):
        one = pod(f"p{number}", requests={"cpu": "20"})
        a.create(one)
        target = {"apiVersion": "v1", "kind": "Node", "name": names[number % len(names)]}
        body = {"apiVersion": "v1", "kind": "Binding", "target": target}
        body["metadata"] = {"name": one["metadata"]["name"]}
        path = f"{a.path('v1', 'pods')}/{one['metadata']['name']}/binding"
        a.send("POST", path, body)
    # The rest of its room: leave what others run on.
    a.send("DELETE", f"{a.path('v1', 'pods')}?gracePeriodSeconds=0")


@PODS.attack(STARTS)
def owners_of_foreign_kinds_and_in_circles(a: Attacker) -> None:
    def owner(kind: str, name: str, api: str = "apps/v1") -> dict:
        return {"apiVersion": api, "kind": kind, "name": name, "uid": "u", "controller": True}

    owners = [
        owner("Deployment", "../../secrets"),
        owner("Job", "x" * 253, "batch/v1"),
        owner("Odd\x1b[2J", "a b/c?d#e", "no such/api"),
        owner("Pod", "p3", "v1"),
        owner("Secret", "s", "v1"),
        owner("ReplicaSet", "%2e%2e"),
    ]
    for number, one in enumerate(owners):
        made = pod(f"p{number}", requests={"cpu": "1m"})
        made["metadata"]["ownerReferences"] = [one]
        made["metadata"]["labels"] = {"scheduling.x-k8s.io/pod-group": "owned"}
        a.create(made)
    a.create(pod("free", requests={"cpu": "1m"}))


@PODS.attack()
def finalizers_that_keep_pods(a: Attacker) -> None:
    for number in range(60):
        made = pod(f"p{number}", requests={"cpu": "1"})
        made["metadata"]["finalizers"] = ["example.com/never"]
        a.create(made)
    for one in a.pods():
        a.delete(one)


@PODS.attack()
def names_of_schedulers(a: Attacker) -> None:
    for number, name in enumerate(("Quorate", "quorate ", "\x1b[2J", "x" * 253, "")):
        a.create(pod(f"p{number}", scheduler=name))
