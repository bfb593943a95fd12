"""Wrong types, unknown fields, what is left."""

import copy
from typing import Any

import pytest

from pocketkube.schema.check import decode_error, findings
from pocketkube.schema.document import Document
from pocketkube.schema.quantities import BAD_QUANTITY
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
    return decode_error(findings(obj, SHAPES[kind]).mismatches[0])


IN_CONTAINER = ("spec", "containers", 0)
LIMITS = (*IN_CONTAINER, "resources", "limits")
WRONG = [
    (("metadata",), "x", "string", "metadata of type object"),
    (("metadata", "labels"), ["a"], "array", "metadata.labels of type map"),
    (("metadata", "labels"), {"a": 1}, "number", "metadata.labels.a of type string"),
    (("metadata", "generation"), 2**63, "number", "metadata.generation of type int64"),
    (
        ("metadata", "creationTimestamp"),
        5,
        "number",
        "metadata.creationTimestamp of type date-time",
    ),
    (("spec",), [], "array", "spec of type object"),
    (("spec", "hostNetwork"), "true", "string", "spec.hostNetwork of type boolean"),
    (("spec", "restartPolicy"), 5, "number", "spec.restartPolicy of type string"),
    (("spec", "priority"), 1.5, "number", "spec.priority of type int32"),
    (("spec", "priority"), 2.0, "number", "spec.priority of type int32"),
    (("spec", "priority"), 2**31, "number", "spec.priority of type int32"),
    (("spec", "priority"), True, "bool", "spec.priority of type int32"),
    (("spec", "containers"), {}, "object", "spec.containers of type list"),
    (("spec", "containers"), ["x"], "string", "spec.containers[0] of type object"),
    ((*IN_CONTAINER, "args"), [1], "number", "spec.containers[0].args[0] of type string"),
    (
        (*IN_CONTAINER, "ports"),
        [{"containerPort": "80"}],
        "string",
        "spec.containers[0].ports[0].containerPort of type int32",
    ),
    (LIMITS, ["x"], "array", "spec.containers[0].resources.limits of type map"),
    (
        (*IN_CONTAINER, "livenessProbe", "httpGet", "port"),
        True,
        "bool",
        "spec.containers[0].livenessProbe.httpGet.port of type int-or-string",
    ),
    ((*LIMITS, "cpu"), True, "bool", "spec.containers[0].resources.limits.cpu of type quantity"),
]


@pytest.mark.parametrize(("path", "value", "got", "where"), WRONG)
def test_a_wrong_type_is_told_with_its_path(path, value, got, where):
    assert error(changed(*path, to=value)) == f"json: cannot unmarshal {got} into field {where}"


def test_what_is_no_object_at_all_is_told_too():
    assert error([]) == "json: cannot unmarshal array into an object of type object"


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        (LIMITS, {"cpu": "5mm"}, BAD_QUANTITY),
        (
            ("metadata", "creationTimestamp"),
            "yesterday",
            'parsing time "yesterday" as "2006-01-02T15:04:05Z07:00": it has another form',
        ),
    ],
)
def test_a_text_of_the_wrong_form_is_told_in_the_words_of_go(path, value, expected):
    assert error(changed(*path, to=value)) == expected


def test_bytes_have_to_be_base64():
    assert error({"data": {"a": "%"}}, "Secret") == "illegal base64 data at input byte 0"
    expected = "json: cannot unmarshal number into field data.a of type byte"
    assert error({"data": {"a": 5}}, "Secret") == expected


def test_of_two_mismatches_the_first_is_told_unless_the_other_stops_the_decoder():
    obj = changed("metadata", "labels", to=[])
    obj["spec"]["hostNetwork"] = "x"
    assert error(obj).endswith("field metadata.labels of type map")
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
