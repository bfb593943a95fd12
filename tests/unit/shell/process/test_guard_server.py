"""The guard's port: AdmissionReviews of bindings over TLS, and nothing else."""

import asyncio
import io
import ssl
from contextlib import asynccontextmanager

import aiohttp
import msgspec
import pytest
from cryptography.hazmat.primitives import serialization

from quorate.core.cluster.cluster import Cluster
from quorate.core.model import Node, Pod, PodSpec, policy
from quorate.core.model.changes import BindingAdmitted, NodeChanged, PodChanged
from quorate.shell.configuration.config import GuardConfig
from quorate.shell.process.clock import SystemClock
from quorate.shell.report.metrics import Metrics
from quorate.shell.serve import guard as guard_module
from quorate.shell.serve.guard import BODY_BYTES_MAX, GuardError, GuardServer
from tests.unit.shell.scripted_server import no_defect
from tools.certificates import write_pair
from tools.testing import HANGS_S

HEADERS = {"Content-Type": "application/json"}


@pytest.fixture(autouse=True)
def no_limit_that_a_busy_machine_misses(monkeypatch):
    monkeypatch.setattr(guard_module, "REQUEST_S", HANGS_S)
    monkeypatch.setattr(guard_module, "HANDSHAKE_S_MAX", HANGS_S)


class Served:
    """A guard that listens, of a cluster with one node, which has 4 cpu as all have."""

    def __init__(self, folder, **config):
        self.cert_file, self.key_file = write_pair(folder)
        own = {"cert_file": str(self.cert_file), "key_file": str(self.key_file), **config}
        self.config = GuardConfig(enabled=True, **{"host": "127.0.0.1", "port": 0, **own})
        self.cluster = Cluster(["quorate"])
        self.metrics = Metrics()
        self.judges = True
        self.server = GuardServer(self.config, self.cluster, SystemClock(), self.metrics, no_defect)
        self.told = []
        self.node("n1")

    def tell(self, *changes):
        self.server.observe(changes)
        for change in changes:
            self.cluster.apply(change)

    def node(self, name):
        self.tell(NodeChanged(Node(name=name, allocatable=(("cpu", 4000), ("pods", 9)))))

    def pod(self, name, cpu, **fields):
        spec = PodSpec(requests=(("cpu", 1000 * cpu),))
        made = Pod(uid=f"u-{name}", namespace="t", name=name, scheduler="x", spec=spec, **fields)
        self.tell(PodChanged(made))

    def tls(self):
        return ssl.create_default_context(cafile=str(self.cert_file))

    async def ask(self, body, *, method="POST", path="/bindings", tls=None):
        connector = aiohttp.TCPConnector(ssl=tls or self.tls())
        url = f"https://127.0.0.1:{self.server.port}{path}"
        async with (
            aiohttp.ClientSession(connector=connector) as session,
            session.request(method, url, data=body, headers=HEADERS) as answer,
        ):
            return answer.status, await answer.read(), answer.headers

    def reviews(self, answer):
        value = self.metrics.registry.get_sample_value
        return value("quorate_guard_reviews_total", {"answer": answer})

    async def connect(self, **tls):
        return await asyncio.open_connection("127.0.0.1", self.server.port, **tls)

    async def review(self, body):
        status, said, _ = await self.ask(body)
        assert status == 200, said
        return msgspec.json.decode(said)["response"]


@asynccontextmanager
async def served(folder, **config):
    made = Served(folder, **config)
    await made.server.start(lambda: made.judges, made.told.append)
    try:
        yield made
    finally:
        await made.server.close()


def called(monkeypatch, to, name):
    """Return an event that is set when this method of ``to`` returns."""
    method, event = getattr(to, name), asyncio.Event()

    def noting(*args, **more):
        answer = method(*args, **more)
        event.set()
        return answer

    monkeypatch.setattr(to, name, noting)
    return event


def review(pod, node="n1", **request):
    asked = {
        "uid": "r1",
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "subResource": "binding",
        "namespace": "t",
        "name": pod,
        "operation": "CREATE",
        "userInfo": {"username": "system:kube-scheduler", "groups": ["g"]},
        "object": {
            "kind": "Binding",
            "apiVersion": "v1",
            "metadata": {"name": pod, "uid": f"u-{pod}"},
            "target": {"kind": "Node", "name": node},
        },
        **request,
    }
    kind = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}
    return msgspec.json.encode({**kind, "request": asked})


async def test_a_binding_that_fits_is_allowed_and_one_that_does_not_is_forbidden(tmp_path):
    async with served(tmp_path) as guard:
        guard.pod("small", 4)
        guard.pod("large", 5)
        assert await guard.review(review("small")) == {"uid": "r1", "allowed": True}
        said = await guard.review(review("large"))
        assert said["allowed"] is False
        assert (said["status"]["code"], said["status"]["reason"]) == (403, "Forbidden")
        assert "node n1 has no room for pod t/large" in said["status"]["message"]
        assert (guard.reviews("allowed"), guard.reviews("denied")) == (1.0, 1.0)


