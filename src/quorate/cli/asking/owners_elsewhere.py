"""Owners whose template names a gang, and that have made no pod yet: suspended ones, refused ones.

In: gangs that lack members. Out: what such owners make, for ``mistakes``. No pod tells of them, so
the workloads of the gangs' namespaces are listed: at the call of a person, with that person's
rights, and not by the scheduler.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from quorate.core.cluster.cluster import Cluster
from quorate.core.cluster.gangs.gangs import GangEntry
from quorate.core.cluster.gangs.owners import OwnerFacts
from quorate.core.model import GangKey, Owner
from quorate.core.words.owner_words import Maker
from quorate.dialects import PodFacts, resolve
from quorate.shell.kube.client import KubeClient
from quorate.shell.kube.errors import ApiError
from quorate.shell.kube.objects import Metadata
from quorate.shell.kube.paths import resource_path
from quorate.shell.report.owners import Spec, Workload, change_of

_KINDS = (("apps/v1", "Deployment"), ("apps/v1", "StatefulSet"), ("batch/v1", "Job"))
_NAMESPACES_MAX = 20
_WORKLOADS_MAX = 500
"""So many of each kind are looked through in a namespace."""
_OVER = ("Complete", "Failed", "SuccessCriteriaMet", "FailureTarget")

Elsewhere = dict[GangKey, list[Maker]]


class _Group(msgspec.Struct, rename="camel"):
    pod_group_name: str = ""


class _PodSpec(msgspec.Struct, rename="camel"):
    scheduling_group: _Group | None = None


class _Template(msgspec.Struct):
    metadata: Metadata = msgspec.field(default_factory=Metadata)
    spec: _PodSpec = msgspec.field(default_factory=_PodSpec)


class _Spec(Spec, rename="camel"):
    template: _Template = msgspec.field(default_factory=_Template)


class _Workload(Workload):
    spec: _Spec = msgspec.field(default_factory=_Spec)


class _Workloads(msgspec.Struct):
    items: list[_Workload]


_DECODER = msgspec.json.Decoder(_Workloads)


async def owners_elsewhere(
    client: KubeClient, cluster: Cluster, keys: Iterable[GangKey]
) -> Elsewhere:
    """Return the owners of pods to come, for those of these gangs that lack members."""
    short = {key: gang for key in keys if (gang := cluster.gangs.get(key)) and _lacks_members(gang)}
    found: Elsewhere = {}
    for namespace in sorted({key.namespace for key in short})[:_NAMESPACES_MAX]:
        for api_version, kind in _KINDS:
            for one in await _listed(client, namespace, api_version, kind):
                owner, named = Owner(api_version, kind, one.metadata.name), _gang_of(namespace, one)
                gang = short.get(named) if named is not None else None
                if gang is None or owner in gang.owners or one.says(*_OVER) is not None:
                    continue
                change = await change_of(client, namespace, owner, one)
                if change.replicas:
                    found.setdefault(gang.key, []).append(Maker(owner, OwnerFacts.of(change)))
    return found


def _lacks_members(gang: GangEntry) -> bool:
    return not (gang.key.is_single or gang.started or gang.exist >= gang.min_count)


async def _listed(
    client: KubeClient, namespace: str, api_version: str, kind: str
) -> Iterable[_Workload]:
    """Return the objects of a kind; none if the caller may not list them."""
    group, _, version = api_version.rpartition("/")
    path = resource_path(group, version, f"{kind.lower()}s", namespace)
    try:
        raw = await client.get_list(path, {"limit": _WORKLOADS_MAX})
        return _DECODER.decode(raw).items
    except (ApiError, msgspec.DecodeError):
        return ()


def _gang_of(namespace: str, one: _Workload) -> GangKey | None:
    meta, group = one.spec.template.metadata, one.spec.template.spec.scheduling_group
    name = group.pod_group_name if group is not None else ""
    facts = PodFacts(namespace, one.metadata.name, meta.labels or {}, meta.annotations or {}, name)
    membership = resolve(facts).membership
    return membership.key if membership is not None else None
