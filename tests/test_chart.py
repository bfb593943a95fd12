"""The Helm chart is made from the manifests, and its values are theirs. Helm: tests/chart."""

import json
import re

import pytest
import yaml

from quorate import __version__
from quorate.cli.commands import manifests
from quorate.shell.configuration import config
from tests.paths import ROOT
from tools.chart import CHART, stale
from tools.chart.knobs import KNOBS
from tools.chart.making import PlaceError, default_of

VALUES = yaml.safe_load((CHART / "values.yaml").read_text())
SCHEMA = json.loads((CHART / "values.schema.json").read_text())
FIXED = {
    "apiVersion",
    "kind",
    "healthAddress",
    "leaderElection.namespace",
    "leaderElection.name",
}
"""Fields of the configuration that the other objects of the chart rely on."""


def test_the_templates_are_what_the_manifests_make_them():
    assert stale() == [], "run: python -m tools.chart --write"


@pytest.mark.parametrize("knob", [one for one in KNOBS if one.value], ids=lambda one: one.value)
def test_a_values_default_is_what_the_manifests_say(knob):
    assert VALUES[knob.value] == default_of(knob)


def test_defaults_are_those_of_the_command():
    image = VALUES["image"]
    assert f"{image['repository']}:{image['tag'] or __version__}" == manifests.DEFAULT_IMAGE
    assert VALUES["replicas"] == manifests.DEFAULT_REPLICAS
    assert SCHEMA["properties"]["replicas"]["maximum"] == manifests.REPLICAS_MAX
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["appVersion"] == __version__
    assert chart["version"] == __version__


def leaves(properties, values):
    """Return the name of each value; ``config`` and ``resources`` are one each."""
    assert set(properties) - {"global"} == set(values), "schema and values.yaml know the same"
    for name, value in values.items():
        below = properties[name]
        if below.get("additionalProperties") is False and name not in ("config", "resources"):
            yield from (f"{name}.{one}" for one in leaves(below["properties"], value))
        else:
            yield name


def test_schema_and_docs_know_every_value_and_no_other():
    page = (ROOT / "docs" / "operators" / "helm.md").read_text()
    table = page[page.index("## Values") : page.index("## Where something")]
    rows = re.findall(r"(?m)^\| (`[^|]+`) \|", table)
    documented = {name for row in rows for name in re.findall(r"`([^`]+)`", row)}
    assert documented == set(leaves(SCHEMA["properties"], VALUES))


def test_the_schema_knows_every_field_of_the_configuration_that_may_change():
    def fields(properties):
        for name, below in properties.items():
            inner = below.get("properties")
            yield from (f"{name}.{one}" for one in inner) if inner else [name]

    sections = {
        "nodeLifeCycle": config._LIFE_CYCLE,
        "leaderElection": config._ELECTION,
        "recorder": config._RECORDER,
    }
    all_fields = set(config._TOP) - set(sections)
    all_fields |= {f"{name}.{field}" for name, table in sections.items() for field in table}
    assert set(fields(SCHEMA["properties"]["config"]["properties"])) == all_fields - FIXED


def test_a_knob_whose_place_is_gone_is_named():
    gone = KNOBS[-1]._replace(path=("metadata", "nothing"))
    with pytest.raises(PlaceError, match=r"metadata\.nothing: there is no nothing"):
        default_of(gone)
