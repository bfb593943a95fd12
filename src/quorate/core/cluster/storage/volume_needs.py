"""What a pod's volumes need of a node, without names that do not affect placement.

In: a pod and ``Storage``. Out: ``VolumeNeeds``, a part of the pod's class: a thousand pods, each
with its own claim of the same kind, are one class. A volume or claim is named only if another
living pod uses it too. Called at planning time. Rules and texts: kube-scheduler 1.36's volume
plugins.
"""

from __future__ import annotations

from collections import Counter

from quorate.core.cluster.storage.needs import (
    BoundNeed,
    Problem,
    Topology,
    UnboundNeed,
    VolumeNeeds,
)
from quorate.core.cluster.storage.storage import Storage
from quorate.core.cluster.storage.volume_counts import VolumeId
from quorate.core.cluster.storage.volume_users import VolumeUser
from quorate.core.model import Pod
from quorate.core.model.storage import (
    NO_PROVISIONER,
    READ_WRITE_ONCE_POD,
    SHAREABLE_MODES,
    WAIT_FOR_FIRST_CONSUMER,
    Claim,
    ClaimKey,
    ClaimRef,
    Volume,
)

ZONE_LABELS = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region": "topology.kubernetes.io/region",
}
"""The volume labels that a node must match, in the plugin's order, each with its current name."""

RESTRICTIONS = "VolumeRestrictions"
LIMITS = "NodeVolumeLimits"
BINDING = "VolumeBinding"
ZONE = "VolumeZone"


def volume_needs_of(pod: Pod, storage: Storage) -> VolumeNeeds | None:
    """Return the needs of the pod's volumes; None if no volume rule applies to it."""
    user = storage.users.get(pod.uid)
    if user is None:
        return None
    if user.volume_set.volume_needs is None:
        problems = problems_of(pod, storage)
        if problems:
            return VolumeNeeds(problems=problems)  # problems name the pod: they are not shared
        user.volume_set.volume_needs = _volume_needs(pod, user, storage)
    return user.volume_set.volume_needs


def _volume_needs(pod: Pod, user: VolumeUser, storage: Storage) -> VolumeNeeds:
    claims = _claims(pod, storage)
    new: dict[str, int] = {}
    shared: list[VolumeId] = []
    for volume_id in user.ids:
        if len(storage.sharers[volume_id]) > 1:
            shared.append(volume_id)
        else:
            new[volume_id[0]] = new.get(volume_id[0], 0) + 1
    plain = [storage.claims[key] for key in _keys(pod, ephemeral=False)]
    return VolumeNeeds(
        bound=tuple(_bound(claim, storage) for claim in claims if claim.is_bound),
        topologies=tuple(
            topology
            for claim in plain
            if claim.volume
            for topology in _topologies(storage.volumes[claim.volume])
        ),
        unbound=_unbound_needs(pod, storage),
        new=tuple(sorted(new.items())),
        shared=tuple(sorted(shared)),
        exclusive=tuple(
            sorted(
                {
                    claim.key
                    for claim in plain
                    if READ_WRITE_ONCE_POD in claim.access_modes
                    and len(storage.users_of[claim.key]) > 1
                }
            )
        ),
    )


def unbound_claims(pod: Pod, storage: Storage) -> list[Claim]:
    """Return the pod's unbound claims, from small to large; KeyError if a claim is missing."""
    waiting = [claim for claim in _claims(pod, storage) if not claim.is_bound]
    return sorted(waiting, key=lambda claim: claim.size or 0)


def problems_of(pod: Pod, storage: Storage) -> tuple[Problem, ...]:
    """Return why no node can take the pod: the first problem of each rule, in the rules' order."""
    found = (
        _missing(pod, storage),
        _limits_problem(pod, storage),
        _binding_problem(pod, storage),
        _zone_problem(pod, storage),
    )
    return tuple(problem for problem in found if problem is not None)


def fits_claim(volume: Volume, claim: Claim | UnboundNeed) -> bool:
    """Whether a volume's size, mode and attributes satisfy the claim, kept for it or not."""
    return (
        volume.capacity >= (claim.size or 0)
        and volume.volume_mode == claim.volume_mode
        and volume.attributes_class == claim.attributes_class
        and not volume.terminating
    )


