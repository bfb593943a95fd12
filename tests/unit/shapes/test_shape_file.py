"""Shapes: files that describe pools of nodes."""

import itertools
import re
from collections import Counter
from pathlib import Path

import pytest

from quorate.core.model.quantity import parse_amount
from quorate.shapes.patterns import PatternError, fill
from quorate.shapes.shape_file import (
    ShapeError,
    load,
    nodes_of,
    nodes_with_gpus,
    parse,
    presets,
    scaled_counts,
)

ROOT = Path(__file__).resolve().parents[3]
NAMES = [name for name, _ in presets()]
MINIMAL = "about: a\npools:\n- {name: a, count: 2, capacity: {cpu: 1, memory: 1Gi, pods: 9}}\n"


def pools(*counts: int) -> str:
    capacity = "capacity: {cpu: 1, memory: 1Gi, pods: 9}"
    lines = [f"- {{name: p{i}, count: {n}, {capacity}}}" for i, n in enumerate(counts)]
    return "\n".join(["about: a", "pools:", *lines])


def test_the_presets_are_those_that_the_command_line_names():
    assert NAMES == [
        "small",
        "aks-nd-h100",
        "coreweave-gb200",
        "coreweave-h100",
        "eks-p5",
        "gke-a3",
        "kwok-cpu",
    ]
    assert all(about and "\n" not in about for _, about in presets())


@pytest.mark.parametrize("name", NAMES)
def test_a_preset_gives_nodes_that_a_server_takes(name):
    nodes = list(nodes_of(load(name)))
    names = [node["metadata"]["name"] for node in nodes]
    assert len(nodes) == load(name).count
    assert len(set(names)) == len(names)
    for node in nodes:
        labels = node["metadata"]["labels"]
        assert labels["kubernetes.io/hostname"] == node["metadata"]["name"]
        assert all(
            re.fullmatch(r"([A-Za-z0-9]([\w.-]{0,61}[A-Za-z0-9])?)?", v) for v in labels.values()
        )
        capacity, allocatable = node["status"]["capacity"], node["status"]["allocatable"]
        assert capacity.keys() == allocatable.keys()
        assert {"cpu", "memory", "pods"} <= capacity.keys()
        for resource, amount in allocatable.items():
            assert parse_amount(resource, amount) <= parse_amount(resource, capacity[resource])


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("count", [1, 7, 5000])
def test_a_preset_can_have_any_number_of_nodes(name, count):
    nodes = list(nodes_of(load(name), count))
    assert len({node["metadata"]["name"] for node in nodes}) == count


def test_an_nvlink_domain_is_a_rack_of_18_nodes_with_4_gpus():
    nodes = list(nodes_of(load("coreweave-gb200")))
    labels = [node["metadata"]["labels"] for node in nodes]
    domains = Counter(one["ds.coreweave.com/nvlink.domain"] for one in labels)
    assert set(domains.values()) == {18}
    cliques = Counter(one["nvidia.com/gpu.clique"] for one in labels)
    assert sorted(cliques.values()) == sorted(domains.values())
    assert {node["status"]["allocatable"]["nvidia.com/gpu"] for node in nodes} == {"4"}


def test_levels_of_a_topology_contain_one_another():
    labels = [node["metadata"]["labels"] for node in nodes_of(load("coreweave-h100"))]
    keys = [
        "node.coreweave.cloud/rack",
        "backend.coreweave.cloud/leafgroup",
        "backend.coreweave.cloud/superpod",
    ]
    gpu = [one for one in labels if one["node.coreweave.cloud/class"] == "gpu"]
    for smaller, larger in itertools.pairwise(keys):
        above = {(one[smaller], one[larger]) for one in gpu}
        assert len(above) == len({one[smaller] for one in gpu})
    assert [len({one[key] for one in gpu}) for key in keys] == [16, 2, 1]


