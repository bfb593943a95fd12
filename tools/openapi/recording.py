"""What is asked of the real server, and what of the answers is kept: structure, never prose.

In: a running cluster. Out: one dictionary of JSON. Called by the command line.
"""

import json
import ssl
import urllib.request
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from tools.controlplane import Cluster
from tools.openapi import gotypes

DISCOVERY = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
PROSE = frozenset({"description", "externalDocs", "title", "example", "examples"})
GVK = "x-kubernetes-group-version-kind"

_RBAC = "/apis/rbac.authorization.k8s.io/v1"
_APF = "/apis/flowcontrol.apiserver.k8s.io/v1"
BOOTSTRAP = (
    "/api/v1/namespaces",
    "/apis/scheduling.k8s.io/v1/priorityclasses",
    f"{_RBAC}/clusterroles",
    f"{_RBAC}/clusterrolebindings",
    f"{_RBAC}/roles",
    f"{_RBAC}/rolebindings",
    f"{_APF}/flowschemas",
    f"{_APF}/prioritylevelconfigurations",
)
_NAMESPACES = frozenset({"default", "kube-node-lease", "kube-public", "kube-system"})
_RBAC_DEFAULT = ("kubernetes.io/bootstrapping", "rbac-defaults")


class Reader:
    """GETs JSON from one API server, in the representation that is asked for."""

    def __init__(self, cluster: Cluster) -> None:
        self._server = cluster.server
        self._token = cluster.admin_token
        self._context = ssl.create_default_context(cafile=str(cluster.ca))

    def get(self, path: str, accept: str = "application/json") -> dict[str, Any]:
        """Return the decoded answer. Raises OSError for a status of 400 and above."""
        headers = {"Authorization": f"Bearer {self._token}", "Accept": accept}
        request = urllib.request.Request(self._server + path, headers=headers)
        with urllib.request.urlopen(request, context=self._context, timeout=60) as answer:
            decoded: dict[str, Any] = json.load(answer)
        return decoded


def recorded(cluster: Cluster) -> dict[str, Any]:
    """Ask the cluster for everything that the embedded cluster has to know."""
    reader = Reader(cluster)
    groups = [
        {"name": group["metadata"].get("name", ""), "versions": group["versions"]}
        for root in ("/api", "/apis")
        for group in reader.get(root, DISCOVERY)["items"]
    ]
    schemas = _schemas(reader)
    return {
        "version": reader.get("/version"),
        "schemas": schemas,
        "go": {
            name: _go(schemas[name], facts)
            for name, facts in gotypes.facts().items()
            if name in schemas
        },
        "groups": groups,
        "columns": dict(_columns(reader, groups)),
        "bootstrap": [kept for path in BOOTSTRAP for kept in _bootstrap(reader, path)],
    }


def _schemas(reader: Reader) -> dict[str, Any]:
    """Merge the components of all groups' documents; they share most of what is not theirs."""
    merged: dict[str, Any] = {}
    for entry in reader.get("/openapi/v3")["paths"].values():
        document = reader.get(entry["serverRelativeURL"])
        schemas = document.get("components", {}).get("schemas", {})
        for name, schema in schemas.items():
            bare = without_prose(schema)
            known = merged.setdefault(name, bare)
            _merge_kinds(name, known, bare)
    return merged


def _go(schema: dict[str, Any], facts: dict[str, Any]) -> dict[str, Any]:
    """Keep protobuf's numbers without names: of properties, then of embedded structs, both sorted.

    A third of their size. 0 is a field that protobuf does not have.
    """
    numbers = facts.get("numbers")
    if not numbers:
        return facts
    embedded = sorted(set(facts.get("embedded", {}).values()))
    names = [*sorted(schema.get("properties", {})), *(f".{name}" for name in embedded)]
    assert numbers.keys() <= set(names), f"numbers of no property: {numbers.keys() - set(names)}"
    return {**facts, "numbers": [numbers.get(name, 0) for name in names]}


def _merge_kinds(name: str, known: dict[str, Any], other: dict[str, Any]) -> None:
    """DeleteOptions and WatchEvent name other kinds in each document; nothing else may differ."""
    kinds = known.pop(GVK, []), other.pop(GVK, [])
    assert known == other, f"{name} differs between documents"
    union = {json.dumps(kind, sort_keys=True) for of_one in kinds for kind in of_one}
    if union:
        known[GVK] = [json.loads(kind) for kind in sorted(union)]


def without_prose(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema without its descriptions; a property that is called so stays."""
    result: dict[str, Any] = {}
    for key, value in schema.items():
        if key in PROSE:
            continue
        if key == "properties":
            result[key] = {name: without_prose(inner) for name, inner in value.items()}
        elif key in ("items", "additionalProperties") and isinstance(value, dict):
            result[key] = without_prose(value)
        elif key in ("allOf", "anyOf", "oneOf"):
            result[key] = [without_prose(inner) for inner in value]
        else:
            result[key] = value
    return result


def _columns(
    reader: Reader, groups: list[dict[str, Any]]
) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Give the columns of each resource that can be listed; empty lists have them too."""
    for group in groups:
        for version in group["versions"]:
            root = f"/apis/{group['name']}" if group["name"] else "/api"
            for resource in version["resources"]:
                if "list" not in resource["verbs"]:
                    continue
                path = f"{root}/{version['version']}/{resource['resource']}"
                table = reader.get(f"{path}?limit=1", TABLE)
                columns = table["columnDefinitions"]
                yield path, [{k: v for k, v in c.items() if k not in PROSE} for c in columns]


def _bootstrap(reader: Reader, path: str) -> Iterator[dict[str, Any]]:
    """Give what every new cluster holds, without what differs between clusters."""
    answer = reader.get(path)
    for item in answer["items"]:
        if not _is_of_every_cluster(path, item["metadata"]):
            continue
        metadata = item["metadata"]
        content = {k: v for k, v in item.items() if k not in ("metadata", "status", "description")}
        names = ("name", "namespace", "labels", "annotations")
        yield {
            "apiVersion": answer["apiVersion"],
            "kind": answer["kind"].removesuffix("List"),
            "metadata": {name: metadata[name] for name in names if name in metadata},
            **content,
        }


def _is_of_every_cluster(path: str, metadata: dict[str, Any]) -> bool:
    collection = urlsplit(path).path.rpartition("/")[2]
    if collection == "namespaces":
        return metadata["name"] in _NAMESPACES
    if path.startswith(_RBAC):  # the control plane's own users have roles too
        label, value = _RBAC_DEFAULT
        return bool(metadata.get("labels", {}).get(label) == value)
    return True
