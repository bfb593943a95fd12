"""Goal: what the scheduler places in an empty cluster, ``lint --shape`` never calls impossible.

Method: random gangs of a few templates, with affinity, spread, taints, ports, claims and namespaces
that no file has. The scheduler gets the pods that controllers would make of them, by the decoders
of the shell, and the objects that lint cannot know: claims that are bound, namespaces' labels.
"""

import json

from hypothesis import given
from hypothesis import strategies as st

from quorate.core.model import Namespace
from quorate.core.model.changes import DialectServed, GangChanged, ObjectChanged
from quorate.core.model.policy import Policy
from quorate.core.model.storage import Claim, ClaimRef, Volume
from quorate.core.scheduler import Scheduler
from quorate.dialects import by_name
from quorate.shell.watch.nodes import decode_node
from quorate.shell.watch.pod.decoding import PodDecoder
from tests.property.seeds import drawn
from tests.unit.lint.world import X_LABEL, group, job, lint, node
from tools import objects

ZONE, HOST, NOWHERE = "zone", "kubernetes.io/hostname", "rack"
APPS = ("a", "b", "c")
TEAM = {"team": "x"}
TURNS = 200


def apps(draw, *names):
    return {"matchLabels": {"app": draw(st.sampled_from(names))}}


def terms(draw, namespace):
    """One or two required terms: for itself, for others of the gang, or for pods of nobody."""
    found = []
    for _ in range(draw(st.integers(1, 2))):
        term = {
            "labelSelector": apps(draw, *APPS),
            "topologyKey": draw(st.sampled_from([ZONE, ZONE, HOST, NOWHERE])),
        }
        where = draw(st.sampled_from(["own", "named", "other", "all", "by name", "by team"]))
        if where in ("named", "other"):
            term["namespaces"] = [namespace if where == "named" else "elsewhere"]
        if where.startswith("by") or where == "all":
            labels = {"by name": {"kubernetes.io/metadata.name": namespace}, "by team": TEAM}
            term["namespaceSelector"] = {"matchLabels": labels.get(where, {})}
        found.append(term)
    return {"requiredDuringSchedulingIgnoredDuringExecution": found}


@st.composite
def templates(draw, namespace):
    """What a template's spec has, of all that keeps pods from nodes."""
    spec = {}
    rules = draw(st.sets(st.sampled_from(["near", "apart", "spread", "zone", "port", "claim"])))
    affinity = {}
    if "near" in rules:
        affinity["podAffinity"] = terms(draw, namespace)
    if "apart" in rules and draw(st.booleans()):
        affinity["podAntiAffinity"] = terms(draw, namespace)
    if affinity:
        spec["affinity"] = affinity
    if "spread" in rules:
        spec["topologySpreadConstraints"] = [
            {
                "maxSkew": draw(st.integers(1, 2)),
                "topologyKey": draw(st.sampled_from([ZONE, HOST])),
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": apps(draw, "a", "b"),
            }
        ]
    if "zone" in rules:
        spec["nodeSelector"] = {ZONE: draw(st.sampled_from(["z0", "z1", "z9"]))}
    if draw(st.booleans()):
        spec["tolerations"] = [{"operator": "Exists"}]
    if "claim" in rules:
        spec["volumes"] = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]
    container = {
        "name": "c",
        "image": "c",
        "resources": {
            "requests": {"cpu": str(draw(st.integers(1, 5)))},
            **draw(st.sampled_from([{}, {"limits": {"nvidia.com/gpu": "1"}}])),
        },
    }
    if "port" in rules:
        container["ports"] = [{"containerPort": 80, "hostPort": 80}]
    return {**spec, "containers": [container]}


