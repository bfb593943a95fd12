"""CustomResourceDefinitions: accepted or refused as a real server does it, and what they serve."""

import json
from pathlib import Path

import pytest
import yaml

from pocketkube.registry.rules import definitions as custom

ROOT = Path(__file__).parents[4]
SHIPPED = [ROOT / "src/quorate/deploy/crds.yaml", ROOT / "tests/e2e/manifests/volcano.yaml"]


def version(name: str, **fields) -> dict:
    schema = {"openAPIV3Schema": {"type": "object"}}
    return {"name": name, "served": True, "storage": False, "schema": schema, **fields}


def definition(**spec) -> dict:
    made = {
        "metadata": {"name": "bars.ex.com"},
        "spec": {
            "group": "ex.com",
            "names": {"plural": "bars", "kind": "Bar"},
            "scope": "Namespaced",
            "versions": [version("v1", storage=True)],
            **spec,
        },
    }
    custom.set_defaults(made)
    return made


def with_schema(**fields) -> dict:
    return {"versions": [version("v1", storage=True, schema={"openAPIV3Schema": fields})]}


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"group": "other.com"}, "metadata.name"),
        ({"scope": ""}, "spec.scope"),
        ({"names": {"plural": "bars"}}, "spec.names.kind"),
        ({"versions": [version("v1")]}, "spec.versions"),
        (with_schema(), "spec.versions[0].schema.openAPIV3Schema.type"),
        (
            with_schema(type="object", properties={"a": {"type": "text"}}),
            "spec.versions[0].schema.openAPIV3Schema.properties[a].type",
        ),
    ],
)
def test_a_definition_that_cannot_be_served_is_refused(spec, field):
    assert custom.validate_definition(definition()) == []
    assert field in [cause.field for cause in custom.validate_definition(definition(**spec))]


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
