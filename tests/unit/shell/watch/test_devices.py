"""Objects of resource.k8s.io become values of the core; what cannot be read is named."""

import json

import pytest
from msgspec.structs import replace

from quorate.core.model import Requirement, SelectorTerm, Taint, Toleration
from quorate.core.model.devices import (
    Attribute,
    Capacity,
    DeviceChoice,
    DeviceId,
    GivenConfig,
)
from quorate.dialects.base import Malformed
from quorate.shell.commit.claim_wire import allocation_body
from quorate.shell.watch.devices import decode_claim, decode_class, decode_slice


def raw(name: str, spec: dict, *, status=None, **meta) -> bytes:
    metadata = {"name": name, "namespace": "team", "uid": "u", "resourceVersion": "7", **meta}
    return json.dumps({"metadata": metadata, "spec": spec, "status": status}).encode()


def a_slice(**more) -> bytes:
    pool = {"name": "p", "generation": 2, "resourceSliceCount": 1}
    return raw("s", {"driver": "d.example.com", "pool": pool, **more})


DEVICE = {
    "name": "gpu-0",
    "attributes": {
        "ok": {"bool": False},
        "index": {"int": 0},
        "model": {"string": "a"},
        "v": {"version": "1.2.3"},
        "list": {"ints": [1]},
    },
    "capacity": {
        "memory": {
            "value": "80Gi",
            "requestPolicy": {"default": "1Gi", "validRange": {"min": "1Gi", "step": "1Gi"}},
        }
    },
    "taints": [{"key": "bad", "effect": "NoSchedule", "timeAdded": "2026-01-01T00:00:00Z"}],
}


def test_a_device_and_all_that_it_says():
    found = decode_slice(a_slice(nodeName="n0", devices=[DEVICE]))
    assert (found.driver, found.pool, found.generation, found.slices) == (
        "d.example.com",
        "p",
        2,
        1,
    )
    assert found.node == "n0"
    traits = found.devices[0].traits
    assert traits.attributes == (
        Attribute("index", "int", 0),
        Attribute("list", "", ""),
        Attribute("model", "string", "a"),
        Attribute("ok", "bool", False),
        Attribute("v", "version", "1.2.3"),
    )
    assert traits.capacity == (Capacity("memory", "80Gi"),)
    assert traits.taints == (Taint("bad", "NoSchedule"),)
    assert traits.closed == ""


@pytest.mark.parametrize(
    "field",
    [
        {"consumesCounters": [{"counterSet": "c", "counters": {"m": {"value": "1"}}}]},
        {"allowMultipleAllocations": True},
        {"bindingConditions": ["Ready"]},
    ],
    ids=lambda field: next(iter(field)),
)
def test_a_device_that_needs_what_is_not_supported_is_closed(field):
    found = decode_slice(a_slice(nodeName="n0", devices=[DEVICE | field, DEVICE]))
    assert [one.traits.closed for one in found.devices] == [next(iter(field)), ""]


@pytest.mark.parametrize(
    "reach", [{"allNodes": True}, {"nodeSelector": {}}, {"perDeviceNodeSelection": True}]
)
def test_devices_that_several_nodes_reach_have_no_node(reach):
    assert decode_slice(a_slice(devices=[DEVICE], **reach)).node == ""


def test_a_class_keeps_its_configuration_as_text():
    found = decode_class(
        raw(
            "gpu",
            {
                "selectors": [{"cel": {"expression": "true"}}],
                "config": [{"opaque": {"driver": "d", "parameters": {"a": [1]}}}],
            },
        )
    )
    assert found.selectors == ("true",)
    assert json.loads(found.config[0].text) == {"driver": "d", "parameters": {"a": [1]}}


REQUESTS = [
    {
        "name": "r0",
        "exactly": {
            "deviceClassName": "gpu",
            "allocationMode": "ExactCount",
            "count": 2,
            "selectors": [{"cel": {"expression": "true"}}],
            "tolerations": [{"key": "bad", "operator": "Exists"}],
        },
    },
    {
        "name": "r1",
        "firstAvailable": [{"name": "all", "deviceClassName": "gpu", "allocationMode": "All"}],
    },
]


def test_a_claim_and_what_it_asks_for():
    spec = {"devices": {"requests": REQUESTS}}
    owners = [{"uid": "other"}, {"uid": "pod", "controller": True}]
    found = decode_claim(raw("c", spec, ownerReferences=owners))
    exactly, listed = found.spec.requests
    [choice] = exactly.choices
    assert choice == DeviceChoice(
        "r0",
        "gpu",
        ("true",),
        2,
        tolerations=(Toleration("bad", "Exists"),),
        tolerations_text=choice.tolerations_text,
    )
    assert listed.is_list
    assert listed.choices == (DeviceChoice("all", "gpu", count=None),)
    assert (found.owner_uid, found.version, found.allocation) == ("pod", "7", None)


