"""Fields that have to be given, where the real server says no more than that.

The document calls more fields required than the server refuses to do without: some it sets, some
it lets be empty, of some it says something else (that a port is not between 1 and 65535). The
tables below are what a real server 1.36 answered when each required field was left out of a valid
object; whatever depends on other fields is left to the rules of the kind.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from pocketkube.errors import Cause
from pocketkube.schema.shape import Shape, Type

_PLAIN = """\
admissionregistration.v1.MatchCondition: expression name
admissionregistration.v1.MutatingWebhook: name
admissionregistration.v1.ValidatingWebhook: name
apiextensions.v1.CustomResourceConversion: strategy
apiextensions.v1.CustomResourceDefinitionNames: kind plural
apiextensions.v1.CustomResourceDefinitionSpec: group scope
apps.v1.DeploymentSpec: selector
apps.v1.ReplicaSetSpec: selector
apps.v1.StatefulSetSpec: selector
autoscaling.v1.CrossVersionObjectReference: kind name
autoscaling.v2.CrossVersionObjectReference: kind name
batch.v1.CronJobSpec: schedule
core.v1.AWSElasticBlockStoreVolumeSource: volumeID
core.v1.AzureFileVolumeSource: secretName shareName
core.v1.CSIPersistentVolumeSource: driver volumeHandle
core.v1.CSIVolumeSource: driver
core.v1.CephFSVolumeSource: monitors
core.v1.CinderVolumeSource: volumeID
core.v1.ConfigMapKeySelector: key
core.v1.Container: name
core.v1.ContainerPort: containerPort
core.v1.EnvVar: name
core.v1.FlexVolumeSource: driver
core.v1.GitRepoVolumeSource: repository
core.v1.GlusterfsVolumeSource: endpoints path
core.v1.HostPathVolumeSource: path
core.v1.ISCSIVolumeSource: iqn targetPortal
core.v1.KeyToPath: key path
core.v1.LocalVolumeSource: path
core.v1.NFSVolumeSource: server
core.v1.ObjectFieldSelector: fieldPath
core.v1.PersistentVolumeClaimVolumeSource: claimName
core.v1.PodOS: name
core.v1.PodResourceClaim: name
core.v1.PodSpec: containers
core.v1.PortworxVolumeSource: volumeID
core.v1.QuobyteVolumeSource: volume
core.v1.RBDVolumeSource: image monitors
core.v1.ResourceFieldSelector: resource
core.v1.ScaleIOVolumeSource: gateway system
core.v1.SecretKeySelector: key
core.v1.Sysctl: name
core.v1.TopologySelectorLabelRequirement: values
core.v1.TypedLocalObjectReference: name
core.v1.Volume: name
core.v1.VolumeDevice: devicePath name
core.v1.VolumeMount: mountPath name
core.v1.VsphereVirtualDiskVolumeSource: volumePath
discovery.v1.EndpointSlice: addressType
events.v1.Event: eventTime
events.v1.EventSeries: lastObservedTime
flowcontrol.v1.GroupSubject: name
flowcontrol.v1.LimitResponse: type
flowcontrol.v1.PriorityLevelConfigurationSpec: type
flowcontrol.v1.ServiceAccountSubject: name
flowcontrol.v1.UserSubject: name
networking.v1.HTTPIngressRuleValue: paths
networking.v1.IPAddressSpec: parentRef
networking.v1.IPBlock: cidr
networking.v1.IngressClassParametersReference: kind name
networking.v1.IngressServiceBackend: name
networking.v1.ParentReference: name resource
node.v1.RuntimeClass: handler
rbac.v1.RoleRef: name
rbac.v1.Subject: name
resource.v1.DeviceSubRequest: deviceClassName
resource.v1.ExactDeviceRequest: deviceClassName
resource.v1.OpaqueDeviceConfiguration: driver parameters
resource.v1.ResourcePool: name
resource.v1.ResourceSliceSpec: driver
scheduling.v1alpha2.GangSchedulingPolicy: minCount
scheduling.v1alpha2.PodGroupTemplate: name
scheduling.v1alpha2.TypedLocalObjectReference: kind name
scheduling.v1alpha2.WorkloadSpec: podGroupTemplates
storage.v1.CSINodeDriver: name nodeID
storage.v1.StorageClass: provisioner
storage.v1.VolumeAttachmentSpec: attacher
storage.v1.VolumeAttributesClass: driverName
"""

_WITH_A_REASON = """\
admissionregistration.v1.AuditAnnotation.valueExpression: valueExpression is not specified
admissionregistration.v1.MutatingWebhook.admissionReviewVersions: must specify one of v1, v1beta1
admissionregistration.v1.MutatingWebhook.clientConfig: exactly one of url or service is required
admissionregistration.v1.MutatingWebhook.sideEffects: must specify one of None, NoneOnDryRun
admissionregistration.v1.ValidatingWebhook.admissionReviewVersions: must specify one of v1, v1beta1
admissionregistration.v1.ValidatingWebhook.clientConfig: exactly one of url or service is required
admissionregistration.v1.ValidatingWebhook.sideEffects: must specify one of None, NoneOnDryRun
admissionregistration.v1.Validation.expression: expression is not specified
admissionregistration.v1.Variable.expression: expression is not specified
admissionregistration.v1.Variable.name: name is not specified
autoscaling.v2.ContainerResourceMetricSource.container: must specify a container
autoscaling.v2.ContainerResourceMetricSource.name: must specify a resource name
autoscaling.v2.MetricIdentifier.name: must specify a metric name
autoscaling.v2.ResourceMetricSource.name: must specify a resource name
batch.v1.PodFailurePolicyOnExitCodesRequirement.operator: valid values: ["In" "NotIn"]
batch.v1.PodFailurePolicyRule.action: valid values: ["Count" "FailIndex" "FailJob" "Ignore"]
batch.v1.SuccessPolicy.rules: at least one rules must be specified when the successPolicy is specified
core.v1.AppArmorProfile.type: type is required when appArmorProfile is set
core.v1.NodeSelector.nodeSelectorTerms: must have at least one node selector term
core.v1.QuobyteVolumeSource.registry: must be a host:port pair or multiple pairs separated by commas
core.v1.SeccompProfile.type: type is required when seccompProfile is set
core.v1.TopologySpreadConstraint.topologyKey: can not be empty
discovery.v1.Endpoint.addresses: must contain at least 1 address
flowcontrol.v1.NonResourcePolicyRule.nonResourceURLs: nonResourceURLs must contain at least one value
flowcontrol.v1.NonResourcePolicyRule.verbs: verbs must contain at least one value
flowcontrol.v1.PolicyRulesWithSubjects.subjects: subjects must contain at least one value
flowcontrol.v1.PriorityLevelConfigurationReference.name: must reference a priority level
flowcontrol.v1.ResourcePolicyRule.apiGroups: resource rules must supply at least one api group
flowcontrol.v1.ResourcePolicyRule.resources: resource rules must supply at least one resource
flowcontrol.v1.ResourcePolicyRule.verbs: verbs must contain at least one value
flowcontrol.v1.ServiceAccountSubject.namespace: must specify namespace for service account
networking.v1.HTTPIngressPath.pathType: pathType must be specified
rbac.v1.PolicyRule.verbs: verbs must contain at least one value
resource.v1.ResourceSlice.spec: exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required
storage.v1.VolumeAttachmentSpec.source: must specify exactly one of inlineVolumeSpec and persistentVolumeName
"""  # noqa: E501 (sentences of the real server)

_ROOT = "io.k8s.api."
_OTHER_ROOTS = {"apiextensions.v1": "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1"}


class _Wanted(NamedTuple):
    """What one shape requires, and the fields below which something may be required."""

    messages: dict[str, str]  # by field
    below: dict[str, bool]  # whether the field is a struct that is there even if it was not given


def _tables() -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for line in _PLAIN.splitlines():
        struct, _, fields = line.partition(": ")
        found.setdefault(_full(struct), {}).update(dict.fromkeys(fields.split(), "Required value"))
    for line in _WITH_A_REASON.splitlines():
        path, _, reason = line.partition(": ")
        struct, _, field = path.rpartition(".")
        found.setdefault(_full(struct), {})[field] = f"Required value: {reason}"
    return found


def _full(struct: str) -> str:
    package, _, name = struct.rpartition(".")
    return f"{_OTHER_ROOTS[package]}.{name}" if package in _OTHER_ROOTS else f"{_ROOT}{struct}"


_REQUIRED = _tables()
_wanted: dict[Shape, _Wanted] = {}  # of the document's shapes, which live as long as the process


def required_causes(value: Any, shape: Shape) -> list[Cause]:
    """Return a cause for each field that is missing or, which is the same for Go, empty.

    The value has to match its shape. A struct that was not given is looked into like an empty one,
    as Go does: a pod without a spec lacks ``spec.containers``.
    """
    causes: list[Cause] = []
    _collect(value, shape, "", causes)
    return causes


def _collect(value: Any, shape: Shape, path: str, causes: list[Cause]) -> None:
    if shape.type is Type.OBJECT:
        wanted = _wanted.get(shape) or _learn(shape)
        given = value if isinstance(value, dict) else {}
        for field, message in wanted.messages.items():
            if not given.get(field):
                causes.append(Cause("FieldValueRequired", message, f"{path}{field}"))
        for field, always in wanted.below.items():
            inner = given.get(field)
            if inner is not None or (always and field not in wanted.messages):
                _collect(inner, shape.fields[field], f"{path}{field}.", causes)
    elif shape.item is not None and isinstance(value, list):
        for index, inner in enumerate(value):
            _collect(inner, shape.item, f"{path.removesuffix('.')}[{index}].", causes)


def _learn(shape: Shape) -> _Wanted:
    """Look once at a shape; ``status`` is the server's own, and nothing in it is asked for."""
    messages = _REQUIRED.get(shape.name, {})
    below = {
        field: shape.fills.get(field) == {}
        for field, inner in shape.fields.items()
        if field != "status" and _leads_on(inner)
    }
    wanted = _Wanted(messages, below)
    if shape.name:
        _wanted[shape] = wanted
    return wanted


def _leads_on(shape: Shape) -> bool:
    """Tell whether a field may lead to another struct; maps lead to none that is in the tables."""
    inner = shape.item if shape.type is Type.LIST else shape
    return inner is not None and inner.type is Type.OBJECT
