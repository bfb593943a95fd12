"""Look at a cluster, and at what its leader has said, without deciding anything.

In: credentials, kinds of objects. Out: a core that has observed these, what was said of gangs, and
who leads. Called by ``cli``. What a user may not read ends it with one line that names all of it.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import random
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from typing import NamedTuple

from quorate.core.model import GangKey, Owner
from quorate.core.model.changes import AnyChange
from quorate.core.model.policy import Policy
from quorate.core.scheduler import Scheduler
from quorate.shell.apis import api_words
from quorate.shell.heard import Heard, Hearing
from quorate.shell.kube.client import KubeClient
from quorate.shell.kube.errors import ApiError, Forbidden, Gone, TooManyRequests
from quorate.shell.kube.lists.reflector import Reflector
from quorate.shell.kube.paths import resource_path
from quorate.shell.lease import record
from quorate.shell.process.clock import Clock
from quorate.shell.report.owners import found_out
from quorate.shell.watch.feed import Feed
from quorate.shell.watch.objects import NODES, PODS, Kinds, gang_kinds, node_kinds

_STEP_S = 0.02
_END_S = 1.0
_UNREACHABLE_MAX = 3
_SERVER_ERRORS_MAX = 6
"""How often a request is tried again before somebody who waits is told: three and six seconds."""
_WAITED_OUT = (Gone, TooManyRequests, Forbidden)

Reflectors = dict[str, Reflector]
"""By the path at which each lists and watches."""


class SurveyError(Exception):
    """The cluster cannot be read; the one line says why and what to do."""


class Leader(NamedTuple):
    """Who holds the lease; ``holder`` is empty when nobody does, None when it cannot be told.

    ``scheduler_names`` are those that it owns; none where nobody says.
    """

    holder: str | None
    scheduler_names: tuple[str, ...] = ()


class ReadSoFar(NamedTuple):
    """How much has been read so far."""

    nodes: int
    pods: int


def _ignore(seen: ReadSoFar) -> None:
    del seen


class Observed:
    """A core that knows the cluster, what was said of its gangs, and what has come since.

    ``namespace`` is the one that it knows, ``""``: it knows all.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        reflectors: Reflectors,
        changes: list[AnyChange],
        hearing: Hearing | None,
        namespace: str,
    ) -> None:
        self.scheduler = scheduler
        self.namespace = namespace
        self._reflectors = reflectors
        self._changes = changes
        self._hearing = hearing

    def heard(self, key: GangKey) -> Heard | None:
        """Return what the leader has said last of a gang; None: nothing."""
        return self._hearing.of(key) if self._hearing is not None else None

    def take_news(self) -> bool:
        """Observe what the watches have told; return whether there was anything.

        Raises SurveyError when the cluster cannot be watched any more.
        """
        _raise_if_hopeless(self._reflectors)
        has_heard = self._hearing is not None and self._hearing.take_news()
        has_seen = bool(self._changes)
        self.scheduler.observe(self._changes)
        self._changes.clear()
        return has_seen or has_heard


class View(NamedTuple):
    """What is looked at: the objects of some kinds, and what was said of the gangs among them.

    ``namespace`` is ``""`` for all. ``with_nodes`` is for those who count what is free: they have
    the nodes, and do not hear what was said.
    """

    namespace: str
    with_nodes: bool = False

    def kinds(self, policy: Policy) -> Kinds:
        """Return the kinds of objects."""
        nodes = node_kinds() if self.with_nodes else {}
        return nodes | gang_kinds(frozenset(policy.scheduler_names), self.namespace or None)


