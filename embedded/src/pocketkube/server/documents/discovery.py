"""Which groups, versions and resources there are, as kubectl and client-go ask for it.

In: what is registered. Out: the bodies of ``/api``, ``/apis`` and below. Pure functions. Source:
the real server's answers; the recorded ones are in the tests.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from pocketkube.registry.resources import Registry
from pocketkube.schema.document import Document
from pocketkube.schema.resource import Resource, Subresource, version_rank

_JSON = "application/json"
_CUSTOM_VERBS = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")

Groups = dict[str, dict[str, list[Resource]]]
"""Resources by version, by group; groups and versions in the order in which they are preferred."""


def page(path: str, registry: Registry, document: Document) -> tuple[str, bytes] | None:
    """Return content type and body of a discovery page; None when the path is none."""
    groups = groups_of(registry.all(), document)
    parts = path.strip("/").split("/")
    body: dict[str, Any] | None = None
    if parts[0] in ("api", "apis") and len(parts) == 1:
        core = parts[0] == "api"
        body = api_versions(groups) if core else group_list(groups)
    elif parts[0] == "api" and len(parts) == 2:
        body = resource_list(groups, "", parts[1])
    elif parts[0] == "apis" and len(parts) == 2:
        body = group(groups, parts[1])
    elif parts[0] == "apis" and len(parts) == 3:
        body = resource_list(groups, parts[1], parts[2])
    return None if body is None else (_JSON, msgspec.json.encode(body))


def groups_of(resources: Iterable[Resource], document: Document) -> Groups:
    """Sort resources by group and version: recorded groups as recorded, then those of CRDs.

    Groups of CRDs come by name, their versions by stability: v2, v1, v1beta1, v1alpha1.
    """
    recorded = {entry["name"]: entry for entry in document.groups}
    found: Groups = {}
    for resource in resources:
        versions = found.setdefault(resource.group, {})
        versions.setdefault(resource.version, []).append(resource)
    names = [name for name in recorded if name in found]
    names += sorted(found.keys() - recorded.keys())
    result: Groups = {}
    for name in names:
        known = recorded[name]["versions"] if name in recorded else []
        first = [entry["version"] for entry in known]
        others = sorted(found[name].keys() - set(first), key=version_rank, reverse=True)
        ordered = [version for version in first if version in found[name]] + others
        result[name] = {version: _sorted(found[name][version]) for version in ordered}
    return result


def _sorted(resources: list[Resource]) -> list[Resource]:
    return sorted(resources, key=lambda resource: resource.plural)


def api_versions(groups: Groups) -> dict[str, Any]:
    """Return the APIVersions of ``/api``. No client looks at the address."""
    address = {"clientCIDR": "0.0.0.0/0", "serverAddress": ""}
    return {
        "kind": "APIVersions",
        "versions": list(groups.get("", {})),
        "serverAddressByClientCIDRs": [address],
    }


def group_list(groups: Groups) -> dict[str, Any]:
    """Return the APIGroupList of ``/apis``."""
    entries = [_group(name, list(versions)) for name, versions in groups.items() if name]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": entries}


def group(groups: Groups, name: str) -> dict[str, Any] | None:
    """Return the APIGroup of ``/apis/NAME``; None when there is none."""
    if not name or name not in groups:
        return None
    return {"kind": "APIGroup", "apiVersion": "v1", **_group(name, list(groups[name]))}


def _group(name: str, versions: list[str]) -> dict[str, Any]:
    entries = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"name": name, "versions": entries, "preferredVersion": entries[0]}


def resource_list(groups: Groups, name: str, version: str) -> dict[str, Any] | None:
    """Return the APIResourceList of a group's version; None when there is none."""
    resources = groups.get(name, {}).get(version)
    if resources is None:
        return None
    head = {"kind": "APIResourceList"}
    if name:  # the core group's list has no apiVersion, for clients from before there were groups
        head["apiVersion"] = "v1"
    return {
        **head,
        "groupVersion": f"{name}/{version}" if name else version,
        "resources": [entry for resource in resources for entry in _plain(resource)],
    }


def _plain(resource: Resource) -> Iterator[dict[str, Any]]:
    entry = {
        "name": resource.plural,
        "singularName": resource.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": _verbs(resource),
    }
    yield {**entry, **_names(resource)}
    for sub in _subresources(resource):
        elsewhere = (sub.group, sub.version) != (resource.group, resource.version)
        yield {
            "name": f"{resource.plural}/{sub.name}",
            "singularName": "",
            "namespaced": resource.namespaced,
            **({"group": sub.group, "version": sub.version} if elsewhere else {}),
            "kind": sub.kind,
            "verbs": sorted(sub.verbs),
        }


def _verbs(resource: Resource) -> list[str]:
    if not resource.crd:
        return sorted(resource.verbs)
    return [verb for verb in _CUSTOM_VERBS if verb in resource.verbs]


def _names(resource: Resource) -> dict[str, list[str]]:
    both = {"shortNames": resource.short_names, "categories": resource.categories}
    return {key: list(names) for key, names in both.items() if names}


def _subresources(resource: Resource) -> list[Subresource]:
    """Return them by name; CRDs have status before scale."""
    return sorted(
        resource.subresources.values(), key=lambda sub: sub.name, reverse=bool(resource.crd)
    )
