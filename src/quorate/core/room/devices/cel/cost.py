"""Upper bounds of the cost of evaluating parts of a CEL expression, and of their values' sizes.

Costs are in tenths of a microsecond, as measured with the library; ``policy.CEL_COST_MAX`` bounds
one evaluation. A size counts bytes of text and elements of lists; a width counts the elements that
a macro visits. The API's limits bound the values of a device. Called by ``text``.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from quorate.core.model import policy
from quorate.core.room.devices.cel.names import CelError

_TEXT = 64
"""Bytes of an attribute's value (DeviceAttributeMaxValueLength), and of its name or domain."""
_MAP_WIDTH = 32
"""Attributes and capacities of a device (ResourceSliceMaxAttributesAndCapacitiesPerDevice)."""


class Part(NamedTuple):
    """A piece of an expression for the library, and bounds of its value.

    ``inner`` is the size of one element, or of a value that can be looked up in it.
    """

    text: str
    size: int = _TEXT
    width: int = _TEXT
    inner: int = _TEXT

    @property
    def element(self) -> Part:
        """The value of a macro's variable, or of a field."""
        return Part("", self.inner, self.inner, self.inner)


ONE_MAP = Part("", 2 * _TEXT * _MAP_WIDTH, _MAP_WIDTH, _TEXT)
"""The attributes of one domain."""
ALL_MAPS = Part("", 3 * _TEXT * _MAP_WIDTH, _MAP_WIDTH, ONE_MAP.size)
DEVICE = Part("", 2 * ALL_MAPS.size, _MAP_WIDTH, ALL_MAPS.size)

_CALL = 30
_ATTRIBUTE = 20
"""The cost of passing one attribute or capacity to the library."""
WHOLE_DEVICE_COST = _CALL + _ATTRIBUTE * _MAP_WIDTH
"""The cost of passing all attributes and capacities of a device."""
_OWN_CALL = 300
"""The cost of a function of ``programs``: it parses quantities and versions on each call."""
_OWN = frozenset(
    {
        "quantity",
        "isQuantity",
        "semver",
        "isSemver",
        "isGreaterThan",
        "isLessThan",
        "compareTo",
        "add",
        "sub",
        "sign",
        "isInteger",
        "asInteger",
        "asApproximateFloat",
    }
)
_SQUARE = frozenset({"distinct", "contains", "equivalent", "intersects"})
"""Functions that compare all pairs of elements."""
_LISTS = frozenset({"split", "range", "sort", "distinct", "reverse", "slice", "flatten"})
"""Functions that return lists: each element is passed separately."""
MACROS = frozenset({"all", "exists", "exists_one", "filter", "map"})


def lookup(attributes: int) -> int:
    """Return the cost of passing this number of attributes and capacities to the library."""
    return _CALL + _ATTRIBUTE * attributes


def call(name: str, arguments: list[Part]) -> tuple[int, Part]:
    """Return the cost of a call, and the bounds of its value; a method's target comes first."""
    size = sum(one.size for one in arguments)
    made = size
    if name in ("replace", "join"):
        first = arguments[0].size if arguments else 0
        made = (first + 1) * (1 + size - first)
    elif name == "range":
        made = policy.CEL_LIST_MAX
    elif name in ("quote", "encode", "split", "bytes"):
        made = 2 * size + 2
    cost = _CALL + (size + made) // 5 + (_OWN_CALL if name in _OWN else 0)
    if name in _LISTS:
        cost += 8 * made
    if name in _SQUARE:
        cost += size * size // 2
    return cost, Part("", made, made, made)


def macro(name: str, target: Part, body: Part) -> tuple[int, Part]:
    """Return the cost of a macro without its body, and the bounds of its value.

    The library copies the list that ``map`` or ``filter`` builds for each element it adds.
    """
    if name not in ("map", "filter"):
        return 3 * target.width, Part("", 1, 1, 1)
    of = body.size if name == "map" else target.inner
    cost = target.width * target.width * (1 + of // 10)
    return cost, Part("", max(target.width * of, 1), target.width, of)


_COUNTED = re.compile(r"\{(?=,?[0-9])([0-9]{0,9})(,?)([0-9]{0,9})\}")
_VERBOSE = re.compile(r"\(\?[a-zA-Z-]*x")
_OF_CLASS = {"w": 3000, "W": 3000, "p": 3000, "P": 3000, "d": 250, "D": 500, "s": 50, "S": 100}
"""Character classes are Unicode's, with hundreds of ranges each."""
_ESCAPE = re.compile(r"\\(?:[pP](?:\{[^}]{0,64}\}|.)|x\{[^}]{0,64}\}|.)", re.DOTALL)
_PLAIN = re.compile(r"[rR]?(?:\"([^\"]*)\"|'([^']*)')")


def pattern(written: str) -> int:
    """Return the cost of compiling and applying a pattern, given its string token.

    The library compiles a pattern on each use. Raises ``CelError`` if it is not a plain string.
    """
    match = _PLAIN.fullmatch(written)
    if match is None or ("\\" in written.replace("\\\\", "") and written[0] not in "rR"):
        raise CelError("the pattern of matches has to be one text without escapes but \\\\")
    text = match.group(1) or match.group(2) or ""
    if _VERBOSE.search(text):
        raise CelError("a pattern of matches with the flag x is not supported")
    return 10 + _Pattern(text if written[0] in "rR" else text.replace("\\\\", "\\")).cost()


class _Pattern:
    """Sums the costs of a pattern's atoms, each times its repetitions."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._literal = 12 if re.search(r"\(\?[a-zA-Z]*i", text) else 2
        self._open: list[tuple[int, int]] = []
        """For each open group: the cost before it, and the cost of the atom before it."""

    def cost(self) -> int:
        text, at, total, last = self._text, 0, 0, 0
        while at < len(text):
            sign = text[at]
            counted = _COUNTED.match(text, at) if sign == "{" else None
            if sign == "(":
                self._open.append((total, last))
                total, last, at = 0, 0, at + 1
            elif sign == ")" and self._open:
                inner = total + 5
                total = self._open.pop()[0] + inner
                last, at = inner, at + 1
            elif counted is not None:
                low, comma, high = counted.groups()
                times = int(high or low) + bool(comma) + 1
                total += last * times
                last, at = last * (times + 1), counted.end()
            else:
                atom, at = self._atom(at)
                last = last + atom if sign in "*+?" else atom
                total += atom
        return total + sum(before for before, _ in self._open)

    def _atom(self, at: int) -> tuple[int, int]:
        """Return the cost of one character, escape or class, and where the next one begins."""
        sign = self._text[at]
        if sign in "*+?":
            return 70, at + 1
        if sign == ".":
            return 60, at + 1
        if sign == "\\":
            found = _ESCAPE.match(self._text, at)
            end = found.end() if found else at + 1
            return _OF_CLASS.get(self._text[at + 1 : at + 2], 20), end
        if sign == "[":
            return self._class(at)
        return self._literal if sign.isascii() else 6 * self._literal, at + 1

    def _class(self, at: int) -> tuple[int, int]:
        cost, depth, first = 60, 1, at + 1
        if self._text[first : first + 1] == "^":
            cost, first = 260, first + 1
        at = first + (self._text[first : first + 1] == "]")  # a leading ] is literal
        while at < len(self._text):
            sign = self._text[at]
            if sign == "\\":
                more, at = self._atom(at)
                cost += more
                continue
            depth += (sign == "[") - (sign == "]")
            cost += self._literal
            at += 1
            if not depth:
                break
        return cost, at
