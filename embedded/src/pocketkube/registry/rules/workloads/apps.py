"""Deployments, ReplicaSets, StatefulSets, DaemonSets and their kin.

Source: kubernetes ``pkg/apis/apps`` (defaults, validation) and ``pkg/registry/apps`` of 1.36.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pocketkube.causes import (
    forbidden,
    immutable,
    invalid,
    negative,
    one_of,
    required,
    unsupported,
)
from pocketkube.errors import Cause
from pocketkube.names import dns_label, invalid_text
from pocketkube.objects import Object
from pocketkube.registry.rules.base import Rules, Surroundings
from pocketkube.registry.rules.common import (
    at_most_all,
    is_zero,
    number_of,
    percent_causes,
    set_default,
    spec_of,
    with_status,
)
from pocketkube.registry.rules.pods.pod_defaults import default_template
from pocketkube.registry.rules.pods.pod_spec import template_causes
from pocketkube.registry.rules.selectors import label_selector_causes, matches
from pocketkube.registry.rules.volumes import claim_causes, default_claim
from pocketkube.registry.rules.workloads import apps_status

_MISMATCH = "`selector` does not match template `labels`"
_TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"


def default_template_of(spec: dict[str, Any]) -> None:
    """Set the defaults of ``spec.template``, in place."""
    if spec.get("template") is None:
        spec["template"] = {}
    default_template(spec["template"])


def _default_replicas(obj: Object) -> None:
    spec = spec_of(obj)
    default_template_of(spec)
    set_default(spec, "replicas", 1)


def _default_deployment(obj: Object) -> None:
    _default_replicas(obj)
    spec = obj["spec"]
    if spec.get("strategy") is None:
        spec["strategy"] = {}
    strategy = spec["strategy"]
    if not strategy.get("type"):
        strategy["type"] = "RollingUpdate"
    if strategy["type"] == "RollingUpdate":
        set_default(strategy, "rollingUpdate", {})
        set_default(strategy["rollingUpdate"], "maxUnavailable", "25%")
        set_default(strategy["rollingUpdate"], "maxSurge", "25%")
    set_default(spec, "revisionHistoryLimit", 10)
    set_default(spec, "progressDeadlineSeconds", 600)


def _selector_causes(spec: dict[str, Any], kind: str) -> list[Cause]:
    selector = spec.get("selector")
    if selector is None:
        return [required("spec.selector")]
    causes = label_selector_causes(selector, "spec.selector")
    if not selector.get("matchLabels") and not selector.get("matchExpressions"):
        causes.append(invalid("spec.selector", selector, f"empty selector is invalid for {kind}"))
    return causes


def _template_causes(spec: dict[str, Any], kind: str, *, fits_empty: bool) -> list[Cause]:
    """Check the template of what keeps its pods running; ``fits_empty``: of an empty selector."""
    template, selector = spec["template"], spec.get("selector")
    causes: list[Cause] = []
    labels = template["metadata"].get("labels")
    empty = selector is not None and not any(selector.values())
    if label_selector_causes(selector, ""):
        causes.append(invalid("spec.selector", selector, "invalid label selector."))
    elif not (fits_empty and empty) and not matches(selector, labels or {}):
        causes.append(invalid("spec.template.metadata.labels", labels, _MISMATCH))
    causes += template_causes(template, "spec.template")
    policy = template["spec"]["restartPolicy"]
    if policy != "Always":
        at = "spec.template.spec.restartPolicy"
        causes.append(unsupported(at, policy, ("Always",)))
    if template["spec"].get("activeDeadlineSeconds") is not None:
        why = f"activeDeadlineSeconds in {kind} is not Supported"
        causes.append(forbidden("spec.template.spec.activeDeadlineSeconds", why))
    return causes


def _not_negative(spec: dict[str, Any], *fields: str) -> list[Cause]:
    return [cause for field in fields for cause in negative(f"spec.{field}", spec.get(field))]


def _deployment_causes(obj: Object) -> list[Cause]:
    spec = obj["spec"]
    causes = _not_negative(spec, "replicas") + _selector_causes(spec, "deployment")
    causes += _template_causes(spec, "ReplicaSet", fits_empty=True)
    causes += _strategy_causes(spec["strategy"], "spec.strategy")
    causes += _not_negative(
        spec, "minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds"
    )
    deadline = spec["progressDeadlineSeconds"]
    if deadline <= spec.get("minReadySeconds", 0):
        why = "must be greater than minReadySeconds"
        causes.append(invalid("spec.progressDeadlineSeconds", deadline, why))
    return causes


def _strategy_causes(strategy: dict[str, Any], field: str) -> list[Cause]:
    kind = strategy["type"]
    if kind == "Recreate":
        why = "may not be specified when strategy `type` is 'Recreate'"
        extra = strategy.get("rollingUpdate") is not None
        return [forbidden(f"{field}.rollingUpdate", why)] if extra else []
    if kind != "RollingUpdate":
        return [unsupported(field, strategy, ("Recreate", "RollingUpdate"))]
    rolling = strategy["rollingUpdate"]
    unavailable, surge = rolling["maxUnavailable"], rolling["maxSurge"]
    at = f"{field}.rollingUpdate"
    causes = percent_causes(unavailable, f"{at}.maxUnavailable")
    causes += percent_causes(surge, f"{at}.maxSurge")
    if is_zero(unavailable) and is_zero(surge):
        why = "may not be 0 when `maxSurge` is 0"
        causes.append(invalid(f"{at}.maxUnavailable", unavailable, why))
    return causes + at_most_all(unavailable, f"{at}.maxUnavailable")


def _replica_set_causes(obj: Object) -> list[Cause]:
    spec = obj["spec"]
    causes = _not_negative(spec, "replicas", "minReadySeconds")
    causes += _selector_causes(spec, "deployment")  # upstream says so of ReplicaSets too
    return causes + _template_causes(spec, "ReplicaSet", fits_empty=True)


def _fixed_selector(obj: Object, old: Object) -> list[Cause]:
    return immutable("spec.selector", obj["spec"].get("selector"), old["spec"].get("selector"))


def _default_stateful_set(obj: Object) -> None:
    _default_replicas(obj)
    spec = obj["spec"]
    if not spec.get("podManagementPolicy"):
        spec["podManagementPolicy"] = "OrderedReady"
    set_default(spec, "updateStrategy", {})
    strategy = spec["updateStrategy"]
    if not strategy.get("type"):
        strategy["type"] = "RollingUpdate"
        set_default(strategy, "rollingUpdate", {})
    if strategy["type"] == "RollingUpdate" and strategy.get("rollingUpdate") is not None:
        set_default(strategy["rollingUpdate"], "partition", 0)
    set_default(spec, "persistentVolumeClaimRetentionPolicy", {})
    for field in ("whenDeleted", "whenScaled"):
        set_default(spec["persistentVolumeClaimRetentionPolicy"], field, "Retain")
    set_default(spec, "revisionHistoryLimit", 10)
    set_default(spec, "serviceName", "")
    for claim in spec.get("volumeClaimTemplates") or ():
        claim |= {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}
        default_claim(claim)
        claim["status"] = {"phase": "Pending"}


def _stateful_set_causes(obj: Object) -> list[Cause]:
    spec = obj["spec"]
    causes: list[Cause] = []
    management = spec["podManagementPolicy"]
    if management not in ("OrderedReady", "Parallel"):
        why = "must be 'OrderedReady' or 'Parallel'"
        causes.append(invalid("spec.podManagementPolicy", management, why))
    strategy = spec["updateStrategy"]
    if strategy["type"] not in ("RollingUpdate", "OnDelete"):
        why = "must be 'RollingUpdate' or 'OnDelete'"
        causes.append(invalid("spec.updateStrategy", strategy, why))
    retention = spec["persistentVolumeClaimRetentionPolicy"]
    for field in ("whenDeleted", "whenScaled"):
        at = f"spec.persistentVolumeClaimRetentionPolicy.{field}"
        causes += one_of(at, retention[field], ("Retain", "Delete"))
    causes += _not_negative(spec, "replicas", "minReadySeconds")
    causes += negative("spec.ordinals.start", (spec.get("ordinals") or {}).get("start"))
    if spec["serviceName"]:
        causes += invalid_text("spec.serviceName", spec["serviceName"], dns_label)
    causes += _selector_causes(spec, "statefulset")
    claims = spec.get("volumeClaimTemplates")
    if claims:
        spec = {**spec, "template": _with_claims(spec["template"], claims)}
    return causes + _template_causes(spec, "StatefulSet", fits_empty=True)


def _claims_causes(obj: Object) -> list[Cause]:
    return [
        cause._replace(field=f"spec.volumeClaimTemplates[{index}].{cause.field}")
        for index, claim in enumerate(obj["spec"].get("volumeClaimTemplates") or ())
        for cause in claim_causes(claim)
    ]


def _with_claims(template: dict[str, Any], claims: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the template with the volumes that its claims will become."""
    names = [(claim.get("metadata") or {}).get("name", "") for claim in claims]
    own = [one for one in template["spec"].get("volumes") or () if one.get("name") not in names]
    claimed = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in names]
    return {**template, "spec": {**template["spec"], "volumes": [*claimed, *own]}}


