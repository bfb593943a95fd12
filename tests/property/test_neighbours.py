"""Whatever happens: counts of pods by selector and node are what a recount of plain pods gives."""

from collections import Counter

import numpy as np
from hypothesis import given

from quorate.core.model import all_of
from quorate.core.state.neighbours import Column
from tests.unit.core.random_worlds import Play, profile, scripts


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


def recounted(play):
    """Every count that is not zero, by what is counted and the node's name."""
    counts = Counter()
    used = set()
    for pod in play.pods.values():
        shape = pod.shape
        used.update(term.selector for term in (*shape.affinity, *shape.anti_affinity))
        used.update(one.term.selector for one in shape.preferred_affinity)
        used.update(one.selector for one in shape.spread)
        if shape.affinity:
            used.add(all_of(shape.affinity))
    for uid, pod in play.pods.items():
        node = play.place_of(uid)
        if node not in play.nodes:
            continue
        for selector in used:
            if selects(selector, pod, play.namespaces):
                counts[Column.PODS, selector, "", node] += 1
                counts[Column.STAYING, selector, "", node] += not pod.terminating
        for term in pod.shape.anti_affinity:
            counts[Column.REPELLING, term.selector, term.topology_key, node] += 1
        for term in pod.shape.affinity:
            counts[Column.ATTRACTED, term.selector, term.topology_key, node] += 1
        for one in pod.shape.preferred_affinity:
            term = one.term
            counts[Column.PULL, term.selector, term.topology_key, node] += one.weight
    return {what: count for what, count in counts.items() if count}, used


def kept(play):
    cluster = play.scheduler.cluster
    neighbours, nodes = cluster.neighbours, cluster.nodes
    selectors = {one.id: selector for selector, one in neighbours._selectors.items()}
    names = {row: name for name, row in nodes.rows.items()}
    counts = {}
    for key, column in neighbours.columns.items():
        for row in np.flatnonzero(column).tolist():
            what = key.column, selectors[key.selector], key.topology, names[row]
            counts[what] = int(column[row])
    return counts, set(selectors.values())


@profile(100)
@given(scripts())
def test_counts_by_change_equal_a_recount_of_plain_pods(script):
    play = Play()
    for number, move in enumerate(script):
        play.run([move])
        if number % 9 == 0 or number == len(script) - 1:
            assert kept(play) == recounted(play)


@profile(30)
@given(scripts())
def test_nothing_is_left_when_all_pods_are_gone(script):
    play = Play()
    play.run(script)
    for number in list(play.current):
        play.do_delete(number)
    neighbours = play.scheduler.cluster.neighbours
    left = {
        name: value
        for name, value in vars(neighbours).items()
        if name not in ("namespaces", "_stirred") and isinstance(value, dict | set) and value
    }
    assert left == {}


@profile(60)
@given(scripts())
def test_the_ledger_of_verification_says_the_same(script):
    """Its books are opened early, so that they are kept by change; they read plain values."""
    play = Play()
    ledger = play.scheduler.cluster.ledger
    for number, move in enumerate(script):
        play.run([move])
        if number % 7 == 0 or number == len(script) - 1:
            counts, used = recounted(play)
            ledger.refresh()
            for selector in used:
                for key in ("zone", "host"):
                    book = ledger.near(selector, key)
                    assert +book.pods == domains(play, counts, (Column.PODS, selector, ""), key)
            carried = {(what[1], what[2]) for what in counts if what[0] is Column.REPELLING}
            assert {(one.selector, one.topology_key) for one in ledger._carriers} >= carried


def domains(play, counts, what, key):
    found = Counter()
    for (*counted, node), count in counts.items():
        domain = dict(play.nodes[node].labels).get(key)
        if tuple(counted) == what and domain is not None:
            found[domain] += count
    return found
