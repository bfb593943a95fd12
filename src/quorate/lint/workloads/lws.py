"""LeaderWorkerSets. Source: lws 0.7, pkg/schedulerprovider/volcano_provider.go."""

from __future__ import annotations

from quorate.lint.objects import mapping
from quorate.lint.tree import Path
from quorate.lint.workloads.promise import VOLCANO_API, Promise, Workload, counted, whole

_WHERE: Path = ("spec", "leaderWorkerTemplate")


def leader_worker_set(one: Workload) -> Promise | None:
    """As many gangs as replicas: a leader and its workers each, of which all must start.

    With ``startupPolicy: LeaderReady`` the leader starts first, alone.
    """
    if not one.is_ours:
        return None
    spec = one.object.spec()
    size = whole(mapping(spec.get("leaderWorkerTemplate")).get("size", 1))
    has_leader = any("leaderTemplate" in source.path for source in one.sources)
    workers = size if size is None or not has_leader else max(0, size - 1)
    waits_for_leader = spec.get("startupPolicy") == "LeaderReady"
    return Promise(
        one.object,
        VOLCANO_API,
        one.object.name,
        tuple(
            counted(source, 1 if "leaderTemplate" in source.path else workers, (*_WHERE, "size"))
            for source in one.sources
        ),
        1 if waits_for_leader else size,
        ("spec", "startupPolicy") if waits_for_leader else (*_WHERE, "size"),
        "LeaderWorkerSet's controller, if its schedulerProvider is volcano",
        times=whole(spec.get("replicas", 1)),
    )