async def test_the_legacy_resource_names_its_pod_in_the_object(tmp_path):
    async with served(tmp_path) as guard:
        guard.pod("large", 5)
        legacy = {"resource": {"resource": "bindings"}, "subResource": "", "name": ""}
        assert (await guard.review(review("large", **legacy)))["allowed"] is False


@pytest.mark.parametrize(
    "request_fields",
    [
        {"resource": {"group": "", "resource": "pods"}, "subResource": "eviction"},
        {"resource": {"group": "x", "resource": "pods"}},
        {"operation": "DELETE"},
        {"object": {"metadata": {"name": "large"}, "target": {"kind": "Rack", "name": "n1"}}},
        {"object": {"metadata": {}, "target": {}}},
    ],
    ids=["subresource", "group", "operation", "target", "no node"],
)
async def test_what_is_no_binding_to_a_node_is_let_through(tmp_path, request_fields):
    async with served(tmp_path) as guard:
        guard.pod("large", 5)
        assert (await guard.review(review("large", **request_fields)))["allowed"] is True


async def test_a_dry_run_takes_no_room(tmp_path):
    async with served(tmp_path) as guard:
        guard.pod("a", 3)
        guard.pod("b", 3)
        assert (await guard.review(review("a", dryRun=True)))["allowed"] is True
        assert (await guard.review(review("b")))["allowed"] is True


async def test_what_it_lets_through_is_told_at_once_and_taken_back_when_it_does_not_come_true(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(guard_module, "_LOOK_EVERY_S", 0.02)
    monkeypatch.setattr(policy, "ADMITTED_S", 0.1)
    async with served(tmp_path) as guard:
        guard.pod("a", 3)
        assert (await guard.review(review("a")))["allowed"] is True
        assert guard.told[0] == BindingAdmitted("u-a", "n1")
        async with asyncio.timeout(HANGS_S):
            while len(guard.told) < 2:
                await asyncio.sleep(0.01)
        assert guard.told[1:] == [BindingAdmitted("u-a", "")]


async def test_the_leader_keeps_connections_and_others_let_through_and_end_them(tmp_path):
    async with served(tmp_path) as guard:
        guard.pod("large", 5)
        for guard.judges, connection in ((True, None), (False, "close")):
            status, said, headers = await guard.ask(review("large"))
            assert (status, headers.get("Connection")) == (200, connection)
            assert msgspec.json.decode(said)["response"]["allowed"] is not guard.judges


async def test_before_it_denies_it_waits_a_moment_for_news(tmp_path, monkeypatch):
    async with served(tmp_path) as guard:
        guard.pod("old", 4, node="n1", phase="Running")
        guard.pod("new", 4)
        has_looked = called(monkeypatch, guard.server._guard, "judge")
        asking = asyncio.create_task(guard.review(review("new")))
        await has_looked.wait()
        guard.pod("old", 4, node="n1", phase="Succeeded")
        assert (await asking)["allowed"] is True


async def test_pod_and_node_that_our_watch_has_not_shown_yet_are_waited_for(tmp_path, monkeypatch):
    async with served(tmp_path) as guard:
        has_looked = called(monkeypatch, guard.server._guard, "judge")
        asking = asyncio.create_task(guard.review(review("new", node="n2")))
        for tell in (lambda: guard.pod("new", 5), lambda: guard.node("n2")):
            await has_looked.wait()
            has_looked.clear()
            tell()
        assert "node n2 has no room for pod t/new" in (await asking)["status"]["message"]


async def test_what_stays_unknown_is_let_through(tmp_path, monkeypatch):
    monkeypatch.setattr(guard_module, "_UNKNOWN_SHARE", 0.001)
    async with served(tmp_path) as guard:
        assert (await guard.review(review("never")))["allowed"] is True
        assert guard.reviews("unjudged") == 1.0


def test_a_review_has_the_time_that_the_api_server_gives_it(monkeypatch):
    monkeypatch.setattr(guard_module, "REQUEST_S", 1.5)
    written = ("1s", "30s", "2.5s", "99s", "0s", "1m", "")
    assert [*map(guard_module._time_s, written)] == [1.0, 30.0, 2.5, 30.0, 1.5, 1.5, 1.5]


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("POST", "/", 404),
        ("POST", "/bindings/", 404),
        ("GET", "/metrics", 404),
        ("GET", "/bindings", 405),
        ("PUT", "/bindings", 405),
        ("OPTIONS", "/bindings", 405),
    ],
)
async def test_one_path_and_one_method_are_served(tmp_path, method, path, status):
    async with served(tmp_path) as guard:
        got, said, headers = await guard.ask(b"", method=method, path=path)
        assert got == status
        assert b"t/" not in said
        assert headers["Server"] == "quorate"
        if status == 405:
            assert headers["Allow"] == "POST"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}',
        review("p").replace(b"admission.k8s.io/v1", b"admission.k8s.io/v1beta1"),
        review("p").replace(b"AdmissionReview", b"TokenReview"),
        review("p", uid=""),
        review("p", object=[1]),
        review("p", object={"metadata": 7}),
    ],
    ids=[str(number) for number in range(11)],
)
async def test_what_is_no_review_of_a_binding_is_a_bad_request(tmp_path, body):
    async with served(tmp_path) as guard:
        assert (await guard.ask(body))[0] == 400
        guard.pod("p", 1)
        assert (await guard.review(review("p")))["allowed"] is True


