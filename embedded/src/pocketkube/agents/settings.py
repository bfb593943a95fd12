"""What can be chosen about the agents, all of it off or at once by default."""

from __future__ import annotations

from dataclasses import dataclass

from pocketkube.agents.durations import RunTime

START_AFTER = "quorate.dev/start-after"
"""Annotation of a pod: it is Running this long after it was bound."""
COMPLETE_AFTER = ("quorate.dev/complete-after", "kwok.x-k8s.io/complete-after")
"""Annotations of a pod, the first one that is there: it succeeds this long after its start."""
FAIL_AFTER = "quorate.dev/fail-after"
"""Annotation of a pod: its containers exit with code 1 this long after each start."""
FAIL = "quorate.dev/fail"
"""Annotation of a node: ``true`` (the node is silent) or ``not-ready``; nothing happens there."""
REFUSE_PODS = "quorate.dev/refuse-pods"
"""Annotation of a node: the reason, such as OutOfcpu, with which it refuses each new pod."""
AGENT = "quorate.dev/agent"
"""Annotation of a node: with ``none`` its kubelet is somebody else's business."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The defaults make pods run at once and for ever, and go at once when they are deleted."""

    start_s: float = 0.0  # from binding to Running, unless the pod's annotation says otherwise
    removal_s: float = 0.0  # from the deletion of a pod to its end; never more than its own grace
    run_time: RunTime | None = None  # of pods that may finish: restartPolicy is not Always
    restart_s: float = 10.0  # wait before the second restart of a container; it doubles each time
    restart_s_max: float = 300.0
    heartbeat_s: float | None = None  # renew a Lease for each node this often; None: never
    slice_s: float = 0.01  # one step works no longer than this before it lets others work
    kubelet_version: str = "v1.36.3"
