"""DynamicResources: all claims of the pod have, or can get, devices that the node can reach.

Score: nodes where claims get what they list first are better.

Source: kube-scheduler 1.36's plugin of that name. What claims get on a kind of node is in
``room.devices``. A broken expression rules out the nodes on which it is met; kube-scheduler gives
the pod up then (a named difference).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

import numpy as np

from quorate.core.cluster.arrays import Ints, Mask
from quorate.core.cluster.cluster import Cluster
from quorate.core.cluster.devices.requests import DeviceNeeds
from quorate.core.cluster.nodes.encoding import PodClass
from quorate.core.cluster.nodes.terms import matches_any_term
from quorate.core.model import Pod, SelectorTerm, policy
from quorate.core.room.devices.cel.programs import Broken
from quorate.core.room.devices.search import ChosenDevices
from quorate.core.room.room import Room
from quorate.core.rules.interests import DEVICES, Interest
from quorate.core.rules.rule import Rule, RuleKind
from quorate.core.rules.verdict import Refusal, Verdict, rejected

CANNOT_ALLOCATE = Refusal("cannot allocate all claims", resolvable=False)
NOT_AVAILABLE = Refusal("resourceclaim not available on the node", resolvable=False)
_SELECTOR = re.compile(r"(request|class) (.+?): selector #([0-9]+): ")
_BROKEN = re.compile(_SELECTOR.pattern + r"CEL (compile error|result of type|expressions need)")
_REFUSALS = (CANNOT_ALLOCATE, NOT_AVAILABLE)


def judge(pod_class: PodClass, room: Room) -> Verdict | None:
    """Return what the rule says of each node; None: nothing, as the pod has no claims.

    Of very many different messages the last stands for all that do not fit into a code.
    """
    device_needs = pod_class.device_needs
    if device_needs is None:
        return None
    if device_needs.problem:
        return rejected(device_needs.problem, len(room.free))
    refusals = {one: code for code, one in enumerate(_REFUSALS, start=1)}
    reached = can_reach(device_needs, room)
    codes = np.where(reached, 0, refusals[NOT_AVAILABLE]).astype(np.int8)
    if room.device_room.is_settled(device_needs):
        return Verdict(codes, tuple(refusals))
    index, outcomes = room.device_room.for_one_pod(device_needs, np.arange(len(codes)))
    code_of = []
    for outcome in outcomes:
        if outcome is None:
            code_of.append(refusals[CANNOT_ALLOCATE])
        elif isinstance(outcome, Broken):
            refusal = Refusal(str(outcome), resolvable=False)
            if len(refusals) < policy.DEVICE_REFUSALS_MAX:
                refusals.setdefault(refusal, len(refusals) + 1)
            code_of.append(refusals.get(refusal, len(refusals)))
        else:
            code_of.append(0)
    failed = np.array(code_of, np.int8)[index]
    return Verdict(np.where(failed > 0, failed, codes), tuple(refusals))


def limit(device_needs: DeviceNeeds, count: Ints, room: Room, *, together: bool) -> Ints:
    """Return int64[n]: ``count`` pods for each node, or as many as get devices for their claims.

    A claim that several pods share ties them together: where one goes all go. So if they are to be
    placed ``together``, the first one goes where most of them have room.
    """
    if device_needs.problem:
        return np.zeros_like(count)
    count = np.where(can_reach(device_needs, room), count, 0)
    rows = np.flatnonzero(count)
    if not len(rows) or room.device_room.is_settled(device_needs):
        return count
    pods = room.device_room.pods(device_needs, rows)
    if together and room.device_room.is_tied(device_needs):
        most = int(count[rows][pods > 0].max(initial=0))
        pods = np.where(count[rows] == most, pods, 0)
    count[rows] = np.minimum(count[rows], pods)
    return count


def can_reach(device_needs: DeviceNeeds, room: Room) -> Mask:
    """Return bool[n]: nodes that reach the devices of all claims that have some."""
    mask = np.ones(len(room.free), np.bool_)
    for allocated_claim in room.device_room.allocated(device_needs):
        mask &= reaches(allocated_claim.nodes, room)
    return mask


def reaches(nodes: tuple[SelectorTerm, ...] | None, room: Room) -> Mask:
    """Return bool[n]: nodes that reach devices which only nodes of these terms (None: all) do."""
    if nodes is None:
        return np.ones(len(room.free), np.bool_)
    return matches_any_term(nodes, room.snapshot)


def cap(pod_class: PodClass, room: Room, count: Ints, together: bool) -> None:
    """Lower ``count`` (int64[n]) to the pods that get devices; see ``limit``."""
    if pod_class.device_needs is not None:
        count[:] = limit(pod_class.device_needs, count, room, together=together)


def interests(pod_class: PodClass, _room: Room) -> set[Interest]:
    """Name the news of devices, if the class asks for some."""
    return {DEVICES} if pod_class.device_needs is not None else set()


def score(pod_class: PodClass, room: Room, feasible: Mask) -> Ints | None:
    """Return int64[n] from 0 to 100: ``100 * raw / max`` over the feasible nodes; None: no claims.

    ``raw`` is the sum of 8 minus the place of the choice, over all requests that are lists; 0 when
    no claim has to get devices any more.
    """
    device_needs = pod_class.device_needs
    if device_needs is None or device_needs.problem:
        return None
    raw = np.zeros(len(feasible), np.int64)
    if room.device_room.is_settled(device_needs):
        return raw
    standing = sum(one.score for one in room.device_room.allocated(device_needs))
    index, outcomes = room.device_room.for_one_pod(device_needs, np.arange(len(feasible)))
    scored = [standing + one.score if isinstance(one, ChosenDevices) else 0 for one in outcomes]
    raw = np.where(can_reach(device_needs, room), np.array(scored, np.int64)[index], 0)
    highest = int(raw[feasible].max(initial=0))
    return 100 * raw // highest if highest else raw


def is_broken(messages: Iterable[str]) -> bool:
    """Whether a CEL selector is broken for all devices that there could be."""
    return any(_BROKEN.match(one) for one in messages)


def doubt(pod: Pod, cluster: Cluster, messages: Collection[str]) -> str:
    """Return the field of a CEL selector that is broken for some device; or ""."""
    said = [found for one in messages if (found := _SELECTOR.match(one))]
    if not said:
        return ""
    owner, name, number = said[0].groups()
    field = f"selectors[{number}].cel.expression"
    if owner == "class":
        return f"spec.{field} of DeviceClass {name}"
    for entry in pod.device_claims:
        claim = cluster.devices.claims.get((pod.namespace, entry.claim or ""))
        for index, request in enumerate(claim.spec.requests if claim else ()):
            for place, choice in enumerate(request.choices):
                label = f"{request.name}/{choice.name}" if request.is_list else request.name
                if name in (label, choice.name):
                    which = f"firstAvailable[{place}]" if request.is_list else "exactly"
                    path = f"spec.devices.requests[{index}].{which}.{field}"
                    return f"{path} of ResourceClaim {pod.namespace}/{entry.claim}"
    return ""


RULE = Rule(
    name="DynamicResources",
    kind=RuleKind.DEVICES,
    judge=judge,
    cap=cap,
    score=score,
    interests=interests,
    doubt=doubt,
)
