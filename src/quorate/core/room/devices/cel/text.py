"""Rewrite a CEL expression about a device so that the library can evaluate it, if that is cheap.

Kubernetes extends CEL: an unknown domain of ``device.attributes`` and ``device.capacity`` is an
empty map, and ``.?`` and ``[?]`` select optionally. The library knows neither, so they become calls
of functions (provided by ``programs``). Everything else passes through as it is written.

The library has no bound of its own. So there are no macros, which repeat a part of the expression,
and of the functions only those that make no longer values than they read: the time to evaluate what
is left grows with its text, which is bounded.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from quorate.core.model import policy
from quorate.core.model.steps import costs

_TOKEN = re.compile(
    r"(?P<space>\s+|//[^\n]*)"
    r"|(?P<text>[rRbB]{0,2}(?:'''(?:\\.|[^\\])*?'''|\"\"\"(?:\\.|[^\\])*?\"\"\""
    r"|'(?:\\.|[^\\'\n])*'|\"(?:\\.|[^\\\"\n])*\"))"
    r"|(?P<number>(?:0[xX][0-9a-fA-F]+|[0-9]*\.?[0-9]+(?:[eE][+-]?[0-9]+)?)[uU]?)"
    r"|(?P<word>[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<sign>\.\?|\[\?|&&|\|\||[=!<>]=|.)",
    re.DOTALL,
)
Token = tuple[str, str]
"""The token's kind (text, number, word or sign), and its characters."""

_MAPS = {"attributes": "attributes_of", "capacity": "capacity_of"}
"""The maps of a device, each with the function that looks a domain up in it."""
_CLOSING = {"(": ")", "[": "]", "[?": "]"}
_MACROS = frozenset({"all", "bind", "exists", "exists_one", "filter", "map", "optMap"})
_PARSING = frozenset({"quantity", "isQuantity", "semver", "isSemver", "isGreaterThan"})
_PARSING |= {"isLessThan", "compareTo", "add", "sub", "sign", "isInteger", "asInteger"}
_PARSING |= {"asApproximateFloat", "major", "minor", "patch"}
"""Functions of ours (``programs``): they parse quantities and versions each time."""
_FUNCTIONS = _PARSING | {"has", "contains", "startsWith", "endsWith", "lowerAscii", "upperAscii"}
_FUNCTIONS |= {"size", "orValue", "value", "hasValue", "string", "int", "uint", "double", "bool"}


class CelError(ValueError):
    """An expression that cannot be read, or that uses what is not supported."""


class Rewritten(NamedTuple):
    """An expression for the library.

    ``cost`` is of one evaluation, in tenths of a microsecond (``steps.costs``), without its
    look-ups: ``lookups`` times all attributes, or all capacities, are passed to the library.
    ``names_only`` says that it reads the device's maps by literal keys alone: then attributes whose
    names are not in its text cannot change the answer.
    """

    text: str
    cost: int
    lookups: int
    names_only: bool


def tokens_of(expression: str) -> list[Token]:
    """Return the tokens. Raises ``CelError`` if it is too long, or a string is not closed."""
    most = policy.CEL_TEXT_MAX
    if len(expression) > most:
        raise CelError(f"it has {len(expression)} characters, and at most {most} are read")
    found: list[Token] = []
    for match in _TOKEN.finditer(expression):
        kind, text = match.lastgroup or "sign", match.group()
        if kind == "sign" and text in "'\"":
            raise CelError(f"{text} is not closed")
        if kind != "space":
            found.append((kind, text))
    return found


def rewrite(expression: str) -> Rewritten:
    """Return an expression of equal meaning for the library. Raises ``CelError``."""
    return _Rewriter(tokens_of(expression)).run()


