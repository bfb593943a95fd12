"""The store: revisions, order, watches and the window of the past."""

from pocketkube.store import store as store_module
from pocketkube.store.store import Store


def obj(name: str, namespace: str = "a", **metadata) -> dict:
    return {"kind": "Thing", "metadata": {"name": name, "namespace": namespace, **metadata}}


def names(store: Store, namespace: str | None = None) -> list[tuple[str, str]]:
    return [(entry.namespace, entry.name) for entry in store.entries("things", namespace)]


def test_each_write_gets_the_next_revision_and_carries_it():
    store = Store()
    first = store.put("things", obj("x"))
    second = store.put("others", obj("y"))
    assert second.revision == first.revision + 1 == store.revision
    assert second.object["metadata"]["resourceVersion"] == str(second.revision)


def test_entries_come_in_the_order_of_namespace_and_name():
    store = Store()
    for namespace, name in (("b", "x"), ("a", "z"), ("a", "y")):
        store.put("things", obj(name, namespace))
    assert names(store) == [("a", "y"), ("a", "z"), ("b", "x")]
    assert names(store, "a") == [("a", "y"), ("a", "z")]
    store.put("things", obj("a", "a"))
    store.remove("things", "a", "y")
    assert names(store, "a") == [("a", "a"), ("a", "z")]


def test_watchers_see_adds_changes_and_deletions_with_what_was_before():
    store, seen = Store(), []
    stop = store.watch("things", seen.append)
    store.put("things", obj("x"))
    store.put("things", obj("x", labels={"k": "v"}))
    store.put("others", obj("x"))
    gone = store.remove("things", "a", "x")
    stop()
    store.put("things", obj("x"))
    assert [event.type for event in seen] == ["ADDED", "MODIFIED", "DELETED"]
    assert seen[1].before is not None
    assert seen[1].before.labels == {}
    assert seen[2].entry.revision == gone.revision > seen[1].entry.revision
    assert seen[2].object["metadata"]["labels"] == {"k": "v"}


def test_since_gives_what_happened_after_a_revision():
    store = Store()
    first = store.put("things", obj("x")).revision
    store.put("others", obj("q"))
    store.put("things", obj("y"))
    store.remove("things", "a", "x")
    events = store.since("things", first)
    assert [(event.type, event.entry.name) for event in events] == [
        ("ADDED", "y"),
        ("DELETED", "x"),
    ]
    assert store.since("things", store.revision) == []


def test_since_says_when_the_window_does_not_reach_back(monkeypatch):
    monkeypatch.setattr(store_module, "WINDOW", 2)
    store = Store()
    first = store.put("things", obj("0")).revision
    for name in "12":
        store.put("things", obj(name))
    assert store.since("things", first) is not None
    store.put("things", obj("3"))
    assert store.since("things", first) is None
    assert len(store.since("things", store.revision - 2)) == 2