ALLOCATION = {
    "devices": {
        "results": [
            {
                "request": "r1/all",
                "driver": "d",
                "pool": "p",
                "device": "x",
            }
        ],
        "config": [{"source": "FromClass", "requests": ["r1/all"], "opaque": {"driver": "d"}}],
    },
    "nodeSelector": {
        "nodeSelectorTerms": [
            {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n0"]}]}
        ]
    },
}


def test_an_allocation_is_read_and_written_alike():
    status = {"allocation": ALLOCATION, "reservedFor": [{"resource": "pods", "uid": "pod"}]}
    found = decode_claim(raw("c", {"devices": {"requests": REQUESTS}}, status=status))
    [given] = found.allocation.devices
    assert given.device == DeviceId("d", "p", "x")
    assert given.is_exclusive
    assert found.allocation.nodes == (
        SelectorTerm(fields=(Requirement("metadata.name", "In", ("n0",)),)),
    )
    assert found.allocation.config[0] == GivenConfig("FromClass", ("r1/all",), '{"driver": "d"}')
    assert found.reserved_for == ("pod",)
    assert found.unusable == ""
    import msgspec

    assert json.loads(msgspec.json.encode(allocation_body(found.allocation))) == ALLOCATION


@pytest.mark.parametrize(
    ("more", "is_exclusive", "unusable"),
    [
        ({"adminAccess": True}, False, ""),
        ({"shareID": "0-1", "consumedCapacity": {"memory": "1Gi"}}, False, ""),
        (
            {"bindingConditions": ["Ready"]},
            True,
            "status.allocation.devices.results[0].bindingConditions is not supported",
        ),
    ],
)
def test_what_another_scheduler_gave(more, is_exclusive, unusable):
    [result] = ALLOCATION["devices"]["results"]
    status = {"allocation": {"devices": {"results": [result | more]}}}
    found = decode_claim(raw("c", {"devices": {"requests": []}}, status=status))
    assert [one.is_exclusive for one in found.allocation.devices] == [is_exclusive]
    assert found.unusable == unusable


@pytest.mark.parametrize(
    ("constraint", "said"),
    [
        ({"matchAttribute": "d/a"}, "spec.devices.constraints[0].matchAttribute is not supported"),
        ({"distinctAttribute": "d/a"}, "constraints[0].distinctAttribute is not supported"),
        ({}, "spec.devices.constraints[0] is of an unknown kind"),
    ],
)
def test_constraints_of_a_claim_are_its_defect(constraint, said):
    found = decode_claim(raw("c", {"devices": {"requests": [], "constraints": [constraint]}}))
    assert said in found.spec.defect


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        ({"name": "r"}, "request r: it is of an unknown kind"),
        (
            {"name": "r", "exactly": {"deviceClassName": "g", "allocationMode": "Most"}},
            "request r: unsupported count mode Most",
        ),
        (
            {"name": "r", "exactly": {"deviceClassName": "g", "selectors": [{"rego": "x"}]}},
            "request r, selector #0: it is no CEL expression",
        ),
        (
            {
                "name": "r",
                "exactly": {"deviceClassName": "g", "capacity": {"requests": {"m": "1"}}},
            },
            "spec.devices.requests[0].exactly.capacity.requests is not supported",
        ),
        (
            {"name": "r", "exactly": {"deviceClassName": "g", "adminAccess": True}},
            "spec.devices.requests[0].exactly.adminAccess is not supported",
        ),
        (
            {
                "name": "r",
                "firstAvailable": [
                    {"name": "a", "deviceClassName": "g"},
                    {
                        "name": "b",
                        "deviceClassName": "g",
                        "capacity": {"requests": {"m": "1"}},
                    },
                ],
            },
            "spec.devices.requests[0].firstAvailable[1].capacity.requests is not supported",
        ),
    ],
)
def test_what_a_claim_asks_and_is_not_known_is_its_defect(request_, said):
    found = decode_claim(raw("c", {"devices": {"requests": [request_]}}))
    assert found.spec == replace(found.spec, requests=())
    assert said in found.spec.defect


@pytest.mark.parametrize(
    ("decode", "bytes_", "said"),
    [
        (decode_slice, a_slice(devices=[{"name": 1}]), "spec.devices[0].name"),
        (
            decode_slice,
            a_slice(nodeName="n", devices=[DEVICE | {"capacity": {"m": {"value": "x"}}}]),
            "'x' is not a quantity",
        ),
        (decode_class, raw("c", {"selectors": "all"}), "spec.selectors"),
        (decode_claim, raw("c", {"devices": 5}), "spec.devices"),
        (decode_claim, b"[]", "the object"),
    ],
)
def test_an_object_that_cannot_be_read_is_malformed(decode, bytes_, said):
    with pytest.raises(Malformed) as raised:
        decode(bytes_)
    assert said in raised.value.message
