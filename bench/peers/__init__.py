"""The schedulers that quorate is measured against, and their configurations.

In: a kubeconfig. Out: KubeSchedulerConfiguration as a mapping (JSON is YAML, and kube-scheduler
reads it). Called by ``gang_bench``. Each peer runs as its project documents, save that
its client has no rate limit: the limits of the API server are what is measured.
"""

from pathlib import Path
from typing import Any

DEFAULT_SCHEDULER_NAME = "default-scheduler"
NATIVE_SCHEDULER_NAME = "native-gangs"
COSCHEDULING_SCHEDULER_NAME = "scheduler-plugins-scheduler"
NATIVE_FEATURE_GATES = "GenericWorkload=true,GangScheduling=true"
CLIENT_QPS = 5000  # as in kube-scheduler's own scheduler_perf
PERMIT_WAITING_TIME_S = 10  # of scheduler-plugins' Helm chart


def coscheduling_config(kubeconfig: Path) -> dict[str, Any]:
    """Configure kube-scheduler with the coscheduling plugin at all its extension points.

    Only one plugin may sort the queue, so that PrioritySort gives way.
    """
    profile = {
        "schedulerName": COSCHEDULING_SCHEDULER_NAME,
        "plugins": {
            "multiPoint": {"enabled": [{"name": "Coscheduling"}]},
            "queueSort": {
                "enabled": [{"name": "Coscheduling"}],
                "disabled": [{"name": "*"}],
            },
        },
        "pluginConfig": [
            {
                "name": "Coscheduling",
                "args": {"permitWaitingTimeSeconds": PERMIT_WAITING_TIME_S},
            }
        ],
    }
    return _config(kubeconfig, profile)


def native_config(kubeconfig: Path) -> dict[str, Any]:
    """Configure kube-scheduler with its default plugins; NATIVE_FEATURE_GATES turn gangs on."""
    return _config(kubeconfig, {"schedulerName": NATIVE_SCHEDULER_NAME})


def default_config(kubeconfig: Path) -> dict[str, Any]:
    """Configure kube-scheduler as it comes."""
    return _config(kubeconfig, {"schedulerName": DEFAULT_SCHEDULER_NAME})


def _config(kubeconfig: Path, profile: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        "clientConnection": {
            "kubeconfig": str(kubeconfig),
            "qps": CLIENT_QPS,
            "burst": CLIENT_QPS,
        },
        "profiles": [profile],
    }
