"""Budgets, leases, roles and kinds of groups that gangs hardly touch.

Source: kubernetes ``pkg/apis/{policy,coordination,rbac}`` and ``pkg/registry`` of 1.36; of the
groups autoscaling, networking, storage and resource only defaults and what is most often wrong.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from pocketkube.causes import (
    forbidden,
    invalid,
    negative,
    one_of,
    required,
    unsupported,
)
from pocketkube.errors import Cause
from pocketkube.objects import Object
from pocketkube.registry.quantities import canonical_list
from pocketkube.registry.rules.base import Rules
from pocketkube.registry.rules.common import (
    at_most_all,
    needs_version,
    percent_causes,
    set_default,
    spec_of,
    text_of,
    with_status,
)
from pocketkube.registry.rules.selectors import label_selector_causes

RBAC_GROUP = "rbac.authorization.k8s.io"
_SUBJECTS = ("ServiceAccount", "User", "Group")


def _budget_causes(obj: Object) -> list[Cause]:
    spec = spec_of(obj)
    causes: list[Cause] = []
    if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
        why = "minAvailable and maxUnavailable cannot be both set"
        causes.append(invalid("spec", spec, why))
    for field in ("minAvailable", "maxUnavailable"):
        value = spec.get(field)
        causes += percent_causes(value, f"spec.{field}") + at_most_all(value, f"spec.{field}")
    causes += label_selector_causes(spec.get("selector"), "spec.selector")
    policy = spec.get("unhealthyPodEvictionPolicy")
    if policy is not None:
        known = ("AlwaysAllow", "IfHealthyBudget")
        causes += one_of("spec.unhealthyPodEvictionPolicy", policy, known)
    return causes


def _lease_causes(obj: Object) -> list[Cause]:
    spec = obj.get("spec") or {}
    causes: list[Cause] = []
    duration = spec.get("leaseDurationSeconds")
    if duration is not None and duration <= 0:
        causes.append(invalid("spec.leaseDurationSeconds", duration, "must be greater than 0"))
    causes += negative("spec.leaseTransitions", spec.get("leaseTransitions"))
    if spec.get("preferredHolder") and not spec.get("strategy"):
        why = "may only be specified if `strategy` is defined"
        causes.append(forbidden("spec.preferredHolder", why))
    return causes


def _default_lease(obj: Object) -> None:
    spec_of(obj)


def _default_role(obj: Object) -> None:
    if not obj.get("rules"):
        obj["rules"] = None  # as Go writes an empty list here


def _rule_causes(rule: dict[str, Any], field: str, *, namespaced: bool) -> list[Cause]:
    causes: list[Cause] = []
    if not rule.get("verbs"):
        causes.append(required(f"{field}.verbs", "verbs must contain at least one value"))
    paths = rule.get("nonResourceURLs")
    if paths:
        if namespaced:
            why = "namespaced rules cannot apply to non-resource URLs"
            causes.append(invalid(f"{field}.nonResourceURLs", paths, why))
        if rule.get("apiGroups") or rule.get("resources") or rule.get("resourceNames"):
            why = "rules cannot apply to both regular resources and non-resource URLs"
            causes.append(invalid(f"{field}.nonResourceURLs", paths, why))
        return causes
    if not rule.get("apiGroups"):
        why = "resource rules must supply at least one api group"
        causes.append(required(f"{field}.apiGroups", why))
    if not rule.get("resources"):
        why = "resource rules must supply at least one resource"
        causes.append(required(f"{field}.resources", why))
    return causes


def _rules_causes(obj: Object, *, namespaced: bool) -> list[Cause]:
    return [
        cause
        for index, rule in enumerate(obj.get("rules") or ())
        for cause in _rule_causes(rule, f"rules[{index}]", namespaced=namespaced)
    ]


def _role_causes(obj: Object) -> list[Cause]:
    return _rules_causes(obj, namespaced=True)


def _cluster_role_causes(obj: Object) -> list[Cause]:
    causes = _rules_causes(obj, namespaced=False)
    aggregation = obj.get("aggregationRule")
    if aggregation is not None and not aggregation.get("clusterRoleSelectors"):
        why = "at least one clusterRoleSelector required if aggregationRule is non-nil"
        causes.append(required("aggregationRule.clusterRoleSelectors", why))
    for index, selector in enumerate((aggregation or {}).get("clusterRoleSelectors") or ()):
        at = f"aggregationRule.clusterRoleSelectors[{index}]"
        found = label_selector_causes(selector, at)
        causes += [*found, invalid(at, None, "invalid label selector.")] if found else []
    return causes


def _default_binding(obj: Object) -> None:
    set_default(obj, "roleRef", {})
    if not obj["roleRef"].get("apiGroup"):
        obj["roleRef"]["apiGroup"] = RBAC_GROUP
    for subject in obj.get("subjects") or ():
        if subject.get("kind") in ("User", "Group") and not subject.get("apiGroup"):
            subject["apiGroup"] = RBAC_GROUP


def _binding_causes(obj: Object, kinds: tuple[str, ...]) -> list[Cause]:
    role, in_cluster = obj["roleRef"], "Role" not in kinds
    causes: list[Cause] = []
    if role["apiGroup"] != RBAC_GROUP:
        causes.append(unsupported("roleRef.apiGroup", role["apiGroup"], (RBAC_GROUP,)))
    if role.get("kind", "") not in kinds:
        causes.append(unsupported("roleRef.kind", role.get("kind", ""), kinds))
    if not role.get("name"):
        causes.append(required("roleRef.name"))
    for index, subject in enumerate(obj.get("subjects") or ()):
        at = f"subjects[{index}]"
        if not subject.get("name"):
            causes.append(required(f"{at}.name"))
        if subject.get("kind") not in _SUBJECTS:
            causes.append(unsupported(f"{at}.kind", subject.get("kind", ""), _SUBJECTS))
        elif subject["kind"] != "ServiceAccount" and subject.get("apiGroup") != RBAC_GROUP:
            given = subject.get("apiGroup", "")
            causes.append(unsupported(f"{at}.apiGroup", given, (RBAC_GROUP,)))
        elif subject["kind"] == "ServiceAccount" and subject.get("apiGroup"):
            causes.append(unsupported(f"{at}.apiGroup", subject["apiGroup"], ("",)))
        elif subject["kind"] == "ServiceAccount" and not subject.get("namespace") and in_cluster:
            causes.append(required(f"{at}.namespace"))
    return causes


def _role_binding_causes(obj: Object) -> list[Cause]:
    return _binding_causes(obj, ("Role", "ClusterRole"))


def _cluster_binding_causes(obj: Object) -> list[Cause]:
    return _binding_causes(obj, ("ClusterRole",))


def _binding_update_causes(obj: Object, old: Object) -> list[Cause]:
    if obj["roleRef"] == old["roleRef"]:
        return []
    return [invalid("roleRef", obj["roleRef"], "cannot change roleRef")]


def _default_autoscaler(obj: Object) -> None:
    spec = spec_of(obj)
    set_default(spec, "minReplicas", 1)
    set_default(spec, "scaleTargetRef", {})
    if obj.get("apiVersion") == "autoscaling/v2" and not spec.get("metrics"):
        target = {"type": "Utilization", "averageUtilization": 80}
        spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]


def _autoscaler_causes(obj: Object) -> list[Cause]:
    spec = obj["spec"]
    least, most, target = spec["minReplicas"], spec.get("maxReplicas", 0), spec["scaleTargetRef"]
    causes: list[Cause] = []
    if least < 1:
        why = "must be greater than or equal to 1"
        causes.append(invalid("spec.minReplicas", least, why))
    if most < 1:
        causes.append(invalid("spec.maxReplicas", most, "must be greater than 0"))
    if most < least:
        why = "must be greater than or equal to `minReplicas`"
        causes.append(invalid("spec.maxReplicas", most, why))
    causes += [
        required(f"spec.scaleTargetRef.{field}")
        for field in ("kind", "name")
        if not target.get(field)
    ]
    if not target.get("apiVersion"):
        why = "apiVersion must specify API group"
        causes.append(invalid("spec.scaleTargetRef.apiVersion", "", why))
    return causes


def _default_policy(obj: Object) -> None:
    spec = spec_of(obj)
    set_default(spec, "podSelector", {})
    for field in ("ingress", "egress"):
        for rule in spec.get(field) or ():
            for port in rule.get("ports") or ():
                set_default(port, "protocol", "TCP")
    if not spec.get("policyTypes"):
        spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]


def _default_driver(obj: Object) -> None:
    spec = spec_of(obj)
    set_default(spec, "attachRequired", True)
    set_default(spec, "fsGroupPolicy", "ReadWriteOnceWithFSType")
    for field in ("podInfoOnMount", "requiresRepublish", "seLinuxMount", "storageCapacity"):
        set_default(spec, field, False)
    if not spec.get("volumeLifecycleModes"):
        spec["volumeLifecycleModes"] = ["Persistent"]


def _default_runtime_class(obj: Object) -> None:
    canonical_list((obj.get("overhead") or {}).get("podFixed") or {})


def _runtime_class_causes(obj: Object) -> list[Cause]:
    return [] if obj.get("handler") else [required("handler")]


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
    validate=_budget_causes,
    has_generation=True,
)
LEASES = Rules(
    defaults=_default_lease,
    prepare_update=needs_version("coordination.k8s.io", "leases"),
    validate=_lease_causes,
)
ROLES = Rules(defaults=_default_role, validate=_role_causes, name_is="path-segment")
CLUSTER_ROLES = Rules(defaults=_default_role, validate=_cluster_role_causes, name_is="path-segment")
ROLE_BINDINGS = Rules(
    defaults=_default_binding,
    validate=_role_binding_causes,
    validate_update=_binding_update_causes,
    name_is="path-segment",
)
CLUSTER_ROLE_BINDINGS = Rules(
    defaults=_default_binding,
    validate=_cluster_binding_causes,
    validate_update=_binding_update_causes,
    name_is="path-segment",
)
AUTOSCALERS = Rules(
    defaults=_default_autoscaler,
    prepare_create=with_status({"currentMetrics": None, "desiredReplicas": 0}),
    validate=_autoscaler_causes,
)
NETWORK_POLICIES = Rules(defaults=_default_policy, has_generation=True)
INGRESSES = Rules(prepare_create=with_status({"loadBalancer": {}}), has_generation=True)
DRIVERS = Rules(
    defaults=_default_driver, prepare_update=needs_version("storage.k8s.io", "csidrivers")
)
RUNTIME_CLASSES = Rules(
    defaults=_default_runtime_class,
    prepare_update=needs_version("node.k8s.io", "runtimeclasses"),
    validate=_runtime_class_causes,
)
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
PLAIN = Rules()


@lru_cache(maxsize=1024)
def versioned(group: str, plural: str, *, has_generation: bool) -> Rules:
    """Return the rules of a kind of which only this is known: no update without a version."""
    check = needs_version(group, plural)
    return Rules(has_generation=has_generation, prepare_update=check, prepare_status=check)
