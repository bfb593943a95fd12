"""DynamicResources: all claims of the pod have, or can get, devices that the node can reach.

Source: kube-scheduler 1.36's plugin of that name. What claims get on a kind of node is in
``plan.devices``. A broken expression rules out the nodes on which it is met; kube-scheduler gives
the pod up then (a named difference).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from quorate.core.model import SelectorTerm
from quorate.core.plan.devices.expressions import Broken
from quorate.core.plan.filters.node_affinity import matches_term
from quorate.core.plan.filters.verdict import Refusal, Verdict, rejected
from quorate.core.state.device_asks import Ask
from quorate.core.state.encoding import Ints, Mask, PodClass

if TYPE_CHECKING:
    from quorate.core.plan.room import Room

CANNOT_ALLOCATE = Refusal("cannot allocate all claims", resolvable=False)
NOT_AVAILABLE = Refusal("resourceclaim not available on the node", resolvable=False)


def judge(pod_class: PodClass, room: Room) -> Verdict | None:
    """Return what the rule says of each node; None: nothing, as the pod has no claims."""
    ask = pod_class.ask
    if ask is None:
        return None
    if ask.problem:
        return rejected(ask.problem, len(room.free))
    codes = np.zeros(len(room.free), np.int8)
    codes[~can_reach(ask, room)] = 2
    refusals = [CANNOT_ALLOCATE, NOT_AVAILABLE]
    if not room.taking.is_settled(ask):
        index, outcomes = room.taking.found(ask, np.arange(len(codes)))
        code_of = []
        for outcome in outcomes:
            if outcome is None:
                code_of.append(1)
            elif isinstance(outcome, Broken):
                refusal = Refusal(str(outcome), resolvable=False)
                if refusal not in refusals:
                    refusals.append(refusal)
                code_of.append(min(refusals.index(refusal), 126) + 1)
            else:
                code_of.append(0)
        failed = np.array(code_of, np.int8)[index]
        codes = np.where(failed > 0, failed, codes)
    return Verdict(codes, tuple(refusals))


def limit(ask: Ask, count: Ints, room: Room, *, together: bool) -> Ints:
    """Return int64[n]: ``count`` pods for each node, or as many as get devices for their claims.

    A claim that several pods share ties them together: where one goes all go. So if they are to be
    placed ``together``, the first one goes where most of them have room.
    """
    if ask.problem:
        return np.zeros_like(count)
    count = np.where(can_reach(ask, room), count, 0)
    rows = np.flatnonzero(count)
    if len(rows) and not room.taking.is_settled(ask):
        pods = room.taking.pods(ask, rows)
        if ask.is_shared and together:
            most = int(count[rows][pods > 0].max(initial=0))
            pods = np.where(count[rows] == most, pods, 0)
        count[rows] = np.minimum(count[rows], pods)
    return count


def can_reach(ask: Ask, room: Room) -> Mask:
    """Return bool[n]: nodes that reach the devices of all claims that have some."""
    mask = np.ones(len(room.free), np.bool_)
    for held in room.taking.held(ask):
        if held.unusable:
            mask[:] = False
        mask &= reaches(held.nodes, room)
    return mask


def reaches(nodes: tuple[SelectorTerm, ...] | None, room: Room) -> Mask:
    """Return bool[n]: nodes that reach devices which only nodes of these terms (None: all) do."""
    if nodes is None:
        return np.ones(len(room.free), np.bool_)
    found = np.zeros(len(room.free), np.bool_)
    for term in nodes:
        found |= matches_term(term, room.snapshot)
    return found
