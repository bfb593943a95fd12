"""Manifests for a cluster without kubectl: create what is missing, merge into what is there.

In: YAML text or values. Out: requests of an ``ApiClient``. Called by ``Access``. Objects are found
by what the API server says it serves, as kubectl finds them. What a later manifest leaves out
stays: for that, use kubectl.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from http import HTTPStatus
from typing import Any

import yaml

from tools.controlplane.client import ApiClient, ApiError

HANGS_S = 60.0
"""A limit of a wait that only a hang reaches."""
_STRICT = "?fieldValidation=Strict"
"""As kubectl asks: an unknown field is an error."""


def documents(manifests: Iterable[str | Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return all objects of some manifests."""
    found: list[Mapping[str, Any]] = []
    for one in manifests:
        parts = yaml.safe_load_all(one) if isinstance(one, str) else [one]
        found += [part for part in parts if part]
    return found


def collection(client: ApiClient, wanted: Mapping[str, Any], namespace: str) -> str:
    """Return the path of the objects among which this one is.

    Raises LookupError: the API server does not serve its kind.
    """
    version, kind = wanted["apiVersion"], wanted["kind"]
    base = f"/apis/{version}" if "/" in version else f"/api/{version}"
    for resource in client.api("GET", base)["resources"]:
        if resource["kind"] == kind and "/" not in resource["name"]:
            where = wanted["metadata"].get("namespace", namespace)
            inside = f"/namespaces/{where}" if resource["namespaced"] else ""
            return f"{base}{inside}/{resource['name']}"
    raise LookupError(f"the API server serves no {kind} of {version}")


def apply(client: ApiClient, wanted: Mapping[str, Any], namespace: str) -> None:
    """Create an object, or merge it into the one of its name; raise ApiError, LookupError.

    What it defines, a new kind, is served when this returns.
    """
    path = collection(client, wanted, namespace)
    try:
        client.api("POST", path + _STRICT, wanted)
    except ApiError as error:
        if error.status != HTTPStatus.CONFLICT:
            raise
        path = f"{path}/{wanted['metadata']['name']}{_STRICT}"
        client.api("PATCH", path, wanted, content_type="application/merge-patch+json")
    if wanted["kind"] == "CustomResourceDefinition":
        wait_until_served(client, wanted)


def wait_until_served(client: ApiClient, definition: Mapping[str, Any]) -> None:
    """Wait until the API server serves what a CustomResourceDefinition that it has defines.

    A definition that is deleted before that may stay for minutes: Kubernetes 1.36.3 tries to list
    its objects, is told that their storage is initializing, and tries again only at its next
    resync (``crd_finalizer.go`` of apiextensions-apiserver).
    """
    spec = definition["spec"]
    for version in (one["name"] for one in spec["versions"] if one["served"]):
        path = f"/apis/{spec['group']}/{version}/{spec['names']['plural']}"
        _until(lambda path=path: _is_served(client, path), f"{path} is served")


def delete(client: ApiClient, path: str) -> None:
    """Delete an object, or all of a collection, and wait until it is gone; raise ApiError."""
    client.api("DELETE", path)
    _until(lambda: not exists(client, path), f"{path} is gone")


def exists(client: ApiClient, path: str) -> bool:
    """Return whether there is such an object; a collection is there while it has any."""
    try:
        return client.api("GET", path).get("items") != []
    except ApiError as error:
        if error.status != HTTPStatus.NOT_FOUND:
            raise
    return False


def _is_served(client: ApiClient, path: str) -> bool:
    """Return whether the API server answers with a collection; it is being initialized at 429."""
    try:
        return "items" in client.api("GET", path)
    except ApiError as error:
        if error.status not in (HTTPStatus.NOT_FOUND, HTTPStatus.TOO_MANY_REQUESTS):
            raise
    return False


def _until(true: Callable[[], bool], what: str) -> None:
    deadline_s = time.monotonic() + HANGS_S
    while not true():
        if time.monotonic() > deadline_s:
            raise TimeoutError(f"after {HANGS_S:.0f} s still not true: {what}")
        time.sleep(0.05)
