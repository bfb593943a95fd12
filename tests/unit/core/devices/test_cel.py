"""CEL selectors as Kubernetes extends them: quantities, versions, binds, and absent domains."""

import sys

import pytest

from quorate.core.cluster.devices.pools import SharedTraits
from quorate.core.model import policy
from quorate.core.model.devices import DeviceTraits
from quorate.core.model.steps import costs
from quorate.core.room.devices.cel import cost as cel_cost
from quorate.core.room.devices.cel.expressions import Expressions
from quorate.core.room.devices.cel.names import names_only
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
    assert "unsupported attribute value" in Expressions().matches("true", SharedTraits(strange))


def test_a_version_that_is_none_is_said():
    strange = DeviceTraits("d", (attribute("v", "1.2"),))
    assert "'1.2' is not a semantic version" in Expressions().matches("true", SharedTraits(strange))


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


def doubled(times: int) -> str:
    """Return what names a text, twice that text, four times it, and so on."""
    values = ['"aaaa"', *(f"a{i} + a{i}" for i in range(times))]
    opened = "".join(f"cel.bind(a{i}, {value}, " for i, value in enumerate(values))
    return f"{opened}a{times}.size() > 0{')' * len(values)}"


COSTS = "CEL compile error: it may cost more than 500000 tenths of a microsecond to evaluate"


@pytest.mark.parametrize(
    "expression",
    [
        nested(8),
        " && ".join([nested(4)] * 10),
        nested(4, '"a,b".split(",")'),
        f"[1, 2, 3].all(x, [1, 2, 3].all(y, {TEN}.all(z, {TEN}.all(u, {A}.uuid != 'a'))))",
        doubled(25),
        '["a"]'
        + "".join(f".map(x{i}, x{i} + x{i} + x{i} + x{i})" for i in range(12))
        + "[0] == ''",
        "lists.range(1000).map(x, x).size() > 0",
        "lists.range(1000).distinct().size() > 0",
        '"aaaaaaaaaa".replace("a", "' + "b" * 900 + '").replace("b", "' + "c" * 900 + '") == ""',
        f'{A}.kind.matches(r"\\w{{250}}")',
        f'{A}.kind.matches("((.{{100}}){{100}}){{9}}")',
        f'{A}.kind.matches(r"[]\\w]{{250}}")',
    ],
)
def test_what_takes_too_long_is_refused_before_it_is_tried(expression):
    assert ask(expression) == COSTS


@pytest.mark.parametrize(
    "expression",
    [
        nested(4),
        f"{nested(3)} && {nested(3)} && {nested(3)}",
        doubled(12),
        "device.attributes.exists(d, device.attributes[d].exists(k, k == 'kind'))",
        "lists.range(300).all(x, x >= 0)",
        f"{TEN}.map(x, {TEN}.map(y, x + y)).size() == 10",
        f'{A}.kind.matches("^[x]{{1}}$") && !{A}.kind.matches("^[0-9a-f]{{8}}-[0-9a-f]{{12}}$")',
        f"!({A}.uuid in [{', '.join(repr(f'GPU-{i:036}') for i in range(220))}])",
    ],
)
def test_what_people_may_write_is_cheap_enough(expression):
    assert ask(expression) is True


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        (f'{A}.kind.matches("x" + "y")', "the pattern of matches has to be written out"),
        (f"{A}.kind.matches({A}.kind)", "the pattern of matches has to be written out"),
        (f'{A}.kind.matches(r"(?x)\\w {{250}}")', "with the flag x is not supported"),
        (f'{A}.kind.matches("\\x5c")', "one text without escapes"),
    ],
)
def test_a_pattern_whose_cost_cannot_be_told_is_refused(expression, said):
    found = ask(expression)
    assert isinstance(found, Broken)
    assert found.startswith("CEL compile error: ")
    assert said in found


def of_length(characters: int) -> str:
    return f'"{"a" * (characters - 7)}" != ""'


