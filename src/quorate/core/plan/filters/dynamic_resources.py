"""DynamicResources: all claims of the pod have, or can get, devices that the node can reach.

Source: kube-scheduler 1.36's plugin of that name. What claims get on a kind of node is in
``plan.devices``. A broken expression rules out the nodes on which it is met; kube-scheduler gives
the pod up then (a named difference).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from quorate.core.cluster.arrays import Ints, Mask
from quorate.core.cluster.devices.requests import Ask
from quorate.core.cluster.nodes.encoding import PodClass
from quorate.core.model import SelectorTerm, policy
from quorate.core.plan.filters.node_affinity import matches_term
from quorate.core.plan.filters.verdict import Refusal, Verdict, rejected
from quorate.core.room.devices.cel.programs import Broken

if TYPE_CHECKING:
    from quorate.core.room.room import Room

CANNOT_ALLOCATE = Refusal("cannot allocate all claims", resolvable=False)
NOT_AVAILABLE = Refusal("resourceclaim not available on the node", resolvable=False)
LEFT_OVER = Refusal("cannot schedule extended resource claim", resolvable=False)
NOT_LISTED = Refusal("cannot fit resource", resolvable=False)
_REFUSALS = (CANNOT_ALLOCATE, NOT_AVAILABLE, LEFT_OVER, NOT_LISTED)


def judge(pod_class: PodClass, room: Room) -> Verdict | None:
    """Return what the rule says of each node; None: nothing, as the pod has no claims."""
    ask = pod_class.ask
    if ask is None:
        return None
    if ask.problem:
        return rejected(ask.problem, len(room.free))
    codes = np.zeros(len(room.free), np.int8)
    refusals = {one: code for code, one in enumerate(_REFUSALS, start=1)}
    for part, rows in by_nodes(ask, room):
        codes[rows] = _codes(part, rows, room, refusals)
    if ask.extended is not None:
        codes[_lack_any(ask.extended.unbacked, room)] = refusals[NOT_LISTED]
        if ask.extended.is_left_over:
            codes[:] = refusals[LEFT_OVER]
    return Verdict(codes, tuple(refusals))


def _codes(
    ask: Ask, rows: Ints, room: Room, refusals: dict[Refusal, int]
) -> np.ndarray[Any, np.dtype[np.int8]]:
    """Return int8[m]: the verdicts on these rows, as codes of ``refusals``, which may grow.

    Of very many different ones the last stands for all that do not fit into a code.
    """
    codes = np.where(can_reach(ask, room)[rows], 0, refusals[NOT_AVAILABLE]).astype(np.int8)
    if room.taking.is_settled(ask):
        return codes
    index, outcomes = room.taking.found(ask, rows)
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
    return np.where(failed > 0, failed, codes)


def by_nodes(ask: Ask, room: Room, rows: Ints | None = None) -> list[tuple[Ask, Ints]]:
    """Return what is asked of which of the rows (None: all): nodes may list extended resources."""
    if rows is None:
        rows = np.arange(len(room.free))
    if ask.extended is None:
        return [(ask, rows)]
    backed = ask.extended.backed
    lacks = np.zeros(len(rows), np.int64)
    for bit, name in enumerate(backed):
        lacks |= (room.snapshot.sizes(name)[rows] == 0).astype(np.int64) << bit
    return [
        (
            ask.lacking(frozenset(name for bit, name in enumerate(backed) if code >> bit & 1)),
            rows[lacks == code],
        )
        for code in np.unique(lacks).tolist()
    ]


def _lack_any(names: tuple[str, ...], room: Room) -> Mask:
    lacks = np.zeros(len(room.free), np.bool_)
    for name in names:
        lacks |= room.snapshot.sizes(name) == 0
    return lacks


def limit(ask: Ask, count: Ints, room: Room, *, together: bool) -> Ints:
    """Return int64[n]: ``count`` pods for each node, or as many as get devices for their claims.

    A claim that several pods share ties them together: where one goes all go. So if they are to be
    placed ``together``, the first one goes where most of them have room.
    """
    if ask.problem:
        return np.zeros_like(count)
    if ask.extended is not None and ask.extended.is_left_over:
        return np.zeros_like(count)
    count = np.where(can_reach(ask, room), count, 0)
    for part, rows in by_nodes(ask, room, np.flatnonzero(count)):
        if not len(rows) or room.taking.is_settled(part):
            continue
        pods = room.taking.pods(part, rows)
        if together and room.taking.is_tied(part):
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
