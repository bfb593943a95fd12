"""InterPodAffinity: which pods a pod must, and must not, share a domain with; both ways.

Score: nodes whose domains hold more of the pods that attract, and fewer of those that repel, are
better; both what the pod prefers, and what pods on nodes prefer (or require) of pods like it.
Source: kube-scheduler 1.36's plugin of that name. Terminating pods count.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

import numpy as np

from quorate.core.cluster.arrays import Ints, Mask
from quorate.core.cluster.cluster import Cluster
from quorate.core.cluster.labels.neighbours import Column, Key
from quorate.core.cluster.nodes.encoding import PodClass
from quorate.core.model import LabelSelector, Pod, PodSpec, PodTerm, all_of
from quorate.core.room.room import Room
from quorate.core.rules.faults import contradicted, shown
from quorate.core.rules.interests import Interest, label, pods_of, selector
from quorate.core.rules.rule import Rule, RuleKind
from quorate.core.rules.verdict import Refusal, Refusals, Verdict

REFUSALS = (
    Refusal("node(s) didn't match pod affinity rules", resolvable=False),
    Refusal("node(s) didn't match pod anti-affinity rules", resolvable=True),
    Refusal("node(s) didn't satisfy existing pods anti-affinity rules", resolvable=True),
)
_AFFINITY, _ANTI_AFFINITY, _EXISTING = 1, 2, 3
_TERMS = "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution"


def judge(pod_class: PodClass, room: Room) -> Verdict | None:
    """Return what the rule says of each node for one more pod of the class; None: nothing.

    Pods that repel it by a label that their nodes do not bear are no reason to apply the rule.
    """
    spec = pod_class.spec
    has_terms = bool(spec.affinity or spec.anti_affinity)
    if not (has_terms or room.terms(pod_class, Column.REPELLING)):
        return None
    codes = repelled(pod_class, room)
    if not (has_terms or codes.any()):
        return None
    if spec.affinity:
        codes[~attracted(pod_class, room)] = _AFFINITY
    return Verdict(codes, REFUSALS)


def repelled(pod_class: PodClass, room: Room) -> Refusals:
    """Return int8[n]: which nodes anti-affinity refuses, both ways, as codes of ``REFUSALS``."""
    codes = np.zeros(len(room.free), np.int8)
    for key in room.terms(pod_class, Column.REPELLING):
        codes[room.sums(key) > 0] = _EXISTING
    for term in pod_class.spec.anti_affinity:
        codes[_together(term, room) > 0] = _ANTI_AFFINITY
    return codes


def _together(term: PodTerm, room: Room) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return int64[n]: pods that match the term in the node's domain."""
    number = room.snapshot.neighbours.selector_id(term.selector)
    return room.sums(Key(Column.PODS, number, term.topology_key))


def attracted(pod_class: PodClass, room: Room) -> Mask:
    """Return bool[n]: in the node's domain, for each term, is a pod that matches all the terms.

    The first pod of a group that is attracted to itself may go wherever all the keys are.
    """
    terms = pod_class.spec.affinity
    number = room.snapshot.neighbours.selector_id(all_of(terms))
    has_keys = np.ones(len(room.free), np.bool_)
    near = np.ones(len(room.free), np.bool_)
    for term in terms:
        has_keys &= room.has_label(term.topology_key)
        near &= room.sums(Key(Column.PODS, number, term.topology_key)) > 0
    return has_keys if not near.any() and is_first(pod_class, room) else near


def is_alone(pod_class: PodClass, room: Room) -> bool:
    """Whether required affinity keeps the class from all nodes, as no pod to be near is placed.

    More nodes would not help it, only other pods.
    """
    if not pod_class.spec.affinity or is_first(pod_class, room):
        return False
    return not (attracted(pod_class, room) & room.snapshot.alive).any()


def wants_pods_that_are_there(pod_class: PodClass, room: Room) -> bool:
    """Whether required affinity means pods that are placed, or pods of the class itself."""
    if not pod_class.spec.affinity:
        return False
    number = room.snapshot.neighbours.selector_id(all_of(pod_class.spec.affinity))
    is_own = number in pod_class.matched
    return is_own or bool(room.counts(Key(Column.PODS, number)).any())


def attracts(pod_class: PodClass, other: PodClass, room: Room) -> bool:
    """Whether the other's pods match all the affinity terms of a class that has some."""
    number = room.snapshot.neighbours.selector_id(all_of(pod_class.spec.affinity))
    return number in other.matched


