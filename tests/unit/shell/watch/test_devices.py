"""Objects of resource.k8s.io become values of the core; what cannot be read is named."""

import json

import pytest
from msgspec.structs import replace

from quorate.core.model import Requirement, SelectorTerm, Taint, Toleration
from quorate.core.model.devices import (
    Attribute,
    Capacity,
    CounterUse,
    DeviceChoice,
    DeviceConstraint,
    DeviceId,
    GivenConfig,
    Nodes,
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
    "consumesCounters": [{"counterSet": "c", "counters": {"m": {"value": "1"}}}],
    "allowMultipleAllocations": True,
}


def test_a_device_and_all_that_it_says():
    found = decode_slice(a_slice(nodeName="n0", devices=[DEVICE]))
    assert (found.driver, found.pool, found.generation, found.slices) == (
        "d.example.com",
        "p",
        2,
        1,
    )
    assert found.nodes == Nodes("n0")
    traits = found.devices[0].traits
    assert traits.attributes == (
        Attribute("index", "int", 0),
        Attribute("list", "", ""),
        Attribute("model", "string", "a"),
        Attribute("ok", "bool", False),
        Attribute("v", "version", "1.2.3"),
    )
    assert traits.capacity == (Capacity("memory", "80Gi", "1Gi", smallest="1Gi", step="1Gi"),)
    assert traits.taints == (Taint("bad", "NoSchedule"),)
    assert traits.counters == (CounterUse("c", (("m", "1"),)),)
    assert traits.shareable


def test_devices_that_each_have_their_nodes():
    devices = [{"name": "a", "allNodes": True}, {"name": "b", "nodeName": "n1"}, {"name": "c"}]
    found = decode_slice(a_slice(perDeviceNodeSelection=True, devices=devices))
    assert found.nodes is None
    everywhere = Nodes(everywhere=True)
    assert [one.nodes for one in found.devices] == [everywhere, Nodes("n1"), Nodes()]


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
            "adminAccess": True,
            "selectors": [{"cel": {"expression": "true"}}],
            "tolerations": [{"key": "bad", "operator": "Exists"}],
            "capacity": {"requests": {"memory": "2Gi"}},
        },
    },
    {
        "name": "r1",
        "firstAvailable": [{"name": "all", "deviceClassName": "gpu", "allocationMode": "All"}],
    },
]


def test_a_claim_and_what_it_asks_for():
    spec = {"devices": {"requests": REQUESTS, "constraints": [{"matchAttribute": "d/model"}]}}
    owners = [{"uid": "other"}, {"uid": "pod", "controller": True}]
    found = decode_claim(raw("c", spec, ownerReferences=owners))
    exactly, listed = found.spec.requests
    [choice] = exactly.choices
    assert choice == DeviceChoice(
        "r0",
        "gpu",
        ("true",),
        2,
        admin=True,
        tolerations=(Toleration("bad", "Exists"),),
        tolerations_text=choice.tolerations_text,
        capacity=(("memory", "2Gi"),),
    )
    assert listed.is_list
    assert listed.choices == (DeviceChoice("all", "gpu", count=None),)
    assert found.spec.constraints == (DeviceConstraint((), match="d/model"),)
    assert (found.owner_uid, found.version, found.allocation) == ("pod", "7", None)


ALLOCATION = {
    "devices": {
        "results": [
            {
                "request": "r1/all",
                "driver": "d",
                "pool": "p",
                "device": "x",
                "bindingConditions": ["Ready"],
                "bindingFailureConditions": ["Failed"],
                "shareID": "0-1",
                "consumedCapacity": {"memory": "1Gi"},
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


def device_status(condition: str) -> dict:
    conditions = [{"type": condition, "status": "True"}]
    return {"driver": "d", "pool": "p", "device": "x", "conditions": conditions}


def test_an_allocation_is_read_and_written_alike():
    status = {"allocation": ALLOCATION, "reservedFor": [{"resource": "pods", "uid": "pod"}]}
    found = decode_claim(raw("c", {"devices": {"requests": REQUESTS}}, status=status))
    [given] = found.allocation.devices
    assert given.device == DeviceId("d", "p", "x")
    assert (given.share_id, given.consumed) == ("0-1", (("memory", "1Gi"),))
    assert found.allocation.nodes == (
        SelectorTerm(fields=(Requirement("metadata.name", "In", ("n0",)),)),
    )
    assert found.allocation.config[0] == GivenConfig("FromClass", ("r1/all",), '{"driver": "d"}')
    assert found.reserved_for == ("pod",)
    assert found.binding_pending
    import msgspec

    assert json.loads(msgspec.json.encode(allocation_body(found.allocation))) == ALLOCATION


@pytest.mark.parametrize(
    ("condition", "failed", "pending"),
    [("Ready", "", False), ("Failed", "Failed of device d/p/x", False), ("Other", "", True)],
)
def test_conditions_of_a_device_are_understood(condition, failed, pending):
    status = {"allocation": ALLOCATION, "devices": [device_status(condition)]}
    found = decode_claim(raw("c", {"devices": {"requests": []}}, status=status))
    assert (found.binding_failed, found.binding_pending) == (failed, pending)


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
                "exactly": {"deviceClassName": "g", "capacity": {"requests": {"m": "lots"}}},
            },
            "'lots' is not a quantity",
        ),
    ],
)
def test_what_a_claim_asks_and_is_not_known_is_its_defect(request_, said):
    found = decode_claim(raw("c", {"devices": {"requests": [request_]}}))
    assert found.spec == replace(found.spec, requests=())
    assert said in found.spec.defect
    assert "claim team/c" in found.spec.defect


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
