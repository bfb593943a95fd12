"""Random objects of tenants: right in form, so that most are let in, and hostile in every value."""

from hypothesis import strategies as st

from tests.hostile.catalogue.devices import CRASHING, LASTING
from tests.hostile.harness.devices import claim, using
from tools.objects import NATIVE, SIGS, VOLCANO, X_K8S

NAMES = st.sampled_from(["a", "b", "c0", "d-e", "x" * 63])
KEYS = st.sampled_from(
    ["a", "zone", "kubernetes.io/hostname", "example.com/k", "x" * 63, "node.kubernetes.io/a"]
)
VALUES = st.sampled_from(["", "a", "z1", "node-1", "1", "2", "1_6", "9" * 40, "x" * 63, "A.b_c"])
NUMBERS = st.sampled_from(["0", "9" * 40, "9223372036854775807", "1_6", "007", "1e3"])
TEXTS = st.one_of(
    st.sampled_from(["", "\x1b[2J", "\r\n", "\u202e", "%s{}", "x" * 10_000, "../..", "NaN"]),
    VALUES,
    st.text(max_size=40),
)
INTS = st.sampled_from([0, 1, 2, 3, 100, 2**31 - 1, -1])
QUANTITIES = st.sampled_from(
    ["0", "1", "1m", "100m", "1n", "1e3", "1e-3", "1Ki", "8Ei", "9223372036854775807", "0.5", "4P"]
)
RESOURCES = st.sampled_from(["cpu", "memory", "ephemeral-storage"])
EXTENDED = st.sampled_from(["nvidia.com/gpu", "example.com/r", "a.example.com/b"])
WHOLE = st.sampled_from(["0", "1", "8", "1000", "4P", "9223372036854775807"])
SPECIAL = st.sampled_from(
    [
        "scheduling.x-k8s.io/pod-group",
        "pod-group.scheduling.sigs.k8s.io",
        "pod-group.scheduling.sigs.k8s.io/name",
        "pod-group.scheduling.sigs.k8s.io/min-available",
        "scheduling.k8s.io/group-name",
        "volcano.sh/task-spec",
        "quorate.dev/hold-seconds",
        "quorate.dev/attempt",
    ]
)
SOME = st.integers(1, 4)


def lists(of: st.SearchStrategy, most: int = 3) -> st.SearchStrategy[list]:
    """A few, or very many alike."""
    few = st.lists(of, max_size=most)
    return few | st.tuples(of, st.sampled_from([40, 150])).map(lambda both: [both[0]] * both[1])


def some(**fields: st.SearchStrategy) -> st.SearchStrategy[dict]:
    """Objects with some of these fields."""
    return st.fixed_dictionaries({}, optional=fields)


_EXPRESSION = st.fixed_dictionaries(
    {"key": KEYS},
).flatmap(
    lambda one: st.one_of(
        st.just({**one, "operator": "Exists"}),
        st.just({**one, "operator": "DoesNotExist"}),
        st.lists(VALUES, min_size=1, max_size=3).map(
            lambda values: {**one, "operator": "In", "values": values}
        ),
        st.lists(VALUES, min_size=1, max_size=3).map(
            lambda values: {**one, "operator": "NotIn", "values": values}
        ),
    )
)
_NUMERIC = st.builds(
    lambda key, operator, value: {"key": key, "operator": operator, "values": [value]},
    KEYS,
    st.sampled_from(["Gt", "Lt"]),
    NUMBERS,
)
_SELECTOR = some(
    matchLabels=st.dictionaries(KEYS, VALUES, max_size=2), matchExpressions=lists(_EXPRESSION)
)
_TERM = st.builds(
    lambda key, rest: {"topologyKey": key, **rest},
    KEYS,
    some(
        labelSelector=_SELECTOR,
        namespaceSelector=_SELECTOR,
        namespaces=lists(NAMES),
        matchLabelKeys=st.lists(KEYS, max_size=2),
    ),
)
_WEIGHTED = st.builds(
    lambda weight, term: {"weight": weight, "podAffinityTerm": term}, st.integers(1, 100), _TERM
)
_NODE_TERM = some(matchExpressions=lists(_EXPRESSION | _NUMERIC))
_PREFERENCE = st.builds(
    lambda weight, term: {"weight": weight, "preference": term}, st.integers(1, 100), _NODE_TERM
)
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_BETWEEN_PODS = some(**{REQUIRED: lists(_TERM), PREFERRED: lists(_WEIGHTED)})
_AFFINITY = some(
    podAffinity=_BETWEEN_PODS,
    podAntiAffinity=_BETWEEN_PODS,
    nodeAffinity=some(
        **{
            REQUIRED: st.lists(_NODE_TERM, min_size=1, max_size=3).map(
                lambda terms: {"nodeSelectorTerms": terms}
            ),
            PREFERRED: lists(_PREFERENCE),
        }
    ),
)
_SPREAD = st.builds(
    lambda skew, key, when, rest: {
        "maxSkew": skew,
        "topologyKey": key,
        "whenUnsatisfiable": when,
        **rest,
    },
    st.sampled_from([1, 2, 2**31 - 1]),
    KEYS,
    st.sampled_from(["DoNotSchedule", "ScheduleAnyway"]),
    some(
        labelSelector=_SELECTOR,
        nodeAffinityPolicy=st.sampled_from(["Honor", "Ignore"]),
        nodeTaintsPolicy=st.sampled_from(["Honor", "Ignore"]),
    ),
)
_TOLERATION = some(key=KEYS, operator=st.sampled_from(["Exists"]), effect=st.just("NoSchedule"))
_VOLUMES = st.lists(
    st.one_of(
        NAMES.map(lambda name: {"persistentVolumeClaim": {"claimName": name}}),
        NAMES.map(lambda name: {"awsElasticBlockStore": {"volumeID": name}}),
        NAMES.map(lambda name: {"csi": {"driver": "d.example.com"}}),
        st.just({"emptyDir": {}}),
    ),
    max_size=4,
).map(lambda volumes: [{"name": f"v{i}", **one} for i, one in enumerate(volumes)])
_LABELS = st.dictionaries(KEYS | SPECIAL, VALUES, max_size=4)
_ANNOTATIONS = st.dictionaries(KEYS | SPECIAL, TEXTS, max_size=4)
_OWNER = st.fixed_dictionaries(
    {
        "apiVersion": st.sampled_from(["v1", "apps/v1", "batch/v1", "odd.example.com/v9"]),
        "kind": st.sampled_from(["Job", "ReplicaSet", "StatefulSet", "Pod", "Odd"]),
        "name": TEXTS.filter(bool),
        "uid": st.just("u"),
        "controller": st.just(True),
    }
)


