"""The admission guard: a validating webhook on Bindings. In: AdmissionReviews. Out: yes or no.

``app`` starts it where the configuration asks for it; kube-apiserver asks it before a Binding is
stored. It fails open: without an answer the API server goes on, and a replica that does not lead,
or has not listed everything, allows everything. It has a port of its own: HTTPS, one path, POST
only, small bodies, bounded in connections and time.
"""

from __future__ import annotations

import asyncio
import errno
import re
import ssl
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Final

import msgspec
import structlog
from aiohttp import web

from quorate.core.check.guard import UNJUDGED, Binding, Guard, GuardDecision
from quorate.core.cluster.cluster import Cluster
from quorate.core.model.changes import BindingAdmitted, Change
from quorate.core.words.plain_text import plain
from quorate.shell.configuration.config import GuardConfig
from quorate.shell.kube.objects import Metadata
from quorate.shell.process.clock import Clock
from quorate.shell.process.contained import Note, contained
from quorate.shell.report.metrics import Metrics
from quorate.shell.serve.bounded_http import (
    BoundedServer,
    ServeError,
    listening_everywhere,
    text_answer,
)

log = structlog.get_logger(__name__)

PATH: Final = "/bindings"
BODY_BYTES_MAX: Final = 1 << 20  # annotations and a user's groups; both are small
CONNECTIONS_MAX: Final = 256  # HTTP/1.1: one request at a time on each
CONNECTION_S_MAX: Final = 120.0  # idle; kube-apiserver closes its own after 90 s
REQUEST_S: Final = 1.0  # where the API server does not say how long it waits, in ?timeout=1s
REQUEST_S_MAX: Final = 30.0  # no webhook gets more
HANDSHAKE_S_MAX: Final = 5.0
_LOOK_EVERY_S: Final = 1.0  # at files, and at bindings that have not come true
_LOOK_AGAIN_S: Final = 0.05
_UNKNOWN_SHARE: Final = 0.5  # of a request's time: so long it may wait for pod and node to be known
_API_VERSION: Final = "admission.k8s.io/v1"
_KIND: Final = "AdmissionReview"


class GuardError(ServeError):
    """The guard cannot be served; the one line says why and what to do."""


class _Resource(msgspec.Struct):
    group: str = ""
    resource: str = ""


class _User(msgspec.Struct):
    username: str = ""


class _Request(msgspec.Struct, rename={"sub_resource": "subResource", "dry_run": "dryRun"}):
    uid: str
    resource: _Resource = msgspec.field(default_factory=_Resource)
    sub_resource: str | None = None
    namespace: str = ""
    name: str = ""
    operation: str = ""
    dry_run: bool | None = None
    object: msgspec.Raw = msgspec.Raw(b"null")
    user: _User = msgspec.field(default_factory=_User, name="userInfo")


class _Review(msgspec.Struct, rename={"api_version": "apiVersion"}):
    api_version: str
    kind: str
    request: _Request


class _Target(msgspec.Struct):
    kind: str = ""
    name: str = ""


class _WireBinding(msgspec.Struct):
    metadata: Metadata = msgspec.field(default_factory=Metadata)
    target: _Target = msgspec.field(default_factory=_Target)


_REVIEW = msgspec.json.Decoder(_Review)
_BINDING = msgspec.json.Decoder(_WireBinding)
_BINDINGS = {("pods", "binding"), ("bindings", "")}
_SECONDS = re.compile(r"(\d{1,4}(?:\.\d{1,9})?)s", re.ASCII)