async def test_a_body_too_large_is_refused_with_and_without_its_length(tmp_path):
    async with served(tmp_path) as guard:
        large = io.BytesIO(b"x" * (BODY_BYTES_MAX + 1))
        assert (await guard.ask(large))[0] == 413

        async def chunks():
            for _ in range(20):
                yield b"x" * 65536

        assert (await guard.ask(chunks()))[0] == 413


async def test_a_body_that_never_comes_is_not_waited_for(tmp_path):
    async with served(tmp_path) as guard, asyncio.timeout(HANGS_S):
        reader, writer = await guard.connect(ssl=guard.tls())
        writer.write(
            b"POST /bindings?timeout=0.2s HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n"
        )
        answer = await reader.read()
        assert b" 408 " in answer.split(b"\r\n")[0]
        writer.close()


async def test_of_too_many_connections_the_oldest_goes(tmp_path, monkeypatch):
    monkeypatch.setattr(guard_module, "CONNECTIONS_MAX", 3)
    async with served(tmp_path) as guard, asyncio.timeout(HANGS_S):
        guard.pod("p", 1)
        held = [await guard.connect(ssl=guard.tls()) for _ in range(3)]
        assert (await guard.review(review("p")))["allowed"] is True
        assert await held[0][0].read() == b""
        for _, writer in held:
            writer.close()


async def test_plain_http_is_not_spoken(tmp_path):
    async with served(tmp_path) as guard, asyncio.timeout(HANGS_S):
        reader, writer = await guard.connect()
        writer.write(b"POST /bindings HTTP/1.1\r\nHost: x\r\n\r\n")
        assert b"HTTP" not in await reader.read()
        writer.close()


async def test_new_files_are_used_for_new_connections_and_broken_ones_are_not(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(guard_module, "_LOOK_EVERY_S", 0.02)
    async with served(tmp_path) as guard:
        guard.pod("p", 1)
        before = guard.tls()
        good = guard.key_file.read_bytes()
        guard.key_file.write_bytes(b"half writ")
        has_looked = called(monkeypatch, guard.server._certificate, "renew")
        await has_looked.wait()
        assert (await guard.ask(review("p"), tls=before))[0] == 200
        guard.key_file.write_bytes(good)
        write_pair(tmp_path)

        async def is_new():
            try:
                return (await guard.ask(review("p")))[0] == 200
            except aiohttp.ClientError:
                return False

        async with asyncio.timeout(HANGS_S):
            while not await is_new():
                await asyncio.sleep(0.02)
        with pytest.raises(aiohttp.ClientError):
            await guard.ask(review("p"), tls=before)


async def test_with_an_authority_of_clients_nobody_else_is_heard(tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    mine, key = write_pair(other, "client")
    async with served(tmp_path, client_ca_file=str(mine)) as guard:
        guard.pod("p", 1)
        with pytest.raises((aiohttp.ClientError, ConnectionError, ssl.SSLError)):
            await guard.ask(review("p"))
        known = guard.tls()
        known.load_cert_chain(mine, key)
        assert (await guard.ask(review("p"), tls=known))[0] == 200


@pytest.mark.parametrize("broken", ["missing", "garbage", "other key", "password"])
async def test_a_certificate_that_cannot_be_used_stops_the_start_in_one_line(tmp_path, broken):
    guard = Served(tmp_path)
    if broken == "missing":
        guard.cert_file.unlink()
    elif broken == "garbage":
        guard.cert_file.write_text("no certificate")
    elif broken == "other key":
        _, key = write_pair(tmp_path, "other")
        guard.key_file.write_bytes(key.read_bytes())
    else:
        guard.key_file.write_bytes(locked(guard.key_file.read_bytes()))
    with pytest.raises(GuardError) as caught:
        await guard.server.start(lambda: True, print)
    assert str(guard.cert_file) in str(caught.value)
    assert "docs/operators/guard.md" in str(caught.value)
    assert "\n" not in str(caught.value)


def locked(pem):
    key = serialization.load_pem_private_key(pem, None)
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"secret"),
    )


async def test_a_port_in_use_stops_the_start_in_one_line(tmp_path):
    async with served(tmp_path) as guard:
        second = Served(tmp_path, port=guard.server.port)
        with pytest.raises(GuardError, match="the port is in use"):
            await second.server.start(lambda: True, print)


async def test_off_it_needs_no_certificate_and_listens_nowhere():
    server = GuardServer(GuardConfig(), Cluster(["quorate"]), SystemClock(), Metrics(), no_defect)
    await server.start(lambda: True, print)
    assert server.port == 0
    await server.close()
