"""Budgets, leases, roles and kinds of groups that gangs hardly touch.

Source: kubernetes ``pkg/apis/{policy,coordination,rbac}`` and ``pkg/registry`` of 1.36; of the
groups autoscaling, networking, storage and resource only defaults and what is most often wrong.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from pocketkube.causes import forbidden, invalid
from pocketkube.errors import Cause
from pocketkube.objects import Object
from pocketkube.registry.rules.common import (
    Rules,
    needs_version,
    set_default,
    spec_of,
    text_of,
    with_status,
)

RBAC_GROUP = "rbac.authorization.k8s.io"


def _default_lease(obj: Object) -> None:
    spec_of(obj)


def _default_role(obj: Object) -> None:
    if not obj.get("rules"):
        obj["rules"] = None  # as Go writes an empty list here


def _default_binding(obj: Object) -> None:
    set_default(obj, "roleRef", {})
    if not obj["roleRef"].get("apiGroup"):
        obj["roleRef"]["apiGroup"] = RBAC_GROUP
    for subject in obj.get("subjects") or ():
        if subject.get("kind") in ("User", "Group") and not subject.get("apiGroup"):
            subject["apiGroup"] = RBAC_GROUP


def _binding_update_causes(obj: Object, old: Object) -> list[Cause]:
    if obj["roleRef"] == old["roleRef"]:
        return []
    return [invalid("roleRef", obj["roleRef"], "cannot change roleRef")]


def _default_resource_claim(obj: Object) -> None:
    _default_devices(spec_of(obj))


def _default_claim_template(obj: Object) -> None:
    spec = spec_of(obj)
    set_default(spec, "spec", {})
    _default_devices(spec["spec"])


def _default_devices(spec: dict[str, Any]) -> None:
    for request in (spec.get("devices") or {}).get("requests") or ():
        choices = [request.get("exactly"), *(request.get("firstAvailable") or ())]
        for choice in choices:
            if choice is not None:
                set_default(choice, "allocationMode", "ExactCount")
                if choice["allocationMode"] == "ExactCount" and not choice.get("count"):
                    choice["count"] = 1


_NO_BUDGET = {"currentHealthy": 0, "desiredHealthy": 0, "disruptionsAllowed": 0, "expectedPods": 0}

BUDGETS = Rules(
    prepare_create=with_status(_NO_BUDGET),
    prepare_update=needs_version("policy", "poddisruptionbudgets"),
    prepare_status=needs_version("policy", "poddisruptionbudgets"),
    name_is="path-segment",
    has_generation=True,
)
LEASES = Rules(
    defaults=_default_lease,
    prepare_update=needs_version("coordination.k8s.io", "leases"),
)
ROLES = Rules(defaults=_default_role, name_is="path-segment")
"""Of roles and cluster roles; as ``ROLE_BINDINGS`` of both kinds of bindings."""
ROLE_BINDINGS = Rules(
    defaults=_default_binding,
    validate_update=_binding_update_causes,
    name_is="path-segment",
)
INGRESSES = Rules(prepare_create=with_status({"loadBalancer": {}}), has_generation=True)
RESOURCE_CLAIMS = Rules(defaults=_default_resource_claim, prepare_create=with_status({}))
RESOURCE_CLAIM_TEMPLATES = Rules(defaults=_default_claim_template)
RESOURCE_SLICES = Rules(
    has_generation=True,
    selectable={
        "spec.nodeName": text_of("spec", "nodeName"),
        "spec.driver": text_of("spec", "driver"),
    },
)
SIGNING_REQUESTS = Rules(
    prepare_create=with_status({}), selectable={"spec.signerName": text_of("spec", "signerName")}
)
WITH_GENERATION = Rules(has_generation=True)


def _policy_causes(obj: Object) -> list[Cause]:
    """Refuse what this cluster does not evaluate, so that nobody relies on it."""
    spec = spec_of(obj)
    parts = {
        "spec": (spec, {"failurePolicy", "matchConstraints", "validations"}),
        **{
            f"spec.validations[{index}]": (validation, {"expression", "message"})
            for index, validation in enumerate(spec.get("validations") or ())
        },
    }
    causes = [
        forbidden(f"{where}.{field}", _NOT_EVALUATED)
        for where, (part, known) in parts.items()
        for field in sorted(part.keys() - known)
    ]
    if spec.get("failurePolicy") == "Ignore":
        causes.append(forbidden("spec.failurePolicy", _NOT_EVALUATED))
    return causes


def _policy_binding_causes(obj: Object) -> list[Cause]:
    spec = spec_of(obj)
    known = {"matchResources", "policyName", "validationActions"}
    causes = [forbidden(f"spec.{field}", _NOT_EVALUATED) for field in sorted(spec.keys() - known)]
    if spec.get("validationActions") != ["Deny"]:
        causes.append(forbidden("spec.validationActions", "this cluster knows [Deny] only"))
    return causes


_NOT_EVALUATED = "this cluster does not evaluate it"
POLICIES = Rules(has_generation=True, validate=_policy_causes)
POLICY_BINDINGS = Rules(has_generation=True, validate=_policy_binding_causes)
PLAIN = Rules()


@lru_cache(maxsize=1024)
def versioned(group: str, plural: str, *, has_generation: bool) -> Rules:
    """Return the rules of a kind of which only this is known: no update without a version."""
    check = needs_version(group, plural)
    return Rules(has_generation=has_generation, prepare_update=check, prepare_status=check)