class GuardServer:
    """Answers the API server. Does nothing unless the configuration enables it."""

    def __init__(
        self,
        config: GuardConfig,
        cluster: Cluster,
        clock: Clock,
        metrics: Metrics,
        note: Note,
    ) -> None:
        self._config = config
        self._note = note
        self._guard = Guard(cluster)
        self._may_judge: Callable[[], bool] = lambda: False
        self._clock = clock
        self._metrics = metrics
        self._certificate = _Certificate(config)
        self._on_change: Callable[[BindingAdmitted], None] = lambda _: None
        self._http: BoundedServer | None = None
        self._listening: asyncio.Server | None = None
        self._looking: asyncio.Task[None] | None = None
        self.port = 0  # the real one, after ``start``

    def observe(self, changes: Iterable[Change]) -> None:
        """Note changes, before the cluster observes them."""
        if self._config.enabled:
            self._guard.observe(changes)

    async def start(
        self, may_judge: Callable[[], bool], on_change: Callable[[BindingAdmitted], None]
    ) -> None:
        """Listen, if the guard is on.

        ``may_judge`` tells whether the cluster is complete and fresh, and whether we lead.
        ``on_change`` gets the bindings that were allowed, for the cluster to count.

        Raises GuardError: the address or the certificate cannot be used.
        """
        if not self._config.enabled:
            return
        host, port = self._config.host, self._config.port
        context = self._certificate.context()
        self._may_judge, self._on_change = may_judge, on_change
        self._http = BoundedServer(
            self._answer, connections_max=CONNECTIONS_MAX, connection_s_max=CONNECTION_S_MAX
        )
        try:
            self._listening = await self._listen(self._http, context)
        except OSError as error:
            taken = "the port is in use" if error.errno == errno.EADDRINUSE else error.strerror
            raise GuardError(
                f"cannot serve the guard on {host}:{port}: {taken or error}; "
                "configure another guard.address"
            ) from error
        self.port = self._listening.sockets[0].getsockname()[1]
        self._looking = asyncio.create_task(self._look())
        log.info("guarding bindings", port=self.port)

    async def _listen(self, http: BoundedServer, context: ssl.SSLContext) -> asyncio.Server:
        host, port = self._config.host, self._config.port
        everywhere = listening_everywhere(host, port)
        make = partial(
            asyncio.get_running_loop().create_server,
            http,
            ssl=context,
            ssl_handshake_timeout=HANDSHAKE_S_MAX,
        )
        return await (make(host, port) if everywhere is None else make(sock=everywhere))

    async def close(self) -> None:
        """Stop listening."""
        if self._looking is not None:
            self._looking.cancel()
        if self._listening is not None:
            self._listening.close()
        if self._http is not None:
            await self._http.shutdown(REQUEST_S)

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(_LOOK_EVERY_S)
            with contained(self._note, "observe", "the guard's certificate"):
                self._certificate.renew()
            with contained(self._note, "observe", "bindings that were allowed"):
                self._guard.expire(self._clock.monotonic_s())
                self._report_allowed()

    def _report_allowed(self) -> None:
        for change in self._guard.take_changes():
            self._on_change(change)

    async def _answer(self, request: web.BaseRequest) -> web.Response:
        time_s = _time_s(request.query.get("timeout", ""))
        try:
            async with asyncio.timeout(time_s):
                answer = await self._review(request, time_s)
        except TimeoutError:
            answer = text_answer(408, "the request took too long\n")
        except web.HTTPRequestEntityTooLarge:
            answer = text_answer(413, f"at most {BODY_BYTES_MAX} bytes\n")
        except Exception:
            log.exception("the guard failed")
            answer = text_answer(500, "the guard failed; the log says why\n")
        answer.headers["Server"] = "quorate"
        if answer.status != 200:
            answer.force_close()
        elif self._http is not None:
            self._http.prolong(request.protocol)
        return answer

    async def _review(self, request: web.BaseRequest, time_s: float) -> web.Response:
        known_by_s = self._clock.monotonic_s() + _UNKNOWN_SHARE * time_s
        if request.path != PATH:
            return text_answer(404, f"not found: only {PATH} is here\n")
        if request.method != "POST":
            answer = text_answer(405, "only POST is allowed\n")
            answer.headers["Allow"] = "POST"
            return answer
        if (request.content_length or 0) > BODY_BYTES_MAX:
            return text_answer(413, f"at most {BODY_BYTES_MAX} bytes\n")
        body = await request.read()  # bounded by aiohttp's client_max_size, which is 1 MiB
        try:
            review = _REVIEW.decode(body)
            asked = review.request
            wanted = _binding(asked)
        except (msgspec.DecodeError, RecursionError) as error:
            return text_answer(400, f"not an AdmissionReview of a Binding: {error}\n"[:300])
        if (review.api_version, review.kind) != (_API_VERSION, _KIND) or not asked.uid:
            return text_answer(400, f"not an {_KIND} of {_API_VERSION} with a request\n")
        decision = await self._decision(wanted, known_by_s, dry_run=bool(asked.dry_run))
        self._metrics.guard_reviews.labels(str(decision.answer)).inc()
        if not decision.allowed:
            log.warning("binding denied", by=asked.user.username[:200], reason=decision.message)
        answer = web.Response(
            body=_encoded(asked.uid, decision), headers={"Content-Type": "application/json"}
        )
        if not self._may_judge():
            answer.force_close()  # so that the API server's next connection may find the leader
        return answer

    async def _decision(
        self, wanted: Binding | None, known_by_s: float, *, dry_run: bool
    ) -> GuardDecision:
        """Judge; look again where our own watch may be behind that of whoever binds.

        It may not have seen the pod or the node yet: we wait for them until ``known_by_s``. Or it
        has not seen a pod end whose room is given away.
        """
        if wanted is None:
            return UNJUDGED
        decision = self._judged(wanted, dry_run=dry_run)
        while decision == UNJUDGED and self._may_judge() and self._clock.monotonic_s() < known_by_s:
            await asyncio.sleep(_LOOK_AGAIN_S)
            decision = self._judged(wanted, dry_run=dry_run)
        if not decision.allowed:
            await asyncio.sleep(_LOOK_AGAIN_S)
            decision = self._judged(wanted, dry_run=dry_run)
        return decision

    def _judged(self, wanted: Binding, *, dry_run: bool) -> GuardDecision:
        if not self._may_judge():
            return UNJUDGED
        decision = self._guard.judge(wanted, self._clock.monotonic_s(), dry_run=dry_run)
        self._report_allowed()  # before the next plan, so that it does not use the same capacity
        return decision


