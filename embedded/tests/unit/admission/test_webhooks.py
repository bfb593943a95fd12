"""Admission webhooks over real HTTPS: who is asked about what, and what becomes of the answers."""

import asyncio
import base64
import datetime
import json
import ssl

import aiohttp
import pytest
from aiohttp import web

from pocketkube.cluster import EmbeddedCluster, Options
from pocketkube.server import tls as certificates

MAPS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"
CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1"
MERGE = "application/merge-patch+json"


def authority(folder) -> bytes:
    """Make certificates for 127.0.0.1 in a new folder; return that of their authority."""
    folder.mkdir()
    return certificates.prepare(folder, datetime.datetime.now(datetime.UTC)).read_bytes()


class Hook:
    """A webhook server; ``answer`` says what it makes of a request."""

    def __init__(self, folder) -> None:
        self.asked = []
        self.answer = lambda request: {"allowed": True}
        self.folder = folder / "hook"
        self.authority = authority(self.folder)
        self.port = 0

    async def reviewed(self, request: web.Request) -> web.Response:
        review = await request.json()
        self.asked.append(review["request"])
        answer = self.answer(review["request"])
        if asyncio.iscoroutine(answer):
            answer = await answer
        if isinstance(answer, web.Response):
            return answer
        response = {"uid": review["request"]["uid"], **answer}
        return web.json_response({**review, "response": response})

    async def start(self) -> web.AppRunner:
        app = web.Application()
        app.router.add_post("/review", self.reviewed)
        runner = web.AppRunner(app)
        await runner.setup()
        tls = certificates.context(self.folder)
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
        self.port = runner.addresses[0][1]
        return runner

    def patches(self, *operations) -> None:
        patch = base64.b64encode(json.dumps(operations).encode()).decode()
        self.answer = lambda _: {"allowed": True, "patch": patch, "patchType": "JSONPatch"}

    def refuses(self, message: str, **status) -> None:
        self.answer = lambda _: {"allowed": False, "status": {"message": message, **status}}


class Client:
    def __init__(self, cluster, session, hook) -> None:
        self.cluster, self.session, self.hook = cluster, session, hook
        self.warnings = []

    async def __call__(self, method, path, body=None, code=None, type_="application/json"):
        data = None if body is None else json.dumps(body)
        headers = {"Content-Type": type_}
        url = self.cluster.server + path
        async with self.session.request(method, url, data=data, headers=headers) as answer:
            found = await answer.json()
            assert code is None or answer.status == code, found
            self.warnings += answer.headers.getall("Warning", [])
            return found

    async def register(self, kind="Validating", plural="configmaps", operations="*", **more):
        bundle = base64.b64encode(self.hook.authority).decode()
        url = f"https://127.0.0.1:{self.hook.port}/review"
        rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": [plural]}
        spec = {
            "name": "hook.example.com",
            "clientConfig": {"url": url, "caBundle": bundle},
            "rules": [rule | {"operations": [operations]}],
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            **more,
        }
        await self.put_configuration(kind, spec)

    async def put_configuration(self, kind, spec):
        body = {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": f"{kind}WebhookConfiguration",
            "metadata": {"name": "hook"},
            "webhooks": [spec],
        }
        path = f"{CONFIGURATIONS}/{kind.lower()}webhookconfigurations"
        await self("POST", path, body, code=201)


@pytest.fixture
async def client(tmp_path):
    options = Options(runs_agents=False, runs_controllers=False, seed=1)
    cluster = EmbeddedCluster(tmp_path / "cluster", options=options)
    hook = Hook(tmp_path)
    runner = await hook.start()
    async with cluster:
        tls = ssl.create_default_context(cafile=str(cluster.ca))
        token = json.loads(cluster.kubeconfig.read_text())["users"][0]["user"]["token"]
        headers = {"Authorization": f"Bearer {token}"}
        connector = aiohttp.TCPConnector(ssl=tls)
        async with aiohttp.ClientSession(connector=connector, headers=headers) as session:
            yield Client(cluster, session, hook)
    await runner.cleanup()