_STATEFUL_SET_MAY_CHANGE = (
    "replicas",
    "template",
    "updateStrategy",
    "minReadySeconds",
    "ordinals",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
)


def _stateful_set_update_causes(obj: Object, old: Object) -> list[Cause]:
    new, before = obj["spec"], old["spec"]
    fields = (new.keys() | before.keys()) - set(_STATEFUL_SET_MAY_CHANGE)
    if all(new.get(field) == before.get(field) for field in fields):
        return []
    why = (
        "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', "
        "'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and "
        "'minReadySeconds' are forbidden"
    )
    return [forbidden("spec", why)]


def _default_daemon_set(obj: Object) -> None:
    spec = spec_of(obj)
    default_template_of(spec)
    set_default(spec, "updateStrategy", {})
    strategy = spec["updateStrategy"]
    if not strategy.get("type"):
        strategy["type"] = "RollingUpdate"
    if strategy["type"] == "RollingUpdate":
        set_default(strategy, "rollingUpdate", {})
        set_default(strategy["rollingUpdate"], "maxUnavailable", 1)
        set_default(strategy["rollingUpdate"], "maxSurge", 0)
    set_default(spec, "revisionHistoryLimit", 10)


def _daemon_set_causes(obj: Object) -> list[Cause]:
    spec = obj["spec"]
    causes = [] if spec.get("selector") is None else _selector_causes(spec, "daemonset")
    causes += _template_causes(spec, "DaemonSet", fits_empty=False)
    causes += _not_negative(spec, "minReadySeconds", "revisionHistoryLimit")
    strategy = spec["updateStrategy"]
    if strategy["type"] not in ("RollingUpdate", "OnDelete"):
        known = ("RollingUpdate", "OnDelete")
        return [*causes, unsupported("spec.updateStrategy", strategy, known)]
    rolling = strategy.get("rollingUpdate")
    if rolling is None or strategy["type"] == "OnDelete":
        return causes
    at = "spec.updateStrategy.rollingUpdate"
    for field in ("maxUnavailable", "maxSurge"):
        causes += percent_causes(rolling[field], f"{at}.{field}")
        causes += at_most_all(rolling[field], f"{at}.{field}")
    if is_zero(rolling["maxUnavailable"]) and is_zero(rolling["maxSurge"]):
        causes.append(required(f"{at}.maxUnavailable", "cannot be 0 when maxSurge is 0"))
    elif not is_zero(rolling["maxUnavailable"]) and not is_zero(rolling["maxSurge"]):
        why = "may not be set when maxUnavailable is non-zero"
        causes.append(invalid(f"{at}.maxSurge", rolling["maxSurge"], why))
    return causes