def _time_s(timeout: str) -> float:
    """Return how long the API server waits for an answer, in seconds. It writes 1s for one."""
    said = _SECONDS.fullmatch(timeout)
    return min(float(said[1]) or REQUEST_S, REQUEST_S_MAX) if said else REQUEST_S


def _binding(asked: _Request) -> Binding | None:
    """Return the Binding that is to be created; None for anything else.

    Raises msgspec.DecodeError.
    """
    kind = asked.resource.resource, asked.sub_resource or ""
    if asked.resource.group or kind not in _BINDINGS or asked.operation != "CREATE":
        return None
    wire = _BINDING.decode(asked.object)
    if wire.target.kind not in ("", "Node") or not wire.target.name:
        return None
    return Binding(
        asked.namespace or wire.metadata.namespace,
        asked.name or wire.metadata.name,
        wire.metadata.uid or "",
        wire.target.name,
    )


def _encoded(uid: str, decision: GuardDecision) -> bytes:
    response: dict[str, object] = {"uid": uid, "allowed": decision.allowed}
    if not decision.allowed:
        response["status"] = {
            "status": "Failure",
            "code": 403,
            "reason": "Forbidden",
            "message": plain(decision.message),
        }
    return msgspec.json.encode({"apiVersion": _API_VERSION, "kind": _KIND, "response": response})


class _Certificate:
    """Our certificate and key; loaded again when their files change."""

    def __init__(self, config: GuardConfig) -> None:
        self._config = config
        self._context: ssl.SSLContext | None = None
        self._loaded: object = None
        self._logged = ""

    def context(self) -> ssl.SSLContext:
        """Return the server's TLS settings. Raises GuardError: a file cannot be used."""
        try:
            self._loaded = self._stamp()
            self._context = self._load()
        except (OSError, ssl.SSLError) as error:
            raise GuardError(
                f"cannot use guard.certFile {self._config.cert_file} with guard.keyFile "
                f"{self._config.key_file}"
                + (f" and guard.clientCAFile {self._config.client_ca_file}" * self._mutual)
                + f": {error.strerror or error}; see docs/operators/guard.md for how to make them"
            ) from error
        return self._context

    def renew(self) -> None:
        """Use new files for new connections. Keep the old ones if the new ones are unusable."""
        try:
            stamp = self._stamp()
            if stamp == self._loaded or self._context is None:
                return
            self._load()  # on its own, as a failure halfway would leave a mixture behind
            self._fill(self._context)
        except (OSError, ssl.SSLError) as error:
            if str(error) != self._logged:
                self._logged = str(error)
                log.warning("the guard's new certificate cannot be used", problem=self._logged)
            return
        self._loaded, self._logged = stamp, ""
        log.info("the guard's certificate was read again")

    @property
    def _mutual(self) -> bool:
        return bool(self._config.client_ca_file)

    def _load(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        self._fill(context)
        return context

    def _fill(self, context: ssl.SSLContext) -> None:
        config = self._config
        # A password, though none is needed: without one OpenSSL would ask the terminal.
        context.load_cert_chain(config.cert_file, config.key_file, password="")
        if self._mutual:
            context.load_verify_locations(config.client_ca_file)
            context.verify_mode = ssl.CERT_REQUIRED

    def _stamp(self) -> object:
        files = [self._config.cert_file, self._config.key_file, self._config.client_ca_file]
        found = [Path(file).stat() for file in files if file]
        return [(one.st_ino, one.st_size, one.st_mtime_ns) for one in found]
