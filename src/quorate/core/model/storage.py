"""The objects of storage, as far as the volume rules read them; and what pods say of volumes.

Written by ``shell.watch.storage``; read by ``cluster.storage.storage``. Sizes are in bytes.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from quorate.core.model.selectors import LabelSelector, SelectorTerm

MIGRATED_DRIVERS = {
    "kubernetes.io/aws-ebs": "ebs.csi.aws.com",
    "kubernetes.io/azure-disk": "disk.csi.azure.com",
    "kubernetes.io/cinder": "cinder.csi.openstack.org",
    "kubernetes.io/gce-pd": "pd.csi.storage.gke.io",
    "kubernetes.io/portworx-volume": "pxd.portworx.com",
}
"""In-tree plugins whose volumes count as a CSI driver's (nodevolumelimits of kube-scheduler)."""
UNCOUNTED_PROVISIONERS = frozenset({"", "kubernetes.io/azure-file", "kubernetes.io/vsphere-volume"})
"""Provisioners whose volumes count for no driver: migrated, but not where volumes are counted."""
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


class Disk(NamedTuple):
    """A disk that a pod names itself. ``plugin`` is its in-tree plugin.

    ``monitors`` are Ceph's, of RBD images only; ``id`` is then ``pool/image``.
    """

    plugin: str
    id: str
    read_only: bool = False
    monitors: tuple[str, ...] = ()

    def conflicts(self, other: Disk) -> bool:
        """Whether pods with these disks cannot share a node (VolumeRestrictions)."""
        if self.plugin != other.plugin or self.id != other.id or self.plugin not in RESTRICTED:
            return False
        if self.plugin == "kubernetes.io/aws-ebs":
            return True
        if self.plugin == RBD and set(self.monitors).isdisjoint(other.monitors):
            return False
        return not (self.read_only and other.read_only)


RBD = "kubernetes.io/rbd"
ISCSI = "kubernetes.io/iscsi"
RESTRICTED = frozenset({"kubernetes.io/gce-pd", "kubernetes.io/aws-ebs", RBD, ISCSI})
"""Plugins whose disks one node mounts once, or read-only."""


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

    ``driver`` and ``handle`` are CSI's; ``in_tree`` says that they were translated. ``version`` is
    its resourceVersion, to write only on what was seen.
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
    in_tree: bool = False
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


class CSIDriver(msgspec.Struct, frozen=True, omit_defaults=True, tag=True):
    """A CSIDriver; ``storage_capacity`` says that its free space is published."""

    name: str
    storage_capacity: bool = False


class CSIStorageCapacity(msgspec.Struct, frozen=True, omit_defaults=True, tag=True):
    """Where a class has space: ``size_max`` is the largest volume, None if it is not known."""

    namespace: str
    name: str
    storage_class: str
    size_max: int | None = None
    nodes: LabelSelector | None = None


class VolumeAttachment(msgspec.Struct, frozen=True, omit_defaults=True, tag=True):
    """A volume that is attached to a node, with or without a pod that uses it."""

    name: str
    attacher: str = ""
    node: str = ""
    volume: str = ""


AnyStorage = (
    Claim | Volume | StorageClass | CSINode | CSIDriver | CSIStorageCapacity | VolumeAttachment
)
"""The objects that volume rules look up."""
