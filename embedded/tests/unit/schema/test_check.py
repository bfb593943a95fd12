"""Wrong types, unknown fields, what is left: words of a real server 1.36."""

import copy
from typing import Any

import pytest

from pocketkube.schema.check import decode_error, findings
from pocketkube.schema.document import Document
from pocketkube.schema.roundtrip import filled, pruned

DOCUMENT = Document.load()
SHAPES = {resource.kind: resource.shape for resource in DOCUMENT.resources()}


def pod() -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }


def changed(*path: Any, to: Any) -> dict[str, Any]:
    result = pod()
    obj: Any = result
    for key in path[:-1]:
        obj = obj[key] if isinstance(key, int) else obj.setdefault(key, {})
    obj[path[-1]] = to
    return result


def error(obj: Any, kind: str = "Pod") -> str:
    return decode_error(findings(obj, SHAPES[kind]).mismatches[0], kind)


IN_CONTAINER = ("spec", "containers", 0)
META = "ObjectMeta.metadata"
SPEC = "PodSpec.spec"
LIMITS = (*IN_CONTAINER, "resources", "limits")
WRONG = [
    (("metadata",), "x", "string", "Pod.metadata of type v1.ObjectMeta"),
    (("metadata", "labels"), ["a"], "array", f"{META}.labels of type map[string]string"),
    (("metadata", "labels"), {"a": 1}, "number", f"{META}.labels of type string"),
    (("metadata", "generation"), 2**63, f"number {2**63}", f"{META}.generation of type int64"),
    (("metadata", "creationTimestamp"), 5, "number", f"{META}.creationTimestamp of type string"),
    (("spec",), [], "array", "Pod.spec of type v1.PodSpec"),
    (("spec", "hostNetwork"), "true", "string", f"{SPEC}.hostNetwork of type bool"),
    (("spec", "restartPolicy"), 5, "number", f"{SPEC}.restartPolicy of type v1.RestartPolicy"),
    (("spec", "priority"), 1.5, "number 1.5", f"{SPEC}.priority of type int32"),
    (("spec", "priority"), 2.0, "number 2.0", f"{SPEC}.priority of type int32"),
    (("spec", "priority"), 2**31, f"number {2**31}", f"{SPEC}.priority of type int32"),
    (("spec", "priority"), True, "bool", f"{SPEC}.priority of type int32"),
    (("spec", "containers"), {}, "object", f"{SPEC}.containers of type []v1.Container"),
    (("spec", "containers"), ["x"], "string", f"{SPEC}.containers of type v1.Container"),
    ((*IN_CONTAINER, "args"), [1], "number", "Container.spec.containers.args of type string"),
    (
        (*IN_CONTAINER, "ports"),
        [{"containerPort": "80"}],
        "string",
        "ContainerPort.spec.containers.ports.containerPort of type int32",
    ),
    (
        (*IN_CONTAINER, "resources", "limits"),
        ["x"],
        "array",
        "ResourceRequirements.spec.containers.resources.limits of type v1.ResourceList",
    ),
    (
        (*IN_CONTAINER, "securityContext", "capabilities", "add"),
        [5],
        "number",
        "Capabilities.spec.containers.securityContext.capabilities.add of type v1.Capability",
    ),
    (
        (*IN_CONTAINER, "livenessProbe", "httpGet", "port"),
        True,
        "bool",
        "HTTPGetAction.spec.containers.livenessProbe.ProbeHandler.httpGet.port of type int32",
    ),
    (
        ("spec", "volumes"),
        [{"name": "v", "hostPath": 5}],
        "number",
        "Volume.spec.volumes.VolumeSource.hostPath of type v1.HostPathVolumeSource",
    ),
]


@pytest.mark.parametrize(("path", "value", "got", "where"), WRONG)
def test_a_wrong_type_is_told_in_the_words_of_go(path, value, got, where):
    expected = f"json: cannot unmarshal {got} into Go struct field {where}"
    assert error(changed(*path, to=value)) == expected


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        (LIMITS, {"cpu": "5mm"}, "unable to parse quantity's suffix"),
        (
            LIMITS,
            {"cpu": True},
            "quantities must match the regular expression "
            "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
        ),
        (
            ("metadata", "creationTimestamp"),
            "yesterday",
            'parsing time "yesterday" as "2006-01-02T15:04:05Z07:00": it has another form',
        ),
    ],
)
def test_a_text_of_the_wrong_form_is_told_in_the_words_of_go(path, value, expected):
    assert error(changed(*path, to=value)) == expected


def test_named_types_of_go_are_told_by_their_names():
    attributes = {"spec": {"devices": [{"attributes": []}]}}
    assert error(attributes, "ResourceSlice").endswith(
        "Device.spec.devices.attributes of type map[v1.QualifiedName]v1.DeviceAttribute"
    )
    schema = {"x-kubernetes-validations": [True]}
    versions = [{"schema": {"openAPIV3Schema": schema}}]
    definition = {"spec": {"versions": versions}}
    assert error(definition, "CustomResourceDefinition").endswith(
        "openAPIV3Schema.x-kubernetes-validations of type v1.ValidationRule"
    )


