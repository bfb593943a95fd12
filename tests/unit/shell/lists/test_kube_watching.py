"""The reflector against a server that cuts, expires and refuses: nothing lost, nothing twice."""

import itertools
import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.shell.kube import client as client_module
from quorate.shell.kube.connections.lines import LineSplitter
from quorate.shell.kube.lists import pages
from quorate.shell.kube.lists.events import Failing, Listed, Recovered, SomeListed
from quorate.shell.kube.lists.reflector import Pace, Reflector
from tests.unit.shell.lists.reflecting import reflecting
from tests.unit.shell.scripted_server import (
    ManualClock,
    answer,
    error_event,
    event,
    listing,
    refusal,
    stream,
)

WIDE = Pace(page_size=16, backoff_s_min=0.01, backoff_s_max=0.05)


async def test_pages_make_one_list_and_the_watch_starts_from_it():
    async with reflecting(
        listing(["a", "b"], 10, token="more"),
        listing(["c"], 10),
        stream(event("ADDED", "d", 11), event("MODIFIED", "a", 12) + event("DELETED", "b", 13)),
        stream(event("ADDED", "e", 14)),
    ) as (trace, reflector):
        assert trace.words == ["listed a,b,c", "added d", "modified a", "deleted b", "added e"]
        assert Listed("10") in trace.seen
        assert trace.watched_from == ["10", "13", "14"]
        # The third watch is not answered, so it is not resumed yet.
        assert (reflector.relists, reflector.reconnects, reflector.events) == (0, 1, 4)
        assert reflector.is_synced
        first, second, third, *_ = [dict(r.query) for r in trace.server.requests]
        assert first == {"limit": "2"}
        assert second == {**first, "continue": "more"}
        assert third == {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": "10",
            "timeoutSeconds": "360",
        }


