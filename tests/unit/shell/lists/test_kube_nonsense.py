"""The reflector against answers that are well formed and make no sense."""

import pytest

from quorate.shell.kube.client import KubeClient
from quorate.shell.kube.errors import ServerError
from quorate.shell.kube.lists.reflector import Pace
from tests.unit.shell.lists.reflecting import reflecting
from tests.unit.shell.scripted_server import (
    ScriptedServer,
    answer,
    credentials_for,
    error_event,
    listing,
    serving,
    stream,
)

QUICK = Pace(backoff_s_min=0.01, backoff_s_max=0.05, garbled_relist_s=(3600.0, 3600.0))
SECRETS = {"kind": "SecretList", "metadata": {"resourceVersion": "9"}, "items": []}


async def test_a_list_of_another_kind_is_not_taken_for_one_of_its_own_that_is_empty():
    async with reflecting(
        listing(["a"], 10),
        stream(error_event(410, "Expired")),
        answer(200, SECRETS),
        listing(["a"], 20),
        pace=QUICK,
        kind="Pod",
    ) as (trace, reflector):
        assert trace.words == ["listed a", "listed a"]
        assert reflector.failures == 1
    assert trace.watched_from[:2] == ["10", "20"]


async def test_watches_that_say_things_and_lead_nowhere_are_not_repeated_in_a_tight_loop():
    nothing = (
        b'{"type":"ADDED","object":{"metadata":{"name":"b"}}}\n{"type":"BOOKMARK","object":{}}\n'
    )
    async with reflecting(listing(["a"], 10), *[stream(nothing)] * 4, pace=QUICK) as (
        trace,
        reflector,
    ):
        assert reflector.failures == 4
    assert trace.watched_from[:4] == ["10"] * 4


@pytest.mark.parametrize("method", ["put", "post"])
@pytest.mark.parametrize("body", [b"<html>sign in</html>", b"", b"null", b"[[", b"{"])
async def test_a_page_of_a_proxy_is_not_an_api_servers_yes_to_a_write(method, body):
    server = ScriptedServer(answer(200, body))
    async with serving(server), KubeClient(credentials_for(server.url)) as client:
        with pytest.raises(ServerError, match="no object of the API"):
            await getattr(client, method)("/api/v1/x", {})