@st.composite
def worlds(draw):
    """Nodes, the namespace of a gang, its min, and for each template app, count and spec."""
    nodes = [
        node(
            f"n{number}",
            labels={
                HOST: f"n{number}",
                **({ZONE: f"z{draw(st.integers(0, 1))}"} if draw(st.integers(0, 4)) else {}),
            },
            taints=draw(st.sampled_from([(), (), ({"key": "t", "effect": "NoSchedule"},)])),
            cpu=str(draw(st.integers(2, 8))),
            **draw(st.sampled_from([{}, {"gpu": "2"}])),
        )
        for number in range(draw(st.integers(1, 5)))
    ]
    namespace = draw(st.sampled_from(["", "ml", "not-yet"]))
    own = namespace or "default"
    parts = [
        (draw(st.sampled_from(APPS[:2])), draw(st.integers(1, 4)), draw(templates(own)))
        for _ in range(draw(st.integers(1, 3)))
    ]
    total = sum(count for _, count, _ in parts)
    return nodes, namespace, draw(st.integers(1, total)), parts


def scheduler_of(nodes, namespace):
    """A scheduler of an empty cluster that has what manifests do not say."""
    made = Scheduler(Policy())
    made.observe([decode_node(json.dumps(one).encode()) for one in nodes])
    labels = tuple(sorted({**TEAM, "kubernetes.io/metadata.name": namespace}.items()))
    made.observe(
        [
            DialectServed("x-k8s", served=True),
            ObjectChanged(Namespace(namespace, labels)),
            ObjectChanged(Claim(namespace=namespace, name="data", uid="c", volume="v", bound=True)),
            ObjectChanged(Volume(name="v", claim=ClaimRef(namespace, "data", "c"))),
        ]
    )
    return made


def pods_of(part, number, namespace):
    """The pods of a template as the API server has them: limits are requests, too."""
    app, count, spec = part
    resources = spec["containers"][0]["resources"]
    requests = {**resources.get("limits", {}), **resources["requests"]}
    container = {**spec["containers"][0], "resources": {**resources, "requests": requests}}
    for index in range(count):
        name = f"j{number}-{index}"
        about = {"labels": {X_LABEL: "g", "app": app}, "containers": [container]}
        yield objects.pod(name, metadata={"namespace": namespace, "uid": name}, **(spec | about))


def placed(world):
    """Return the names of templates of which pods get a node, when the gang starts; else none."""
    nodes, namespace, least, parts = world
    namespace = namespace or "default"
    scheduler = scheduler_of(nodes, namespace)
    made = group(least, namespace=namespace)
    made["metadata"]["uid"] = "g"
    spec = by_name("x-k8s").object.decode(json.dumps(made).encode())
    decoder = PodDecoder(frozenset({"quorate"}))
    pods = [one for number, part in enumerate(parts) for one in pods_of(part, number, namespace)]
    scheduler.observe([GangChanged(spec)])
    scheduler.observe([decoder.decode(json.dumps(one).encode()) for one in pods])
    bound = set()
    for _ in range(TURNS):
        plan = scheduler.decide(0.0)
        bound |= {bind.name.partition("-")[0] for gang in plan.gangs for bind in gang.binds}
        if plan.wake_at_s is None or plan.wake_at_s > 0.0:
            break
    return bound


def linted(world):
    """Return what lint finds."""
    nodes, namespace, least, parts = world
    objects = [group(least, namespace=namespace)]
    for number, (app, count, spec) in enumerate(parts):
        made = job(count, f"j{number}", namespace=namespace, labels={X_LABEL: "g", "app": app})
        made["spec"]["template"]["spec"] = {"schedulerName": "quorate", **spec}
        objects.append(made)
    report = lint(*objects, nodes=nodes, shape_name="s")
    assert not report.unreadable
    return report.findings


@given(worlds())
@drawn(300)
def test_what_the_scheduler_places_is_never_called_impossible(world):
    """A gang with affinity to itself, in a namespace that does not exist yet."""
    started, findings = placed(world), linted(world)
    errors = [one for one in findings if one.severity == "error"]
    hopeless = {one.object.name for one in errors if one.rule == "no-node-fits"}
    assert not started & hopeless
    if started:
        assert {one.rule for one in errors} <= {"no-node-fits"}
    elif not uses_team(world):
        assert findings, "it cannot start, and lint says nothing"


def uses_team(world):
    """Whether labels of a namespace decide, which lint cannot know."""
    return '"team"' in json.dumps(world[3])
