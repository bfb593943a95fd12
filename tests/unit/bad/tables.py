"""Bad input, as JSON: what a pod says that cannot be, and what it points at that is not there.

Each case has the pod's spec or all objects, the reason, and words of the sentence, that name the
object and the field. Where kube-scheduler has a sentence of its own it comes first:
``tests/parity/test_bad_input.py`` asks it.
"""

from typing import Any, NamedTuple

from quorate.core.model.reasons import Reason
from tests.unit.bad.driving import ZONE, node, pod
from tools import objects
from tools.objects import Object

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
NODE_TERMS = f"spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms"
EXPRESSION = f"{NODE_TERMS}[0].matchExpressions"
POD_TERM = f"spec.affinity.podAffinity.{REQUIRED}[0]"
SPREAD = "spec.topologySpreadConstraints[0]"
DONE = {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}}
DELETED = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
LONG = "x" * 10240
BIG = {"a": LONG}
ABSENT = {"key": "a", "operator": "DoesNotExist"}
APP = {"matchLabels": {"app": "x"}}


def wants(key: str, operator: str, *values: str) -> Object:
    return {"key": key, "operator": operator, "values": list(values)}


def on_nodes(*expressions: Object, fields: tuple[Object, ...] = (), **more: Any) -> Object:
    term = {"matchExpressions": list(expressions), "matchFields": list(fields)}
    terms = [{name: value for name, value in term.items() if value}]
    return {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}}, **more}


def near(kind: str = "podAffinity", **term: Any) -> Object:
    return {"affinity": {kind: {REQUIRED: [{"topologyKey": ZONE, **term}]}}}


def spread(**constraint: Any) -> Object:
    known = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}
    app = {"labelSelector": {"matchLabels": {"app": "x"}}}
    return {"topologySpreadConstraints": [{**known, **app, **constraint}]}


def container(**fields: Any) -> Object:
    return {"containers": [{"name": "c", **fields}]}


class Case(NamedTuple):
    """``bad`` is the spec of a pod, or a list of objects that has the pod ``bad``."""

    bad: Object | list[Object]
    reason: Reason
    words: str

    def objects(self, scheduler: str = "default-scheduler", gang: str = "") -> list[Object]:
        """Return its objects, the pod under this scheduler's name."""
        if isinstance(self.bad, dict):
            return [pod("bad", scheduler, gang, **self.bad)]
        return [named(one, scheduler, gang) if one["kind"] == "Pod" else one for one in self.bad]


def named(one: Object, scheduler: str, gang: str) -> Object:
    bare = pod("bad", scheduler, gang)
    meta = {**one["metadata"], "labels": bare["metadata"]["labels"]}
    return {**one, "metadata": meta, "spec": {**one["spec"], "schedulerName": scheduler}}


INVALID, CLAIM = Reason.POD_INVALID, Reason.CLAIM_NOT_USABLE

