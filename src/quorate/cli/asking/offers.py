"""What Tab offers: gangs, pods, namespaces, presets and words. Called by the completion of shells.

In: what was typed so far. Out: words. Whoever presses Tab waits, so a cluster has two seconds; one
that cannot be asked offers nothing, without a word.
"""

# ruff: noqa: PLC0415 - imported when Tab is pressed

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from quorate.shell.kube.client import KubeClient

_PATIENCE_S = 2.0
_ITEMS_MAX = 500
STATE_WORDS = ("waiting", "starting", "started", "finished", "failed")
SORT_WORDS = (
    "namespace",
    "name",
    "age",
    "state",
    "members",
    "min",
    "gpus",
    "place",
    "priority",
    "reason",
)

Ask = Callable[["KubeClient", str | None], Awaitable[list[str]]]


def gangs(ctx: typer.Context, incomplete: str) -> list[str]:
    """Offer the names of gangs' objects; after ``pod/`` the names of pods."""
    asks = _pods if incomplete.startswith("pod/") else _gangs
    return _starting(_from_cluster(ctx, asks), incomplete)


def namespaces(ctx: typer.Context, incomplete: str) -> list[str]:
    """Offer the cluster's namespaces."""
    return _starting(_from_cluster(ctx, _namespaces), incomplete)


def presets(incomplete: str) -> list[str]:
    """Offer the presets of shapes."""
    from quorate.shapes.shape_file import presets as known

    return _starting([name for name, _ in known()], incomplete)


def states(incomplete: str) -> list[str]:
    """Offer the states of gangs."""
    return _starting(STATE_WORDS, incomplete)


def sort_words(incomplete: str) -> list[str]:
    """Offer what gangs are sorted by."""
    return _starting(SORT_WORDS, incomplete)


def _starting(words: Any, incomplete: str) -> list[str]:  # noqa: ANN401 - any iterable of words
    return [word for word in words if word.startswith(incomplete)]


def _from_cluster(ctx: typer.Context, ask: Ask) -> list[str]:
    with contextlib.suppress(Exception):
        return asyncio.run(_asked(ctx.params, ask))
    return []


async def _asked(given: dict[str, Any], ask: Ask) -> list[str]:
    from quorate.shell.kube.client import KubeClient
    from quorate.shell.kube.identity.credentials import load_credentials
    from quorate.shell.process.clock import SystemClock

    async with asyncio.timeout(_PATIENCE_S):
        file, context = given.get("kubeconfig"), given.get("context")
        credentials = await load_credentials(file, context, clock=SystemClock())
        chosen = given.get("namespace") or credentials.namespace
        where = None if given.get("all_namespaces") else chosen
        async with KubeClient(credentials, timeout_s=_PATIENCE_S) as client:
            return sorted(set(await ask(client, where)))


async def _gangs(client: KubeClient, namespace: str | None) -> list[str]:
    from quorate.dialects import DIALECTS

    served = [one.resource for one in DIALECTS if one.resource is not None]
    paths = [(one.group, one.version, one.plural, namespace) for one in served]
    lists = await asyncio.gather(*(_names(client, *path) for path in paths))
    return [name for names in lists for name in names]


async def _pods(client: KubeClient, namespace: str | None) -> list[str]:
    return [f"pod/{name}" for name in await _names(client, "", "v1", "pods", namespace)]


async def _namespaces(client: KubeClient, _namespace: str | None) -> list[str]:
    return await _names(client, "", "v1", "namespaces", None)


async def _names(
    client: KubeClient, group: str, version: str, plural: str, namespace: str | None
) -> list[str]:
    """Return the names of the first objects; none where they are not served, or not to us."""
    import msgspec

    from quorate.shell.kube.errors import ApiError
    from quorate.shell.kube.paths import resource_path

    path = resource_path(group, version, plural, namespace)
    try:
        listed = msgspec.json.decode(await client.get_list(path, {"limit": _ITEMS_MAX}))
    except ApiError:
        return []
    return [one["metadata"]["name"] for one in listed["items"]]
