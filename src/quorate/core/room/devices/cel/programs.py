"""Programs of CEL expressions, and the functions that Kubernetes adds to the language.

Only this module calls the library; whatever it raises becomes ``Broken``. Types that it lacks are
maps: a quantity is ``{"quantity": exact number}`` and a version ``{"semver": parts}``, so that
``==`` works. Source: the package cel of k8s.io/dynamic-resource-allocation 0.36.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from quorate import DISTRIBUTION
from quorate.core.model import policy
from quorate.core.model.devices import Attribute, DeviceTraits
from quorate.core.model.quantity import QuantityError, exact
from quorate.core.model.steps import costs
from quorate.core.room.devices.cel.text import CelError, rewrite

LIBRARY_MISSING = (
    "CEL selectors of devices need the extra devices, which is not installed where quorate runs:"
    f" pip install '{DISTRIBUTION}[devices]'"
)
_SEMVER = re.compile(
    r"(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)"
    r"(?:-([0-9A-Za-z.-]+))?(?:\+[0-9A-Za-z.-]+)?"
)
_LOOSE = re.compile(r"v?([0-9]+)(?:\.([0-9]+))?(?:\.([0-9]+))?((?:[-+].*)?)")
Value = dict[str, Any]


class Broken(str):
    """Why an expression cannot be compiled, or cannot be evaluated for a device."""

    __slots__ = ()


class Program:
    """A compiled expression; ``compile_steps`` is what compiling costs.

    ``broken`` says why the expression cannot be run, if so; ``names_only`` as in ``Rewritten``.
    """

    __slots__ = (
        "_cost",
        "_library",
        "_lookups",
        "_program",
        "broken",
        "compile_steps",
        "names_only",
    )

    def __init__(self, expression: str, library: Library) -> None:
        self._library = library
        self._program: Any = None
        self.broken: Broken | None = library.missing
        self._cost, self._lookups, self.names_only = 0, 0, True
        self.compile_steps = 20 + min(len(expression), policy.CEL_TEXT_MAX) // 10
        try:
            text, self._cost, self._lookups, self.names_only = rewrite(expression)
        except CelError as error:
            self.broken = self.broken or Broken(f"CEL compile error: {error}")
        else:
            if self.broken is None:
                self._program = self._compiled(text)

    def _compiled(self, text: str) -> Any:  # noqa: ANN401 - the library's
        try:
            return self._library.compile(text)
        except BaseException as error:
            self.broken = _broken("compile", error)
            return None

    def steps(self, traits: DeviceTraits) -> int:
        """Return an upper bound on the steps of one run for devices of these traits."""
        if self.broken is not None:
            return 1
        size = len(traits.attributes) + len(traits.capacity)
        lookup = costs.CEL_CALL_COST + costs.CEL_ATTRIBUTE_COST * size
        return 1 + (self._cost + self._lookups * lookup) // costs.CEL_COST_PER_STEP

    def run(self, traits: DeviceTraits) -> bool | Broken:
        """Return whether devices of these traits match, or why the evaluation failed."""
        if self.broken is not None:
            return self.broken
        wrong = next((one.name for one in traits.attributes if not one.kind), None)
        if wrong is not None:
            return Broken(f"CEL runtime error: attribute {wrong}: unsupported attribute value")
        try:
            self._library.look_at(traits)
        except (ValueError, QuantityError) as error:  # an attribute's value does not fit its type
            return _broken("runtime", error)
        try:
            answer = self._library.run(self._program, traits)
        except KeyError as error:
            return Broken(f"CEL runtime error: no such key: {str(*error.args[:1])[:200]}")
        except BaseException as error:
            return _broken("runtime", error)
        if not isinstance(answer, bool):
            kind = type(answer).__name__
            return Broken(f"CEL result of type {kind} could not be converted to bool")
        return answer


def _broken(when: str, error: BaseException) -> Broken:
    """Return the first line of what the library raised, which may even be a Rust panic."""
    if isinstance(error, KeyboardInterrupt | SystemExit | GeneratorExit):
        raise error
    lines = str(error).splitlines() or [type(error).__name__]
    return Broken(f"CEL {when} error: {lines[0][:200]}")


class Library:
    """The CEL library, imported on first use, with one context for all programs."""

    def __init__(self) -> None:
        self.missing: Broken | None = None
        self._device: DeviceTraits | None = None
        """The device that was evaluated last; the maps are built from it."""
        self._attributes: dict[str, Value] = {}
        self._capacity: dict[str, Value] = {}
        try:
            import cel  # noqa: PLC0415 - a fifth of a second, for clusters with claims of devices
            from cel.stdlib import add_stdlib_to_context  # noqa: PLC0415 - as above
        except ImportError:
            self.missing = Broken(LIBRARY_MISSING)
            return
        self._cel = cel
        self._context = cel.Context()
        add_stdlib_to_context(self._context)
        for name, function in _FUNCTIONS.items():
            self._context.add_function(name, function)
        self._context.add_function("attributes_of", lambda name: self._attributes.get(name, {}))
        self._context.add_function("capacity_of", lambda name: self._capacity.get(name, {}))
        self._context.add_function("optional_of", self._optional)

    def compile(self, text: str) -> Any:  # noqa: ANN401 - the library's
        """Return a program, and whether it looks at the device otherwise than by a domain."""
        program = self._cel.compile(text)
        return program, "device" in program.variables()

    def look_at(self, traits: DeviceTraits) -> None:
        """Build the maps of a device, unless it is the last one."""
        if traits is not self._device:
            self._device = None
            self._attributes, self._capacity = _attributes(traits), _capacity(traits)
            self._device = traits

    def run(self, program: Any, traits: DeviceTraits) -> object:  # noqa: ANN401 - as above
        """Evaluate a program for a device."""
        compiled, whole = program
        if whole:
            self._context.add_variable(
                "device",
                {
                    "driver": traits.driver,
                    "attributes": self._attributes,
                    "capacity": self._capacity,
                    "allowMultipleAllocations": False,  # others are closed
                },
            )
        found: object = compiled.execute(self._context)
        return found

    def _optional(self, value: Any, key: str) -> object:  # noqa: ANN401 - as above
        cel = self._cel
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
    """Return a version by semver 2.0.0, without its build part. Raises ``ValueError``."""
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
    """Return a sort key of versions: a release comes after its pre-releases."""
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