def config_map(name="m", **data):
    return {"metadata": {"name": name}, "data": data}


async def test_a_validating_webhook_sees_the_object_as_it_would_be_stored_and_who_asks(client):
    await client.register()
    await client("POST", MAPS, config_map(a="b"), code=201)
    (asked,) = client.hook.asked
    assert asked["operation"] == "CREATE"
    assert asked["object"]["metadata"]["uid"]
    assert (asked["namespace"], asked["name"]) == ("default", "m")
    assert asked["kind"] == {"group": "", "version": "v1", "kind": "ConfigMap"}
    assert asked["userInfo"]["username"] == "admin"
    assert (asked["oldObject"], asked["dryRun"]) == (None, False)


async def test_a_refusal_stops_the_write_and_says_who_refused(client):
    await client.register()
    client.hook.refuses("not today", code=422, reason="Invalid")
    found = await client("POST", MAPS, config_map(), code=422)
    assert found["reason"] == "Invalid"
    assert found["message"] == 'admission webhook "hook.example.com" denied the request: not today'
    await client("GET", f"{MAPS}/m", code=404)


async def test_a_mutating_webhook_s_patch_is_stored_and_validated(client):
    await client.register("Mutating")
    client.hook.patches({"op": "add", "path": "/data/c", "value": "d"})
    made = await client("POST", MAPS, config_map(a="b"), code=201)
    assert made["data"] == {"a": "b", "c": "d"}
    assert (await client("GET", f"{MAPS}/m"))["data"] == {"a": "b", "c": "d"}


async def test_a_patch_that_makes_the_object_invalid_is_refused(client):
    await client.register("Mutating")
    client.hook.patches({"op": "add", "path": "/data/c~1d", "value": "x"})
    found = await client("POST", MAPS, config_map(a="b"), code=422)
    assert "data[c/d]" in found["message"]


async def test_updates_patches_and_deletions_are_reviewed_with_what_was_there(client):
    await client("POST", MAPS, config_map(a="1"), code=201)
    await client.register()
    await client("PUT", f"{MAPS}/m", config_map(a="2"), code=200)
    await client("PATCH", f"{MAPS}/m", {"data": {"a": "3"}}, code=200, type_=MERGE)
    await client("DELETE", f"{MAPS}/m", code=200)
    told = [
        (
            asked["operation"],
            ((asked["oldObject"] or {}).get("data") or {}).get("a"),
            ((asked["object"] or {}).get("data") or {}).get("a"),
        )
        for asked in client.hook.asked
    ]
    assert told == [("UPDATE", "1", "2"), ("UPDATE", "2", "3"), ("DELETE", "3", None)]


async def test_a_patch_that_a_webhook_changes_is_stored_as_changed(client):
    await client("POST", MAPS, config_map(a="1"), code=201)
    await client.register("Mutating")
    client.hook.patches({"op": "add", "path": "/data/c", "value": "d"})
    await client("PATCH", f"{MAPS}/m", {"data": {"a": "3"}}, code=200, type_=MERGE)
    assert (await client("GET", f"{MAPS}/m"))["data"] == {"a": "3", "c": "d"}


async def test_a_webhook_that_answers_slowly_changes_the_newest_version(client):
    await client("POST", MAPS, config_map(a="1"), code=201)
    await client.register("Mutating", operations="UPDATE")
    written = False

    async def write_meanwhile(_request):
        nonlocal written
        if not written:
            written = True
            await client("PATCH", f"{MAPS}/m", {"data": {"other": "x"}}, code=200, type_=MERGE)
        patch = [{"op": "add", "path": "/data/c", "value": "d"}]
        coded = base64.b64encode(json.dumps(patch).encode()).decode()
        return {"allowed": True, "patch": coded, "patchType": "JSONPatch"}

    client.hook.answer = write_meanwhile
    await client("PATCH", f"{MAPS}/m", {"data": {"a": "2"}}, code=200, type_=MERGE)
    found = await client("GET", f"{MAPS}/m")
    assert found["data"] == {"a": "2", "c": "d", "other": "x"}


