"""Which pods keep a node from whom it is desired for: a node in, names of pods out. Asks the API.

Used by ``nodes`` for pending nodes only, so that nobody has to watch all pods of a cluster.
"""

from __future__ import annotations

import asyncio
from typing import Final

import msgspec

from quorate.cks.reservations import Node
from quorate.cks.rules import Rules
from quorate.core.model.life_cycle import CONTROL_PLANE
from quorate.shell.kube.client import KubeClient
from quorate.shell.kube.objects import AnyObject, Metadata
from quorate.shell.kube.paths import resource_path
from quorate.shell.process.clock import Clock

_PODS: Final = resource_path("", "v1", "pods")
_NAMESPACES: Final = resource_path("", "v1", "namespaces")
_NAMESPACES_S: Final = 2.0
"""For so long a list of namespaces counts."""
_MIRROR: Final = "kubernetes.io/config.mirror"
_ENDED: Final = ("Succeeded", "Failed")


class _Phase(msgspec.Struct):
    phase: str = ""


class _Guest(msgspec.Struct):
    metadata: Metadata
    status: _Phase = msgspec.field(default_factory=_Phase)

    @property
    def stays(self) -> bool:
        """Whether it keeps the node from the next owner: a DaemonSet's and a kubelet's do not."""
        owners = self.metadata.owner_references or ()
        return (
            self.status.phase not in _ENDED
            and _MIRROR not in (self.metadata.annotations or {})
            and not any(owner.kind == "DaemonSet" and owner.controller for owner in owners)
        )


class _Guests(msgspec.Struct):
    items: list[_Guest] | None = None


class _Namespaces(msgspec.Struct):
    items: list[AnyObject] | None = None


_GUESTS: Final = msgspec.json.Decoder(_Guests)
_NAMESPACE_LIST: Final = msgspec.json.Decoder(_Namespaces)


class Guests:
    """Answers for one node after the other; a list of namespaces is for several of them."""

    def __init__(self, client: KubeClient, rules: Rules, clock: Clock) -> None:
        self._client = client
        self._rules = rules
        self._clock = clock
        self._owners: dict[str, str] = {}
        self._owners_at_s = float("-inf")
        self._owners_lock = asyncio.Lock()

    async def of(self, node: Node) -> list[str]:
        """Return the pods, as ``namespace/name``, that have to end first.

        Pods of the control plane and of whom the node is desired for do not count. Raises ApiError,
        and ``pages.UNREADABLE`` for an answer that is no list.
        """
        owners = await self._owners_of_namespaces()
        selector = {"fieldSelector": f"spec.nodeName={node.metadata.name}"}
        pods = _GUESTS.decode(await self._client.get_list(_PODS, selector)).items or ()
        fine = (CONTROL_PLANE, node.labels.get(self._rules.desired_label))
        return [
            f"{pod.metadata.namespace}/{pod.metadata.name}"
            for pod in pods
            if pod.stays and owners.get(pod.metadata.namespace) not in fine
        ]

    async def _owners_of_namespaces(self) -> dict[str, str]:
        """Return the organization of each namespace that says one, as a short time ago."""
        key = self._rules.organization_label
        async with self._owners_lock:
            now_s = self._clock.monotonic_s()
            if now_s > self._owners_at_s + _NAMESPACES_S:
                body = await self._client.get_list(_NAMESPACES, {"labelSelector": key})
                namespaces = _NAMESPACE_LIST.decode(body).items or ()
                self._owners = {
                    one.metadata.name: (one.metadata.labels or {}).get(key, "")
                    for one in namespaces
                }
                self._owners_at_s = now_s
            return self._owners
