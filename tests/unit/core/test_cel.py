"""CEL selectors as Kubernetes extends them: quantities, versions, binds, and absent domains."""

import sys
import tomllib
from pathlib import Path

import pytest

from quorate.core.model.devices import Capacity, DeviceTraits
from quorate.core.plan.devices.cel_text import names_only
from quorate.core.plan.devices.expressions import Broken, Expressions
from tests.unit.core.devices import attribute

ROOT = Path(__file__).parents[3]
TRAITS = DeviceTraits(
    "dra.example.com",
    (
        attribute("cores", 5),
        attribute("kind", "x"),
        attribute("other.example.com/ok", True),
        attribute("uuid", "u-1"),
        attribute("v", "1.2.3-rc.1"),
    ),
    (Capacity("memory", "10Gi"),),
)
A = 'device.attributes["dra.example.com"]'
C = 'device.capacity["dra.example.com"]'


def ask(expression: str) -> bool | Broken:
    return Expressions().matches(expression, 0, TRAITS)


@pytest.mark.parametrize(
    "expression",
    [
        'device.driver == "dra.example.com"',
        f'{C}.memory.isGreaterThan(quantity("1Gi"))',
        f'{C}.memory.compareTo(quantity("10240Mi")) == 0',
        f'{C}.memory == quantity("10240Mi")',
        f'{C}.memory.isLessThan(quantity("1e12"))',
        f'cel.bind(dra, {A}, dra.cores > 4 && dra.kind == "x")',
        "cel.bind(a, 1, cel.bind(b, a + 1, b == 2))",
        '!("x" in device.attributes["nowhere.example.com"])',
        '!("nowhere.example.com" in device.attributes)',
        'device.attributes["other.example.com"].ok',
        f'{A}.v.isLessThan(semver("1.2.3"))',
        f'{A}.v.isGreaterThan(semver("1.2.3-rc.0"))',
        f'{A}.v.major() == 1 && semver("v1.2", true) == semver("1.2.0")',
        f'{A}.?zone.orValue("none") == "none"',
        f'{A}[?"kind"].orValue("none") == "x"',
        f"!has({A}.zone) && has({A}.kind)",
        f'{A}.kind.matches("^[xyz]$") && {A}.kind.lowerAscii() == "x"',
        f"{A}.cores in [1, 2, 5]",
        'device.attributes.exists(d, d == "other.example.com")',
        "!device.allowMultipleAllocations",
        'isQuantity("1Gi") && !isQuantity("much") && !isSemver("1.2")',
        "true || device.attributes['a'].b",
    ],
)
def test_it_holds(expression):
    assert ask(expression) is True


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        (f"{A}.zone == 1", "CEL runtime error: no such key: zone"),
        ('device.attributes["nowhere"].x', "CEL runtime error: no such key: x"),
        (f"{A}.kind", "could not be converted to bool"),
        (f"{A}.kind > 1", "CEL runtime error: No such overload"),
        (f'{A}.kind.isGreaterThan(quantity("1"))', "CEL runtime error"),
        ('quantity("much") == quantity("1")', "CEL runtime error"),
        ("unknown(1)", "CEL runtime error: Undefined"),
        ("device.attributes[", "CEL compile error"),
        ("cel.bind(a, 1)", "CEL compile error: cel.bind takes three arguments"),
        ("(" * 200 + ")" * 200, "CEL compile error: it is nested too deeply"),
        ("1 +", "CEL compile error"),
    ],
)
def test_what_is_wrong_is_said(expression, said):
    found = ask(expression)
    assert isinstance(found, Broken)
    assert said in found


def test_an_attribute_of_a_kind_that_is_not_known_is_said():
    strange = DeviceTraits("d", (attribute("a", 1)._replace(kind=""),))
    assert "unsupported attribute value" in Expressions().matches("true", 0, strange)


def test_a_version_that_is_none_is_said():
    strange = DeviceTraits("d", (attribute("v", "1.2"),))
    assert "'1.2' is not a semantic version" in Expressions().matches("true", 0, strange)


@pytest.mark.parametrize(
    ("expression", "only"),
    [
        (f'{A}.kind == "x"', True),
        (f"cel.bind(dra, {A}, dra.cores > 4)", True),
        (f"{A}[{A}.kind] == 1", False),
        ("device.attributes.exists(d, true)", False),
        (f"{A} == {A}", False),
        (f'{A}["ki" + "nd"] == "x"', False),
        (f'"\\x6bind" in {A}', False),
        (f"size({A}) == 4", False),
        (f"{A}.kind in {A}", False),
        ('"nowhere" in device.attributes', False),
    ],
)
def test_it_is_known_whether_an_answer_depends_on_other_attributes(expression, only):
    assert names_only(expression) is only


TEN = "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]"


def nested(depth: int, within: str = TEN) -> str:
    """Return macros, each over ten elements of the one around it: 10 to the power of ``depth``."""
    opened = "".join(f"{within}.all(x{i}, " for i in range(depth))
    return f"{opened}true{')' * depth}"


def test_what_takes_too_long_is_refused_before_it_is_tried():
    assert ask(nested(4)) is True
    refused = ask(nested(8))
    assert isinstance(refused, Broken)
    assert refused == "CEL compile error: it may take more than 1000000 steps"
    assert ask(f"{nested(3)} && {nested(3)} && {nested(3)}") is True, "one after the other adds up"


def test_a_list_of_unknown_length_counts_as_a_long_one():
    refused = ask(nested(4, '"a,b".split(",")'))
    assert isinstance(refused, Broken)
    assert "1000000 steps" in refused


def test_without_the_library_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "cel", None)
    said = ask("true")
    assert isinstance(said, Broken)
    assert "common-expression-language, which is not installed" in said


def test_the_base_install_has_the_library():
    """A scheduler has to know selectors, whatever extras it was installed with."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert [one for one in project["dependencies"] if one.startswith("common-expression-language")]