async def test_a_dry_run_is_reviewed_as_one_and_refused_by_webhooks_with_side_effects(client):
    await client.register(sideEffects="Some")
    found = await client("POST", f"{MAPS}?dryRun=All", config_map(), code=400)
    assert "does not support dry run" in found["message"]
    await client("DELETE", f"{CONFIGURATIONS}/validatingwebhookconfigurations/hook", code=200)
    await client.register()
    await client("POST", f"{MAPS}?dryRun=All", config_map(), code=201)
    assert client.hook.asked[-1]["dryRun"] is True


@pytest.mark.parametrize(
    "more",
    [
        {"plural": "secrets"},
        {"operations": "DELETE"},
        {"objectSelector": {"matchLabels": {"a": "b"}}},
        {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "other"}}},
        {"matchConditions": [{"name": "c", "expression": "object.metadata.name == 'x'"}]},
    ],
    ids=["resource", "operation", "labels", "namespace", "condition"],
)
async def test_a_webhook_that_does_not_match_is_not_asked(client, more):
    await client.register(**more)
    client.hook.refuses("never")
    await client("POST", MAPS, config_map(), code=201)
    assert client.hook.asked == []


@pytest.mark.parametrize(
    "answer",
    [
        lambda _: web.Response(status=500),
        lambda _: web.Response(text="no JSON"),
        lambda _: {"uid": "another", "allowed": True},
        lambda _: asyncio.sleep(3, {"allowed": True}),
    ],
    ids=["error", "garbage", "uid", "late"],
)
async def test_a_webhook_without_an_answer_fails_writes_or_is_ignored_as_its_policy_says(
    client, answer
):
    client.hook.answer = answer
    await client.register(timeoutSeconds=1)
    found = await client("POST", MAPS, config_map(), code=500)
    assert 'failed calling webhook "hook.example.com"' in found["message"]
    await client("DELETE", f"{CONFIGURATIONS}/validatingwebhookconfigurations/hook", code=200)
    await client.register(timeoutSeconds=1, failurePolicy="Ignore")
    await client("POST", MAPS, config_map(), code=201)


async def test_a_certificate_that_the_bundle_does_not_know_is_refused(client, tmp_path):
    url = f"https://127.0.0.1:{client.hook.port}/review"
    bundle = base64.b64encode(authority(tmp_path / "other")).decode()
    await client.register(clientConfig={"url": url, "caBundle": bundle})
    found = await client("POST", MAPS, config_map(), code=500)
    assert "CERTIFICATE_VERIFY_FAILED" in found["message"]


async def test_a_webhook_s_warnings_reach_the_client(client):
    await client.register()
    client.hook.answer = lambda _: {"allowed": True, "warnings": ["old field"]}
    await client("POST", MAPS, config_map(), code=201)
    assert client.warnings == ['299 - "old field"']


async def test_bindings_are_reviewed_by_both_ways_and_a_webhook_s_own_configuration_never_is(
    client,
):
    node = {"metadata": {"name": "n"}, "status": {"allocatable": {"pods": "9"}}}
    await client("POST", "/api/v1/nodes", node, code=201)
    spec = {"containers": [{"name": "c", "image": "i"}]}
    for name in ("a", "b"):
        await client("POST", PODS, {"metadata": {"name": name}, "spec": spec}, code=201)
    await client.register(plural="*", operations="*")
    await client("DELETE", f"{CONFIGURATIONS}/validatingwebhookconfigurations/hook", code=200)
    assert client.hook.asked == []
    await client.register(plural="pods/binding")
    client.hook.refuses("no")
    binding = {"metadata": {"name": "a"}, "target": {"kind": "Node", "name": "n"}}
    found = await client("POST", f"{PODS}/a/binding", binding, code=403)
    assert found["message"].endswith("denied the request: no")
    (asked,) = client.hook.asked
    assert asked["subResource"] == "binding"
    assert asked["kind"]["kind"] == "Binding"
