"""Every controller there is, in the order in which they hear of what happens."""

from __future__ import annotations

from quorate.embedded.controllers.accounts import RootCertificates, ServiceAccounts
from quorate.embedded.controllers.base import Controller, Shared
from quorate.embedded.controllers.cron_jobs import CronJobs
from quorate.embedded.controllers.daemon_sets import DaemonSets
from quorate.embedded.controllers.deployments import Deployments
from quorate.embedded.controllers.disruption import DisruptionBudgets
from quorate.embedded.controllers.garbage import GarbageCollector
from quorate.embedded.controllers.jobs import Jobs
from quorate.embedded.controllers.namespaces import Namespaces
from quorate.embedded.controllers.node_lifecycle import NodeLifecycle, TaintEviction
from quorate.embedded.controllers.pod_garbage import PodGarbage
from quorate.embedded.controllers.pod_groups import PodGroupProtection
from quorate.embedded.controllers.replicas import ReplicaSets, ReplicationControllers
from quorate.embedded.controllers.stateful_sets import StatefulSets
from quorate.embedded.controllers.volume_protection import VolumeProtection


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
