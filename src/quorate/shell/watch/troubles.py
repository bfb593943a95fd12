"""Kinds that cannot be listed: when to go on without one, and what to say of it.

In: what a reflector met. Out: whether the kind is given up for now, and words for people. Called by
``feed``. Pods and nodes are never given up: nothing is decided without them.
"""

from __future__ import annotations

from typing import NamedTuple

from quorate.core.words.plain_text import plain
from quorate.dialects.base import Resource
from quorate.shell.kube.errors import ApiError, TooManyRequests, Unreachable
from quorate.shell.kube.lists.events import (
    Failing,
)

_TRIES_MIN = 3
_BUSY_S = 20.0
"""The same at the start, of errors that say that the server is away or busy: most are not of one
kind, and the watches of pods and nodes may last a little longer than the server."""
_STALE_S = 60.0
"""How long a kind that was known may fail before what is known of it counts as too old."""
_CHARS_MAX = 200


class Trouble(NamedTuple):
    """Why a kind is not to be had, what a person can do, and the HTTP status that it has in common.

    Two with one status are one trouble: an API server words the same refusal in many ways.
    """

    problem: str
    remedy: str
    status: int


def is_lost(event: Failing, *, was_known: bool, fair_try_s: float, is_server_well: bool) -> bool:
    """Tell whether a kind had a fair try, so that the others go on without it.

    ``is_server_well`` is whether pods and nodes are being watched: if not, and this error says no
    more than that the server is away or busy, it is no matter of this kind.
    """
    error = event.error
    is_servers = isinstance(error, TooManyRequests | Unreachable) or error.status == 503
    if is_servers and not is_server_well:
        return False
    at_least_s = _STALE_S if was_known else _BUSY_S if is_servers else 0.0
    patience_s = max(fair_try_s, at_least_s)
    return event.tries >= _TRIES_MIN and event.since_s >= patience_s


def trouble_of(resource: Resource, error: ApiError) -> Trouble:
    """Return the words for a kind that cannot be listed."""
    name = f"{resource.plural}.{resource.group}" if resource.group else resource.plural
    if error.status == 403:
        return Trouble(
            f"quorate is not permitted to list and watch {name} in all namespaces",
            f"grant its ServiceAccount list and watch on {name}: "
            "quorate manifests --only rbac | kubectl apply -f -",
            403,
        )
    if error.status == 401:
        return Trouble(
            f"the API server does not accept quorate's credentials for listing {name} (401)",
            "renew its token or client certificate",
            401,
        )
    if error.status == 404:
        return not_served(resource)
    said = plain(str(error).strip(), _CHARS_MAX)
    return Trouble(
        f"{name} cannot be listed: {said}",
        f"mend what serves {name}: the API server, its aggregated API, or the conversion webhook "
        "of its CustomResourceDefinition",
        error.status,
    )


def not_served(resource: Resource, versions: tuple[str, ...] = ()) -> Trouble:
    """Return the words for an API that is not there; ``versions`` are others that are."""
    api = f"{resource.group}/{resource.version}" if resource.group else resource.version
    problem = f"this cluster does not serve {resource.plural} of {api}"
    if not versions:
        return Trouble(problem, f"install or enable {api}", 404)
    has = ", ".join(versions)
    return Trouble(
        f"{problem}, only {has}, which quorate does not read",
        f"enable {api}, or upgrade the cluster to a release that has it",
        404,
    )