UNREADABLE_PODS = {
    "spread: whenUnsatisfiable": Case(
        spread(whenUnsatisfiable="Maybe"), INVALID, f"{SPREAD}.whenUnsatisfiable: 'Maybe' is none"
    ),
    "spread: policy": Case(
        spread(nodeTaintsPolicy="Maybe"), INVALID, f"{SPREAD}.nodeTaintsPolicy: 'Maybe' is none"
    ),
    "spread: operator": Case(
        spread(labelSelector={"matchExpressions": [wants("a", "Like", "b")]}),
        INVALID,
        f"{SPREAD}.labelSelector.matchExpressions[0].operator: 'Like' is none",
    ),
    "spread: maxSkew": Case(spread(maxSkew=0), INVALID, f"{SPREAD}.maxSkew: Expected int >= 1"),
    "spread: minDomains": Case(spread(minDomains=-1), INVALID, f"{SPREAD}.minDomains: "),
    "affinity: operator": Case(
        near(labelSelector={"matchExpressions": [wants("a", "Gt", "1")]}),
        INVALID,
        f"{POD_TERM}.labelSelector.matchExpressions[0].operator: 'Gt' is none",
    ),
    "affinity: In without values": Case(
        near(labelSelector={"matchExpressions": [wants("a", "In")]}),
        INVALID,
        f"{POD_TERM}.labelSelector.matchExpressions[0].values: In with 0 values",
    ),
    "affinity: namespaces' operator": Case(
        near(labelSelector={}, namespaceSelector={"matchExpressions": [wants("a", "Like", "b")]}),
        INVALID,
        f"{POD_TERM}.namespaceSelector.matchExpressions[0].operator: 'Like' is none",
    ),
    "anti-affinity: operator": Case(
        near("podAntiAffinity", labelSelector={"matchExpressions": [wants("a", LONG, "1")]}),
        INVALID,
        f"spec.affinity.podAntiAffinity.{REQUIRED}[0].labelSelector.matchExpressions[0].operator: ",
    ),
    "preferred: weight": Case(
        {"affinity": {"nodeAffinity": {PREFERRED: [{"weight": 1000, "preference": {}}]}}},
        INVALID,
        f"spec.affinity.nodeAffinity.{PREFERRED}[0].weight: ",
    ),
    "affinity: no object": Case({"affinity": "near"}, INVALID, "spec.affinity: "),
    "selector: no text": Case({"nodeSelector": {"a": 5}}, INVALID, "spec.nodeSelector"),
    "request: negative": Case(
        container(resources={"requests": {"cpu": "-1"}}),
        INVALID,
        "spec.containers[0].resources.requests.cpu: '-1' is negative",
    ),
    "a selector above all bounds": Case(
        near(
            labelSelector={"matchExpressions": [wants(f"k{i}", "In", "v") for i in range(257)]},
        ),
        INVALID,
        "podAntiAffinity: 257 expressions are too many, 256 are the most",
    ),
    "request: 1e99": Case(
        container(resources={"requests": {"memory": "1e99"}}),
        INVALID,
        "spec.containers[0].resources.requests.memory: '1e99' is larger than any machine",
    ),
    "request: a name of 10 kB": Case(
        container(resources={"requests": {LONG: "lots"}}),
        INVALID,
        f"spec.containers[0].resources.requests.{LONG[:100]}: 'lots' is not a quantity",
    ),
    "port": Case(
        container(ports=[{"hostPort": 99999}]), INVALID, "spec.containers.ports[0].hostPort: "
    ),
    "priority": Case({"priority": 2**40}, INVALID, "spec.priority: "),
    "gate": Case({"schedulingGates": [{}]}, INVALID, "spec.schedulingGates[0]: "),
    "volume: no claim's name": Case(
        {"volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": ""}}]},
        INVALID,
        "spec.volumes[0].persistentVolumeClaim.claimName: must not be empty",
    ),
    "device: names no claim": Case(
        {"resourceClaims": [{"name": "g"}]}, INVALID, "spec.resourceClaims: 'g' names no claim"
    ),
}
"""Pods that cannot be read: kube-scheduler fails, or the API server does not let them in."""

