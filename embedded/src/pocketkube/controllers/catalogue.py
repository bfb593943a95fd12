"""Every controller there is, in the order in which they hear of what happens."""

from __future__ import annotations

from pocketkube.controllers.base import Controller, Shared
from pocketkube.controllers.claims.pod_claims import DeviceClaims, EphemeralVolumes
from pocketkube.controllers.claims.volume_binding import VolumeBinding
from pocketkube.controllers.claims.volume_protection import VolumeProtection
from pocketkube.controllers.jobs.cron_jobs import CronJobs
from pocketkube.controllers.jobs.jobs import Jobs
from pocketkube.controllers.upkeep.accounts import RootCertificates, ServiceAccounts
from pocketkube.controllers.upkeep.disruption import DisruptionBudgets
from pocketkube.controllers.upkeep.event_expiry import EventExpiry
from pocketkube.controllers.upkeep.garbage import GarbageCollector
from pocketkube.controllers.upkeep.namespaces import Namespaces
from pocketkube.controllers.upkeep.node_lifecycle import NodeLifecycle, TaintEviction
from pocketkube.controllers.upkeep.pod_garbage import PodGarbage
from pocketkube.controllers.upkeep.pod_groups import PodGroupProtection
from pocketkube.controllers.upkeep.quota_usage import QuotaUsage
from pocketkube.controllers.workloads.daemon_sets import DaemonSets
from pocketkube.controllers.workloads.deployments import Deployments
from pocketkube.controllers.workloads.replicas import ReplicaSets
from pocketkube.controllers.workloads.stateful_sets import StatefulSets


def every_controller(shared: Shared, ca_pem: str) -> list[Controller]:
    """Make all controllers; ``ca_pem`` is what kube-root-ca.crt says (empty: none is made)."""
    return [
        ServiceAccounts(shared),
        RootCertificates(shared, ca_pem),
        Deployments(shared),
        ReplicaSets(shared),
        StatefulSets(shared),
        DaemonSets(shared),
        Jobs(shared),
        CronJobs(shared),
        DisruptionBudgets(shared),
        PodGroupProtection(shared),
        EphemeralVolumes(shared),
        VolumeBinding(shared),
        VolumeProtection(shared),
        DeviceClaims(shared),
        EventExpiry(shared),
        QuotaUsage(shared),
        NodeLifecycle(shared),
        TaintEviction(shared),
        PodGarbage(shared),
        Namespaces(shared),
        GarbageCollector(shared),
    ]
