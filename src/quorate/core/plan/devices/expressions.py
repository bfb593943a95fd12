"""CEL selectors of device classes and claims: does a device match, or what is wrong.

In: expressions and traits of devices. Out: verdicts, remembered. The library is imported when the
first expression is met. Values that it has no type for are maps: a quantity is
``{"quantity": exact number}`` and a version ``{"semver": parts}``, so that equal ones are equal.
Source: the package cel of k8s.io/dynamic-resource-allocation 0.36.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from quorate.core.model.devices import Attribute, DeviceTraits
from quorate.core.plan.devices.cel_text import CelError, names_only, rewrite
from quorate.core.quantity import QuantityError, exact

ANSWERS_MAX = 1_000_000
LIBRARY_MISSING = (
    "CEL expressions need the Python package common-expression-language, which is not installed:"
    " reinstall quorate, or pip install common-expression-language"
)
_SEMVER = re.compile(
    r"(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)"
    r"(?:-([0-9A-Za-z.-]+))?(?:\+[0-9A-Za-z.-]+)?"
)
_LOOSE = re.compile(r"v?([0-9]+)(?:\.([0-9]+))?(?:\.([0-9]+))?((?:[-+].*)?)")
Value = dict[str, Any]


class Broken(str):
    """What is wrong with an expression, or with evaluating it for a device."""

    __slots__ = ()


class Expressions:
    """Programs and their answers. Devices of equal traits, by ``traits_id``, are asked once."""

    def __init__(self) -> None:
        self._programs: dict[str, Callable[[DeviceTraits], bool | Broken] | Broken] = {}
        self._answers: dict[tuple[str, int], bool | Broken] = {}
        self._by_part: dict[tuple[object, ...], bool | Broken] = {}
        self._looks_at: dict[str, _Relevant] = {}

    def matches(self, expression: str, traits_id: int, traits: DeviceTraits) -> bool | Broken:
        """Return whether devices of these traits match, or why that cannot be said."""
        answer = self._answers.get((expression, traits_id))
        if answer is None:
            if len(self._answers) >= ANSWERS_MAX:
                self._answers.clear()
                self._by_part.clear()
            answer = self._by_relevant_part(expression, traits)
            self._answers[expression, traits_id] = answer
        return answer

    def _by_relevant_part(self, expression: str, traits: DeviceTraits) -> bool | Broken:
        """Ask once for all devices that differ only in what the expression does not look at."""
        program = self._programs.get(expression)
        if program is None:
            program = self._programs[expression] = _compile(expression)
            self._looks_at[expression] = _Relevant(expression)
        if isinstance(program, Broken):
            return program
        looks_at = self._looks_at[expression]
        part = (
            expression,
            traits.driver,
            traits.shareable,
            tuple([one for one in traits.attributes if looks_at[one.name] or not one.kind]),
            tuple([one for one in traits.capacity if looks_at[one.name]]),
        )
        answer = self._by_part.get(part)
        if answer is None:
            answer = self._by_part[part] = _answer(program, traits)
        return answer


class _Relevant(dict[str, bool]):
    """Whether an expression can look at the attribute or capacity of a name."""

    def __init__(self, expression: str) -> None:
        super().__init__()
        self._expression = expression
        self._names_only = names_only(expression)

    def __missing__(self, name: str) -> bool:
        found = not self._names_only or name.rpartition("/")[2] in self._expression
        self[name] = found
        return found


def _answer(
    program: Callable[[DeviceTraits], bool | Broken], traits: DeviceTraits
) -> bool | Broken:
    wrong = next((one.name for one in traits.attributes if not one.kind), None)
    if wrong is not None:
        return Broken(f"CEL runtime error: attribute {wrong}: unsupported attribute value")
    return program(traits)


def _compile(expression: str) -> Callable[[DeviceTraits], bool | Broken] | Broken:
    try:
        import cel  # noqa: PLC0415 - a fifth of a second, for clusters with claims of devices
        from cel.stdlib import add_stdlib_to_context  # noqa: PLC0415 - as above
    except ImportError:
        return Broken(LIBRARY_MISSING)
    try:
        program = cel.compile(rewrite(expression))
    except (ValueError, CelError) as error:
        return Broken(f"CEL compile error: {str(error).splitlines()[0][:200]}")

    def run(traits: DeviceTraits) -> bool | Broken:
        try:
            attributes, capacity = _attributes(traits), _capacity(traits)
        except ValueError as error:
            return Broken(f"CEL runtime error: {error}")
        context = cel.Context()
        add_stdlib_to_context(context)
        for name, function in _FUNCTIONS.items():
            context.add_function(name, function)
        context.add_function("attributes_of", lambda domain: attributes.get(domain, {}))
        context.add_function("capacity_of", lambda domain: capacity.get(domain, {}))
        context.add_function("optional_of", lambda value, key: _optional(cel, value, key))
        context.add_variable(
            "device",
            {
                "driver": traits.driver,
                "attributes": attributes,
                "capacity": capacity,
                "allowMultipleAllocations": traits.shareable,
            },
        )
        try:
            answer = program.execute(context)
        except KeyError as error:
            return Broken(f"CEL runtime error: no such key: {error.args[0]}")
        except (ValueError, TypeError, RuntimeError, ArithmeticError) as error:
            return Broken(f"CEL runtime error: {str(error).splitlines()[0][:200]}")
        if not isinstance(answer, bool):
            kind = type(answer).__name__
            return Broken(f"CEL result of type {kind} could not be converted to bool")
        return answer

    return run


def _optional(cel: Any, value: Any, key: str) -> object:  # noqa: ANN401 - untyped values of CEL
    if isinstance(value, cel.OptionalValue):
        if not value.has_value():
            return value
        value = value.value()
    found = value.get(key) if isinstance(value, dict) else None
    return cel.OptionalValue.none() if found is None else cel.OptionalValue.of(found)


def _attributes(traits: DeviceTraits) -> dict[str, dict[str, Any]]:
    by_domain: dict[str, dict[str, Any]] = {}
    for one in traits.attributes:
        domain, _, name = one.name.rpartition("/")
        by_domain.setdefault(domain or traits.driver, {})[name] = _value(one)
    return by_domain


def _capacity(traits: DeviceTraits) -> dict[str, dict[str, Any]]:
    by_domain: dict[str, dict[str, Any]] = {}
    for one in traits.capacity:
        domain, _, name = one.name.rpartition("/")
        by_domain.setdefault(domain or traits.driver, {})[name] = quantity(one.value)
    return by_domain


def _value(attribute: Attribute) -> bool | int | str | Value:
    return semver(str(attribute.value)) if attribute.kind == "version" else attribute.value


def quantity(text: str) -> Value:
    """Return a quantity as the library holds it. Raises ``ValueError``."""
    return {"quantity": str(exact(text))}


def semver(text: str, loose: bool = False) -> Value:
    """Return a version by semver 2.0.0, its build left out. Raises ``ValueError``."""
    if loose:
        found = _LOOSE.fullmatch(text)
        if found:
            numbers = ".".join(str(int(part or 0)) for part in found.groups()[:3])
            text = numbers + found.group(4)
    match = _SEMVER.fullmatch(text)
    if match is None:
        raise ValueError(f"{text[:60]!r} is not a semantic version")
    major, minor, patch, pre = match.groups()
    return {"semver": [int(major), int(minor), int(patch)], "pre": (pre or "").split(".")}


def _is_valid(parse: Callable[..., Value]) -> Callable[..., bool]:
    def check(text: str, *loose: bool) -> bool:
        try:
            parse(text, *loose)
        except (QuantityError, ValueError):
            return False
        return True

    return check


def _compare(one: Value, other: Value) -> int:
    """Compare two quantities or two versions: -1, 0 or 1. Raises ``ValueError``."""
    if isinstance(one, dict) and isinstance(other, dict) and "quantity" in one:
        left, right = Fraction(one["quantity"]), Fraction(other["quantity"])
        return (left > right) - (left < right)
    if isinstance(one, dict) and isinstance(other, dict) and "semver" in one:
        mine, yours = _precedence(one), _precedence(other)
        return (mine > yours) - (mine < yours)
    raise ValueError("no such overload")


def _precedence(version: Value) -> tuple[Any, ...]:
    """Return a key that orders versions: a release comes after what precedes it."""
    parts = [part for part in version["pre"] if part]
    fields = tuple((0, int(p), "") if p.isdigit() else (1, 0, p) for p in parts)
    return (*version["semver"], not fields, fields)


def _added(one: Value, other: Value | int, sign: int) -> Value:
    amount = Fraction(other["quantity"]) if isinstance(other, dict) else Fraction(other)
    return {"quantity": str(Fraction(one["quantity"]) + sign * amount)}


def _sign(one: Value) -> int:
    value = Fraction(one["quantity"])
    return (value > 0) - (value < 0)


def _integer(one: Value) -> int:
    value = Fraction(one["quantity"])
    if value.denominator != 1:
        raise ValueError("cannot convert value to integer")
    return int(value)


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "quantity": quantity,
    "isQuantity": _is_valid(quantity),
    "semver": semver,
    "isSemver": _is_valid(semver),
    "isGreaterThan": lambda one, other: _compare(one, other) > 0,
    "isLessThan": lambda one, other: _compare(one, other) < 0,
    "compareTo": _compare,
    "major": lambda version: version["semver"][0],
    "minor": lambda version: version["semver"][1],
    "patch": lambda version: version["semver"][2],
    "add": lambda one, other: _added(one, other, 1),
    "sub": lambda one, other: _added(one, other, -1),
    "sign": _sign,
    "isInteger": lambda one: Fraction(one["quantity"]).denominator == 1,
    "asInteger": _integer,
    "asApproximateFloat": lambda one: float(Fraction(one["quantity"])),
}