@contextlib.asynccontextmanager
async def observing(
    client: KubeClient,
    view: View,
    policy: Policy,
    clock: Clock,
    *,
    timeout_s: float,
    on_progress: Callable[[ReadSoFar], object] = _ignore,
) -> AsyncIterator[Observed]:
    """Have a core that knows the pods and gangs of the view, and watch them meanwhile.

    ``timeout_s`` is how long the API server may be silent. ``on_progress`` is told many times a
    second how much has been read.
    Raises SurveyError: not reachable, not permitted, or not answered in time.
    """
    changes: list[AnyChange] = []
    chance = random.Random(0).random
    feed = Feed(
        client,
        view.kinds(policy),
        on_change=changes.append,
        on_object=lambda _key: None,
        clock=clock,
        chance=chance,
        note=lambda *_defect: None,  # the object is left out, as one that cannot be read
        fair_try_s=math.inf,  # what this user may not list, the scheduler may
    )
    where = view.namespace or None
    hearing = None if view.with_nodes else Hearing(client, where, clock, chance)
    reflectors = dict(feed.reflectors)
    if hearing is not None:
        reflectors[hearing.path] = hearing.reflector
    watching = asyncio.create_task(_run(reflectors))
    try:
        await _until_synced(feed, reflectors, watching, clock, timeout_s, on_progress)
        core = Scheduler(policy, api_words())
        observed = Observed(core, reflectors, changes, hearing, view.namespace)
        observed.take_news()
        yield observed
    finally:
        watching.cancel()
        # A request whose time is over at this moment may take the cancellation for that, and go on.
        await asyncio.wait([watching], timeout=_END_S)


async def _run(reflectors: Reflectors) -> None:
    async with asyncio.TaskGroup() as group:
        for one in reflectors.values():
            group.create_task(one.run())


async def _until_synced(
    feed: Feed,
    reflectors: Reflectors,
    watching: asyncio.Task[None],
    clock: Clock,
    timeout_s: float,
    on_progress: Callable[[ReadSoFar], object],
) -> None:
    heard, heard_at_s = -1, clock.monotonic_s()
    while not (feed.is_synced and all(_is_settled(one) for one in reflectors.values())):
        if watching.done():
            watching.result()
        _raise_if_hopeless(reflectors)
        on_progress(_read_so_far(reflectors))
        now_s, so_far = clock.monotonic_s(), _heard(reflectors)
        if so_far != heard:
            heard, heard_at_s = so_far, now_s
        if now_s - heard_at_s >= timeout_s:
            raise SurveyError(_trouble(reflectors) or _silent(timeout_s))
        await asyncio.sleep(_STEP_S)


def _is_settled(reflector: Reflector) -> bool:
    return reflector.is_synced or reflector.is_absent


def _heard(reflectors: Reflectors) -> int:
    """Return a number that grows with each page and each list that has come."""
    return sum(one.listed + one.is_synced for one in reflectors.values())


def _silent(timeout_s: float) -> str:
    return (
        f"the API server did not answer within {timeout_s:g} s. Check --kubeconfig and --context, "
        "or give it more time with --request-timeout."
    )


async def add_owners(
    client: KubeClient, scheduler: Scheduler, keys: list[GangKey], now_s: float
) -> None:
    """Find out how many pods the owners of these gangs make, where that tells more."""
    explainer = scheduler.explainer(now_s)
    wanted: dict[tuple[str, Owner], bool] = {}
    for key in keys:
        for owner in explainer.owners(key):
            place = key.namespace, owner
            wanted[place] = wanted.get(place, False) or not key.is_single
    for (namespace, owner), why in wanted.items():
        scheduler.observe([await found_out(client, namespace, owner, why=why)])


async def leader(client: KubeClient, namespace: str, name: str) -> Leader:
    """Return who holds the lease, as far as we may know."""
    path = resource_path("coordination.k8s.io", "v1", "leases", namespace, name)
    try:
        lease = record.decoded(await client.get(path))
    except ApiError as error:
        return Leader("" if error.status == 404 else None)
    return Leader(record.holder_of(record.spec_of(lease)), record.scheduler_names_of(lease))


def _read_so_far(reflectors: Reflectors) -> ReadSoFar:
    counts = {path.rpartition("/")[2]: one.listed for path, one in reflectors.items()}
    return ReadSoFar(counts.get(NODES.plural, 0), counts[PODS.plural])


