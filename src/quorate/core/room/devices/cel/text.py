"""Rewrite a CEL expression about a device so that the library can evaluate it, if that is cheap.

Kubernetes extends CEL: an unknown domain of ``device.attributes`` and ``device.capacity`` is an
empty map, ``cel.bind(x, A, B)`` names a value, ``.?`` and ``[?]`` select optionally. The library
knows none of these, so they become calls of functions (provided by ``programs``), and a bind
becomes ``[A].map(x, B)[0]``. Everything else passes through as it is written.

The library has no bound of its own. So an upper bound of the cost is summed up on the way
(``cost``), and an expression that may cost too much is refused, as kube-apiserver does.
"""

from __future__ import annotations

from typing import NamedTuple

from quorate.core.model import policy
from quorate.core.model.steps import costs
from quorate.core.room.devices.cel import cost as cel_cost
from quorate.core.room.devices.cel.cost import ALL_MAPS, DEVICE, MACROS, ONE_MAP, Part
from quorate.core.room.devices.cel.names import MAPS, CelError, Token, tokens_of

_OPERATORS = frozenset({"in"})
_CLOSING = {"(": ")", "[": "]", "[?": "]", "{": "}"}
OPTIONAL = "optional_of"


class Rewritten(NamedTuple):
    """An expression for the library; ``cost`` bounds one evaluation, without its look-ups.

    ``lookups`` bounds how often all attributes, or all capacities, are passed to the library.
    """

    text: str
    tokens: int
    cost: int
    lookups: int


def rewrite(expression: str) -> Rewritten:
    """Return an expression of equal meaning for the library.

    Raises ``CelError`` if it cannot be parsed, or is too long or too expensive.
    """
    return _Rewriter(tokens_of(expression)).run()


