"""Whatever happens: counts of pods by selector and node are what a recount of plain pods gives."""

from collections import Counter

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from quorate.core.cluster.labels.neighbours import Column
from quorate.core.model import SpreadConstraint, all_of, policy
from tests.property.counting.test_neighbour_counts import held_in
from tests.property.seeds import drawn
from tests.unit.core.counted import columns_that_count, selectors_in_use
from tests.unit.core.random_worlds import Play, scripts


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
        spec = pod.spec
        used.update(term.selector for term in (*spec.affinity, *spec.anti_affinity))
        used.update(one.term.selector for one in spec.preferred_affinity)
        used.update(one.selector for one in spec.spread)
        if spec.affinity:
            used.add(all_of(spec.affinity))
    for uid, pod in play.pods.items():
        node = play.place_of(uid)
        if node not in play.nodes:
            continue
        for selector in used:
            if selects(selector, pod, play.namespaces):
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


def kept(play):
    cluster = play.scheduler.cluster
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


@drawn(100)
@given(scripts())
def test_counts_by_change_equal_a_recount_of_plain_pods(script):
    play = Play()
    for number, move in enumerate(script):
        play.run([move])
        if number % 9 == 0 or number == len(script) - 1:
            assert kept(play) == recounted(play)


@drawn(30)
@given(scripts())
def test_nothing_is_left_when_all_pods_are_gone(script):
    play = Play()
    play.run(script)
    for number in list(play.current):
        play.do_delete(number)
    neighbours = play.scheduler.cluster.neighbours
    assert not columns_that_count(neighbours)
    assert held_in(neighbours) == 0


@drawn(60)
@given(scripts(), st.sampled_from([0, 1, 3, 1_000]), st.sampled_from([0, 2, 6, 10_000]))
def test_the_ledger_of_verification_says_the_same(script, books, cells):
    """Its books are opened early, so that they are kept by change; they read plain values."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(policy, "LEDGER_BOOKS_MAX", books)
        patch.setattr(policy, "LEDGER_CELLS_MAX", cells)
        play = Play()
        ledger = play.scheduler.cluster.ledger
        for number, move in enumerate(script):
            play.run([move])
            if number % 7 == 0 or number == len(script) - 1:
                ledger.refresh()
                assert len(ledger._books) <= books
                assert sum(len(book.pods) for book in ledger._books.values()) <= cells
                check_books(play, ledger)


def check_books(play, ledger):
    counts, used = recounted(play)
    for selector in used:
        for key in ("zone", "host"):
            book = ledger.near(selector, key)
            assert dict(book.pods) == domains(play, counts, (Column.PODS, selector, ""), key)
            check_spread(play, ledger, counts, selector, key)
    carried = {(what[1], what[2]) for what in counts if what[0] is Column.REPELLING}
    assert {(one.selector, one.topology_key) for one in ledger._carriers} >= carried
    for entry in play.scheduler.cluster.pods.values():
        found = Counter()
        for book in ledger.repelling(entry.label_set):
            found.update({(book.topology_key, *pair): 1 for pair in book.pods.items()})
        assert found == repelled(play, entry.pod)


def check_spread(play, ledger, counts, selector, key):
    constraint = SpreadConstraint(1, key, True, selector, min_domains=2)
    book = ledger.spread(("all", key), constraint, lambda node: key in dict(node.labels))
    there = {dict(node.labels).get(key) for node in play.nodes.values()} - {None}
    pods = domains(play, counts, (Column.STAYING, selector, ""), key)
    if selector.labels is None or not selector.labels.requirements:
        pods = Counter()
    fewest = min((pods[one] for one in there), default=0) if len(there) >= 2 else 0
    for one in there:
        for itself in (False, True):
            assert book.is_skewed(one, itself=itself) is (pods[one] + itself - fewest > 1)
    assert book.is_skewed(None, itself=True)


def repelled(play, pod):
    """For each term of pods on nodes that means such a pod, its topology and carriers by domain."""
    terms = {}
    for uid, other in play.pods.items():
        node = play.place_of(uid)
        for term in set(other.spec.anti_affinity) if node and not other.finished else ():
            if selects(term.selector, pod, play.namespaces):
                domain = dict(play.nodes[node].labels if node in play.nodes else ()).get(
                    term.topology_key
                )
                terms.setdefault(term, Counter())[domain] += 1
    found = Counter()
    for term, by_domain in terms.items():
        found.update({(term.topology_key, *pair): 1 for pair in by_domain.items() if pair[0]})
    return found


def domains(play, counts, what, key):
    found = Counter()
    for (*counted, node), count in counts.items():
        domain = dict(play.nodes[node].labels).get(key)
        if tuple(counted) == what and domain is not None:
            found[domain] += count
    return found