IMPOSSIBLE_PODS = {
    "unknown operator": Case(
        on_nodes(wants("zone", "Like", "a")), INVALID, f'{EXPRESSION}[0].operator "Like" is none of'
    ),
    "unknown operator of 10 kB": Case(
        on_nodes(wants(LONG, LONG, LONG)), INVALID, f"{EXPRESSION}[0].operator"
    ),
    "Gt without a number": Case(
        on_nodes(wants("zone", "Gt", "big")), INVALID, f'{EXPRESSION}[0].values "big" is no integer'
    ),
    "Lt without a value": Case(
        on_nodes(wants("zone", "Lt")), INVALID, f"{EXPRESSION}[0].values: Lt takes one integer"
    ),
    "In without values": Case(
        on_nodes(wants("zone", "In")), INVALID, f"{EXPRESSION}[0].values is empty"
    ),
    "a contradiction": Case(
        on_nodes(wants("z", "In", "a"), wants("z", "NotIn", "a")),
        INVALID,
        f'{EXPRESSION} contradict one another in label "z"',
    ),
    "a range without numbers": Case(
        on_nodes(wants("z", "Gt", "4"), wants("z", "Lt", "5")),
        INVALID,
        f'{EXPRESSION} contradict one another in label "z"',
    ),
    "a contradiction with the selector": Case(
        on_nodes(wants("z", "In", "a"), nodeSelector={"z": "b"}),
        INVALID,
        f'spec.nodeSelector and {NODE_TERMS}[0] contradict one another in label "z"',
    ),
    "an unknown field": Case(
        on_nodes(fields=(wants("metadata.uid", "In", "a"),)),
        INVALID,
        f'{NODE_TERMS}[0].matchFields[0].key "metadata.uid" is not metadata.name',
    ),
    "two names": Case(
        on_nodes(fields=(wants("metadata.name", "In", "a"), wants("metadata.name", "In", "b"))),
        INVALID,
        f"{NODE_TERMS}[0].matchFields contradict one another in metadata.name",
    ),
    "no terms": Case(
        {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": []}}}},
        INVALID,
        f"{NODE_TERMS} is empty",
    ),
    "an empty term": Case(on_nodes(), INVALID, f"{NODE_TERMS}[0] is empty"),
    "near what cannot be": Case(
        near(labelSelector={"matchExpressions": [wants("a", "In", "x"), ABSENT]}),
        INVALID,
        f'{POD_TERM}.labelSelector contradicts itself in label "a"',
    ),
    "near nobody": Case(near(), INVALID, f"{POD_TERM}.labelSelector is absent"),
    "near, without a topology": Case(
        near(labelSelector={}, topologyKey=""), INVALID, f"{POD_TERM}.topologyKey is empty"
    ),
    "spread without a topology": Case(
        spread(topologyKey=""), INVALID, f"{SPREAD}.topologyKey is empty"
    ),
    "near pods of a missing namespace": Case(
        near(labelSelector=APP, namespaces=["absent"]),
        Reason.AWAITS_PODS,
        f"{POD_TERM}.namespaces: absent does not exist",
    ),
    "near pods of no namespace": Case(
        near(labelSelector=APP, namespaceSelector=APP),
        Reason.AWAITS_PODS,
        f"{POD_TERM}.namespaceSelector matches no namespace",
    ),
    "an enormous selector": Case(
        near(
            labelSelector={
                "matchExpressions": [
                    wants(f"k{i}", "In", *(f"v{j}" for j in range(16))) for i in range(256)
                ]
            }
        ),
        Reason.AWAITS_PODS,
        "node(s) didn't match pod affinity rules",
    ),
    "labels of 10 kB": Case(
        {"nodeSelector": {"no": LONG}, "metadata": {"labels": {"k": LONG}, "annotations": BIG}},
        Reason.NO_NODE_MATCHES,
        "node(s) didn't match Pod's node affinity/selector",
    ),
    "a toleration's operator": Case(
        {"tolerations": [{"key": "k", "operator": "Like", "effect": "NoSchedule"}],
         "nodeSelector": {"no": "such"}},
        Reason.NO_NODE_MATCHES,
        'spec.tolerations[0].operator "Like" is none of Equal, Exists',
    ),
    "nominated to a node that is gone": Case(
        {"status": {"nominatedNodeName": "gone"}, "nodeSelector": {"no": "such"}},
        Reason.NO_NODE_MATCHES,
        "node(s) didn't match Pod's node affinity/selector",
    ),
}  # fmt: skip


def uses(claim: str) -> list[Object]:
    volumes = [{"name": "d", "persistentVolumeClaim": {"claimName": claim}}]
    return [pod("bad", volumes=volumes)]


def uses_ephemeral() -> list[Object]:
    return [pod("bad", volumes=[{"name": "d", "ephemeral": {"volumeClaimTemplate": {}}}])]


def claim(name: str = "c", meta: Object | None = None, phase: str = "", **spec: Any) -> Object:
    known = {"namespace": "team", "uid": f"claim-{name}", **(meta or {})}
    return objects.claim(name, metadata=known, status={"phase": phase} if phase else {}, **spec)


def volume(name: str = "v", **spec: Any) -> Object:
    known = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]}
    about = {"spec": {**known, **spec}, "status": {"phase": "Bound"}}
    return objects.named("PersistentVolume", "v1", name, {"uid": f"volume-{name}"}, **about)


def storage_class(mode: object = "WaitForFirstConsumer") -> Object:
    about = {"provisioner": "x.example", "volumeBindingMode": mode}
    return objects.named("StorageClass", "storage.k8s.io/v1", "late", **about)


def with_affinity(*terms: Object) -> Object:
    return volume(nodeAffinity={"required": {"nodeSelectorTerms": list(terms)}})


BOUND = claim(meta=DONE, volumeName="v")
LATE = claim(storageClassName="late")