def is_first(pod_class: PodClass, room: Room) -> bool:
    """Whether it attracts itself, and no such pod is in a domain of one of its terms."""
    if not attracts(pod_class, pod_class, room):
        return False
    number = room.snapshot.neighbours.selector_id(all_of(pod_class.spec.affinity))
    counts = room.counts(Key(Column.PODS, number))
    return not any(
        counts[room.has_label(term.topology_key)].any() for term in pod_class.spec.affinity
    )


def interests(pod_class: PodClass, room: Room) -> set[Interest]:
    """Name what it looks at: labels of topologies, and pods that its terms, or others', mean."""
    found: set[Interest] = set()
    spec = pod_class.spec
    for term in (*spec.affinity, *spec.anti_affinity):
        found |= {label(term.topology_key), *pods_of(term.selector, room)}
    if spec.affinity:
        found |= pods_of(all_of(spec.affinity), room)
    for key in room.terms(pod_class, Column.REPELLING):
        found |= {label(key.topology), selector(key.selector)}
    return found


def score(pod_class: PodClass, room: Room, feasible: Mask) -> Ints | None:
    """Return int64[n] from 0 to 100: the sum of weights, from its least to its most.

    None: no pod on a node has a say.
    """
    parts = [(one.weight, _pods(one.term, room)) for one in pod_class.spec.preferred_affinity]
    parts += [(1, key) for key in room.terms(pod_class, Column.ATTRACTED)]
    parts += [(1, key) for key in room.terms(pod_class, Column.PULL)]
    if not parts or not feasible.any():
        return None
    raw = np.zeros(len(feasible), np.int64)
    for weight, key in parts:
        raw += weight * room.sums(key)
    among = raw[feasible]
    least, most = int(among.min()), int(among.max())
    if least == most:
        return np.zeros(len(raw), np.int64)
    scores: Ints = (100.0 * ((raw - least) / float(most - least))).astype(np.int64)
    return scores


def _pods(term: PodTerm, room: Room) -> Key:
    number = room.snapshot.neighbours.selector_id(term.selector)
    return Key(Column.PODS, number, term.topology_key)


def fault(spec: PodSpec) -> str:
    """Return a required term that can match no pod, so that the pod waits for ever; or ""."""
    for index, term in enumerate(spec.affinity):
        path = f"{_TERMS}[{index}]"
        if not term.topology_key:
            return f"{topology_field(index)} is empty"
        if term.selector.labels is None:
            return f"{path}.labelSelector is absent and matches no pod"
        if key := _contradiction(term.selector.labels):
            return f"{path}.labelSelector contradicts itself in label {shown(key)}"
        by_labels = term.selector.namespace_selector
        if not term.selector.namespaces and (key := _contradiction(by_labels)):
            return f"{path}.namespaceSelector contradicts itself in label {shown(key)}"
    return ""


def topology_field(index: int) -> str:
    """Return the field that names the topology of a term of required affinity."""
    return f"{_TERMS}[{index}].topologyKey"


def _contradiction(selector: LabelSelector | None) -> str:
    return contradicted(selector.requirements) if selector is not None else ""


def doubt(pod: Pod, cluster: Cluster, _messages: Collection[str]) -> str:
    """Return required affinity to pods of namespaces of which none exists; or ""."""
    known = cluster.neighbours.namespaces
    for index, term in enumerate(pod.spec.affinity):
        selector, path = term.selector, f"{_TERMS}[{index}]"
        if any(name in known or name == pod.namespace for name in selector.namespaces):
            continue
        by_labels = selector.namespace_selector
        if by_labels is not None and any(by_labels.matches(one) for one in known.values()):
            continue
        if by_labels is not None:
            return f"{path}.namespaceSelector matches no namespace"
        return f"{path}.namespaces: {', '.join(selector.namespaces[:3])} does not exist"
    return ""


def apart_words(key: str, needed: str, have_room: int) -> str:
    """Say how many domains anti-affinity along a topology needs, and how many have room."""
    return f"anti-affinity among the members by {key} needs {needed}, and {have_room} have room"


def together_words(keys: Iterable[str], where: str, most: int, count: int) -> str:
    """Say that affinity lets only ``most`` of ``count`` members in, and where."""
    along = " and ".join(dict.fromkeys(keys))
    return f"affinity among the members by {along}: {where} room for {most} of {count}"


RULE = Rule(
    name="InterPodAffinity",
    kind=RuleKind.PODS,
    judge=judge,
    score=score,
    interests=interests,
    fault=fault,
    doubt=doubt,
)
