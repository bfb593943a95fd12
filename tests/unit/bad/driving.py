"""Bad objects, as JSON, through the decoders of the watches into a core: what becomes of them.

Beside what a case brings there are nodes, a good pod and a good gang, which must be placed.
"""

import json
from dataclasses import dataclass, field
from typing import Any

from quorate.core.model import GangKey
from quorate.core.model.changes import PodBound
from quorate.core.model.policy import Policy
from quorate.core.model.profile import KUBE_SCHEDULER
from quorate.core.model.reasons import Reason
from quorate.core.scheduler import Scheduler
from quorate.core.words.explain import Explainer
from quorate.dialects.base import Malformed
from quorate.shell.apis import api_words
from quorate.shell.report.bodies import not_scheduled
from quorate.shell.watch.objects import watched_kinds
from tools import objects
from tools.objects import GANG_LABEL, Object, merged, pod_group

NAMES = ("quorate", "default-scheduler")
ZONE = "topology.kubernetes.io/zone"


def node(name: str, **amounts: Any) -> Object:
    labels = {"kubernetes.io/hostname": name, ZONE: name[-1]}
    return objects.node(name, labels=labels, allocatable={"pods": "20", **amounts})


def pod(name: str, scheduler: str = "default-scheduler", gang: str = "", **spec: Any) -> Object:
    labels = {"app": name, **({GANG_LABEL: gang} if gang else {})}
    known = {"metadata": {"namespace": "team", "uid": name, "labels": labels}, "status": {}}
    return objects.pod(name, scheduler=scheduler, container={"name": "c"}, **merged(known, spec))


def group(name: str, least: int) -> Object:
    return pod_group(name, least, metadata={"namespace": "team", "uid": f"group-{name}"})


@dataclass
class Driven:
    """A core that was given objects and has decided."""

    scheduler: Scheduler
    problems: list[str]
    unreadable: dict[str, str] = field(default_factory=dict)

    def placed(self) -> dict[str, str]:
        """Return the node of each pod that was placed."""
        return {
            entry.pod.name: entry.node
            for entry in self.scheduler.cluster.pods.values()
            if entry.node and entry.pod.scheduler in NAMES
        }

    def said(self, name: str) -> tuple[Reason, str]:
        """Return the reason and the sentence of a pod."""
        explainer: Explainer = self.scheduler.explainer(0.0)
        [entry] = [e for e in self.scheduler.cluster.pods.values() if e.pod.name == name]
        assert entry.gang is not None
        explanation = explainer.explain(entry.gang.key)
        assert explanation is not None
        reason, sentence = explainer.pod_message(entry, explanation)
        body = json.dumps(not_scheduled(reason, sentence, 0.0))
        assert len(body) < 2500, "a condition is bounded"
        return reason, sentence


def drive(*objects: Object) -> Driven:
    """Give a core the nodes, these objects and the bystanders; let it decide and bind."""
    profiles = ((NAMES[1], KUBE_SCHEDULER),)
    scheduler = Scheduler(Policy(scheduler_names=NAMES, profiles=profiles), api_words())
    kinds = {kind.resource.kind: kind for kind in watched_kinds(frozenset(NAMES)).values()}
    kinds["PodGroup"] = next(
        k for k in watched_kinds(frozenset(NAMES)).values() if k.dialect == "x-k8s"
    )
    driven = Driven(scheduler, [])
    bystanders = (
        pod("good"),
        group("goods", 2),
        pod("goods-0", "quorate", "goods"),
        pod("goods-1", "quorate", "goods"),
    )
    for one in (node("node-a"), node("node-b"), *objects, *bystanders):
        kind = kinds[one["kind"]]
        raw = json.dumps(one).encode()
        try:
            change = kind.changed(raw)
        except Malformed as error:
            driven.unreadable[f"{one['kind']} {error.namespace}/{error.name}"] = error.message
            change = kind.unreadable(error)
        if change is not None:
            scheduler.observe([change])
    plan = scheduler.decide(0.0)
    _, driven.problems = scheduler.verified(plan)
    scheduler.observe(PodBound(bind.uid, bind.node) for gang in plan.gangs for bind in gang.binds)
    for name in ("good", "goods-0", "goods-1"):
        assert name in driven.placed(), f"{name} goes on"
    assert not driven.problems
    assert GangKey("team", "x-k8s", "goods") in scheduler.cluster.gangs
    return driven
