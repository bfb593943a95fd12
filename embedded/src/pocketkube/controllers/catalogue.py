"""Every controller there is, in the order in which they hear of what happens."""

from __future__ import annotations

from pocketkube.controllers.accounts import RootCertificates, ServiceAccounts
from pocketkube.controllers.base import Controller, Shared
from pocketkube.controllers.cron_jobs import CronJobs
from pocketkube.controllers.daemon_sets import DaemonSets
from pocketkube.controllers.deployments import Deployments
from pocketkube.controllers.disruption import DisruptionBudgets
from pocketkube.controllers.garbage import GarbageCollector
from pocketkube.controllers.jobs import Jobs
from pocketkube.controllers.namespaces import Namespaces
from pocketkube.controllers.node_lifecycle import NodeLifecycle, TaintEviction
from pocketkube.controllers.pod_garbage import PodGarbage
from pocketkube.controllers.pod_groups import PodGroupProtection
from pocketkube.controllers.replicas import ReplicaSets, ReplicationControllers
from pocketkube.controllers.stateful_sets import StatefulSets
from pocketkube.controllers.volume_protection import VolumeProtection


def every_controller(shared: Shared, ca_pem: str) -> list[Controller]:
    """Make all controllers; ``ca_pem`` is what kube-root-ca.crt says (empty: none is made)."""
    return [
        ServiceAccounts(shared),
        RootCertificates(shared, ca_pem),
        Deployments(shared),
        ReplicaSets(shared),
        ReplicationControllers(shared),
        StatefulSets(shared),
        DaemonSets(shared),
        Jobs(shared),
        CronJobs(shared),
        DisruptionBudgets(shared),
        PodGroupProtection(shared),
        VolumeProtection(shared),
        NodeLifecycle(shared),
        TaintEviction(shared),
        PodGarbage(shared),
        Namespaces(shared),
        GarbageCollector(shared),
    ]
