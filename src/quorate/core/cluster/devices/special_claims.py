"""The special claim that a pod needs for extended resources that device classes back.

On a node that lists such a resource, the pod takes it as any other. On other nodes kube-scheduler
allocates devices, in one special claim for the pod. In: a pod's containers and resources. Out: the
claim's requests, and which request serves which container's resource. Called by ``requests``.
Source: extendeddynamicresources.go of kube-scheduler 1.36's DynamicResources.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from typing import NamedTuple

from quorate.core.model import Pod
from quorate.core.model.devices import ContainerDevices, RequestMapping

DELEGATED = 2**40
"""The free amount of a backed resource on nodes that do not list it: more than any pod requests."""
_NAME_LENGTH = 253
_SUFFIX = "-extended-resources-"


class SpecialRequest(NamedTuple):
    """A request of the special claim: a number of devices of the class that backs a resource."""

    name: str
    resource: str
    devices: int


def claim_name(pod: Pod) -> str:
    """Return the name of the pod's special claim: always the same, so that no second one is made.

    kube-scheduler instead has the API server generate the last five characters.
    """
    tail = hashlib.sha256(pod.uid.encode()).hexdigest()[:5]
    return pod.name[: _NAME_LENGTH - len(_SUFFIX) - len(tail)].rstrip("-.") + _SUFFIX + tail


def requests_of(
    containers: tuple[ContainerDevices, ...], resources: Collection[str]
) -> tuple[tuple[SpecialRequest, ...], tuple[RequestMapping, ...]]:
    """Return the special claim's requests for these resources, and the mappings of containers.

    An init container that ends first reuses devices of later containers. Such containers run one
    after the other, so the largest of their requests for more devices serves all of them.
    """
    wanted: list[SpecialRequest] = []
    mappings: list[RequestMapping] = []
    for resource in sorted(resources):
        lasting = {
            index: found
            for index, one in enumerate(containers)
            if not one.brief and (found := _request(index, one, resource, 0)) is not None
        }
        mappings += [
            RequestMapping(containers[index].name, resource, found.name)
            for index, found in lasting.items()
        ]
        brief, reused = _of_brief(containers, resource, lasting)
        largest = max(brief, key=lambda one: one.devices, default=None)  # the first of equals
        asked = {one.name for one in brief}
        for one in reused:
            replaces = largest is not None and one.request in asked
            mappings.append(one._replace(request=largest.name) if replaces and largest else one)
        wanted += [largest] if largest is not None else []
        wanted += lasting.values()
    return tuple(sorted(wanted)), tuple(mappings)


def _of_brief(
    containers: tuple[ContainerDevices, ...], resource: str, lasting: dict[int, SpecialRequest]
) -> tuple[list[SpecialRequest], list[RequestMapping]]:
    """Return the requests of init containers that end, beyond reused devices, and mappings."""
    wanted: list[SpecialRequest] = []
    mappings: list[RequestMapping] = []
    for index, one in enumerate(containers):
        amount = _amount(one, resource)
        if not one.brief or not amount:
            continue
        reused = 0
        for place, later in lasting.items():
            if place >= index and reused < amount:
                reused += later.devices
                mappings.append(RequestMapping(one.name, resource, later.name))
        found = _request(index, one, resource, reused) if reused < amount else None
        if found is not None:
            wanted.append(found)
            mappings.append(RequestMapping(one.name, resource, found.name))
    return wanted, mappings


def _amount(container: ContainerDevices, resource: str) -> int:
    return next((amount for name, amount, _ in container.requests if name == resource), 0)


def _request(
    index: int, one: ContainerDevices, resource: str, reused: int
) -> SpecialRequest | None:
    for name, amount, place in one.requests:
        if name == resource and amount:
            return SpecialRequest(f"container-{index}-request-{place}", resource, amount - reused)
    return None
