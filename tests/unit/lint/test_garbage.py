"""Goal: nothing that anybody writes makes lint crash: it is a finding, or one clear line.

Method: random text, random values in the places of manifests, and manifests with one field broken.
"""

import copy

import yaml
from hypothesis import given
from hypothesis import strategies as st

from tests.property.seeds import drawn
from tests.unit.lint import operators
from tests.unit.lint.world import group, job, labelled, lint_text, native_group, node, pod

MARKS = st.sampled_from([*"{}[]:,-#&*!|>'\"%@`?~<\n\t ab1", "---\n", "<<: ", "\x00", "\ud800"])
TEXTS = st.lists(MARKS, max_size=60).map("".join)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=8),
    st.sampled_from(["g", "2", "16Gi", "4x", "Pod", "v1", "default"]),
)
VALUES = st.recursive(
    SCALARS,
    lambda below: st.one_of(
        st.lists(below, max_size=3),
        st.dictionaries(
            st.sampled_from(
                [
                    "spec",
                    "template",
                    "containers",
                    "replicas",
                    "metadata",
                    "labels",
                    "items",
                    "name",
                ]
            ),
            below,
            max_size=4,
        ),
    ),
    max_leaves=12,
)
WHOLE = [
    group(2, minResources={"cpu": "1"}),
    job(2, requests={"cpu": "1"}),
    native_group(2),
    pod(labels=labelled()),
]
OPERATORS = [
    operators.training(policy={"minAvailable": 2}),
    operators.mpi({}, launcherCreationPolicy="WaitForWorkersReady"),
    operators.volcano(2, 2, minAvailable=1),
    operators.ray(labels={"volcano.sh/queue-name": "q"}, groups=[{"replicas": 1}]),
    operators.worker_set(),
    operators.runtime({"coscheduling": {}}),
    operators.train_job(trainer={"numNodes": 1, "resourcesPerNode": {"limits": {"cpu": "1"}}}),
]
NODES = [node("n1")]


def reads(text):
    """Lint the text and check the promises that hold for any text."""
    report = lint_text(text, nodes=NODES, shape_name="s")
    for line in report.unreadable:
        assert "\n" not in line
        assert line.startswith("f.yaml:")
    for finding in report.findings:
        assert finding.message
        assert finding.line >= 1


def paths(value, path=()):
    """Return the path of each value within ``value``."""
    found = [path] if path else []
    if not isinstance(value, dict | list):
        return found
    for key, below in value.items() if isinstance(value, dict) else enumerate(value):
        found += paths(below, (*path, key))
    return found


@given(st.one_of(TEXTS, st.text(max_size=80)))
@drawn(500)
def test_any_text(text):
    reads(text)


@given(st.dictionaries(st.sampled_from(["apiVersion", "kind", "metadata", "spec"]), VALUES))
@drawn(500)
def test_any_value(value):
    reads(yaml.safe_dump(value))


@given(st.data())
@drawn(500)
def test_manifests_with_one_value_broken(data):
    breaks_one(data, WHOLE)


@given(st.data())
@drawn(500)
def test_operators_objects_with_one_value_broken(data):
    breaks_one(data, OPERATORS)


def breaks_one(data, manifests):
    whole = copy.deepcopy(manifests)
    path = data.draw(st.sampled_from(paths(whole)))
    where = whole
    for part in path[:-1]:
        where = where[part]
    where[path[-1]] = data.draw(VALUES)
    reads(yaml.safe_dump_all(whole))
