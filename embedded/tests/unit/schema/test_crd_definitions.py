"""CustomResourceDefinitions: accepted or refused as a real server does it, and what they serve."""

import copy
import json
from pathlib import Path

import pytest
import yaml

from pocketkube.registry import custom
from pocketkube.registry.rules.definitions import RULES

HERE = Path(__file__).parent
ROOT = HERE.parents[3]
RECORDED = json.loads((HERE / "custom_recorded" / "definitions.json").read_text())
SHIPPED = [ROOT / "src/quorate/deploy/crds.yaml", ROOT / "tests/e2e/manifests/volcano.yaml"]
NOW_S = 1_795_262_400.0


def definition(**spec) -> dict:
    found = copy.deepcopy(RECORDED["ok"]["definition"])
    found["spec"] |= spec
    custom.set_defaults(found)
    return found


def version(name: str, **fields) -> dict:
    schema = {"openAPIV3Schema": {"type": "object"}}
    return {"name": name, "served": True, "storage": False, "schema": schema, **fields}


@pytest.mark.parametrize("name", RECORDED)
def test_a_definition_is_accepted_or_refused_as_recorded(name):
    case = RECORDED[name]
    found = copy.deepcopy(case["definition"])
    custom.set_defaults(found)
    causes = [cause._asdict() for cause in custom.validate_definition(found)]
    assert causes == case["causes"]
    if not causes:
        assert found["spec"] == case["becomes"]


def test_there_are_definitions_of_both_kinds():
    refused = sum(bool(case["causes"]) for case in RECORDED.values())
    assert refused > 15
    assert len(RECORDED) - refused > 10


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.name)
def test_the_definitions_that_quorate_ships_and_tests_with_are_served(path):
    for found in yaml.safe_load_all(path.read_text()):
        if found["kind"] != "CustomResourceDefinition":
            continue
        custom.set_defaults(found)
        assert custom.validate_definition(found) == []
        (resource,) = custom.resources_of(found)
        assert resource.bucket == resource.crd == found["metadata"]["name"]
        assert resource.storage_version == resource.version
        rules = json.dumps(found)
        assert "x-kubernetes-validations" not in rules  # which are not evaluated here


def test_a_resource_says_what_its_definition_says():
    names = {"plural": "bars", "kind": "Bar", "shortNames": ["b"], "categories": ["all"]}
    scale = {"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n"}
    column = {"name": "N", "type": "integer", "jsonPath": ".spec.n", "priority": 1}
    one = version(
        "v1",
        storage=True,
        subresources={"status": {}, "scale": scale},
        additionalPrinterColumns=[column],
        selectableFields=[{"jsonPath": ".spec.n"}],
    )
    (resource,) = custom.resources_of(definition(names=names, versions=[one], scope="Cluster"))
    assert resource.path() == "/apis/ex.com/v1/bars"
    assert (resource.kind, resource.list_kind, resource.singular) == ("Bar", "BarList", "bar")
    assert (resource.short_names, resource.categories) == (("b",), ("all",))
    assert not resource.namespaced
    assert {name: sub.kind for name, sub in resource.subresources.items()} == {
        "scale": "Scale",
        "status": "Bar",
    }
    assert resource.extras == {"scale": scale, "selectableFields": [{"jsonPath": ".spec.n"}]}
    assert [one["name"] for one in resource.columns] == ["Name", "N"]
    assert resource.columns[1]["priority"] == 1


def test_without_columns_of_its_own_a_kind_has_name_and_age():
    (resource,) = custom.resources_of(definition())
    assert [(one["name"], one["type"]) for one in resource.columns] == [
        ("Name", "string"),
        ("Age", "date"),
    ]


def test_the_preferred_version_comes_first_and_those_not_served_not_at_all():
    names = ["v1alpha1", "v1", "v2beta1", "v10", "v2", "foo", "bar", "v1beta2"]
    versions = [version(name) for name in names] + [version("v3", served=False, storage=True)]
    found = custom.resources_of(definition(versions=versions))
    assert [resource.version for resource in found] == [
        "v10",
        "v2",
        "v1",
        "v2beta1",
        "v1beta2",
        "v1alpha1",
        "bar",
        "foo",
    ]
    assert {resource.storage_version for resource in found} == {"v3"}


class World:
    """The definitions that there are."""

    def __init__(self, *definitions: dict) -> None:
        self.definitions = list(definitions)

    def now_s(self) -> float:
        return NOW_S

    def find(self, bucket: str, namespace: str, name: str) -> None:
        return None

    def find_all(self, bucket: str, namespace: str = "") -> list[dict]:
        assert bucket == custom.BUCKET
        return self.definitions


def test_a_definition_is_established_when_it_is_created():
    found = definition()
    RULES.prepare_create(found, World())
    time = "2026-11-21T12:00:00Z"
    assert found["status"] == {
        "conditions": [
            {
                "type": "NamesAccepted",
                "status": "True",
                "lastTransitionTime": time,
                "reason": "NoConflicts",
                "message": "no conflicts found",
            },
            {
                "type": "Established",
                "status": "True",
                "lastTransitionTime": time,
                "reason": "InitialNamesAccepted",
                "message": "the initial names have been accepted",
            },
        ],
        "acceptedNames": {
            "plural": "bars",
            "singular": "bar",
            "kind": "Bar",
            "listKind": "BarList",
        },
        "storedVersions": ["v1"],
    }
    assert custom.resources_of(found)


def test_names_that_another_definition_has_are_not_accepted_and_not_served():
    first = definition()
    RULES.prepare_create(first, World())
    second = definition(names={"plural": "others", "kind": "Bar"})
    second["metadata"]["name"] = "others.ex.com"
    RULES.prepare_create(second, World(first))
    named, established = second["status"]["conditions"]
    assert (named["status"], named["reason"]) == ("False", "SingularConflict")
    assert named["message"] == '"bar" is already in use'
    assert (established["status"], established["reason"]) == ("False", "NotAccepted")
    assert custom.resources_of(second) == []
    third = definition(group="other.com")
    third["metadata"]["name"] = "bars.other.com"
    RULES.prepare_create(third, World(first))
    assert custom.resources_of(third)


def test_versions_that_were_stored_are_remembered_and_conditions_keep_their_time():
    old = definition()
    RULES.prepare_create(old, World())
    old["status"]["conditions"][0]["lastTransitionTime"] = "2020-01-01T00:00:00Z"
    new = definition(versions=[version("v1"), version("v2", storage=True)])
    RULES.prepare_update(new, old, World(old))
    assert new["status"]["storedVersions"] == ["v1", "v2"]
    times = [one["lastTransitionTime"] for one in new["status"]["conditions"]]
    assert times == ["2020-01-01T00:00:00Z", "2026-11-21T12:00:00Z"]
