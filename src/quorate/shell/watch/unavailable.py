"""Kinds that cannot be listed: when to go on without one, and why it is unavailable, in words.

In: a reflector's failures. Out: whether to go on without the kind, and a problem with a hint.
Called by ``feed``. Pods and nodes are never left out: nothing can be decided without them.
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
"""How long a kind may fail at the start while the server is away or busy. Such errors rarely
concern one kind alone, and the watches of pods and nodes may notice a little later."""
_STALE_S = 60.0
"""How long a kind that was known may fail before what is known of it counts as too old."""
_CHARS_MAX = 200


class Unavailable(NamedTuple):
    """Why a kind cannot be listed, what a person can do, and the HTTP status of the error.

    Two with the same status are the same problem: an API server words one refusal in many ways.
    """

    problem: str
    hint: str
    status: int


def is_unavailable(
    event: Failing, *, was_known: bool, fair_try_s: float, is_server_well: bool
) -> bool:
    """Tell whether a kind has failed for long enough that the others go on without it.

    ``is_server_well``: pods and nodes are being watched. If they are not, an error that says that
    the server is away or busy is not a problem of this kind.
    """
    error = event.error
    is_of_server = isinstance(error, TooManyRequests | Unreachable) or error.status == 503
    if is_of_server and not is_server_well:
        return False
    at_least_s = _STALE_S if was_known else _BUSY_S if is_of_server else 0.0
    patience_s = max(fair_try_s, at_least_s)
    return event.tries >= _TRIES_MIN and event.since_s >= patience_s


def unavailable_because(resource: Resource, error: ApiError) -> Unavailable:
    """Return the words for a kind that cannot be listed."""
    name = f"{resource.plural}.{resource.group}" if resource.group else resource.plural
    if error.status == 403:
        return Unavailable(
            f"quorate is not permitted to list and watch {name} in all namespaces",
            f"grant its ServiceAccount list and watch on {name}: "
            "quorate manifests --only rbac | kubectl apply -f -",
            403,
        )
    if error.status == 401:
        return Unavailable(
            f"the API server does not accept quorate's credentials for listing {name} (401)",
            "renew its token or client certificate",
            401,
        )
    if error.status == 404:
        return not_served(resource)
    said = plain(str(error).strip(), _CHARS_MAX)
    return Unavailable(
        f"{name} cannot be listed: {said}",
        f"mend what serves {name}: the API server, its aggregated API, or the conversion webhook "
        "of its CustomResourceDefinition",
        error.status,
    )


def not_served(resource: Resource, versions: tuple[str, ...] = ()) -> Unavailable:
    """Return the words for an API that is not there; ``versions`` are others that are."""
    api = f"{resource.group}/{resource.version}" if resource.group else resource.version
    problem = f"this cluster does not serve {resource.plural} of {api}"
    if not versions:
        return Unavailable(problem, f"install or enable {api}", 404)
    has = ", ".join(versions)
    return Unavailable(
        f"{problem}, only {has}, which quorate does not read",
        f"enable {api}, or upgrade the cluster to a release that has it",
        404,
    )
