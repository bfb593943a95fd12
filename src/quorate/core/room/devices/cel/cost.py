"""Upper bounds of the cost of evaluating parts of a CEL expression, and of their values' sizes.

Costs are in tenths of a microsecond (``steps.costs``); ``policy.CEL_COST_MAX`` bounds one
evaluation. A size counts bytes of text and elements of lists; a width counts the elements that
a macro visits. The API's limits bound the values of a device. Called by ``text``.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from quorate.core.model import policy
from quorate.core.model.steps import costs
from quorate.core.room.devices.cel.names import CelError

_TEXT = policy.DEVICE_TEXT_BYTES_MAX
_MAP_WIDTH = policy.DEVICE_ATTRIBUTES_MAX


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
    return costs.CEL_CALL_COST + costs.CEL_ATTRIBUTE_COST * attributes


def whole_device() -> int:
    """Return the cost of passing all attributes and capacities that a device may have."""
    return lookup(policy.DEVICE_ATTRIBUTES_MAX)


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
    cost = costs.CEL_CALL_COST + (size + made) // costs.CEL_BYTES_PER_COST
    if name in _OWN:
        cost += costs.CEL_OWN_CALL_COST
    if name in _LISTS:
        cost += costs.CEL_ELEMENT_COST * made
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
    plain = text if written[0] in "rR" else text.replace("\\\\", "\\")
    return costs.CEL_PATTERN_COST + _Pattern(plain).cost()


class _Pattern:
    """Sums the costs of a pattern's atoms, each times its repetitions."""

    def __init__(self, text: str) -> None:
        self._text = text
        ignores_case = re.search(r"\(\?[a-zA-Z]*i", text)
        self._literal = costs.CEL_LITERAL_ANY_CASE_COST if ignores_case else costs.CEL_LITERAL_COST
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
                inner = total + costs.CEL_GROUP_COST
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
            return costs.CEL_REPEAT_COST, at + 1
        if sign == ".":
            return costs.CEL_ANY_COST, at + 1
        if sign == "\\":
            found = _ESCAPE.match(self._text, at)
            end = found.end() if found else at + 1
            letter = self._text[at + 1 : at + 2]
            return costs.CEL_CLASS_COSTS.get(letter, costs.CEL_ESCAPE_COST), end
        if sign == "[":
            return self._class(at)
        return self._literal if sign.isascii() else 6 * self._literal, at + 1

    def _class(self, at: int) -> tuple[int, int]:
        cost, depth, first = costs.CEL_ANY_COST, 1, at + 1
        if self._text[first : first + 1] == "^":
            cost, first = costs.CEL_NEGATED_SET_COST, first + 1
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
