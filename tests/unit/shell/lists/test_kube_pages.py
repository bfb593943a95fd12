"""Lists are read page by page: in small slices, and the next page is asked for ahead of its use."""

import asyncio
import contextlib

import pytest

from quorate.shell.kube.client import KubeClient
from quorate.shell.kube.errors import Gone
from quorate.shell.kube.lists import pages
from quorate.shell.kube.lists.pages import Pages
from tests.unit.shell.scripted_server import (
    ScriptedServer,
    credentials_for,
    listing,
    refusal,
    serving,
)

NAMES = [f"p{i}" for i in range(1000)]


@contextlib.asynccontextmanager
async def paging(*steps, size=1000):
    server = ScriptedServer(*steps)
    async with serving(server), KubeClient(credentials_for(server.url)) as client:
        yield server, Pages(client, "/api/v1/pods", size)


async def asked_by_the_end_of_the_first_page(*steps):
    """Return how many requests there had been when the first page's last object was handed on."""
    handed, asked = [], []

    async with paging(*steps) as (server, read):

        def on_items(items):
            handed.extend(items)
            if len(handed) == len(NAMES):
                asked.append(len(server.requests))

        assert await read.read(on_items) == "7"
    assert len(handed) == len(NAMES) + 1
    return asked[0]


async def test_the_next_page_is_asked_for_while_the_objects_of_this_one_are_handed_on(monkeypatch):
    monkeypatch.setattr(pages, "SLICE_OBJECTS", 1)
    steps = listing(NAMES, 7, token="more"), listing(["z"], 7)
    assert await asked_by_the_end_of_the_first_page(*steps) == 2


async def test_beside_a_large_page_no_other_is_in_memory(monkeypatch):
    monkeypatch.setattr(pages, "SLICE_OBJECTS", 1)
    monkeypatch.setattr(pages, "PAGE_BYTES", 1000)
    steps = listing(NAMES, 7, token="more"), listing(["z"], 7)
    assert await asked_by_the_end_of_the_first_page(*steps) == 1


async def test_a_slice_of_large_objects_has_few_of_them(monkeypatch):
    monkeypatch.setattr(pages, "SLICE_BYTES", 1000)
    slices = []
    async with paging(listing([f"{i:0400}" for i in range(8)], 7)) as (_, read):
        await read.read(lambda items: slices.append(len(items)))
    assert slices == [3, 3, 2]


async def test_after_large_pages_the_next_list_has_smaller_ones(monkeypatch):
    monkeypatch.setattr(pages, "PAGE_BYTES", 1000)
    large = listing([f"{i:0400}" for i in range(8)], 7)
    async with paging(large, listing([], 8), size=8) as (server, read):
        await read.read(lambda items: None)
        await read.read(lambda items: None)
        sizes = [int(request.query["limit"]) for request in server.requests]
    assert sizes[0] == 8
    assert 1 <= sizes[1] <= 2


async def test_an_answer_that_was_asked_for_ahead_and_refused_is_raised_when_its_turn_comes():
    handed = []
    steps = listing(["a", "b"], 7, token="more"), refusal(410, "Expired")
    async with paging(*steps, size=2) as (_, read):
        with pytest.raises(Gone):
            await read.read(handed.extend)
    assert len(handed) == 2


@pytest.mark.parametrize("second", [listing(["z"], 7), refusal(410, "Expired")])
async def test_who_stops_reading_leaves_no_request_behind(second):
    def refuse(items):
        raise ZeroDivisionError

    before = asyncio.all_tasks()
    async with paging(listing(["a", "b"], 7, token="more"), second, size=2) as (_, read):
        running = asyncio.all_tasks()
        with pytest.raises(ZeroDivisionError):
            await read.read(refuse)
        left = {one for one in asyncio.all_tasks() - running - before if "get" in repr(one)}
    assert not left