CLAIMS = {
    "missing": Case(uses("absent"), CLAIM, "names the claim team/absent, which does not exist"),
    "not made yet": Case(uses_ephemeral(), CLAIM, "names the claim team/bad-d, which does not"),
    "of another pod": Case(
        [claim("bad-d"), *uses_ephemeral()],
        CLAIM,
        "metadata.ownerReferences of claim team/bad-d do not name pod bad",
    ),
    "being deleted": Case(
        [claim(meta=DELETED), *uses("c")], CLAIM, "claim team/c is being deleted"
    ),
    "lost": Case(
        [claim(meta=DONE, phase="Lost", volumeName="gone"), *uses("c")],
        CLAIM,
        "spec.volumeName gone of claim team/c does not exist any more",
    ),
    "bound to nothing": Case(
        [claim(meta=DONE, volumeName="gone"), *uses("c")],
        CLAIM,
        "spec.volumeName gone of claim team/c does not exist",
    ),
    "not bound to what it names": Case(
        [claim(volumeName="gone"), *uses("c")],
        CLAIM,
        "claim team/c is not bound yet: its spec.volumeName is gone",
    ),
    "without a class": Case([claim(), *uses("c")], CLAIM, "has no spec.storageClassName"),
    "of a missing class": Case(
        [LATE, *uses("c")], CLAIM, "claim team/c is not bound: its spec.storageClassName late does"
    ),
    "of a class of an odd mode": Case(
        [storage_class("Whenever"), LATE, *uses("c")],
        CLAIM,
        "claim team/c is not bound yet: its class late binds at once",
    ),
    "volume: an unknown operator": Case(
        [BOUND, with_affinity({"matchExpressions": [wants("a", "Like", "b")]}), *uses("c")],
        CLAIM,
        "spec.nodeAffinity.required of volume v: nodeSelectorTerms[0].matchExpressions[0].operator",
    ),
    "volume: no terms": Case(
        [BOUND, with_affinity(), *uses("c")],
        CLAIM,
        "spec.nodeAffinity.required of volume v: nodeSelectorTerms is empty",
    ),
}

UNREADABLE_OBJECTS = {
    "claim: operator": Case(
        [claim(selector={"matchExpressions": [wants("a", "Like")]}), *uses("c")],
        CLAIM,
        "claim team/c cannot be read: spec.selector",
    ),
    "claim: negative": Case(
        [claim(resources={"requests": {"storage": "-5"}}), *uses("c")],
        CLAIM,
        "claim team/c cannot be read: spec.resources.requests.storage: '-5' is negative",
    ),
    "claim: 1e99": Case(
        [claim(resources={"requests": {"storage": "1e99"}}), *uses("c")],
        CLAIM,
        "claim team/c cannot be read: spec.resources.requests.storage: '1e99' is larger",
    ),
    "claim: no object": Case(
        [{**claim(), "spec": "what"}, *uses("c")], CLAIM, "claim team/c cannot be read: spec: "
    ),
    "class: mode": Case(
        [storage_class(7), LATE, *uses("c")], CLAIM,
        "spec.storageClassName of claim team/c: StorageClass late cannot be read: volumeBinding",
    ),
    "volume: capacity": Case(
        [BOUND, volume(capacity={"storage": "lots"}), *uses("c")], CLAIM,
        "spec.volumeName of claim team/c: volume v cannot be read: spec.capacity.storage: 'lots'",
    ),
    "node: negative": Case(
        [node("node-x", cpu="-4"), pod("bad", nodeSelector={ZONE: "x"})],
        Reason.NO_NODE_MATCHES,
        "Node node-x cannot be read: status.allocatable.cpu: '-4' is negative",
    ),
    "node: 1e99": Case(
        [node("node-x", cpu="1e99"), pod("bad", nodeSelector={ZONE: "x"})],
        Reason.NO_NODE_MATCHES,
        "Node node-x cannot be read: status.allocatable.cpu: '1e99' is larger than any machine",
    ),
    "node: no quantity": Case(
        [node("node-x", **{LONG + "/x": "lots"}), pod("bad", nodeSelector={ZONE: "x"})],
        Reason.NO_NODE_MATCHES,
        "Node node-x cannot be read: status.allocatable.xxx",
    ),
}  # fmt: skip
"""Objects that cannot be read are left out, and whoever needs them is told which and why."""