def _prepare_daemon_set(obj: Object, around: Surroundings) -> None:
    _no_daemons(obj, around)
    set_default(obj["metadata"], "annotations", {})
    obj["metadata"]["annotations"].setdefault(_TEMPLATE_GENERATION, "1")


def _prepare_daemon_set_update(obj: Object, old: Object, _around: object = None) -> None:
    generation = int((old["metadata"].get("annotations") or {}).get(_TEMPLATE_GENERATION, "0"))
    if obj["spec"]["template"] != old["spec"]["template"]:
        generation += 1
    set_default(obj["metadata"], "annotations", {})
    obj["metadata"]["annotations"][_TEMPLATE_GENERATION] = str(generation)


_no_daemons = with_status(
    {
        "currentNumberScheduled": 0,
        "desiredNumberScheduled": 0,
        "numberMisscheduled": 0,
        "numberReady": 0,
    }
)


def _revision_causes(obj: Object) -> list[Cause]:
    causes = negative("revision", obj.get("revision", 0))
    return (
        causes if obj.get("data") is not None else [*causes, required("data", "data is mandatory")]
    )


def _fixed_data(obj: Object, old: Object) -> list[Cause]:
    return immutable("data", obj.get("data"), old.get("data"))


def _default_controller(obj: Object) -> None:
    """Set the defaults of a ReplicationController: its labels are those of its pods."""
    spec = spec_of(obj)
    set_default(spec, "replicas", 1)
    if spec.get("template") is None:
        return
    default_template(spec["template"])
    labels = spec["template"]["metadata"].get("labels")
    if labels:
        spec["selector"] = spec.get("selector") or dict(labels)
        obj["metadata"]["labels"] = obj["metadata"].get("labels") or dict(labels)


