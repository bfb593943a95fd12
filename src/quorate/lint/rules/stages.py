"""Which pods of an object are made first, and which only when those run or are ready."""

from __future__ import annotations

from quorate.lint.manifests import Gang
from quorate.lint.objects import KubeObject, mapping, value_at
from quorate.lint.pod_sources import PodSource
from quorate.lint.tree import Path


def made_together(gang: Gang) -> int | None:
    """Return how many pods of a gang are made though none of them runs; None: that is unknown."""
    made = 0
    for source in gang.sources:
        one = source.object
        first = min(stage_of(other, one) for other in gang.sources if other.object is one)
        if source.count is None:
            return None
        if stage_of(source, one) == first:
            made += min(source.count, 1) if is_in_order(source) else source.count
    return made


def is_in_order(source: PodSource) -> bool:
    """Whether each of these pods is made when the one before is ready."""
    one = source.object
    policy = one.spec().get("podManagementPolicy")
    return (one.group, one.kind) == ("apps", "StatefulSet") and policy in (None, "", "OrderedReady")


def waits(one: KubeObject) -> Path:
    """Return the field by which an object makes some pods later; empty if it does not.

    Not of an MPIJob: its workers start without a launcher that waits for them (ADR 33).
    """
    spec = one.spec()
    if one.kind == "JobSet":
        if mapping(spec.get("startupPolicy")).get("startupPolicyOrder") == "InOrder":
            return "spec", "startupPolicy", "startupPolicyOrder"
        jobs = spec.get("replicatedJobs")
        for index, job in enumerate(jobs if isinstance(jobs, list) else ()):
            if mapping(job).get("dependsOn"):
                return "spec", "replicatedJobs", index, "dependsOn"
    return ()


def stage_of(source: PodSource, one: KubeObject) -> int:
    """Return when the object makes these pods: those of a later stage wait for earlier ones."""
    if source.object is not one:
        return 0
    if one.kind == "MPIJob":
        return 0 if "Worker" in source.path else 1
    place = source.path[:3]
    order = value_at(one.value, ("spec", "startupPolicy", "startupPolicyOrder"))
    if order == "InOrder" and isinstance(place[-1], int):
        return place[-1]
    return 1 if mapping(value_at(one.value, place)).get("dependsOn") else 0
