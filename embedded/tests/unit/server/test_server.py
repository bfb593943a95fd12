"""The server over real HTTP and TLS: watches, pages, users, bad requests."""

import asyncio
import io
import json
import ssl

import aiohttp
import pytest

from pocketkube.cluster import EmbeddedCluster, Options
from pocketkube.server import watches
from pocketkube.store import store
from tools.testing import HANGS_S

PODS = "/api/v1/namespaces/default/pods"
MAPS = "/api/v1/namespaces/default/configmaps"


class Client:
    def __init__(self, cluster: EmbeddedCluster, session: aiohttp.ClientSession) -> None:
        self.cluster = cluster
        self.session = session

    async def __call__(self, method: str, path: str, body=None, code: int | None = None, **headers):
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        data = None if data is None else io.BytesIO(data)
        kind = {"Content-Type": "application/json"} if data is not None else {}
        url = self.cluster.server + path
        async with self.session.request(method, url, data=data, headers=kind | headers) as answer:
            text = await answer.text()
            assert code is None or answer.status == code, text
            try:
                return answer.status, json.loads(text)
            except ValueError:
                return answer.status, text

    async def events(self, path: str, count: int) -> list[tuple[str, str]]:
        """Return type and name of the first events of a watch."""
        found = []
        async with self.session.get(self.cluster.server + path) as answer:
            async for line in answer.content:
                event = json.loads(line)
                metadata = event["object"].get("metadata", {})
                found.append((event["type"], metadata.get("name", "")))
                if len(found) == count:
                    break
        return found


@pytest.fixture
async def client(tmp_path):
    options = Options(runs_agents=False, runs_controllers=False, seed=1)
    cluster = EmbeddedCluster(tmp_path, options=options)
    async with cluster:
        tls = ssl.create_default_context(cafile=str(cluster.ca))
        token = json.loads(cluster.kubeconfig.read_text())["users"][0]["user"]["token"]
        headers = {"Authorization": f"Bearer {token}"}
        connector = aiohttp.TCPConnector(ssl=tls)
        async with aiohttp.ClientSession(connector=connector, headers=headers) as session:
            yield Client(cluster, session)


def config_map(name: str, **labels: str) -> dict:
    return {"metadata": {"name": name, "labels": labels}}


async def watching(client: Client, path: str, count: int, *writes) -> list[tuple[str, str]]:
    """Watch, write, and return the events that came."""
    task = asyncio.create_task(client.events(path, count))
    while not client.cluster._handler._watches:
        await asyncio.sleep(0.005)
    for method, where, body in writes:
        await client(method, where, body)
    async with asyncio.timeout(HANGS_S):
        return await task


async def test_a_watch_shows_what_is_there_and_what_happens(client):
    await client("POST", MAPS, config_map("a"), 201)
    events = await watching(
        client, f"{MAPS}?watch=1", 3, ("POST", MAPS, config_map("b")), ("DELETE", f"{MAPS}/a", None)
    )
    assert events == [("ADDED", "a"), ("ADDED", "b"), ("DELETED", "a")]


async def test_a_watch_from_a_revision_repeats_what_happened_since(client):
    _, made = await client("POST", MAPS, config_map("a"), 201)
    await client("POST", MAPS, config_map("b"), 201)
    version = made["metadata"]["resourceVersion"]
    assert await client.events(f"{MAPS}?watch=1&resourceVersion={version}", 1) == [("ADDED", "b")]


async def test_objects_come_into_a_selection_and_leave_it(client):
    await client("POST", MAPS, config_map("a", state="no"), 201)
    patch = {"Content-Type": "application/merge-patch+json"}

    async def label(value: str) -> None:
        body = {"metadata": {"labels": {"state": value}}}
        await client("PATCH", f"{MAPS}/a", body, 200, **patch)

    task = asyncio.create_task(client.events(f"{MAPS}?watch=1&labelSelector=state%3Dyes", 3))
    while not client.cluster._handler._watches:
        await asyncio.sleep(0.005)
    for value in ("yes", "no", "yes"):
        await label(value)
    async with asyncio.timeout(HANGS_S):
        events = await task
    assert events == [("ADDED", "a"), ("DELETED", "a"), ("ADDED", "a")]