def _resources(requests: dict[str, str]) -> dict:
    return {"requests": requests, "limits": requests}


_CONTAINER = st.builds(
    lambda own, extended, ports: {
        "resources": _resources(own | extended),
        "ports": ports,
        "image": "pause",
    },
    st.dictionaries(RESOURCES, QUANTITIES, max_size=3),
    st.dictionaries(EXTENDED, WHOLE, max_size=2),
    st.lists(
        st.fixed_dictionaries({"containerPort": st.just(1), "hostPort": st.integers(1, 65535)}),
        max_size=2,
    ),
)


@st.composite
def pods(draw) -> dict:
    """Any pod, of ours or of others."""
    containers = draw(st.lists(_CONTAINER, min_size=1, max_size=3))
    spec = {
        "schedulerName": draw(st.sampled_from(["quorate", "plain", "volcano", "other", "x" * 63])),
        "containers": [{"name": f"main-{i}", **one} for i, one in enumerate(containers)],
        **draw(
            some(
                affinity=_AFFINITY,
                topologySpreadConstraints=st.lists(_SPREAD, max_size=3),
                tolerations=lists(_TOLERATION),
                nodeSelector=st.dictionaries(KEYS, VALUES, max_size=3),
                volumes=_VOLUMES,
                nodeName=st.sampled_from(["node-5", "there-is-none"]),
                schedulingGates=st.just([{"name": "example.com/g"}]),
                schedulingGroup=st.just({"podGroupName": "a"}),
                terminationGracePeriodSeconds=st.sampled_from([0, 2**31]),
            )
        ),
    }
    if draw(st.booleans()):
        spec |= using(*draw(st.lists(NAMES, min_size=1, max_size=3)))
    metadata = {"generateName": "p-", "labels": draw(_LABELS), "annotations": draw(_ANNOTATIONS)}
    if draw(st.booleans()):
        metadata["ownerReferences"] = [draw(_OWNER)]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


@st.composite
def groups(draw) -> dict:
    """Any PodGroup of any API."""
    api = draw(st.sampled_from([X_K8S, SIGS, VOLCANO, NATIVE]))
    metadata = {"name": draw(NAMES), "annotations": draw(_ANNOTATIONS)}
    if api == NATIVE:
        spec = {"schedulingPolicy": {"gang": {"minCount": draw(st.integers(1, 2**31 - 1))}}}
    else:
        spec = draw(
            some(
                minMember=INTS,
                minResources=st.dictionaries(RESOURCES, QUANTITIES, max_size=3),
                scheduleTimeoutSeconds=INTS,
                minTaskMember=st.dictionaries(NAMES | TEXTS, INTS, max_size=3),
                queue=TEXTS,
                priorityClassName=TEXTS,
            )
        )
    return {"apiVersion": api, "kind": "PodGroup", "metadata": metadata, "spec": spec}


@st.composite
def claims(draw) -> dict:
    """Any claim of devices, with expressions that fail or last."""
    expressions = st.sampled_from([*CRASHING.values(), *LASTING.values()])
    counts = st.sampled_from([1, 2, 32])
    return claim(draw(NAMES), *draw(st.lists(expressions, max_size=2)), **draw(some(count=counts)))


@st.composite
def volume_claims(draw) -> dict:
    """Any claim of a volume."""
    spec = {
        "accessModes": [draw(st.sampled_from(["ReadWriteOnce", "ReadWriteMany"]))],
        "resources": {"requests": {"storage": draw(QUANTITIES)}},
        **draw(some(selector=_SELECTOR, storageClassName=NAMES, volumeName=NAMES)),
    }
    metadata = {"name": draw(NAMES), "annotations": draw(_ANNOTATIONS)}
    kind = "PersistentVolumeClaim"
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata, "spec": spec}


OBJECTS = st.lists(st.one_of(pods(), pods(), groups(), claims(), volume_claims()), max_size=8)
