"""Whatever happens: counts of pods by selector and node are what a recount of plain pods gives."""

from collections import Counter

import numpy as np

from quorate.core.cluster.labels.neighbours import Column
from quorate.core.model import all_of
from tests.property.worlds.running import some_worlds
from tests.unit.core.counted import columns_that_count, held_in, selectors_in_use


def selects(selector, pod, namespaces):
    """The reference: by reading metav1.LabelSelector and PodAffinityTerm, on plain values."""
    if selector.labels is None:
        return False
    of = namespaces[pod.namespace].labels if pod.namespace in namespaces else ()
    in_namespace = pod.namespace in selector.namespaces or (
        selector.namespace_selector is not None and matches(selector.namespace_selector, of)
    )
    return (
        in_namespace
        and matches(selector.labels, pod.labels)
        and all(selects(other, pod, namespaces) for other in selector.also)
    )


def matches(selector, labels):
    has = dict(labels)
    for one in selector.requirements:
        if one.operator == "In" and has.get(one.key) not in one.values:
            return False
        if one.operator == "DoesNotExist" and one.key in has:
            return False
        assert one.operator in ("In", "DoesNotExist")
    return True


def namespaces(world):
    return {one.name: one for one in world.server.of_kind("Namespace")}


def on_nodes(world):
    """Return each pod that a node has, or that is under way to one, and that node."""
    commit = world.commit
    jobs = [*commit.jobs, *(job for one in commit.attempts.values() for job in one.held)]
    under_way = {job.bind.uid: job.bind.node for job in jobs}
    found = []
    for uid, pod in world.server.pods.items():
        node = pod.node or under_way.get(uid, "")
        if node in world.server.nodes and not pod.finished:
            found.append((pod, node))
    return found


def recounted(world):
    """Every count that is not zero, by what is counted and the node's name."""
    counts = Counter()
    used = set(world.scheduler.cluster.alike.in_use)
    for pod in world.server.pods.values():
        spec = pod.spec
        used.update(term.selector for term in (*spec.affinity, *spec.anti_affinity))
        used.update(one.term.selector for one in spec.preferred_affinity)
        used.update(one.selector for one in spec.spread)
        if spec.affinity:
            used.add(all_of(spec.affinity))
    for pod, node in on_nodes(world):
        for selector in used:
            if selects(selector, pod, namespaces(world)):
                counts[Column.PODS, selector, "", node] += 1
                counts[Column.STAYING, selector, "", node] += not pod.terminating
        for term in pod.spec.anti_affinity:
            counts[Column.REPELLING, term.selector, term.topology_key, node] += 1
        for term in pod.spec.affinity:
            counts[Column.ATTRACTED, term.selector, term.topology_key, node] += 1
        for one in pod.spec.preferred_affinity:
            term = one.term
            counts[Column.PULL, term.selector, term.topology_key, node] += one.weight
    return {what: count for what, count in counts.items() if count}, used


def kept(world):
    cluster = world.scheduler.cluster
    neighbours, nodes = cluster.neighbours, cluster.nodes
    selectors = {neighbours.selector_id(one): one for one in selectors_in_use(neighbours)}
    names = {row: name for name, row in nodes.rows.items()}
    counts = {}
    for key in columns_that_count(neighbours):
        column = neighbours.column(key)
        for row in np.flatnonzero(column).tolist():
            what = key.column, selectors[key.selector], key.topology, names[row]
            counts[what] = int(column[row])
    return counts, set(selectors.values())


def settled_worlds(count, **setting):
    """Yield worlds whose scheduler hears at once of what is, and their scripts."""
    return some_worlds(count, "rules", "tied", "full", lags=False, **setting)


def test_counts_by_change_equal_a_recount_of_plain_pods():
    for world, script in settled_worlds(100):
        for number, _ in enumerate(world.each(script)):
            if number % 9 == 0:
                assert kept(world) == recounted(world)
        assert kept(world) == recounted(world)


def test_nothing_is_left_when_all_pods_are_gone():
    for world, script in settled_worlds(30):
        world.play(script)
        for uid in list(world.server.pods):
            world.server.remove_pod(uid)
        alike, neighbours = world.scheduler.cluster.alike, world.scheduler.cluster.neighbours
        for selector in list(alike.in_use):  # they stay for a time
            alike._forget(selector)
        assert not columns_that_count(neighbours)
        assert held_in(neighbours) == 0