async def test_a_watch_cut_in_the_middle_of_a_line_resumes_after_the_last_whole_one():
    half = event("ADDED", "b", 12)
    async with reflecting(
        listing([], 10),
        stream(event("ADDED", "a", 11) + half[: len(half) // 2], then="cut"),
        stream(event("ADDED", "b", 12), half[:9], half[9:].replace(b'"b"', b'"c"')),
    ) as (trace, reflector):
        assert trace.words == ["listed ", "added a", "added b", "added c"]
        assert trace.watched_from == ["10", "11", "12"]
        assert reflector.relists == reflector.failures == 0


async def test_a_bookmark_moves_the_point_to_resume_from():
    async with reflecting(listing([], 10), stream(event("BOOKMARK", "", 50), then="cut")) as (
        trace,
        reflector,
    ):
        pass
    assert trace.words == ["listed "]
    assert trace.watched_from == ["10", "50"]
    assert reflector.bookmarks == 1


@pytest.mark.parametrize(
    "expired",
    [
        refusal(410, "Expired"),
        stream(event("ADDED", "b", 11), error_event(410, "Expired")),
        stream(event("ADDED", "b", 11) + error_event(410, "Gone")),
    ],
    ids=["status", "event", "event in one chunk"],
)
async def test_410_lists_anew(expired):
    async with reflecting(listing(["a"], 10), expired, listing(["c"], 30)) as (trace, reflector):
        assert trace.words in (
            ["listed a", "listed c"],
            ["listed a", "added b", "listed c"],
        )
        assert reflector.relists == 1
        assert reflector.last_error is None
    assert trace.watched_from[-1] == "30"


async def test_410_between_pages_starts_the_list_again_page_by_page():
    async with reflecting(
        listing(["a", "b"], 10, token="more"),
        refusal(410, "Expired"),
        listing(["b", "c"], 20, token="other"),
        listing(["d"], 20),
    ) as (trace, reflector):
        assert trace.words == ["listed b,c,d"]
        assert reflector.relists == 1
        asked = [(r.query.get("limit"), r.query.get("continue")) for r in trace.server.requests]
        assert asked[:4] == [("2", None), ("2", "more"), ("2", None), ("2", "other")]


async def test_tokens_that_expire_again_and_again_do_not_make_pages_smaller():
    expired = [listing(["a", "b"], 10, token="more"), refusal(410, "Expired")]
    whole = [listing(["a", "b"], 20, token="more"), listing(["c"], 20)]
    async with reflecting(*expired * 4, *whole) as (trace, reflector):
        assert trace.words == ["listed a,b,c"]
        assert {r.query.get("limit") for r in trace.server.requests[:10]} == {"2"}
        assert reflector.relists == 4


async def test_pages_become_larger_again_when_their_objects_are_small(monkeypatch):
    monkeypatch.setattr(client_module, "LIST_BYTES_MAX", 2000)
    monkeypatch.setattr(pages, "PAGE_BYTES", 500)
    large, expired = [f"{i:0300}" for i in range(8)], refusal(410, "Expired")
    lists = [listing(large, 1), listing(["x" * 350], 1), expired, listing([], 2), expired]
    async with reflecting(*lists, listing([], 3), pace=WIDE) as (trace, _):
        sizes = [r.query["limit"] for r in trace.server.requests if "limit" in r.query]
        assert sizes[:3] == ["16", "2", "2"]  # the answer was still near to what is too much
        assert int(sizes[3]) > 2


async def test_a_page_is_handed_on_in_slices_between_which_the_loop_goes_on(monkeypatch):
    monkeypatch.setattr(pages, "SLICE_OBJECTS", 3)
    async with reflecting(listing([f"p{i}" for i in range(8)], 10), pace=WIDE) as (trace, _):
        slices = [len(one.items) for one in trace.seen if isinstance(one, SomeListed)]
        assert slices == [3, 3, 2]


async def test_a_server_that_refuses_its_own_version_is_not_asked_in_a_tight_loop():
    slow = Pace(backoff_s_min=0.05, backoff_s_max=1.0)
    started_s = time.monotonic()
    steps = [listing([], 10), refusal(410, "Expired")] * 4
    async with reflecting(*steps, pace=slow) as (_trace, reflector):
        assert time.monotonic() - started_s > 0.75 * (0.05 + 0.1 + 0.2)
        assert reflector.relists == 4


async def test_failures_are_retried_and_the_version_is_kept():
    async with reflecting(
        refusal(500, "InternalError"),
        answer(200, b"not a list"),
        refusal(403, "Forbidden"),
        listing([], 10),
        stream(event("ADDED", "a", 11), then="cut"),
        refusal(503, "ServiceUnavailable"),
        stream(error_event(500, "InternalError")),
        stream(event("ADDED", "b", 12)),
    ) as (trace, reflector):
        assert trace.words == ["listed ", "added a", "added b"]
        assert trace.watched_from == ["10", "11", "11", "11", "12"]
        assert reflector.relists == 0
        assert reflector.failures == 5
        assert reflector.last_error is None


async def test_429_waits_as_long_as_the_server_asks():
    started_s = time.monotonic()
    async with reflecting(refusal(429, "TooManyRequests", Retry_After="1"), listing([], 1)):
        assert time.monotonic() - started_s >= 1.0


async def test_a_resource_that_is_missing_appears_goes_and_comes_back():
    async with reflecting(
        refusal(404, "NotFound"),
        refusal(404, "NotFound"),
        listing(["a"], 10),
        stream(event("DELETED", "a", 11)),  # its CRD is deleted: objects first, then the end
        refusal(404, "NotFound"),
        refusal(404, "NotFound"),
        refusal(404, "NotFound"),
        listing(["b"], 20),
    ) as (trace, reflector):
        assert trace.words == ["absent", "listed a", "deleted a", "absent", "listed b"]
        assert not reflector.is_absent


async def test_lines_that_say_nothing_are_handed_on_and_the_kind_is_listed_anew():
    async with reflecting(
        listing([], 10),
        stream(
            event("ADDED", "a", 11)
            + b"rubbish\n\n"
            + b'{"type":"ADDED"}\n'
            + b'{"type":"\xff","object":{}}\n'
            + event("SURPRISE", "x", 12)
            + event("ADDED", "b", 13),
            then="silent",
        ),
        listing(["a", "b", "c"], 20),
    ) as (trace, reflector):
        assert trace.words == ["listed ", "added a", *["garbled"] * 4, "added b", "listed a,b,c"]
        assert (reflector.garbled, reflector.relists, reflector.failures) == (4, 1, 0)
    assert trace.watched_from == ["10", "20"]


async def test_a_kind_that_is_garbled_again_is_followed_for_a_while_before_it_is_listed_anew():
    patient = Pace(page_size=2, backoff_s_min=0.01, garbled_relist_s=(3600.0, 3600.0))
    async with reflecting(
        listing([], 10),
        stream(b"rubbish\n", then="silent"),
        listing([], 20),
        stream(b"rubbish\n", event("ADDED", "a", 21), then="cut"),
        stream(event("ADDED", "b", 22)),
        pace=patient,
    ) as (trace, reflector):
        assert trace.words == ["listed ", "garbled", "listed ", "garbled", "added a", "added b"]
        assert (reflector.garbled, reflector.relists) == (2, 1)
    assert trace.watched_from == ["10", "20", "21", "22"]


def test_lists_due_to_garbled_events_come_ever_later_and_are_prompt_again_after_a_calm():
    clock = ManualClock()
    reflector = Reflector(
        None,  # type: ignore[arg-type]  nothing is asked for
        "/api/v1/pods",
        on_event=lambda event: None,
        clock=clock,
        chance=lambda: 0.5,
        pace=Pace(garbled_relist_s=(5.0, 60.0)),
    )

    def delay_s():
        reflector.is_synced = True
        reflector.request_relist()
        due_s, reflector._relist_due_s = reflector._relist_due_s, None
        waited_s, clock.time_s = due_s - clock.time_s, due_s + 1.0
        assert reflector.is_synced == (waited_s > 0.0), "nothing is decided until a prompt list"
        return waited_s

    assert [delay_s() for _ in range(7)] == [0.0, 5.0, 10.0, 20.0, 40.0, 60.0, 60.0]
    clock.time_s += 121.0
    assert delay_s() == 0.0


async def test_watches_that_end_as_they_begin_are_not_repeated_in_a_tight_loop():
    started_s = time.monotonic()
    slow = Pace(backoff_s_min=0.05, backoff_s_max=1.0)
    steps = [listing([], 10), *[stream()] * 4]
    async with reflecting(*steps, pace=slow) as (_trace, reflector):
        assert time.monotonic() - started_s > 0.75 * (0.05 + 0.1 + 0.2)
        assert reflector.relists == 0


async def test_a_dead_connection_is_noticed_and_resumed():
    pace = Pace(silence_s_max=0.2, backoff_s_min=0.01)
    async with reflecting(
        listing([], 10), stream(event("ADDED", "a", 11), then="silent"), pace=pace
    ) as (trace, _reflector):
        assert trace.words == ["listed ", "added a"]
    assert trace.watched_from == ["10", "11"]


async def test_lines_of_many_megabytes():
    big = "x" * (12 * 1024 * 1024)
    async with reflecting(
        listing([], 10), stream(event("ADDED", "a", 11, data=big) + event("ADDED", "b", 12))
    ) as (trace, _reflector):
        assert trace.words == ["listed ", "added a", "added b"]
        assert json.loads(trace.seen[2].raw)["data"] == big


async def test_ten_thousand_events_through_random_cuts_arrive_once_and_in_order():
    lines = [event("ADDED", f"n{i}", 100 + i) for i in range(10_000)]
    steps, sent = [listing([], 99)], 0
    for size in (1, 7, 1000, 3000, 4000, 1992):
        part = b"".join(lines[sent : sent + size])
        torn = lines[sent + size][:30] if sent + size < len(lines) else b""
        steps.append(stream(part + torn, then="cut"))
        sent += size
    async with reflecting(*steps) as (trace, reflector):
        assert trace.words[1:] == [f"added n{i}" for i in range(10_000)]
        assert reflector.relists == 0


@given(st.lists(st.binary(max_size=30)), st.lists(st.integers(0, 1000), max_size=10))
def test_lines_do_not_depend_on_chunks(parts, cuts):
    body = b"".join(part.replace(b"\n", b"") + b"\n" for part in parts)
    edges = [0, *sorted(cut % (len(body) + 1) for cut in cuts), len(body)]
    splitter = LineSplitter()
    found = []
    for start, end in itertools.pairwise(edges):
        found += splitter.split(body[start:end])
    assert found == [line for line in body.split(b"\n") if line]


async def test_each_failure_is_told_with_how_many_there_were_and_then_that_it_is_over():
    async with reflecting(
        refusal(403, "Forbidden"), refusal(500, "InternalError"), listing([], 10)
    ) as (trace, _):
        first, second = [one for one in trace.seen if isinstance(one, Failing)]
        assert (first.tries, first.error.status, first.since_s) == (1, 403, 0.0)
        assert (second.tries, second.error.status) == (2, 500)
        assert second.since_s > 0.0
        assert trace.seen[-2:] == [Recovered(), Listed("10")]


async def test_a_resource_that_must_be_there_is_never_absent():
    strict = Pace(page_size=2, backoff_s_min=0.01, absent_poll_s=None)
    steps = [refusal(404, "NotFound"), listing(["a"], 10), refusal(404, "NotFound")]
    async with reflecting(*steps, refusal(404, "NotFound"), pace=strict) as (trace, reflector):
        assert trace.words == ["listed a"]
        assert reflector.failures == 2
        assert not reflector.is_synced