def _raise_if_hopeless(reflectors: Reflectors) -> None:
    """Give up where waiting does not help: no permission, nobody there, no API server at all.

    What is not permitted is told once all is asked for, so that it is told all at once.
    """
    refused = {
        path: one.last_error
        for path, one in reflectors.items()
        if isinstance(one.last_error, Forbidden)
    }
    is_asked = all(_is_settled(one) or one.last_error for one in reflectors.values())
    if refused and is_asked:
        raise SurveyError(_not_permitted(refused))
    for path, reflector in reflectors.items():
        error = reflector.last_error
        if error is None or isinstance(error, _WAITED_OUT) or reflector.is_absent:
            continue
        if error.status == 0 and _tls_error(error) is not None:
            raise SurveyError(_words(path, error))
        if error.status == 0 and reflector.failures <= _UNREACHABLE_MAX:
            continue
        # 200 stands for an answer that nobody understands, 404 for pods or nodes that are missing.
        is_ill = error.status in (200, 404) or error.status >= 500
        if is_ill and reflector.failures <= _SERVER_ERRORS_MAX:
            continue
        raise SurveyError(_words(path, error))


def _words(path: str, error: ApiError) -> str:
    """Return what is wrong and what to do, in one line."""
    tls = _tls_error(error)
    if tls is not None:
        return (
            f"TLS with the API server failed: {_tls_words(tls)}. Check server and "
            "certificate-authority of the kubeconfig's cluster."
        )
    if error.status == 0:
        return (
            f"the API server cannot be reached: {_network_words(error)}. Is it running? Check "
            "--kubeconfig and --context."
        )
    if error.status == 401:
        return (
            f"the API server does not accept the kubeconfig's credentials (401 {error.message}): "
            "they are wrong or have expired. Log in again, or renew the user's token."
        )
    return (
        f"{path} cannot be listed: {str(error).rstrip('.')}. Is this the API server of a "
        "Kubernetes cluster? Check --kubeconfig and --context."
    )


def _not_permitted(refused: Mapping[str, ApiError]) -> str:
    """Return which rights are missing, all of them, and who has them."""
    kinds = [_named(path) for path in refused]
    namespaces = {where for _, where in kinds}
    names = sorted(name for name, _ in kinds)
    what = " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
    said = next(iter(refused.values())).message.rstrip(".")
    if namespaces == {""}:
        where, remedy = (
            "in the whole cluster",
            ("Have the ClusterRole quorate-viewer bound by a ClusterRoleBinding"),
        )
        if NODES.plural not in names:
            remedy += ", or look in one namespace: -n NAMESPACE"
    else:
        where = f"in namespace {namespaces.pop()}"
        remedy = "Have the ClusterRole view, or quorate-viewer, bound by a RoleBinding there"
    return f"not permitted to list and watch {what} {where}: {said}. {remedy}."


def _named(path: str) -> tuple[str, str]:
    """Return a kind as rights name it, and the namespace in which it is listed."""
    _, *parts = path.partition("?")[0].split("/")
    group = parts[1] if parts[0] == "apis" else ""
    namespace = parts[-2] if len(parts) > 4 and parts[-3] == "namespaces" else ""
    return f"{parts[-1]}.{group}" if group else parts[-1], namespace


def _network_words(error: ApiError) -> str:
    """Return where and what, without aiohttp's own words around the system's."""
    cause = getattr(error.__cause__, "os_error", None)
    if not isinstance(cause, OSError) or not cause.errno:
        return error.message.rstrip(".")
    what = os.strerror(cause.errno) if cause.errno > 0 else str(cause.strerror)
    return f"{error.message.partition(': ')[0]}: {what.lower()}"


def _tls_error(error: ApiError) -> ssl.SSLError | None:
    cause = error.__cause__
    return cause if error.status == 0 and isinstance(cause, ssl.SSLError) else None


def _tls_words(error: ssl.SSLError) -> str:
    """Return OpenSSL's reason without its file and line, which aiohttp's errors wrap."""
    inner = getattr(error, "certificate_error", None) or getattr(error, "os_error", None) or error
    said = getattr(inner, "verify_message", None) or getattr(inner, "reason", None) or str(inner)
    return str(said).replace("_", " ").lower()


def _trouble(reflectors: Reflectors) -> str:
    """Return what the API server answered instead; ``""`` where it was silent."""
    for path, reflector in reflectors.items():
        error = reflector.last_error
        is_silent = error is None or isinstance(error.__cause__, TimeoutError)
        if error is not None and not is_silent and not reflector.is_synced:
            return _words(path, error)
    return ""
