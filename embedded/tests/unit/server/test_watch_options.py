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
from pocketkube.server.reading import page_of
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


def test_a_watch_list_of_the_future_is_refused_in_its_stream(store):
    (event,) = first_events(store, sendInitialEvents="true", resourceVersion="999999")
    assert event["type"] == "ERROR"
    assert event["object"]["code"] == 504
