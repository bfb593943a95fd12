"""Check a plan again before it is sent, against the newest state, by independent code.

It shares no code with the planner: it reads plain node and pod values, not arrays, and adds Python
integers. In: the binds of each gang and the cluster. Out: messages about wrong binds.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from quorate.core.check.verify_neighbours import NeighbourCheck
from quorate.core.check.verify_nodes import node_problems, term_holds
from quorate.core.check.verify_volumes import volume_problems
from quorate.core.cluster.cluster import Cluster
from quorate.core.cluster.gangs.gangs import PodEntry, Where
from quorate.core.cluster.gangs.pods import SETTLED
from quorate.core.model import (
    EVERY_ADDRESS,
    GangKey,
    HostPort,
    Node,
)
from quorate.core.model.plan import Bind, GangBinds, Preemption


def verify_plan(gangs: Sequence[GangBinds], cluster: Cluster) -> list[list[str]]:
    """Return for each gang, in their order, a message for each bind that must not be sent.

    The binds are assumed in ``cluster`` already, so each node's pods include them.
    """
    placed = [[e for e in _entries(gang, cluster) if e.row >= 0] for gang in gangs]
    check = NeighbourCheck(list(chain(*placed)), cluster)
    return [
        _gang_problems(gang, cluster) or check.problems(entries)
        for gang, entries in zip(gangs, placed, strict=True)
    ]


def verify_gang(gang: GangBinds, cluster: Cluster) -> list[str]:
    """Return a message for each bind of one gang that must not be sent."""
    return verify_plan((gang,), cluster)[0]


def _gang_problems(gang: GangBinds, cluster: Cluster) -> list[str]:
    """Return the problems by all rules except those about other pods' labels."""
    wrong = [problem for bind in gang.binds if (problem := _pod_problem(bind, cluster))]
    entry = cluster.gangs.get(gang.key)
    if entry is None:
        return [*wrong, f"gang {gang.key} does not exist any more"]
    if not entry.started and entry.stays + entry.assumed < entry.min_count:
        wrong.append(f"gang {gang.key} would start below its min of {entry.min_count}")
    if not entry.started:
        wrong += _task_problems(gang.key, cluster)
    checked: set[tuple[str, int]] = set()
    uids = {bind.uid for bind in gang.binds}
    for name in dict.fromkeys(bind.node for bind in gang.binds):
        wrong += _node_problems(name, uids, cluster)
    for bind in gang.binds:
        member = cluster.pods.get(bind.uid)
        node = _node(bind.node, cluster)
        if member is None or node is None or (bind.node, member.pod_class.base) in checked:
            continue
        checked.add((bind.node, member.pod_class.base))
        wrong += node_problems(member.pod.spec, node)
    wrong += _device_problems(gang.binds, cluster)
    if cluster.storage.users:
        wrong += volume_problems(gang, cluster)
    return wrong


def _task_problems(key: GangKey, cluster: Cluster) -> list[str]:
    """Compare, for each task, the members that would have a node with its minimum."""
    entry = cluster.gangs[key]
    found: dict[str, int] = {}
    for task, least in entry.spec.min_by_task if entry.spec is not None else ():
        found[task] = -least
    for member in entry.members.values() if found else ():
        named = member.pod.membership
        if named is not None and named.task in found and member.node and not member.is_leaving:
            found[named.task] += member.where in (Where.ASSUMED, Where.BOUND)
    return [
        f"gang {key} would start with {-short} too few members of task {task}"
        for task, short in found.items()
        if short < 0
    ]


def _entries(gang: GangBinds, cluster: Cluster) -> list[PodEntry]:
    return [cluster.pods[bind.uid] for bind in gang.binds if bind.uid in cluster.pods]


def _pod_problem(bind: Bind, cluster: Cluster) -> str:
    entry = cluster.pods.get(bind.uid)
    if entry is None:
        return f"pod {bind.name} does not exist any more"
    if entry.where is not Where.ASSUMED or entry.node != bind.node:
        return f"pod {bind.name} is {entry.where.name} on {entry.node or 'no node'}"
    if entry.pod.gates or entry.pod.defect:
        return f"pod {bind.name} must not be placed"
    return ""


def _node(name: str, cluster: Cluster) -> Node | None:
    row = cluster.nodes.rows.get(name)
    return cluster.nodes.nodes[row] if row is not None else None


