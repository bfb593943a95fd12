"""The scheduler's own table tests, converted: the oracle says what the plugins say in them."""

import dataclasses
from collections import Counter
from pathlib import Path

import pytest

from tests.conftest import skip_or_fail
from tools.controlplane.golang import GoError
from tools.oracle import Oracle
from tools.oracle.tables import Fixture, upstream_tables
from tools.oracle.tables.fixtures import differences
from tools.oracle.tables.hooking import copy_with_hooks

# At least so many cases come of the pinned version's tests, and for at most so many the oracle says
# something else. In those the test has features that are not the default, a state, statuses or a
# registry of features made by hand, its own order of victims, or listers that word "not found" in
# another way.
CASES = {
    "DefaultPreemption": (65, 16),
    "DynamicResources": (63, 7),
    "ImageLocality": (8, 0),
    "InterPodAffinity": (81, 1),
    "NodeAffinity": (39, 1),
    "NodeDeclaredFeatures": (6, 4),
    "NodeName": (3, 0),
    "NodePorts": (14, 1),
    "NodeResourcesBalancedAllocation": (9, 1),
    "NodeResourcesFit": (103, 4),
    "NodeUnschedulable": (3, 0),
    "NodeVolumeLimits": (36, 4),
    "PodTopologySpread": (122, 2),
    "TaintToleration": (25, 4),
    "VolumeBinding": (11, 0),
    "VolumeRestrictions": (11, 0),
    "VolumeZone": (24, 2),
}


@pytest.fixture(scope="module")
def tables(oracle: Oracle) -> list[Fixture]:
    try:
        return upstream_tables()
    except GoError as error:
        skip_or_fail(str(error))


def test_the_oracle_says_what_the_plugins_say_in_their_own_tests(
    oracle: Oracle, tables: list[Fixture]
):
    made, differing, told = Counter(), Counter(), []
    answers = oracle.ask_all([fixture.case for fixture in tables])
    for fixture, answer in zip(tables, answers, strict=True):
        made[fixture.plugin] += 1
        if found := differences(fixture, answer):
            differing[fixture.plugin] += 1
            told.append(f"{fixture.source}: {'; '.join(found)}")
    assert set(made) == set(CASES)
    for plugin, (made_min, differing_max) in CASES.items():
        assert made[plugin] >= made_min, plugin
        assert differing[plugin] <= differing_max, "\n".join([plugin, *told])


def test_a_fixture_names_its_test(tables: list[Fixture]):
    ports = next(fixture for fixture in tables if fixture.plugin == "NodePorts")
    assert ports.source.startswith("nodeports/node_ports_test.go:")
    assert {"nodes", "pods", "pod"} <= ports.case.keys()


def test_a_difference_is_seen(oracle: Oracle, tables: list[Fixture]):
    taint = next(
        fixture
        for fixture in tables
        if fixture.plugin == "TaintToleration" and "filter" in fixture.said
    )
    node = next(iter(taint.said["filter"]))
    other = dataclasses.replace(taint, said={"filter": {node: {"code": "Error"}}})
    (told,) = differences(other, oracle.ask(taint.case))
    assert told.startswith(f"Filter on {node}: ")


def test_methods_and_constructors_get_hooks(tmp_path: Path):
    package = tmp_path / "pinned"
    package.mkdir()
    (package / "pinned.go").write_text(
        "package pinned\n\n"
        "func (p *Pinned) Filter(ctx context.Context, _ fwk.CycleState, pod *v1.Pod,"
        " node fwk.NodeInfo) *fwk.Status {\n\treturn nil\n}\n\n"
        "func New(_ context.Context, _ runtime.Object, h fwk.Handle) (fwk.Plugin, error) {\n"
        "\treturn &Pinned{}, nil\n}\n"
    )
    (package / "pinned_test.go").write_text("package pinned\n")
    assert copy_with_hooks(package, tmp_path / "hooked") == 2
    copied = (tmp_path / "hooked" / "pinned.go").read_text()
    hooks = (tmp_path / "hooked" / "hooks.go").read_text()
    assert "func (p *Pinned) unhookedFilter(" in copied
    assert "func unhookedNew(" in copied
    assert "status := pl.unhookedFilter(ctx, state, pod, node)" in hooks
    assert "plugin, err := unhookedNew(p0, p1, p2)" in hooks
