"""Rights as RBAC knows them: those that the shipped manifests grant, and those that are asked for.

``ASKED`` is what quorate asks for. tests/e2e/rights/test_rights.py proves that it asks for just
that; tests/unit/test_rbac_manifest.py that the manifests grant just that; both together are least
privilege.
"""

from collections.abc import Iterable
from typing import NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

import yaml

NAMESPACE = "quorate-system"
LEASE = "quorate"


class Right(NamedTuple):
    """One verb on one resource. ``where`` is "" for the whole cluster; ``name`` "" for any name."""

    verb: str
    group: str
    resource: str  # with its subresource, as in pods/binding
    where: str = ""
    name: str = ""

    def covers(self, asked: "Right") -> bool:
        """Tell whether who has this right may do what is asked."""
        same = self[:3] == asked[:3]
        return same and self.where in ("", asked.where) and self.name in ("", asked.name)


_SEEN = ("nodes", "pods", "namespaces")


def _asked() -> Iterable[Right]:
    yield from (Right(verb, "", one) for one in _SEEN for verb in ("list", "watch"))
    volumes = ("persistentvolumeclaims", "persistentvolumes")
    yield from (Right(verb, "", one) for one in volumes for verb in ("list", "watch", "patch"))
    for one in ("csinodes", "storageclasses"):
        yield from (Right(verb, "storage.k8s.io", one) for verb in ("list", "watch"))
    devices = ("deviceclasses", "resourceslices", "resourceclaims")
    for one in devices:
        yield from (Right(verb, "resource.k8s.io", one) for verb in ("list", "watch"))
    to_claims = ("get", "patch")
    yield from (Right(verb, "resource.k8s.io", "resourceclaims") for verb in to_claims)
    yield Right("patch", "resource.k8s.io", "resourceclaims/status")
    yield Right("patch", "resource.k8s.io", "resourceclaims/binding")
    yield Right("get", "", "pods")
    yield Right("create", "", "pods/binding")
    yield Right("create", "", "pods/eviction")
    yield Right("patch", "", "pods/status")
    yield Right("delete", "", "pods")
    yield from (Right(verb, "policy", "poddisruptionbudgets") for verb in ("list", "watch"))
    yield from (Right(verb, "events.k8s.io", "events") for verb in ("create", "list", "patch"))
    gangs = [f"scheduling.{of}" for of in ("x-k8s.io", "sigs.k8s.io", "volcano.sh", "k8s.io")]
    yield from (Right(verb, of, "podgroups") for of in gangs for verb in ("list", "watch"))
    yield from (Right("patch", of, "podgroups/status") for of in gangs if "volcano" not in of)
    yield Right("patch", "scheduling.sigs.k8s.io", "podgroups")
    yield Right("patch", "scheduling.volcano.sh", "podgroups")
    yield from (Right(v, "scheduling.k8s.io", "priorityclasses") for v in ("list", "watch"))
    yield from (Right(v, "scheduling.volcano.sh", "queues") for v in ("list", "watch", "create"))
    yield Right("patch", "scheduling.volcano.sh", "queues/status")
    yield from (Right("get", "apps", f"{one}s") for one in ("deployment", "replicaset"))
    yield Right("get", "apps", "statefulsets")
    yield Right("get", "batch", "jobs")
    yield Right("get", "kubeflow.org", "mpijobs")
    yield Right("create", "coordination.k8s.io", "leases", NAMESPACE)
    yield Right("get", "coordination.k8s.io", "leases", NAMESPACE, LEASE)
    yield Right("update", "coordination.k8s.io", "leases", NAMESPACE, LEASE)


ASKED = frozenset(_asked())
PREEMPTION = Right("delete", "", "pods")
"""Asked for by profiles that preempt, and granted by ``quorate manifests --preemption`` only."""
WITHHELD = {
    "devices": {
        right
        for right in ASKED
        if right.resource.startswith("resourceclaims") and right.verb not in ("list", "watch")
    },
    "volcano-queues": {
        right
        for right in ASKED
        if right.resource.startswith("queues") and right.verb in ("create", "patch")
    },
}
"""What ``quorate manifests --without`` leaves out, by its value."""
CHECKED_BESIDES = frozenset(
    {
        Right("patch", "resource.k8s.io", "resourceclaims/binding"),
        Right("get", "resource.k8s.io", "resourceclaims"),
    }
)
"""No request names the first: the API server asks for it when a claim's status gets devices. A
claim is read only where the last try to write it was lost (``unit/shell/commit/test_late_claims``).
"""


def granted(text: str) -> list[Right]:
    """Return every right that the roles of these manifests grant, as often as they grant it."""
    return [
        Right(verb, group, resource, role["metadata"].get("namespace", ""), name)
        for role in yaml.safe_load_all(text)
        if role["kind"] in ("ClusterRole", "Role")
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for name in rule.get("resourceNames", [""])
        for verb in rule["verbs"]
    ]


def right_of(method: str, target: str) -> Right | None:
    """Return what a request asks for, with namespace and name; None for a path of no resource.

    Source: ``RequestInfo`` of k8s.io/apiserver.
    """
    url = urlsplit(target)
    parts = [unquote(part) for part in url.path.strip("/").split("/")]
    group, rest = ("", parts[2:]) if parts[0] == "api" else (parts[1], parts[3:])
    if not rest:
        return None
    where = ""
    if rest[0] == "namespaces" and len(rest) > 2:
        where, rest = rest[1], rest[2:]
    name = rest[1] if len(rest) > 1 else ""
    watches = parse_qs(url.query).get("watch") == ["true"]
    reads = "get" if name else "watch" if watches else "list"
    verb = {"GET": reads, "POST": "create", "PUT": "update", "PATCH": "patch"}.get(
        method, method.lower()
    )
    return Right(verb, group, "/".join([rest[0], *rest[2:]]), where, name)


def widened(asked: Right, namespace: str) -> Right:
    """Return the right that such requests need: on any object, but for the lease only on its own.

    ``namespace`` is the one that stands for ``NAMESPACE``.
    """
    if asked.group != "coordination.k8s.io":
        return asked._replace(where="", name="")
    return asked._replace(where=NAMESPACE if asked.where == namespace else asked.where)