class _Rewriter:
    """Copies tokens; an operand is a primary expression with its suffixes."""

    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._at = 0
        self._depth = 0
        self._cost = costs.CEL_TOKEN_COST * len(tokens)
        self._lookups = 0
        self._names_only = not any(kind == "text" and "\\" in text for kind, text in tokens)

    def run(self) -> Rewritten:
        text = self._until_closing()
        if self._at < len(self._tokens):
            raise CelError(f"unexpected {self._peek()!r}")
        return Rewritten(text, self._cost, self._lookups, self._names_only)

    def _peek(self, ahead: int = 0) -> str:
        at = self._at + ahead
        return self._tokens[at][1] if at < len(self._tokens) else ""

    def _is_word(self, ahead: int) -> bool:
        at = self._at + ahead
        return at < len(self._tokens) and self._tokens[at][0] == "word"

    def _until_closing(self) -> str:
        """Copy up to a closing sign, without consuming it. Operators are not checked."""
        self._depth += 1
        if self._depth > policy.CEL_DEPTH_MAX:
            raise CelError("it is nested too deeply")
        parts: list[str] = []
        while self._peek() not in ("", ")", "]", "}"):
            kind, text = self._tokens[self._at]
            if text == "{":
                raise CelError("maps and messages are not supported")
            if text in _CLOSING or (kind != "sign" and text != "in"):
                parts.append(self._operand(before=parts[-1] if parts else ""))
            else:
                if text == "in" and self._peek(1) != "[":
                    self._names_only &= self._at > 0 and self._tokens[self._at - 1][0] == "text"
                self._at += 1
                parts.append(text)
        self._depth -= 1
        return " ".join(parts)

    def _inside(self) -> str:
        """Copy a bracketed part without its brackets."""
        closing = _CLOSING[self._peek()]
        self._at += 1
        inner = self._until_closing()
        if self._peek() != closing:
            raise CelError(f"{closing!r} is missing")
        self._at += 1
        return inner

    def _key(self) -> str:
        """Copy the key of a look-up, and note whether it is written out."""
        is_text = self._at + 1 < len(self._tokens) and self._tokens[self._at + 1][0] == "text"
        self._names_only &= is_text and self._peek(2) == "]"
        return self._inside()

    def _operand(self, before: str) -> str:
        kind, text = self._tokens[self._at]
        if text == "device" and self._peek(1) == "." and self._peek(2) in _MAPS:
            found = self._map(before)
        elif kind == "sign":
            found = f"{text}{self._inside()}{_CLOSING[text]}"
        else:
            self._at += 1
            if kind == "word" and self._peek() == "(":
                found = f"{text}{self._arguments(text)}"
            else:
                if text == "device" and not (self._peek() == "." and self._peek(1) == "driver"):
                    self._names_only = False
                    self._lookups += costs.CEL_WHOLE_DEVICE_LOOKUPS
                found = text
        return self._suffixes(found)

    def _map(self, before: str) -> str:
        """Copy ``device.attributes[E]`` or ``device.attributes.name``, or the whole map."""
        name = self._peek(2)
        self._at += 3
        self._lookups += 1
        if self._peek() == "[":
            found = f"{_MAPS[name]}({self._key()})"
        elif self._peek() == "." and self._peek(2) != "(" and self._is_word(1):
            found = f'{_MAPS[name]}("{self._peek(1)}")'
            self._at += 2
        else:
            self._lookups += costs.CEL_WHOLE_DEVICE_LOOKUPS
            self._names_only = False
            return f"device.{name}"
        self._names_only &= self._peek() in (".", ".?", "[", "[?") or before == "in"
        return found

    def _arguments(self, name: str) -> str:
        """Copy the arguments of a call, with their brackets."""
        if name in _MACROS:
            raise CelError(f"the macro {name} is not supported")
        if name not in _FUNCTIONS:
            raise CelError(f"the function {name} is not supported")
        self._names_only &= name not in ("size", "value")
        self._cost += costs.CEL_OWN_CALL_COST if name in _PARSING else costs.CEL_CALL_COST
        return f"({self._inside()})"

    def _suffixes(self, found: str) -> str:
        while True:
            match self._peek():
                case "." if self._is_word(1):
                    name = self._peek(1)
                    self._at += 2
                    found = f"{found}.{name}"
                    if self._peek() == "(":
                        found += self._arguments(name)
                case "[":
                    found = f"{found}[{self._key()}]"
                case ".?" if self._is_word(1):
                    found = f'optional_of({found}, "{self._peek(1)}")'
                    self._cost += costs.CEL_CALL_COST
                    self._at += 2
                case "[?":
                    found = f"optional_of({found}, {self._key()})"
                    self._cost += costs.CEL_CALL_COST
                case _:
                    return found