def test_the_example_of_the_documentation_is_true():
    text = (ROOT / "docs" / "users" / "shapes.md").read_text()
    example = re.search(r"```yaml\n(.*?)```", text, re.DOTALL)
    assert example
    nodes = list(nodes_of(parse(example[1], source="docs/users/shapes.md")))
    shown = re.search(r"The last node is `(.*?)` in `(.*?)` of `(.*?)`", text)
    assert shown
    last = nodes[-1]["metadata"]
    assert shown.groups() == (
        last["name"],
        last["labels"]["example.com/rack"],
        last["labels"]["example.com/leafgroup"],
    )
    for name, about in presets():
        assert f"`{name}`" in text, f"docs/users/shapes.md does not name {name}"
        assert about in text, f"docs/users/shapes.md has another line for {name}"


@pytest.mark.parametrize(
    ("counts", "total", "expected"),
    [
        ((4, 8), 12, [4, 8]),
        ((4, 8), 6, [2, 4]),
        ((4, 8), 2, [1, 1]),
        ((4, 8), 1, [0, 1]),
        ((64, 4), 10, [9, 1]),
        ((1, 1, 1), 10, [4, 3, 3]),
        ((0, 3), 5, [0, 5]),
        ((99, 1), 3, [2, 1]),
    ],
)
def test_pools_grow_and_shrink_in_proportion(counts, total, expected):
    assert scaled_counts(parse(pools(*counts), source="s"), total) == expected


@pytest.mark.parametrize("total", [0, -1, 100_001])
def test_a_number_of_nodes_that_cannot_be_is_refused(total):
    with pytest.raises(ShapeError, match="give a number from 1 to 100000"):
        nodes_of(parse(MINIMAL, source="s"), total)


@pytest.mark.parametrize(
    ("gpu_nodes", "with_gpus", "others"), [(1, 1, 1), (16, 16, 1), (64, 64, 4), (640, 640, 40)]
)
def test_gpu_nodes_are_exactly_so_many_and_others_in_proportion(gpu_nodes, with_gpus, others):
    """64 nodes of a preset with 64 GPU nodes were 60 GPU nodes and 4 CPU nodes."""
    made = list(nodes_with_gpus(load("coreweave-h100"), gpu_nodes))
    counted = ["nvidia.com/gpu" in node["status"]["capacity"] for node in made]
    assert (sum(counted), len(counted) - sum(counted)) == (with_gpus, others)


@pytest.mark.parametrize(
    ("gpu_nodes", "count", "others"), [(4, 10, 6), (1, 2, 1), (3, 3, 0), (2, 102, 100)]
)
def test_gpu_nodes_of_a_number_of_nodes_leave_the_others_without_gpus(gpu_nodes, count, others):
    """``--nodes`` with ``--gpu-nodes`` was refused, so a mixed cluster took a shape file."""
    made = list(nodes_with_gpus(load("small"), gpu_nodes, count))
    counted = ["nvidia.com/gpu" in node["status"]["capacity"] for node in made]
    assert (sum(counted), len(counted) - sum(counted)) == (gpu_nodes, others)


@pytest.mark.parametrize(
    ("count", "shape", "says"),
    [
        (2, "small", "2 nodes, of which 3 have GPUs, cannot be: --nodes counts all nodes"),
        (100_001, "small", "100001 nodes cannot be"),
        (4, "coreweave-gb200", "cannot be: the shape has none without GPUs"),
    ],
)
def test_numbers_of_nodes_that_cannot_be_together_are_named(count, shape, says):
    with pytest.raises(ShapeError, match=says):
        nodes_with_gpus(load(shape), 3, count)


def test_a_shape_without_gpus_has_no_gpu_nodes():
    with pytest.raises(ShapeError, match="no GPU nodes: use --nodes"):
        nodes_with_gpus(load("kwok-cpu"), 3)


def test_a_file_is_read_by_its_path(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(MINIMAL)
    assert [node["metadata"]["name"] for node in nodes_of(load(path))] == ["a-0", "a-1"]


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("smal", "There is no shape 'smal'. Did you mean small? The presets are aks-nd-h100,"),
        ("missing.yaml", "missing.yaml: No such file or directory. Give the path of a file,"),
        (".", "Is a directory. Give the path of a file, or a preset."),
    ],
)
def test_a_shape_that_is_not_there_is_named_with_what_there_is(name, says):
    with pytest.raises(ShapeError) as caught:
        load(name)
    assert says in str(caught.value)


