"""Look at a cluster once, as the scheduler sees it, without deciding anything.

In: credentials and a policy. Out: a core that has observed everything, and who leads. Called by
``cli`` for ``why`` and ``gangs``: the same core gives the same sentences, with no need to reach a
running scheduler.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import random
import ssl
from collections.abc import AsyncIterator, Callable
from typing import NamedTuple

import msgspec

from quorate.core.model import GangKey, Owner
from quorate.core.model.changes import AnyChange
from quorate.core.model.policy import Policy
from quorate.core.scheduler import Scheduler
from quorate.shell.apis import api_words
from quorate.shell.kube.client import KubeClient
from quorate.shell.kube.errors import ApiError, Forbidden, Gone, TooManyRequests
from quorate.shell.kube.paths import resource_path
from quorate.shell.process.clock import Clock
from quorate.shell.report.owners import found_out
from quorate.shell.watch.feed import Feed
from quorate.shell.watch.objects import NODES, PODS

_STEP_S = 0.02
_END_S = 1.0
_UNREACHABLE_MAX = 3
_SERVER_ERRORS_MAX = 6
"""How often a request is tried again before somebody who waits is told: three and six seconds."""
_PATHS = {one.kind: resource_path(one.group, one.version, one.plural) for one in (NODES, PODS)}


class SurveyError(Exception):
    """The cluster cannot be read; the one line says why and what to do."""


class Leader(NamedTuple):
    """Who holds the lease; ``holder`` is empty when nobody does, None when it cannot be told."""

    holder: str | None


class ReadSoFar(NamedTuple):
    """How much has been read so far."""

    nodes: int
    pods: int


def _ignore(seen: ReadSoFar) -> None:
    del seen


class Observed:
    """A core that knows the cluster, and what its watches have told since."""

    def __init__(self, scheduler: Scheduler, feed: Feed, changes: list[AnyChange]) -> None:
        self.scheduler = scheduler
        self._feed = feed
        self._changes = changes

    def take_news(self) -> bool:
        """Observe what the watches have told; return whether there was anything.

        Raises SurveyError when the cluster cannot be watched any more.
        """
        _raise_if_hopeless(self._feed)
        if not self._changes:
            return False
        self.scheduler.observe(self._changes)
        self._changes.clear()
        return True


@contextlib.asynccontextmanager
async def observing(
    client: KubeClient,
    policy: Policy,
    clock: Clock,
    *,
    timeout_s: float,
    on_progress: Callable[[ReadSoFar], object] = _ignore,
) -> AsyncIterator[Observed]:
    """Have a core that knows all nodes, pods and gangs of the cluster, and watch them meanwhile.

    ``timeout_s`` is how long the API server may be silent. ``on_progress`` is told many times a
    second how much has been read.
    Raises SurveyError: not reachable, not permitted, or not answered in time.
    """
    changes: list[AnyChange] = []
    feed = Feed(
        client,
        frozenset(policy.scheduler_names),
        on_change=changes.append,
        on_object=lambda _key: None,
        clock=clock,
        chance=random.Random(0).random,
        note=lambda *_defect: None,  # the object is left out, as one that cannot be read
        fair_try_s=math.inf,  # what this user may not list, the scheduler may
    )
    watching = asyncio.create_task(feed.run())
    try:
        await _until_synced(feed, watching, clock, timeout_s, on_progress)
        observed = Observed(Scheduler(policy, api_words()), feed, changes)
        observed.take_news()
        yield observed
    finally:
        watching.cancel()
        # A request whose time is over at this moment may take the cancellation for that, and go on.
        await asyncio.wait([watching], timeout=_END_S)


async def _until_synced(
    feed: Feed,
    watching: asyncio.Task[None],
    clock: Clock,
    timeout_s: float,
    on_progress: Callable[[ReadSoFar], object],
) -> None:
    heard, heard_at_s = -1, clock.monotonic_s()
    while not feed.is_synced:
        if watching.done():
            watching.result()
        _raise_if_hopeless(feed)
        on_progress(_read_so_far(feed))
        now_s, so_far = clock.monotonic_s(), _heard(feed)
        if so_far != heard:
            heard, heard_at_s = so_far, now_s
        if now_s - heard_at_s >= timeout_s:
            raise SurveyError(_trouble(feed) or _silent(timeout_s))
        await asyncio.sleep(_STEP_S)


def _heard(feed: Feed) -> int:
    """Return a number that grows with each page and each list that has come."""
    return sum(one.listed + one.is_synced for one in feed.reflectors.values())


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
        lease = msgspec.json.decode(await client.get(path))
    except ApiError as error:
        return Leader("" if error.status == 404 else None)
    return Leader(lease.get("spec", {}).get("holderIdentity") or "")


def _read_so_far(feed: Feed) -> ReadSoFar:
    counts = {kind: feed.reflectors[path].listed for kind, path in _PATHS.items()}
    return ReadSoFar(counts["Node"], counts["Pod"])


def _raise_if_hopeless(feed: Feed) -> None:
    """Give up where waiting does not help: no permission, nobody there, no API server at all."""
    for path, reflector in feed.reflectors.items():
        error = reflector.last_error
        if error is None or isinstance(error, Gone | TooManyRequests) or reflector.is_absent:
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
    if isinstance(error, Forbidden):
        return (
            f"not permitted to list {path}: {error.message}. Use a kubeconfig that may list nodes, "
            "pods and PodGroups in all namespaces."
        )
    return (
        f"{path} cannot be listed: {str(error).rstrip('.')}. Is this the API server of a "
        "Kubernetes cluster? Check --kubeconfig and --context."
    )


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


def _trouble(feed: Feed) -> str:
    """Return what the API server answered instead; ``""`` where it was silent."""
    for path, reflector in feed.reflectors.items():
        error = reflector.last_error
        is_silent = error is None or isinstance(error.__cause__, TimeoutError)
        if error is not None and not is_silent and not reflector.is_synced:
            return _words(path, error)
    return ""