def _controller_causes(obj: Object) -> list[Cause]:
    spec = obj["spec"]
    causes = _not_negative(spec, "minReadySeconds")
    if not spec.get("selector"):
        causes.append(required("spec.selector"))
    causes += _not_negative(spec, "replicas")
    if spec.get("template") is None:
        return [*causes, required("spec.template")]
    selector = {"matchLabels": spec.get("selector") or {}}
    shown = {**spec, "selector": selector}
    return causes + _template_causes(shown, "ReplicationController", fits_empty=True)


_no_replicas: Callable[[Object, Surroundings], None] = with_status({"replicas": 0})

DEPLOYMENTS = Rules(
    validate_status=apps_status.DEPLOYMENT,
    defaults=_default_deployment,
    prepare_create=with_status({}),
    validate=_deployment_causes,
    validate_update=_fixed_selector,
    has_generation=True,
    counts_annotations=True,
)
REPLICA_SETS = Rules(
    validate_status=apps_status.REPLICA_SET,
    defaults=_default_replicas,
    prepare_create=_no_replicas,
    validate=_replica_set_causes,
    validate_update=_fixed_selector,
    has_generation=True,
    selectable={"status.replicas": number_of("status", "replicas")},
)
STATEFUL_SETS = Rules(
    validate_status=apps_status.STATEFUL_SET,
    defaults=_default_stateful_set,
    prepare_create=with_status({"replicas": 0, "availableReplicas": 0}),
    validate=_stateful_set_causes,
    validate_create=_claims_causes,
    validate_update=_stateful_set_update_causes,
    has_generation=True,
    name_is="dns-label",
)
DAEMON_SETS = Rules(
    validate_status=apps_status.DAEMON_SET,
    defaults=_default_daemon_set,
    prepare_create=_prepare_daemon_set,
    prepare_update=_prepare_daemon_set_update,
    prepare_status=_prepare_daemon_set_update,
    validate=_daemon_set_causes,
    validate_update=_fixed_selector,
    has_generation=True,
)
CONTROLLER_REVISIONS = Rules(validate=_revision_causes, validate_update=_fixed_data)
REPLICATION_CONTROLLERS = Rules(
    defaults=_default_controller,
    prepare_create=_no_replicas,
    validate=_controller_causes,
    has_generation=True,
    selectable={"status.replicas": number_of("status", "replicas")},
)
