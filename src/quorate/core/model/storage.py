"""The objects of storage, as far as the volume rules read them; and what pods say of volumes.

Written by ``shell.watch.storage``; read by ``cluster.storage.storage``. Sizes are in bytes.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from quorate.core.model.selectors import LabelSelector, SelectorTerm

NO_PROVISIONER = "kubernetes.io/no-provisioner"
WAIT_FOR_FIRST_CONSUMER = "WaitForFirstConsumer"
READ_WRITE_ONCE_POD = "ReadWriteOncePod"
SHAREABLE_MODES = frozenset({"ReadWriteMany", "ReadOnlyMany"})


class ClaimKey(NamedTuple):
    """Names a PersistentVolumeClaim."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class ClaimUse(NamedTuple):
    """A volume of a pod that is a claim; an ``ephemeral`` one is made for that pod alone."""

    name: str
    ephemeral: bool = False


class Claim(msgspec.Struct, frozen=True, omit_defaults=True, tag=True):
    """A PersistentVolumeClaim. ``bound`` means that the binding to ``volume`` is complete.

    ``size`` is None when nothing is requested; ``selected_node`` is None without the annotation;
    ``controller`` is the uid of the owner that controls it.
    """

    namespace: str
    name: str
    uid: str = ""
    storage_class: str = ""
    size: int | None = None
    access_modes: tuple[str, ...] = ()
    volume_mode: str = "Filesystem"
    attributes_class: str = ""
    selector: LabelSelector | None = None
    volume: str = ""
    bound: bool = False
    selected_node: str | None = None
    lost: bool = False
    terminating: bool = False
    controller: str = ""

    @property
    def key(self) -> ClaimKey:
        """Who it is."""
        return ClaimKey(self.namespace, self.name)

    @property
    def is_bound(self) -> bool:
        """Whether it has its volume for good."""
        return self.bound and bool(self.volume)


class ClaimRef(NamedTuple):
    """``spec.claimRef`` of a volume: the claim that it is kept for. The uid may be empty."""

    namespace: str
    name: str
    uid: str = ""

    def means(self, claim: Claim) -> bool:
        """Whether it is this claim."""
        same = self.name == claim.name and self.namespace == claim.namespace
        return same and self.uid in ("", claim.uid)


class Volume(msgspec.Struct, frozen=True, omit_defaults=True, tag=True):
    """A PersistentVolume. ``affinity`` None fits every node; an empty tuple fits none.

    ``driver`` and ``handle`` are CSI's. ``version`` is its resourceVersion, to write only on what
    was seen.
    """

    name: str
    version: str = ""
    storage_class: str = ""
    capacity: int = 0
    access_modes: tuple[str, ...] = ()
    volume_mode: str = "Filesystem"
    attributes_class: str = ""
    phase: str = ""
    claim: ClaimRef | None = None
    affinity: tuple[SelectorTerm, ...] | None = None
    labels: tuple[tuple[str, str], ...] = ()
    driver: str = ""
    handle: str = ""
    terminating: bool = False


class StorageClass(msgspec.Struct, frozen=True, omit_defaults=True, tag=True):
    """A StorageClass. Each of ``topologies`` is a term: label keys with the values allowed."""

    name: str
    provisioner: str = ""
    binding_mode: str = "Immediate"
    topologies: tuple[tuple[tuple[str, tuple[str, ...]], ...], ...] = ()


class CSINode(msgspec.Struct, frozen=True, omit_defaults=True, tag=True):
    """How many volumes of each driver a node takes; a driver without a limit is not listed."""

    name: str
    limits: tuple[tuple[str, int], ...] = ()


AnyStorage = Claim | Volume | StorageClass | CSINode
"""The objects that volume rules look up."""