def _keys(pod: Pod, *, ephemeral: bool) -> list[ClaimKey]:
    return [
        ClaimKey(pod.namespace, use.name) for use in pod.claims if ephemeral or not use.ephemeral
    ]


def _claims(pod: Pod, storage: Storage) -> list[Claim]:
    return [storage.claims[key] for key in dict.fromkeys(_keys(pod, ephemeral=True))]


def _bound(claim: Claim, storage: Storage) -> BoundNeed:
    volume = storage.volumes.get(claim.volume)
    return BoundNeed(volume.affinity) if volume else BoundNeed(None, exists=False)


def _topologies(volume: Volume) -> list[Topology]:
    labels = dict(volume.labels)
    found = []
    for key in ZONE_LABELS:
        zones = {zone.strip() for zone in labels[key].split("__")} if key in labels else set()
        if zones and "" not in zones:
            found.append(Topology(key, tuple(sorted(zones))))
    return found


def _unbound_needs(pod: Pod, storage: Storage) -> tuple[UnboundNeed, ...]:
    needs = tuple(_unbound(claim, storage) for claim in unbound_claims(pod, storage))
    if len(needs) < 2:
        return needs
    open_in = Counter(need.storage_class for need in needs if need.is_open)
    return tuple(
        need._replace(is_one_of_several=need.is_open and open_in[need.storage_class] > 1)
        for need in needs
    )


def _unbound(claim: Claim, storage: Storage) -> UnboundNeed:
    shared = len(storage.users_of[claim.key]) > 1
    return UnboundNeed(
        claim.storage_class,
        claim.size,
        claim.access_modes,
        claim.volume_mode,
        claim.attributes_class,
        claim.selector,
        storage.selected.get(claim.key, claim.selected_node),
        _kept(claim, storage),
        claim.key if shared else None,
        shareable=shared and not SHAREABLE_MODES.isdisjoint(claim.access_modes),
    )


def _kept(claim: Claim, storage: Storage) -> str:
    """Return the name of the volume kept for the claim, by its claimRef or by a plan under way."""
    for name in sorted(storage.index.volumes_for.get(claim.key, ())):
        volume = storage.volumes[name]
        meant = volume.claim is not None and volume.claim.means(claim)
        if meant and volume.storage_class == claim.storage_class and fits_claim(volume, claim):
            return name
    return storage.kept_for.get(claim.key, "")


def _missing(pod: Pod, storage: Storage) -> Problem | None:
    for key in _keys(pod, ephemeral=False):
        if key not in storage.claims:
            return Problem(RESTRICTIONS, "missing", _not_found(key.name), _no_claim(pod, key))
    return None


def _limits_problem(pod: Pod, storage: Storage) -> Problem | None:
    for use, key in zip(pod.claims, _keys(pod, ephemeral=True), strict=True):
        claim = storage.claims.get(key)
        if claim is None:
            text = f"looking up PVC {key}: {_not_found(key.name)}"
            return Problem(LIMITS, "missing", text, _no_claim(pod, key))
        if use.ephemeral and claim.controller != pod.uid:
            return _not_owned(LIMITS, pod, key)
    return None


def _binding_problem(pod: Pod, storage: Storage) -> Problem | None:
    for use, key in zip(pod.claims, _keys(pod, ephemeral=True), strict=True):
        claim = storage.claims.get(key)
        if claim is None and use.ephemeral:
            text = (
                "waiting for ephemeral volume controller to create the persistentvolumeclaim "
                f'"{key.name}"'
            )
            return Problem(BINDING, "not made", text, _no_claim(pod, key))
        if claim is None:
            return Problem(BINDING, "missing", _not_found(key.name), _no_claim(pod, key))
        if claim.lost:
            text = (
                f'persistentvolumeclaim "{key.name}" bound to non-existent persistentvolume '
                f'"{claim.volume}"'
            )
            detail = f"spec.volumeName {claim.volume} of claim {key} does not exist any more"
            return Problem(BINDING, "lost", text, detail)
        if claim.terminating:
            text = f'persistentvolumeclaim "{key.name}" is being deleted'
            return Problem(BINDING, "deleted", text, f"claim {key} is being deleted")
        if use.ephemeral and claim.controller != pod.uid:
            return _not_owned(BINDING, pod, key)
    for key in dict.fromkeys(_keys(pod, ephemeral=True)):
        detail = _immediate(storage.claims[key], storage)
        if detail:
            text = "pod has unbound immediate PersistentVolumeClaims"
            return Problem(BINDING, "immediate", text, detail)
    return _several_problem(pod, storage)


