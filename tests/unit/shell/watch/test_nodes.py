"""What the core is told of a node, and of one that is broken."""

import json

import pytest

from quorate.core.model import Node, Taint
from quorate.dialects import Malformed
from quorate.shell.watch.nodes import decode_node


def decode(spec=None, allocatable=None, **metadata):
    obj = {
        "metadata": {"name": "n1"} | metadata,
        "spec": spec,
        "status": {"allocatable": allocatable},
    }
    return decode_node(json.dumps(obj).encode()).node


def test_a_gpu_node():
    node = decode(
        {
            "unschedulable": True,
            "podCIDR": "10.0.0.0/24",
            "taints": [
                {"key": "gpu", "value": "yes", "effect": "NoSchedule"},
                {"key": "lock", "effect": "NoExecute", "timeAdded": "2024-01-01T00:00:00Z"},
            ],
        },
        {
            "cpu": "127500m",
            "memory": "1Gi",
            "pods": "110",
            "nvidia.com/gpu": "8",
            "ephemeral-storage": "1k",
            "hugepages-2Mi": "0",
            "storage": "lots",  # not compared with anything, so its text does not matter
        },
        labels={"zone": "b", "arch": "arm"},
    )
    assert node == Node(
        name="n1",
        allocatable=(
            ("cpu", 127500),
            ("ephemeral-storage", 1000),
            ("hugepages-2Mi", 0),
            ("memory", 2**30),
            ("nvidia.com/gpu", 8),
            ("pods", 110),
        ),
        labels=(("arch", "arm"), ("zone", "b")),
        taints=(Taint("gpu", "NoSchedule", "yes"), Taint("lock", "NoExecute")),
        unschedulable=True,
    )


def test_a_node_that_has_just_registered_has_nothing_yet():
    assert decode_node(b'{"metadata":{"name":"n1"}}').node == Node("n1", ())
    assert decode(None, None, labels=None) == Node("n1", ())


@pytest.mark.parametrize(
    ("spec", "allocatable", "named"),
    [
        ({}, {"cpu": "many"}, "n1: status.allocatable.cpu: 'many' is not a quantity"),
        ({}, {"nvidia.com/gpu": "-1"}, "n1: status.allocatable.nvidia.com/gpu: '-1' is negative"),
        ({}, {"memory": "1e30"}, "larger than any machine"),
        ({}, {"memory": None}, "n1: status.allocatable"),
        ({}, [], "n1: status.allocatable: Expected object | null, got array"),
        ({"taints": [{"key": 1, "effect": "NoSchedule"}]}, {}, "n1: spec.taints[0].key"),
        ({"unschedulable": "yes"}, {}, "n1: spec.unschedulable"),
    ],
)
def test_a_node_with_a_broken_field_is_malformed_by_name(spec, allocatable, named):
    with pytest.raises(Malformed) as caught:
        decode(spec, allocatable)
    assert named in str(caught.value)
    assert caught.value.name == "n1"


@pytest.mark.parametrize(
    "raw", [b"", b"[]", b"{}", b'{"metadata":{"name":""}}', b'{"metadata":{"name":1}}']
)
def test_a_node_without_a_name_is_malformed(raw):
    with pytest.raises(Malformed) as caught:
        decode_node(raw)
    assert caught.value.name == ""