POOL = "about: a\npools:\n- name: a\n  count: 2\n  capacity: {cpu: 1, memory: 1Gi, pods: 9}\n"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "f: the file is empty."),
        ("- a", "f: this is no mapping of fields."),
        ("about: [", "f:1: "),
        ("about: a\npools: []\n", "f: pools: Expected array of length >= 1"),
        (POOL + "  contu: 1\n", "f: pools[0]: there is no field contu. Did you mean count?"),
        (POOL + "  zebra: 1\n", "The fields here are name, count, capacity, allocatable, nodeName"),
        (POOL.replace("2", "-1"), "f: pools[0].count: Expected int >= 0"),
        (POOL.replace("2", "two"), "f: pools[0].count: Expected int, got str"),
        (POOL.replace("count: 2", "count: 0"), "f: pools: no pool has a node. Give one a count."),
        (POOL.replace("pods: 9", "x: 1"), "f: pools[0].capacity: pods is missing."),
        (POOL.replace("1Gi", "lots"), "f: pools[0].capacity.memory: 'lots' is not a quantity"),
        (POOL + "  labels: {a: 1}\n", "Put the value in quotes."),
        (POOL + "  labels: {a: b c}\n", "f: pools[0].labels: a: 'b c' is no label."),
        (POOL + "  labels: {a/b/c: d}\n", "is no label."),
        (POOL + "  nodeName: A\n", "f: pools[0].nodeName: 'A' is no name of a node."),
        (
            POOL + '  nodeName: "a{rack}"\n',
            "f: pools[0]: there is no number 'rack'; there are index.",
        ),
        (POOL + '  nodeName: "a{index"\n', "has a brace without its partner"),
        (POOL + '  nodeName: "a{index!r}"\n', "is no field: write {index}"),
        (POOL + "  taints: [{key: a, effect: Never}]\n", "f: pools[0].taints[0].effect: "),
        (
            POOL + "  levels: [{name: rack, nodes: 4}, {name: pod, nodes: 6}]\n",
            "f: pools[0].levels: 6 nodes of a pod are not whole racks of 4.",
        ),
        (
            POOL + "  levels: [{name: rack, nodes: 4}, {name: rack, nodes: 8}]\n",
            "f: pools[0].levels: rack is there already.",
        ),
        ("about: a\npools: " + "[" * 100_000, "f: brackets are nested too deeply."),
    ],
)
def test_a_mistake_is_named_with_its_field_and_a_remedy(text, says):
    with pytest.raises(ShapeError) as caught:
        parse(text, source="f")
    assert says in str(caught.value)
    assert "`" not in str(caught.value)


def test_two_nodes_of_one_name_are_refused():
    shape = parse(POOL + "  nodeName: same\n", source="f")
    with pytest.raises(ShapeError, match=r"two nodes are named same\. Put \{index\}"):
        list(nodes_of(shape))


@pytest.mark.parametrize(
    ("pattern", "filled"),
    [
        ("plain", "plain"),
        ("n{index}", "n37"),
        ("n{index:04}-{rack.position}", "n0037-1"),
        ("{index:x}", "25"),
    ],
)
def test_patterns_are_filled_in(pattern, filled):
    assert fill(pattern, {"index": 37, "rack.position": 1}) == filled


def test_scrambled_numbers_never_meet():
    assert len({fill("{index:hash4}", {"index": n}) for n in range(16**4)}) == 16**4
    assert re.fullmatch("[0-9a-f]{17}", fill("{index:hash17}", {"index": 5}))


def test_uuids_look_like_uuids_and_differ():
    first, second = (fill("{index:uuid}", {"index": n}) for n in (1, 2))
    assert re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-a[0-9a-f]{3}-[0-9a-f]{12}", first)
    assert first != second


def test_a_pattern_cannot_reach_into_python():
    with pytest.raises(PatternError):
        fill("{index.__class__}", {"index": 1})