def test_bytes_have_to_be_base64():
    assert error({"data": {"a": "%"}}, "Secret") == "illegal base64 data at input byte 0"
    expected = "json: cannot unmarshal number into Go struct field Secret.data of type []uint8"
    assert error({"data": {"a": 5}}, "Secret") == expected


def test_of_two_mismatches_the_first_is_told_unless_the_other_stops_the_decoder():
    obj = changed("metadata", "labels", to=[])
    obj["spec"]["hostNetwork"] = "x"
    assert error(obj).endswith("ObjectMeta.metadata.labels of type map[string]string")
    obj["spec"]["containers"][0]["resources"] = {"limits": {"cpu": "x"}}
    assert error(obj).startswith("quantities must match")


def test_a_mismatch_knows_its_path_and_types():
    found = findings(changed(*IN_CONTAINER, "ports", to=[{"hostPort": "x"}]), SHAPES["Pod"])
    (mismatch,) = found.mismatches
    assert mismatch.path == "spec.containers[0].ports[0].hostPort"
    assert (mismatch.expected, mismatch.got) == ("int32", "string")


def test_unknown_fields_come_in_the_order_of_the_document_and_are_not_looked_into():
    obj = pod()
    obj["foo"] = 1
    obj["metadata"]["bar"] = 2
    obj["spec"]["zed"] = {"a": 1}
    obj["spec"]["containers"][0]["nope"] = []
    obj["spec"]["volumes"] = [{"name": "v", "emptyDir": {"x": 1}, "Foo": 1}]
    obj["Spec"] = {}
    assert findings(obj, SHAPES["Pod"]).unknown == [
        "metadata.bar",
        "spec.containers[0].nope",
        "spec.zed",
        "spec.volumes[0].emptyDir.x",
        "spec.volumes[0].Foo",
        "foo",
        "Spec",
    ]


def test_null_fits_everything():
    obj: dict[str, Any] = dict.fromkeys(pod())
    obj["spec"] = {"containers": [None], "nodeSelector": {"a": None}}
    found = findings(obj, SHAPES["Pod"])
    assert not found.mismatches
    assert not found.unknown


def test_what_go_drops_goes():
    obj = pod()
    obj["metadata"] |= {"annotations": {}, "labels": {"a": None}, "generation": 0, "namespace": ""}
    obj["spec"] |= {
        "nodeSelector": {},
        "tolerations": [],
        "priorityClassName": "",
        "hostNetwork": False,
        "affinity": None,
        "foo": 1,
    }
    obj["spec"]["containers"][0] |= {"args": [None, "a"], "env": []}
    left = pruned(obj, SHAPES["Pod"])
    assert left["metadata"] == {"name": "p", "labels": {"a": ""}}
    assert left["spec"] == {"containers": [{"name": "c", "image": "i", "args": ["", "a"]}]}


def test_pointers_stay_as_they_were_given():
    obj = pod()
    obj["spec"] |= {
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": 0,
        "securityContext": {},
        "volumes": [{"name": "v", "emptyDir": {}}],
    }
    assert pruned(obj, SHAPES["Pod"]) == obj


def test_quantities_times_and_bytes_are_written_anew():
    obj = changed(*LIMITS, to={"cpu": "1000m", "x.com/y": 2})
    obj["metadata"]["creationTimestamp"] = "2024-01-01T02:00:00+02:00"
    left = pruned(obj, SHAPES["Pod"])
    assert left["spec"]["containers"][0]["resources"]["limits"] == {"cpu": "1", "x.com/y": "2"}
    assert left["metadata"]["creationTimestamp"] == "2024-01-01T00:00:00Z"
    assert pruned({"data": {"a": "YR=="}}, SHAPES["Secret"]) == {"data": {"a": "YQ=="}}


def test_the_value_that_was_given_is_not_changed():
    obj = changed("spec", "tolerations", to=[])
    before = copy.deepcopy(obj)
    pruned(obj, SHAPES["Pod"])
    assert obj == before


def test_what_go_always_writes_is_added():
    assert filled(pod(), SHAPES["Pod"])["status"] == {}
    assert filled(pod(), SHAPES["Pod"])["spec"]["containers"][0]["resources"] == {}
    deployment = filled({"spec": {}}, SHAPES["Deployment"])
    assert deployment["spec"]["strategy"] == {}
    assert deployment["spec"]["selector"] is None
    assert deployment["spec"]["template"]["spec"]["containers"] is None
    assert filled({}, SHAPES["ClusterRole"])["rules"] is None
    node = filled({"status": {"conditions": [{"type": "Ready"}]}}, SHAPES["Node"])
    assert node["status"]["conditions"][0]["lastHeartbeatTime"] is None


def test_a_second_time_adds_and_drops_nothing():
    obj = filled(pruned(pod(), SHAPES["Pod"]), SHAPES["Pod"])
    before = copy.deepcopy(obj)
    assert filled(obj, SHAPES["Pod"]) == before
    assert pruned(obj, SHAPES["Pod"]) == before