async def test_a_watch_from_too_long_ago_is_told_so(client, monkeypatch):
    monkeypatch.setattr(store, "WINDOW", 2)
    for name in "abcd":
        await client("POST", MAPS, config_map(name), 201)
    url = f"{client.cluster.server}{MAPS}?watch=1&resourceVersion=3"
    async with client.session.get(url) as a:
        event = json.loads(await a.content.readline())
    assert event["type"] == "ERROR"
    assert (event["object"]["code"], event["object"]["reason"]) == (410, "Expired")


async def test_a_streamed_list_ends_with_a_bookmark(client):
    await client("POST", MAPS, config_map("a"), 201)
    query = "watch=1&sendInitialEvents=true&allowWatchBookmarks=true"
    path = f"{MAPS}?{query}&resourceVersionMatch=NotOlderThan"
    assert await client.events(path, 2) == [("ADDED", "a"), ("BOOKMARK", "")]


async def test_a_client_that_does_not_read_is_cut_off(client, monkeypatch):
    monkeypatch.setattr(watches, "BACKLOG_BYTES_MAX", 1000)
    answer = await client.session.get(f"{client.cluster.server}{MAPS}?watch=1")
    (watch,) = client.cluster._handler._watches
    big = {"metadata": {"name": "big"}, "data": {"k": "v" * 2000}}
    await client("POST", MAPS, big, 201)
    async with asyncio.timeout(HANGS_S):
        await answer.read()
    assert watch._too_slow


async def test_stopping_ends_watches(client):
    answer = await client.session.get(f"{client.cluster.server}{MAPS}?watch=1")
    client.cluster._handler.stop()
    async with asyncio.timeout(HANGS_S):
        assert await answer.read() == b""


@pytest.mark.parametrize(
    ("method", "path", "body", "code"),
    [
        ("GET", "/api/v1/nothings", None, 404),
        ("POST", MAPS, b"{", 400),
        ("POST", MAPS, b"[" * 100_000, 400),
        ("POST", MAPS, {"metadata": {"name": "Bad Name"}}, 422),
        ("POST", MAPS, {"metadata": {"name": "x"}, "data": ["no", "map"]}, 400),
        ("POST", MAPS, {"metadata": {"name": "x"}, "data": {"k": "v" * 3_200_000}}, 413),
        ("PUT", f"{MAPS}/none", {"metadata": {"name": "none"}}, 404),
        ("PATCH", f"{MAPS}/none", {}, 415),
        ("DELETE", f"{MAPS}/none", None, 404),
        ("GET", f"{PODS}?labelSelector=%3D%3D", None, 400),
        ("GET", f"{PODS}?fieldSelector=spec.none%3D1", None, 400),
        ("GET", f"{PODS}?limit=many", None, 400),
        ("GET", f"{PODS}?continue=rubbish", None, 400),
        ("POST", f"{PODS}/none/exec", {}, 404),
    ],
)
async def test_bad_requests_get_a_status_object(client, method, path, body, code):
    status, answer = await client(method, path, body)
    assert (status, answer["kind"], answer["status"]) == (code, "Status", "Failure")
    assert answer["code"] == code
    assert answer["message"]


async def test_who_has_no_token_may_see_health_and_nothing_else(client):
    async with aiohttp.ClientSession() as nobody:
        tls = ssl.create_default_context(cafile=str(client.cluster.ca))
        base = client.cluster.server
        async with nobody.get(f"{base}/readyz", ssl=tls) as answer:
            assert (answer.status, await answer.text()) == (200, "ok")
        async with nobody.get(f"{base}{PODS}", ssl=tls) as answer:
            assert answer.status == 403
            message = (await answer.json())["message"]
        assert 'User "system:anonymous" cannot list resource "pods"' in message
        async with nobody.get(
            base + PODS, ssl=tls, headers={"Authorization": "Bearer x"}
        ) as answer:
            assert answer.status == 401


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/apis/authentication.k8s.io/v1/tokenreviews", "TokenReview"),
        (
            "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies",
            "MutatingAdmissionPolicy",
        ),
    ],
)
async def test_what_nothing_would_act_on_is_no_kind_of_this_cluster(client, path, kind):
    body = {"apiVersion": "v1", "kind": kind, "metadata": {"name": "x"}}
    await client("POST", path, body, 404)
