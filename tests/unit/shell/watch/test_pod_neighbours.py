"""What a pod says of other pods, as the core is told of it."""

import json

import pytest

from quorate.core.model import (
    LabelSelector,
    PodSelector,
    PodTerm,
    Requirement,
    SpreadConstraint,
    WeightedPodTerm,
)
from quorate.dialects import Malformed
from quorate.shell.watch.lookups import LOOKUPS
from tests.unit.shell.decoded import PREFERRED, REQUIRED, decode, manifest, pod

APP = {"matchLabels": {"app": "x"}}
X = Requirement("app", "In", ("x",))
MINE = PodSelector(("team-a",), LabelSelector((X,)))


def affinity(term, kind="podAffinity"):
    return {"affinity": {kind: {REQUIRED: [{"topologyKey": "zone"} | term]}}}


@pytest.mark.parametrize(
    ("term", "selector"),
    [
        ({"labelSelector": APP}, MINE),
        ({}, PodSelector(("team-a",), None)),
        ({"labelSelector": {}}, PodSelector(("team-a",), LabelSelector())),
        (
            {"labelSelector": APP, "namespaces": ["b", "a", "b"]},
            PodSelector(("a", "b"), LabelSelector((X,))),
        ),
        (
            {"labelSelector": APP, "namespaceSelector": {}},
            PodSelector((), LabelSelector((X,)), LabelSelector()),
        ),
        (
            {"labelSelector": APP, "namespaces": ["a"], "namespaceSelector": APP},
            PodSelector(("a",), LabelSelector((X,)), LabelSelector((X,))),
        ),
        (
            {"labelSelector": {"matchExpressions": [{"key": "app", "operator": "Exists"}]}},
            PodSelector(("team-a",), LabelSelector((Requirement("app", "Exists"),))),
        ),
    ],
)
def test_a_term_says_which_pods_of_which_namespaces(term, selector):
    assert pod(affinity(term)).spec.affinity == (PodTerm(selector, "zone"),)
    assert pod(affinity(term, "podAntiAffinity")).spec.anti_affinity == (PodTerm(selector, "zone"),)


def test_preferred_terms_carry_their_weight_and_repelling_ones_are_negative():
    term = {"topologyKey": "zone", "labelSelector": APP}
    preferred = {PREFERRED: [{"weight": 7, "podAffinityTerm": term}]}
    spec = pod({"affinity": {"podAffinity": preferred, "podAntiAffinity": preferred}}).spec
    wanted = PodTerm(MINE, "zone")
    assert spec.preferred_affinity == (WeightedPodTerm(7, wanted), WeightedPodTerm(-7, wanted))


@pytest.mark.parametrize(
    ("constraint", "fields"),
    [
        ({}, {}),
        ({"whenUnsatisfiable": "ScheduleAnyway"}, {"hard": False}),
        ({"minDomains": 3}, {"min_domains": 3}),
        ({"nodeAffinityPolicy": "Ignore"}, {"honor_affinity": False}),
        ({"nodeTaintsPolicy": "Honor"}, {"honor_taints": True}),
        ({"labelSelector": None}, {"selector": PodSelector(("team-a",), None)}),
        (
            {"matchLabelKeys": ["hash", "absent"]},
            {
                "selector": PodSelector(
                    ("team-a",), LabelSelector((X, Requirement("hash", "In", ("h1",))))
                )
            },
        ),
    ],
)
def test_a_spread_constraint_has_the_defaults_of_the_api(constraint, fields):
    written = {"maxSkew": 2, "topologyKey": "zone", "labelSelector": APP} | constraint
    spec = {"topologySpreadConstraints": [written]}
    expected = {"max_skew": 2, "topology_key": "zone", "hard": True, "selector": MINE} | fields
    spec = decode(manifest(spec, labels={"hash": "h1"})).spec
    assert spec.spread == (SpreadConstraint(**expected),)


def test_keys_that_the_api_server_has_merged_already_are_not_merged_again():
    both = {"matchLabels": {"app": "x", "hash": "h1"}}
    written = {"maxSkew": 1, "topologyKey": "zone", "labelSelector": both}
    merged = decode(manifest({"topologySpreadConstraints": [written]}, labels={"hash": "h1"}))
    again = decode(
        manifest(
            {"topologySpreadConstraints": [written | {"matchLabelKeys": ["hash"]}]},
            labels={"hash": "h1"},
        )
    )
    assert merged.spec == again.spec


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        (
            affinity({"labelSelector": {"matchExpressions": [{"key": "a", "operator": "Gt"}]}}),
            f"spec.affinity.podAffinity.{REQUIRED}[0].labelSelector.matchExpressions[0].operator: "
            "'Gt' is none of In, NotIn, Exists, DoesNotExist",
        ),
        (
            affinity({"labelSelector": {"matchExpressions": [{"key": "a", "operator": "In"}]}}),
            f"spec.affinity.podAffinity.{REQUIRED}[0].labelSelector.matchExpressions[0].values: "
            "In with 0 values",
        ),
        ({"topologySpreadConstraints": [{"topologyKey": "zone"}]}, "maxSkew"),
        (
            {
                "topologySpreadConstraints": [
                    {
                        "maxSkew": 1,
                        "topologyKey": "zone",
                        "labelSelector": {
                            "matchExpressions": [
                                {"key": "a", "operator": "Exists", "values": ["b"]}
                            ]
                        },
                    }
                ]
            },
            "spec.topologySpreadConstraints[0].labelSelector.matchExpressions[0].values: "
            "Exists with 1 values",
        ),
        *(
            (
                {"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "z", field: "Maybe"}]},
                f"spec.topologySpreadConstraints[0].{field}: 'Maybe' is none of ",
            )
            for field in ("whenUnsatisfiable", "nodeAffinityPolicy", "nodeTaintsPolicy")
        ),
    ],
)
def test_what_cannot_be_read_holds_the_pod_and_names_the_field(spec, said):
    held = decode(manifest(spec))
    assert said in held.defect
    assert held.defect_reason


def test_a_namespace_brings_its_labels():
    [lookup] = [one for one in LOOKUPS if one.resource.plural == "namespaces"]
    found = lookup.decode(json.dumps({"metadata": {"name": "a", "labels": {"b": "c"}}}).encode())
    assert (found.name, found.labels) == ("a", (("b", "c"),))
    with pytest.raises(Malformed):
        lookup.decode(b'{"metadata":{}}')
