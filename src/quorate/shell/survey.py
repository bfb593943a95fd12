"""Look at a cluster once, as the scheduler sees it, without deciding anything.

In: credentials and a policy. Out: a core that has observed everything, and who leads. Called by
``cli`` for ``why`` and ``gangs``: the same core gives the same sentences, with no need to reach a
running scheduler.
"""

from __future__ import annotations

import asyncio
import random
from typing import NamedTuple

import msgspec

from quorate.core.changes import AnyChange, OwnerChanged
from quorate.core.model import GangKey
from quorate.core.policy import Policy
from quorate.core.scheduler import Scheduler
from quorate.shell.apis import api_words
from quorate.shell.clock import Clock
from quorate.shell.kube.client import KubeClient
from quorate.shell.kube.errors import ApiError, Forbidden
from quorate.shell.kube.paths import resource_path
from quorate.shell.report.owners import pods_made_by
from quorate.shell.watch.feed import Feed

_STEP_S = 0.02


class SurveyError(Exception):
    """The cluster cannot be read; the one line says why and what to do."""


class Leader(NamedTuple):
    """Who holds the lease; ``holder`` is empty when nobody does, None when it cannot be told."""

    holder: str | None


async def survey(
    client: KubeClient, policy: Policy, clock: Clock, *, timeout_s: float = 60.0
) -> Scheduler:
    """Return a core that knows all nodes, pods and gangs of the cluster.

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
    )
    watching = asyncio.create_task(feed.run())
    try:
        async with asyncio.timeout(timeout_s):
            while not feed.is_synced:
                if watching.done():
                    watching.result()
                _raise_if_hopeless(feed)
                await asyncio.sleep(_STEP_S)
    except TimeoutError:
        raise SurveyError(_trouble(feed) or "the API server did not answer in time") from None
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
    scheduler = Scheduler(policy, api_words())
    scheduler.observe(changes)
    return scheduler


async def add_owners(
    client: KubeClient, scheduler: Scheduler, keys: list[GangKey], now_s: float
) -> None:
    """Find out how many pods the owners of these gangs make, where that tells more."""
    explainer = scheduler.explainer(now_s)
    wanted = {(key.namespace, owner) for key in keys for owner in explainer.owners(key)}
    for namespace, owner in wanted:
        made = await pods_made_by(client, namespace, owner)
        scheduler.observe([OwnerChanged(namespace, owner, made)])


async def leader(client: KubeClient, namespace: str, name: str) -> Leader:
    """Return who holds the lease, as far as we may know."""
    path = resource_path("coordination.k8s.io", "v1", "leases", namespace, name)
    try:
        lease = msgspec.json.decode(await client.get(path))
    except ApiError as error:
        return Leader("" if error.status == 404 else None)
    return Leader(lease.get("spec", {}).get("holderIdentity") or "")


def _raise_if_hopeless(feed: Feed) -> None:
    """Give up at once where waiting does not help: no permission, or nobody there."""
    for path, reflector in feed.reflectors.items():
        error = reflector.last_error
        if isinstance(error, Forbidden) or (error is not None and error.status == 401):
            raise SurveyError(
                f"not permitted to list {path}: {error.message}. Use a kubeconfig that may "
                "list nodes, pods and PodGroups."
            )
        if error is not None and error.status == 0 and reflector.failures > 3:
            raise SurveyError(
                f"the API server cannot be reached: {error.message}. Check --kubeconfig and "
                "--context."
            )


def _trouble(feed: Feed) -> str:
    for path, reflector in feed.reflectors.items():
        if reflector.last_error is not None and not reflector.is_synced:
            return f"{path} cannot be listed: {reflector.last_error}"
    return ""