class _Rewriter:
    """Copies tokens; an operand is a primary expression with its suffixes."""

    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._at = 0
        self._depth = 0
        self._commas = 0
        """The number of commas in the part that was copied last."""
        self._names = {"device": DEVICE}
        """The values of names, in the part that is being copied."""
        self._times = 1
        """How often the part that is being copied may be evaluated."""
        self._cost = 0
        self._lookups = 0
        self._is_whole = False
        """Whether it reads the device in another way than by a domain."""

    def run(self) -> Rewritten:
        text = self._until(frozenset()).text
        if self._at < len(self._tokens):
            raise CelError(f"unexpected {self._tokens[self._at][1]!r}")
        lookups = self._lookups + costs.CEL_WHOLE_DEVICE_LOOKUPS * self._is_whole
        cost = self._cost - self._lookups * cel_cost.whole_device()
        return Rewritten(text, max(len(self._tokens), 1), cost, lookups)

    def _spend(self, cost: int) -> None:
        self._cost += cost * self._times
        if self._cost > policy.CEL_COST_MAX:
            raise CelError(
                f"it may cost more than {policy.CEL_COST_MAX} tenths of a microsecond to evaluate"
            )

    def _peek(self, ahead: int = 0) -> str:
        at = self._at + ahead
        return self._tokens[at][1] if at < len(self._tokens) else ""

    def _until(self, ends: frozenset[str]) -> Part:
        """Copy up to a closing sign, without consuming it. Operators are not checked."""
        self._depth += 1
        if self._depth > policy.CEL_DEPTH_MAX:
            raise CelError("it is nested too deeply")
        texts: list[str] = []
        operands: list[Part] = []
        commas = 0
        while self._at < len(self._tokens):
            kind, text = self._tokens[self._at]
            if text in ends and kind == "sign":
                break
            if kind == "sign" and text in (")", "]", "}"):
                break
            if (kind in ("word", "text", "number") and text not in _OPERATORS) or text in _CLOSING:
                operands.append(self._operand())
                texts.append(operands[-1].text)
            else:
                self._at += 1
                self._spend(1)
                commas += text == ","
                texts.append(text)
        self._depth -= 1
        self._commas = commas
        if len(operands) == 1:
            return operands[0]._replace(text=" ".join(texts))
        size = sum(one.size for one in operands)
        self._spend(size // 25)
        width = sum(one.width for one in operands)
        inner = max((one.inner for one in operands), default=1)
        return Part(" ".join(texts), size, width, inner)

    def _inside(self) -> Part:
        """Copy a bracketed part without its brackets."""
        opening = self._peek()
        self._at += 1
        inner = self._until(frozenset())
        if self._peek() != _CLOSING[opening]:
            raise CelError(f"{_CLOSING[opening]!r} is missing")
        self._at += 1
        return inner

    def _argument(self) -> Part:
        """Copy an argument of a call, and consume the comma after it."""
        found = self._until(frozenset({","}))
        if self._peek() == ",":
            self._at += 1
        elif self._peek() != ")":
            raise CelError("')' is missing")
        return found

    def _arguments(self) -> list[Part]:
        """Copy the arguments of a call up to its end."""
        found = []
        while self._peek() != ")":
            found.append(self._argument())
        self._at += 1
        return found

    def _call(self, name: str, target: Part | None = None) -> Part:
        """Copy a call of a function, or of a method of ``target``."""
        self._at += 1
        arguments = self._arguments()
        of = arguments if target is None else [target, *arguments]
        cost, value = cel_cost.call(name, of)
        if name == "matches" and len(of) == 2:
            compiling = cel_cost.pattern(self._last_argument())
            cost += compiling + of[0].size * (1 + compiling // 1000)
        self._spend(cost)
        texts = ", ".join(one.text for one in arguments)
        dot = f"{target.text}." if target is not None else ""
        return value._replace(text=f"{dot}{name}({texts})")

    def _last_argument(self) -> str:
        """Return the string token that was the last argument of the call just copied."""
        before, (kind, text) = self._tokens[self._at - 3][1], self._tokens[self._at - 2]
        if kind != "text" or before not in ("(", ","):
            raise CelError("the pattern of matches has to be written out")
        return text

    def _macro(self, name: str, target: Part) -> Part:
        """Copy a macro, whose body is evaluated for each element of its target."""
        self._at += 1
        times, names = self._times, self._names
        texts = []
        while self._peek(1) == "," and self._tokens[self._at][0] == "word":
            texts.append(self._peek())
            self._names = {**self._names, texts[-1]: target.element}
            self._at += 2
        self._times *= max(target.width, 1)
        arguments = self._arguments()
        self._times, self._names = times, names
        body = arguments[-1] if arguments else Part("")
        cost, value = cel_cost.macro(name, target, body)
        self._spend(cost)
        inside = ", ".join([*texts, *(one.text for one in arguments)])
        return value._replace(text=f"{target.text}.{name}({inside})")

    def _operand(self) -> Part:
        kind, text = self._tokens[self._at]
        self._spend(1)
        if kind != "sign":
            self._at += 1
            if kind == "word" and text == "cel" and self._peek() == "." and self._peek(1) == "bind":
                self._at += 2
                return self._suffixes(self._bind())
            if kind == "word" and text == "device" and self._peek() == ".":
                return self._suffixes(self._of_device())
            if kind == "word" and self._peek() == "(":
                return self._suffixes(self._call(text))
            self._is_whole |= text == "device"
            size = len(text) if kind == "text" else 1
            known = self._names.get(text, Part("", size, size, size))
            return self._suffixes(known._replace(text=text))
        found = self._inside()
        width = self._commas + bool(found.text) if text == "[" else found.width
        found = found._replace(text=f"{text}{found.text}{_CLOSING[text]}", width=width)
        if text == "[":
            found = found._replace(inner=found.size)
        return self._suffixes(found)

    def _bind(self) -> Part:
        """Copy ``(name, value, body)``: the body may use the value by its name."""
        wrong = CelError("cel.bind takes three arguments")
        if self._peek() != "(" or self._peek(2) != "," or self._tokens[self._at + 1][0] != "word":
            raise wrong
        name = self._peek(1)
        self._at += 3
        value = self._argument()
        names, self._names = self._names, {**self._names, name: value}
        rest = self._arguments()
        self._names = names
        if len(rest) != 1:
            raise wrong
        self._spend(value.size // 10 + rest[0].size // 10)
        return rest[0]._replace(text=f"[{value.text}].map({name}, {rest[0].text})[0]")

    def _of_device(self) -> Part:
        """Read ``device.attributes[E]`` and ``device.attributes.name``."""
        name = self._peek(1)
        if name not in MAPS:
            self._is_whole = True
            return DEVICE._replace(text="device")
        self._at += 2
        looked_up = ""
        if self._peek() == "[":
            looked_up = self._inside().text
        elif self._peek() == "." and self._peek(2) != "(" and self._is_word(1):
            looked_up = f'"{self._peek(1)}"'
            self._at += 2
        if not looked_up:
            self._is_whole = True
            self._spend(ALL_MAPS.size // 100)
            return ALL_MAPS._replace(text=f"device.{name}")
        self._lookups += self._times
        self._spend(cel_cost.whole_device())
        return ONE_MAP._replace(text=f"{MAPS[name]}({looked_up})")

    def _is_word(self, ahead: int) -> bool:
        at = self._at + ahead
        return at < len(self._tokens) and self._tokens[at][0] == "word"

    def _suffixes(self, found: Part) -> Part:
        while True:
            match self._peek():
                case "." if self._at + 1 < len(self._tokens):
                    name = self._peek(1)
                    self._at += 2
                    if self._peek() != "(":
                        self._spend(found.size // 100)
                        found = found.element._replace(text=f"{found.text}.{name}")
                    elif name in MACROS:
                        found = self._macro(name, found)
                    else:
                        found = self._call(name, found)
                case "[":
                    inside = self._inside().text
                    self._spend(found.size // 100)
                    found = found.element._replace(text=f"{found.text}[{inside}]")
                case ".?":
                    text = f'{OPTIONAL}({found.text}, "{self._peek(1)}")'
                    self._at += 2
                    found = self._optional(found, text)
                case "[?":
                    found = self._optional(
                        found, f"{OPTIONAL}({found.text}, {self._inside().text})"
                    )
                case "{":
                    inner = self._inside()
                    size = found.size + inner.size
                    found = Part(f"{found.text}{{{inner.text}}}", size, size, size)
                case _:
                    return found

    def _optional(self, found: Part, text: str) -> Part:
        cost, _ = cel_cost.call("", [found])
        self._spend(cost)
        return found.element._replace(text=text)
