"""CEL selectors as Kubernetes extends them: quantities, versions, binds, and absent domains."""

import sys

import pytest

from quorate.core.cluster.devices.views import SharedTraits
from quorate.core.model import policy
from quorate.core.model.devices import DeviceTraits
from quorate.core.model.steps import costs
from quorate.core.room.devices.cel.expressions import Expressions
from quorate.core.room.devices.cel.programs import Broken, Library, Program
from quorate.core.room.devices.cel.text import rewrite
from tests.unit.core.device_world import attribute
from tests.unit.core.devices.traits import TRAITS, A, C


def ask(expression: str) -> bool | Broken:
    return Expressions().matches(expression, SharedTraits(TRAITS))


@pytest.mark.parametrize(
    "expression",
    [
        'device.driver == "dra.example.com"',
        f'{C}.memory.isGreaterThan(quantity("1Gi"))',
        f'{C}.memory.compareTo(quantity("10240Mi")) == 0',
        f'{C}.memory == quantity("10240Mi")',
        f'{C}.memory.isLessThan(quantity("1e12"))',
        '!("x" in device.attributes["nowhere.example.com"])',
        '!("nowhere.example.com" in device.attributes)',
        'device.attributes["other.example.com"].ok',
        f'{A}.v.isLessThan(semver("1.2.3"))',
        f'{A}.v.isGreaterThan(semver("1.2.3-rc.0"))',
        f'{A}.v.major() == 1 && semver("v1.2", true) == semver("1.2.0")',
        f'{A}.?zone.orValue("none") == "none"',
        f'{A}[?"kind"].orValue("none") == "x"',
        f"!has({A}.zone) && has({A}.kind)",
        f'{A}.kind.contains("x") && {A}.kind.lowerAscii() == "x"',
        f"{A}.cores in [1, 2, 5]",
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
        ("unknown(1)", "CEL compile error: the function unknown is not supported"),
        (f'{A}.kind.matches("^x$")', "CEL compile error: the function matches is not supported"),
        (f'"a".replace("a", {A}.kind) == ""', "the function replace is not supported"),
        ("[1].exists(x, x == 1)", "CEL compile error: the macro exists is not supported"),
        (f"cel.bind(dra, {A}, dra.cores > 4)", "CEL compile error: the macro bind is not"),
        ("Thing{a: 1} == 1", "CEL compile error: maps and messages are not supported"),
        ("device.attributes[", "CEL compile error"),
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
    assert "unsupported attribute value" in Expressions().matches("true", SharedTraits(strange))


def test_a_version_that_is_none_is_said():
    strange = DeviceTraits("d", (attribute("v", "1.2"),))
    assert "'1.2' is not a semantic version" in Expressions().matches("true", SharedTraits(strange))


@pytest.mark.parametrize(
    ("expression", "only"),
    [
        (f'{A}.kind == "x"', True),
        (f"{A}[{A}.kind] == 1", False),
        ("device.attributes.size() == 2", False),
        (f"[{A}] == [{A}]", False),
        (f"{A} == {A}", False),
        (f'{A}["ki" + "nd"] == "x"', False),
        (f'"\\x6bind" in {A}', False),
        (f"size({A}) == 4", False),
        (f"{A}.kind in {A}", False),
        ('"nowhere" in device.attributes', False),
    ],
)
def test_it_is_known_whether_an_answer_depends_on_other_attributes(expression, only):
    assert rewrite(expression).names_only is only


@pytest.mark.parametrize(
    ("bound", "make", "said"),
    [
        (
            "CEL_TEXT_MAX",
            lambda size: f'"{"a" * (size - 8)}" != ""',
            "it has 1001 characters, and at most 1000 are read",
        ),
        ("CEL_DEPTH_MAX", lambda n: "(" * (n - 1) + "true" + ")" * (n - 1), "nested too deeply"),
    ],
)
def test_bounds_hold_below_at_and_above(bound, make, said):
    most = getattr(policy, bound)
    assert [ask(make(size)) for size in (most - 1, most)] == [True, True]
    above = ask(make(most + 1))
    assert isinstance(above, Broken)
    assert said in above


def test_an_expression_counts_what_it_does_and_what_the_device_has():
    library, few = Library(), DeviceTraits("d", (attribute("a", 1),))
    many = DeviceTraits("d", tuple(attribute(f"a{i}", 1) for i in range(32)))
    plain = Program('device.driver == "d"', library)
    looks = Program('device.attributes["d"].a == 1', library)
    often = Program(" || ".join(['device.attributes["d"].a1 == 1'] * 9), library)
    parses = Program(" || ".join(['isQuantity("1")'] * 9), library)
    assert 1 <= plain.steps(few) < parses.steps(few)
    assert looks.steps(few) < looks.steps(many) < often.steps(many)
    assert Program("1 +", library).steps(many) == 1


@pytest.mark.parametrize(
    ("name", "expression"),
    [
        ("CEL_TOKEN_COST", "1 == 1"),
        ("CEL_CALL_COST", "'a'.startsWith('a')"),
        ("CEL_ATTRIBUTE_COST", f"{A}.cores == 5"),
        ("CEL_WHOLE_DEVICE_LOOKUPS", "device.attributes.size() > 0"),
        ("CEL_OWN_CALL_COST", "isQuantity('1')"),
    ],
)
def test_each_cost_counts_where_it_is_spent(monkeypatch, name, expression):
    before = Program(expression, Library()).steps(TRAITS)
    monkeypatch.setattr(costs, name, getattr(costs, name) + 1000)
    assert Program(expression, Library()).steps(TRAITS) > before


@pytest.mark.parametrize(
    "expression",
    ["[1][5] == 1", "[][0] == 1", '{"a": 1}["b"] == 1', "[1].slice(0, 9) == [1]", '"" == "a"[0]'],
)
def test_whatever_the_library_raises_is_broken(expression):
    assert isinstance(ask(expression), Broken)


class PanicError(BaseException):
    """As the library's own panics, which are no ``Exception``."""


@pytest.mark.parametrize("error", [PanicError("oh"), MemoryError(), RecursionError("deep")])
def test_a_panic_of_the_library_is_broken_too(monkeypatch, error):
    def raises(*_):
        raise error

    monkeypatch.setattr(Library, "run", raises)
    assert ask("true") == f"CEL runtime error: {str(error) or 'MemoryError'}"
    monkeypatch.setattr(Library, "compile", raises)
    assert ask("true") == f"CEL compile error: {str(error) or 'MemoryError'}"


def test_who_wants_the_process_to_end_is_not_kept_from_it(monkeypatch):
    def raises(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(Library, "run", raises)
    with pytest.raises(KeyboardInterrupt):
        ask("true")


def test_without_the_library_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "cel", None)
    said = ask("true")
    assert isinstance(said, Broken)
    assert "pip install 'quorate-scheduler[devices]'" in said


@pytest.mark.parametrize(("bound", "remembered"), [(0, 0), (2, 2), (3, 3), (4, 3)])
def test_of_so_many_names_it_is_remembered_whether_they_are_looked_at(
    bound, remembered, monkeypatch
):
    monkeypatch.setattr(policy, "CEL_NAMES_MAX", bound)
    expressions, expression = Expressions(), f"{A}.cores > 4"
    for cores, expected in ((5, True), (3, False), (5, True)):
        attributes = (attribute("cores", cores), attribute("kind", "x"), attribute("uuid", "u"))
        traits = SharedTraits(DeviceTraits("dra.example.com", attributes, ()))
        assert expressions.matches(expression, traits) is expected
    assert len(expressions._known.get(expression)._looks_at) == remembered
