"""Who made a pod, and in which run. In: the controller that the pod names, and its labels."""

from __future__ import annotations

import sys
from collections.abc import Mapping

from quorate.core.model import Owner
from quorate.shell.kube.objects import OwnerRef

_JOBSET_UID = "jobset.sigs.k8s.io/jobset-uid"
_JOBSET_RESTARTS = "jobset.sigs.k8s.io/restart-attempt"
"""JobSet gives these labels to the pods of all its Jobs."""


def owner_of(controller: OwnerRef, labels: Mapping[str, str]) -> Owner:
    """Return who makes a pod; a Deployment's ReplicaSet is named by its Deployment.

    The ReplicaSet's name ends in the hash that its pods carry; a ReplicaSet without a Deployment
    has no such label.
    """
    suffix = f"-{labels.get('pod-template-hash', '')}"
    kind, name = controller.kind, controller.name
    if kind == "ReplicaSet" and len(suffix) > 1 and name.endswith(suffix):
        return Owner("apps/v1", "Deployment", name.removesuffix(suffix))
    return Owner(controller.api_version, kind, name)


def run_of(controller: OwnerRef, labels: Mapping[str, str]) -> str:
    """Return what tells the pods that were made together from those of a later run.

    That is their controller. A JobSet's are those of all its Jobs, until it makes them all anew.
    """
    if uid := labels.get(_JOBSET_UID):
        return sys.intern(f"{uid}/{labels.get(_JOBSET_RESTARTS, '')}")
    return sys.intern(controller.uid)