@pytest.mark.parametrize(
    ("bound", "make", "said"),
    [
        ("CEL_TEXT_MAX", lambda n: of_length(n - 1), "it has 10241 characters"),
        ("CEL_TOKENS_MAX", lambda n: "0 < 1" + " + 0" * ((n - 3) // 2) + "!"[: (n - 3) % 2], ""),
        ("CEL_DEPTH_MAX", lambda n: "(" * (n - 1) + "true" + ")" * (n - 1), "nested too deeply"),
        ("CEL_LIST_MAX", lambda n: f"lists.range({n}).size() > 0", "lists.range makes at most"),
    ],
)
def test_bounds_hold_below_at_and_above(bound, make, said):
    most = getattr(policy, bound)
    for size in (most - 1, most):
        found = ask(make(size))
        assert found is True or bound == "CEL_TOKENS_MAX", (size, found)
        assert "names, numbers, texts and signs" not in str(found)
    above = ask(make(most + 1))
    assert isinstance(above, Broken)
    assert (said or "it has more than 2000 names, numbers, texts and signs") in above


def test_the_cost_of_an_expression_is_bounded_exactly(monkeypatch):
    cost = rewrite(nested(2)).cost  # it looks nothing up
    for most, fits in ((cost + 1, True), (cost, True), (cost - 1, False)):
        monkeypatch.setattr(policy, "CEL_COST_MAX", most)
        assert (ask(nested(2)) is True) is fits


@pytest.mark.parametrize(
    ("name", "expression"),
    [
        ("CEL_CALL_COST", "size('a') > 0"),
        ("CEL_ATTRIBUTE_COST", "device.attributes.size() > 0"),
        ("CEL_WHOLE_DEVICE_LOOKUPS", "device.attributes.size() > 0"),
        ("CEL_OWN_CALL_COST", "isQuantity('1')"),
        ("CEL_BYTES_PER_COST", "'a'.startsWith('a')"),
        ("CEL_ELEMENT_COST", "'a,b'.split(',').size() == 2"),
        ("CEL_PATTERN_COST", "'a'.matches('')"),
        ("CEL_LITERAL_COST", "'a'.matches('a')"),
        ("CEL_LITERAL_ANY_CASE_COST", "'a'.matches('(?i)a')"),
        ("CEL_GROUP_COST", "'a'.matches('(a)')"),
        ("CEL_REPEAT_COST", "'a'.matches('a+')"),
        ("CEL_ANY_COST", "'a'.matches('.')"),
        ("CEL_ESCAPE_COST", r"'a'.matches(r'\.')"),
        ("CEL_NEGATED_SET_COST", "'a'.matches('[^b]')"),
        ("CEL_CLASS_COSTS", r"'a'.matches(r'\w')"),
    ],
)
def test_each_cost_counts_where_it_is_spent(monkeypatch, name, expression):
    def total():
        made = rewrite(expression)
        return made.cost + made.lookups * cel_cost.whole_device()

    before, value = total(), getattr(costs, name)
    more = dict.fromkeys(value, 9999) if isinstance(value, dict) else value + 1000
    monkeypatch.setattr(costs, name, 1 if name == "CEL_BYTES_PER_COST" else more)
    assert total() > before


def test_what_a_device_may_have_decides_what_it_costs(monkeypatch):
    before = cel_cost.whole_device()
    monkeypatch.setattr(policy, "DEVICE_ATTRIBUTES_MAX", policy.DEVICE_ATTRIBUTES_MAX + 1)
    assert cel_cost.whole_device() == before + costs.CEL_ATTRIBUTE_COST
    assert cel_cost.Part("").size == policy.DEVICE_TEXT_BYTES_MAX


def test_an_evaluation_counts_what_the_device_has():
    library, few = Library(), DeviceTraits("d", (attribute("a", 1),))
    many = DeviceTraits("d", tuple(attribute(f"a{i}", 1) for i in range(32)))
    plain = Program('device.driver == "d"', library)
    looks = Program('device.attributes["d"].a == 1', library)
    assert looks.steps(few) < looks.steps(many) < 2 + cel_cost.whole_device()
    assert plain.steps(few) >= 1
    often = Program(f'{TEN}.all(x, device.attributes["d"].a1 == x)', library)
    assert often.steps(many) > 9 * (looks.steps(many) - 1)
    assert Program("1 +", library).steps(many) == 1


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
    assert len(expressions._known[expression]._looks_at) == remembered