def _node_problems(name: str, uids: set[str], cluster: Cluster) -> list[str]:
    """Sum the requests of all pods on the node, and compare their host ports.

    Only resources and ports that the pods with these uids ask for count: other pods may have
    overcommitted the node in other resources, or may share other ports.
    """
    node = _node(name, cluster)
    if node is None:
        return [f"node {name} does not exist any more"]
    entries = cluster.pods_on(name)
    used: dict[str, int] = {"pods": len(entries)}
    for entry in entries:
        for resource, amount in entry.pod.spec.requests:
            used[resource] = used.get(resource, 0) + amount
    allocatable = dict(node.allocatable)
    ours = [entry for entry in entries if entry.pod.uid in uids]
    asked = {resource for entry in ours for resource in _checked(entry)}
    problems = [
        f"node {name} would hold {amount} of {resource}, and has {allocatable.get(resource, 0)}"
        for resource, amount in used.items()
        if amount > allocatable.get(resource, 0) and resource in asked
    ]
    problems += [
        f"node {name} would give out host port {port.port} twice"
        for port in _ports_given_twice(ours, entries)
    ]
    return list(dict.fromkeys(problems))


def _ports_given_twice(ours: list[PodEntry], entries: Sequence[PodEntry]) -> list[HostPort]:
    """Return the ports of our pods that another pod of the node has; linear in the ports."""
    ours = [e for e in ours if e.pod.spec.host_ports]
    if not ours:
        return []
    holders: dict[tuple[str, int, str], set[str]] = {}
    of_any: dict[tuple[str, int], set[str]] = {}
    for entry in entries:
        for protocol, address, number in entry.pod.spec.host_ports:
            holders.setdefault((protocol, number, address), set()).add(entry.pod.uid)
            of_any.setdefault((protocol, number), set()).add(entry.pod.uid)
    found = []
    for entry in ours:
        for port in entry.pod.spec.host_ports:
            protocol, address, number = port
            if address == EVERY_ADDRESS:
                others = [of_any[protocol, number]]
            else:
                among = (address, EVERY_ADDRESS)
                others = [holders.get((protocol, number, one), set()) for one in among]
            if any(len(uids) > (entry.pod.uid in uids) for uids in others):
                found.append(port)
    return found


def _checked(entry: PodEntry) -> set[str]:
    """Return the resources that the node must have enough of for the pod."""
    return {"pods"} | {resource for resource, amount in entry.pod.spec.requests if amount}


def _device_problems(binds: Sequence[Bind], cluster: Cluster) -> list[str]:
    """Check that each claim of the pods has devices that its node reaches and it alone has."""
    problems = []
    for bind in binds:
        known = cluster.pods.get(bind.uid)
        if known is None:
            continue
        pod = known.pod
        for entry in pod.device_claims:
            if entry.claim == "":
                continue
            allocation = cluster.devices.allocation((pod.namespace, entry.claim or ""))
            if allocation is None:
                problems.append(f"claim {entry.claim} of pod {pod.name} has no devices")
                continue
            node = _node(bind.node, cluster)
            labels = dict(node.labels) if node is not None else {}
            terms = allocation.nodes
            if terms is not None and not any(term_holds(t, bind.node, labels) for t in terms):
                problems.append(f"claim {entry.claim} is not available on node {bind.node}")
            problems += [
                f"device {one.device} would have several claims"
                for one in allocation.devices
                if one.is_exclusive and cluster.devices.holders(one.device) > 1
            ]
    return problems


def verify_preemption(preemption: Preemption, cluster: Cluster) -> list[str]:
    """Return a message for each pod that must not be deleted; nothing when all is well."""
    entry = cluster.pods.get(preemption.uid)
    if entry is None or entry.where is not Where.WAITING:
        return [f"pod {preemption.name} waits for no room"] if preemption.victims else []
    wrong = []
    for victim in preemption.victims:
        other = cluster.pods.get(victim.uid)
        if other is None or other.where not in SETTLED or other.node != preemption.node:
            wrong.append(f"victim {victim.name} is not bound to node {preemption.node}")
        elif other.pod.priority >= entry.pod.priority:
            wrong.append(f"victim {victim.name} has priority {other.pod.priority}")
        gang = other.gang if other is not None and other.where is Where.BOUND else None
        # The same cycle may have given a started gang another member: that does no harm.
        if gang is not None and gang.attempt is not None and not gang.started:
            wrong.append(f"victim {victim.name} belongs to a gang that is being bound")
    if entry.pod.never_preempts and preemption.victims:
        wrong.append(f"pod {preemption.name} may preempt nobody")
    return wrong
