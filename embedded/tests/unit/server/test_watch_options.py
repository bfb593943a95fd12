"""What lists and watches answer to client-go's options, and refuse as a real server does."""

import random

import msgspec
import pytest
from multidict import MultiDict

from pocketkube.api.api import Api
from pocketkube.errors import ApiError
from pocketkube.registry.resources import Registry
from pocketkube.schema.document import Document
from pocketkube.server.answers import Form, Wanted
from pocketkube.server.options import check_listing, check_watching
from pocketkube.server.reading import page_of
from pocketkube.server.requests import target_of
from pocketkube.server.selecting import selection_of
from pocketkube.server.watches import Watch
from pocketkube.store.store import Store

REGISTRY = Registry(Document.load().resources())
NAMESPACES = REGISTRY.named("v1", "namespaces")


@pytest.fixture
def store() -> Store:
    store = Store()
    api = Api(store, REGISTRY, now_s=lambda: 1.0, chance=random.Random(0))
    for name in "abc":
        api.create(NAMESPACES, "", {"metadata": {"name": name}})
    return store


def page(store, **query):
    query = MultiDict(query)
    entries, metadata = page_of(store, NAMESPACES, selection_of(NAMESPACES, "", query), query)
    return [entry.name for entry in entries], metadata


def refusal(action, *args, **query):
    with pytest.raises(ApiError) as caught:
        action(*args, **query)
    return caught.value


def first_events(store, **query):
    query = MultiDict(query)
    selection = selection_of(NAMESPACES, "", query)
    watch = Watch(store, NAMESPACES, selection, Wanted(Form.OBJECT), 1.0)
    return [msgspec.json.decode(line) for line in watch.first_lines(query)]


def test_one_object_cannot_be_watched_by_its_path():
    target = target_of(REGISTRY, "GET", "/api/v1/namespaces/a", MultiDict(watch="1"))
    assert target is not None
    assert (target.verb, target.name) == ("get", "a")


def test_a_list_at_any_revision_is_never_in_pages(store):
    assert page(store, limit="1")[0] == ["a"]
    names, metadata = page(store, limit="1", resourceVersion="0")
    assert names == ["a", "b", "c"]
    assert "continue" not in metadata


def test_a_list_at_a_past_revision_is_given_only_while_it_is_the_same(store):
    now = str(store.revision)
    exactly = {"resourceVersionMatch": "Exact", "resourceVersion": now}
    assert page(store, **exactly)[0] == ["a", "b", "c"]
    store.remove("namespaces", "", "b")
    error = refusal(page, store, **exactly)
    assert (error.code, error.reason) == (410, "Expired")
    not_older = {"resourceVersionMatch": "NotOlderThan", "resourceVersion": now}
    assert page(store, **not_older)[0] == ["a", "c"]


def test_a_list_in_the_future_is_refused_for_now(store):
    error = refusal(page, store, resourceVersion="999999")
    assert (error.code, error.reason) == (504, "Timeout")
    assert error.message.startswith("Timeout: Too large resource version: 999999, current: ")


MATCH = "resourceVersionMatch"


@pytest.mark.parametrize(
    ("query", "causes"),
    [
        (
            {"sendInitialEvents": "true"},
            [(MATCH, "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan")],
        ),
        (
            {"resourceVersionMatch": "NotOlderThan"},
            [(MATCH, "resourceVersionMatch is forbidden for watch unless sendInitialEvents is ")],
        ),
        (
            {"sendInitialEvents": "true", "resourceVersionMatch": "Exact"},
            [
                (MATCH, "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"),
                (MATCH, 'Unsupported value: "Exact": supported values: "NotOlderThan"'),
            ],
        ),
        (
            {
                "sendInitialEvents": "true",
                "resourceVersionMatch": "NotOlderThan",
                "continue": "c",
            },
            [(MATCH, "resourceVersionMatch is forbidden when continue is provided")],
        ),
    ],
)
def test_options_of_a_watch_that_contradict_one_another_are_refused(query, causes):
    error = refusal(check_watching, MultiDict(query))
    assert error.code == 422
    found = error.details["causes"]
    assert [one["field"] for one in found] == [field for field, _ in causes]
    for one, (_, words) in zip(found, causes, strict=True):
        assert words in one["message"]


def test_initial_events_are_for_watches_only():
    error = refusal(check_listing, MultiDict(sendInitialEvents="false"))
    assert (error.code, error.details["causes"][0]["field"]) == (422, "sendInitialEvents")


def test_a_watch_list_ends_what_is_there_with_a_bookmark(store):
    events = first_events(store, sendInitialEvents="true", allowWatchBookmarks="true")
    assert [event["type"] for event in events] == ["ADDED"] * 3 + ["BOOKMARK"]
    metadata = events[-1]["object"]["metadata"]
    assert metadata["annotations"] == {"k8s.io/initial-events-end": "true"}
    assert metadata["resourceVersion"] == str(store.revision)


def test_a_watch_list_of_the_future_is_refused_in_its_stream(store):
    (event,) = first_events(store, sendInitialEvents="true", resourceVersion="999999")
    assert event["type"] == "ERROR"
    assert event["object"]["code"] == 504