def _several_problem(pod: Pod, storage: Storage) -> Problem | None:
    """Find claims of one class that only static volumes can meet, of which a pod may have one."""
    if len(pod.claims) < 2:
        return None
    needs = zip(unbound_claims(pod, storage), _unbound_needs(pod, storage), strict=True)
    several = [
        claim
        for claim, need in needs
        if need.is_one_of_several
        and storage.classes[claim.storage_class].provisioner == NO_PROVISIONER
    ]
    if not several:
        return None
    name = several[0].storage_class
    keys = " and ".join(sorted(str(one.key) for one in several if one.storage_class == name))
    detail = (
        f"spec.volumes of pod {pod.name} names the claims {keys}, none of them bound, and "
        f"class {name} has no provisioner: a pod may have one such claim"
    )
    return Problem(BINDING, "several", f"pod has several unbound claims of class {name}", detail)


def _immediate(claim: Claim, storage: Storage) -> str:
    """Return why an unbound claim does not wait for its first pod; "" if it does."""
    found = storage.classes.get(claim.storage_class)
    if claim.is_bound:
        return ""
    if claim.volume:
        return f"claim {claim.key} is not bound yet: its spec.volumeName is {claim.volume}"
    if not claim.storage_class:
        return f"claim {claim.key} is not bound, and has no spec.storageClassName"
    if found is None:
        return (
            f"claim {claim.key} is not bound: its spec.storageClassName {claim.storage_class} "
            "does not exist"
        )
    if found.binding_mode != WAIT_FOR_FIRST_CONSUMER:
        return f"claim {claim.key} is not bound yet: its class {found.name} binds at once"
    return ""


def _zone_problem(pod: Pod, storage: Storage) -> Problem | None:
    for key in _keys(pod, ephemeral=False):
        claim = storage.claims.get(key)
        if claim is None:
            return Problem(ZONE, "missing", _not_found(key.name), _no_claim(pod, key))
        if claim.volume:
            if claim.volume not in storage.volumes:
                text = f'persistentvolume "{claim.volume}" not found'
                detail = f"spec.volumeName {claim.volume} of claim {key} does not exist"
                return Problem(ZONE, "no volume", text, detail)
            continue
        text = ""
        if not claim.storage_class:
            text = "PersistentVolumeClaim had no pv name and storageClass name"
        elif claim.storage_class not in storage.classes:
            text = f'storageclass.storage.k8s.io "{claim.storage_class}" not found'
        elif storage.classes[claim.storage_class].binding_mode != WAIT_FOR_FIRST_CONSUMER:
            text = "PersistentVolume had no name"
        if text:
            return Problem(ZONE, text, text, _immediate(claim, storage))
    return None


def _not_found(name: str) -> str:
    return f'persistentvolumeclaim "{name}" not found'


def _no_claim(pod: Pod, key: ClaimKey) -> str:
    return f"spec.volumes of pod {pod.name} names the claim {key}, which does not exist"


def _not_owned(rule: str, pod: Pod, key: ClaimKey) -> Problem:
    text = f"PVC {key} was not created for pod {pod.namespace}/{pod.name} (pod is not owner)"
    detail = f"metadata.ownerReferences of claim {key} do not name pod {pod.name}"
    return Problem(rule, "not owned", text, detail)


def is_kept_for(ref: ClaimRef | None, claim: Claim) -> bool:
    """Whether a volume's claimRef names this claim with its uid."""
    return ref is not None and bool(ref.uid) and ref.means(claim)
