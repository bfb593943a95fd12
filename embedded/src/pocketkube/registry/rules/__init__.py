"""The rules of single kinds: defaults, what the server sets itself, checks that no schema states.

One module per family of kinds; ``RULES`` is the table of them all, by bucket.
"""

from __future__ import annotations

from collections.abc import Mapping

from pocketkube.registry.rules import (
    core,
    definitions,
    events,
    others,
    scheduling,
    volumes,
)
from pocketkube.registry.rules.common import Rules, Surroundings
from pocketkube.registry.rules.pods.pods import PODS
from pocketkube.registry.rules.workloads import apps, batch
from pocketkube.schema.resource import Resource

__all__ = ["RULES", "Rules", "Surroundings", "rules_of"]

RULES: Mapping[str, Rules] = {
    "configmaps": core.CONFIG_MAPS,
    "events": events.CORE_EVENTS,
    "namespaces": core.NAMESPACES,
    "nodes": core.NODES,
    "persistentvolumeclaims": volumes.CLAIMS,
    "persistentvolumes": volumes.VOLUMES,
    "pods": PODS,
    "resourcequotas": core.QUOTAS,
    "secrets": core.SECRETS,
    "services": core.SERVICES,
    "controllerrevisions.apps": apps.CONTROLLER_REVISIONS,
    "daemonsets.apps": apps.DAEMON_SETS,
    "deployments.apps": apps.DEPLOYMENTS,
    "replicasets.apps": apps.REPLICA_SETS,
    "statefulsets.apps": apps.STATEFUL_SETS,
    "cronjobs.batch": batch.CRON_JOBS,
    "jobs.batch": batch.JOBS,
    "certificatesigningrequests.certificates.k8s.io": others.SIGNING_REQUESTS,
    "leases.coordination.k8s.io": others.LEASES,
    "endpointslices.discovery.k8s.io": others.WITH_GENERATION,
    "ingresses.networking.k8s.io": others.INGRESSES,
    "ingressclasses.networking.k8s.io": others.WITH_GENERATION,
    "networkpolicies.networking.k8s.io": others.WITH_GENERATION,
    "poddisruptionbudgets.policy": others.BUDGETS,
    "clusterrolebindings.rbac.authorization.k8s.io": others.ROLE_BINDINGS,
    "clusterroles.rbac.authorization.k8s.io": others.ROLES,
    "rolebindings.rbac.authorization.k8s.io": others.ROLE_BINDINGS,
    "roles.rbac.authorization.k8s.io": others.ROLES,
    "deviceclasses.resource.k8s.io": others.WITH_GENERATION,
    "resourceclaims.resource.k8s.io": others.RESOURCE_CLAIMS,
    "resourceclaimtemplates.resource.k8s.io": others.RESOURCE_CLAIM_TEMPLATES,
    "resourceslices.resource.k8s.io": others.RESOURCE_SLICES,
    "podgroups.scheduling.k8s.io": scheduling.POD_GROUPS,
    "priorityclasses.scheduling.k8s.io": scheduling.CLASSES,
    "workloads.scheduling.k8s.io": scheduling.WORKLOADS,
    "storageclasses.storage.k8s.io": volumes.STORAGE_CLASSES,
    "customresourcedefinitions.apiextensions.k8s.io": definitions.RULES,
    "flowschemas.flowcontrol.apiserver.k8s.io": others.WITH_GENERATION,
    "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io": others.WITH_GENERATION,
    **{
        f"{plural}.storage.k8s.io": others.versioned("storage.k8s.io", plural, has_generation=False)
        for plural in ("csidrivers", "csinodes", "csistoragecapacities", "volumeattachments")
    },
    "validatingadmissionpolicies.admissionregistration.k8s.io": others.POLICIES,
    "validatingadmissionpolicybindings.admissionregistration.k8s.io": others.POLICY_BINDINGS,
}


def rules_of(resource: Resource) -> Rules:
    """Return the rules of a resource: of its kind, of custom resources, or none but the shared."""
    if resource.crd:
        return others.versioned(resource.group, resource.plural, has_generation=True)
    if resource.bucket == "events" and resource.group:
        return events.NEW_EVENTS
    return RULES.get(resource.bucket, others.PLAIN)
