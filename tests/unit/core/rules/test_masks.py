"""What is kept of nodes: labels, masks, logs; how much, and that it follows each change."""

import numpy as np
import pytest

from quorate.core.cluster.change_log import Log
from quorate.core.cluster.lru_cache import LruCache
from quorate.core.cluster.nodes.codes import CodeColumn
from quorate.core.model import PodSpec, policy
from quorate.core.rules.masks import mask_of
from tests.unit.core.world import World

# Labels


def nodes(count: int, **labels) -> World:
    w = World()
    for index in range(count):
        w.node(f"n{index}", labels={"host": f"n{index}", **labels})
    return w


@pytest.mark.parametrize("keys", [2, 3, 4])
def test_of_so_many_labels_the_longest_unused_is_encoded_anew(monkeypatch, keys):
    monkeypatch.setattr(policy, "LABEL_COLUMNS_KEPT_MAX", 3)
    w = nodes(2, **{f"k{index}": "v" for index in range(4)})
    table = w.cluster.nodes
    first = table.label("k0")
    others = [table.label(f"k{index}") for index in range(1, keys)]
    assert len(table.labels) == min(keys, 3)
    assert (table.label("k0") is first) is (keys <= 3)
    if keys > 3:  # k1 has made room for k0 in turn
        assert table.label("k3") is others[2]
        assert [table.label("k1").values, table.label("k1").codes[:2].tolist()] == [["v"], [0, 0]]


def test_a_label_that_no_node_bears_takes_no_column():
    w = nodes(2)
    for index in range(1000):
        w.pod(f"p{index}", spec={"node_selector": ((f"k{index}", "v"),)})
    assert w.cycle() == {}
    assert len(w.cluster.nodes.labels) == 0
    assert w.cluster.nodes.label("k1").codes[:2].tolist() == [-1, -1]


@pytest.mark.parametrize("how", ["gone", "relabelled"])
def test_a_label_goes_with_the_last_node_that_bears_it(how):
    w = nodes(1, odd="x")
    assert w.cluster.nodes.label("odd").values == ["x"]
    w.lose_node("n0") if how == "gone" else w.node("n0")
    assert "odd" not in w.cluster.nodes.labels
    w.node("n0", labels={"odd": "y"})
    assert w.cluster.nodes.label("odd").values == ["y"]


@pytest.mark.parametrize("unused_max", [0, 1, 5])
@pytest.mark.parametrize("gone", [0, 1, 2, 3, 4, 7, 8, 9])
def test_values_that_no_node_has_are_dropped_when_they_are_many(monkeypatch, unused_max, gone):
    monkeypatch.setattr(policy, "VALUES_UNUSED_MAX", unused_max)
    column = CodeColumn(2)
    column.set(0, "stays")
    column.set(1, "first")
    for number in range(gone):
        column.set(1, str(number))
    assert column.is_mostly_unused is (gone > 2 + unused_max)
    other = column.renewed(7)
    assert other.values == ["stays", str(gone - 1) if gone else "first"]
    assert other.codes.tolist() == [0, 1]
    assert not other.is_mostly_unused
    assert other.serial == 7
    assert [column.values[code] for code in column.codes] == other.values


# Masks


def mask(w: World, **fields) -> np.ndarray:
    """The mask of a class that nobody has."""
    pod_class = w.cluster.classes.of(PodSpec(**fields))
    return mask_of(pod_class, w.scheduler.planner.room())


def masks_kept(w: World) -> int:
    """How many masks are kept, whatever facts the rules keep beside them."""
    return sum(key[0] == "mask" for key in w.scheduler.planner._rule_cache._kept)


@pytest.mark.parametrize("entries", [1, 2, 3, 4])
def test_of_so_many_bytes_the_longest_unused_mask_goes(monkeypatch, entries):
    w, other = nodes(8), nodes(8)
    mask(other)
    facts_and_one = other.scheduler.planner._rule_cache.bytes_kept
    bytes_max = facts_and_one + 2 * (policy.MASK_ENTRY_BYTES + 8)
    monkeypatch.setattr(policy, "MASKS_KEPT_BYTES_MAX", bytes_max)
    first = mask(w, node_selector=(("host", "n0"),))
    others = [mask(w, node_selector=(("host", f"n{index}"),)) for index in range(1, entries)]
    assert masks_kept(w) == min(entries, 3)
    assert w.scheduler.planner._rule_cache.bytes_kept <= policy.MASKS_KEPT_BYTES_MAX
    if entries > 3:
        assert mask(w, node_selector=(("host", "n3"),)) is others[2]
    assert (mask(w, node_selector=(("host", "n0"),)) is first) is (entries <= 3)


@pytest.mark.parametrize("entries", [1, 2, 3, 4, 5])
def test_a_log_that_forgot_means_that_all_nodes_are_asked(monkeypatch, entries):
    monkeypatch.setattr(policy, "LOG_KEPT_MAX", 2)
    log = Log()
    log.note_all(range(entries))
    assert log.position == entries
    assert log.since(0) == (list(range(entries)) if entries <= 4 else None)
    assert log.since(entries - 1) == [entries - 1]
    w = nodes(6)
    before = mask(w)
    for index in range(entries):
        w.node(f"n{index}", taints=[f"t{entries}:NoSchedule"])
    assert mask(w).tolist() == [index >= entries for index in range(6)]
    assert before.all()


# The container


def test_what_was_used_last_stays():
    kept: LruCache[str, int] = LruCache()
    for number, name in enumerate("abc"):
        kept.put(name, number, size_max=3)
    assert kept.get("a") == 0
    assert kept.peek("b") == 1
    kept.put("d", 3, size_max=3)
    assert list(kept) == ["c", "a", "d"]
    assert kept.size == 3
    kept.put("a", 9, size_max=3)
    assert list(kept) == ["c", "d", "a"]
    assert list(kept.values()) == [2, 3, 9]
    kept.replace("c", 7)
    assert list(kept) == ["c", "d", "a"]
    assert kept.peek("c") == 7
    kept.put("large", 5, size_max=3, size=50)
    assert list(kept) == ["large"]
    assert kept.size == 50
    kept.drop("large")
    kept.drop("nobody")
    assert len(kept) == kept.size == 0
    assert kept.get("a") is None
