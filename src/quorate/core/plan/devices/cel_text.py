"""Rewrite a CEL expression about a device so that the library can evaluate it.

Kubernetes extends CEL: an unknown domain of ``device.attributes`` and ``device.capacity`` is an
empty map, ``cel.bind(x, A, B)`` names a value, ``.?`` and ``[?]`` select optionally. The library
knows none of these, so they become calls of functions (``expressions`` provides them), and a bind
becomes ``[A].map(x, B)[0]``. Everything else passes through as it is written.
"""

from __future__ import annotations

import re

_TOKEN = re.compile(
    r"(?P<space>\s+|//[^\n]*)"
    r"|(?P<text>[rRbB]{0,2}(?:'''(?:\\.|[^\\])*?'''|\"\"\"(?:\\.|[^\\])*?\"\"\""
    r"|'(?:\\.|[^\\'\n])*'|\"(?:\\.|[^\\\"\n])*\"))"
    r"|(?P<number>(?:0[xX][0-9a-fA-F]+|[0-9]*\.?[0-9]+(?:[eE][+-]?[0-9]+)?)[uU]?)"
    r"|(?P<word>[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<sign>\.\?|\[\?|&&|\|\||[=!<>]=|.)",
    re.DOTALL,
)
_OPERATORS = frozenset({"in"})
_CLOSING = {"(": ")", "[": "]", "[?": "]", "{": "}"}
_DEPTH_MAX = 100
STEPS_MAX = 1_000_000
"""kube-apiserver's bound of what a selector may cost (CELSelectorExpressionMaxCost)."""
_MACROS = frozenset({"all", "exists", "exists_one", "filter", "map"})
_WIDTH = 64
"""How long a list is taken to be that is not written out: texts of devices have 64 bytes."""

MAPS = {"attributes": "attributes_of", "capacity": "capacity_of"}
OPTIONAL = "optional_of"


class CelError(ValueError):
    """An expression that cannot be read."""


def rewrite(expression: str) -> str:
    """Return an expression of equal meaning for the library. Raises ``CelError``."""
    return _Rewriter(_tokens(expression)).run()


def names_only(expression: str) -> bool:
    """Whether all keys of the device's maps that it can look at stand in its text.

    Then attributes whose names do not occur there cannot change the answer. It is told by what is
    allowed: maps are only looked up in, by literal keys, and only these functions are called.
    """
    tokens = [("sign", ""), *_tokens(expression), ("sign", ""), ("sign", "")]
    texts = [text for _, text in tokens]
    maps = {texts[i + 2] for i, text in enumerate(texts[:-3]) if text == "bind"}
    for i, (kind, text) in enumerate(tokens):
        before, after = texts[i - 1], texts[i + 1] if i + 1 < len(texts) else ""
        if text == "{" or (kind == "text" and "\\" in text):
            return False
        if kind == "word" and after == "(" and text not in _HARMLESS:
            return False
        is_index = text == "[?" or (text == "[" and (tokens[i - 1][0] == "word" or before in "])"))
        if is_index and before != "in" and (tokens[i + 1][0] != "text" or texts[i + 2] != "]"):
            return False
        if text == "in" and after != "[" and tokens[i - 1][0] != "text":
            return False
        is_map = kind == "word" and before != "." and text in maps and before != "("
        is_map = is_map or (text == "device" and before != ".")
        is_map = is_map or (text in MAPS and before == "." and texts[i - 2] == "device")
        if is_map and after not in _LOOKS_UP and before != "in":
            return False
        if text == "]" and texts[i - 3] in MAPS and after not in _LOOKS_UP:
            is_bound = after == "," and texts[i - 9] == "bind"
            if not is_bound and texts[i - 6] != "in":
                return False
    return True


_LOOKS_UP = frozenset({".", ".?", "[", "[?"})
_HARMLESS = frozenset(
    {
        "bind",
        "compareTo",
        "contains",
        "endsWith",
        "has",
        "isGreaterThan",
        "isLessThan",
        "isQuantity",
        "isSemver",
        "lowerAscii",
        "matches",
        "orValue",
        "quantity",
        "semver",
        "startsWith",
        "upperAscii",
    }
)


def _tokens(expression: str) -> list[tuple[str, str]]:
    tokens = []
    for match in _TOKEN.finditer(expression):
        kind = match.lastgroup or "sign"
        if kind != "space":
            tokens.append((kind, match.group()))
    return tokens


class _Rewriter:
    """Copies tokens; the operands are read as a primary with its suffixes."""

    def __init__(self, tokens: list[tuple[str, str]]) -> None:
        self._tokens = tokens
        self._at = 0
        self._depth = 0
        self._commas = 0
        """Of the part that was copied last."""
        self._times = 1
        """How often the part that is being copied may be evaluated."""
        self._steps = 0

    def run(self) -> str:
        text = self._until(frozenset())
        if self._at < len(self._tokens):
            raise CelError(f"unexpected {self._tokens[self._at][1]!r}")
        return text

    def _peek(self, ahead: int = 0) -> str:
        at = self._at + ahead
        return self._tokens[at][1] if at < len(self._tokens) else ""

    def _until(self, ends: frozenset[str]) -> str:
        """Copy up to one of the closing signs, which stays."""
        self._depth += 1
        if self._depth > _DEPTH_MAX:
            raise CelError("it is nested too deeply")
        parts = []
        commas = 0
        while self._at < len(self._tokens):
            kind, text = self._tokens[self._at]
            if text in ends and kind == "sign":
                break
            if kind == "sign" and text in (")", "]", "}"):
                break
            if (kind in ("word", "text", "number") and text not in _OPERATORS) or text in _CLOSING:
                parts.append(self._operand())
            else:
                self._at += 1
                commas += text == ","
                parts.append(text)
        self._depth -= 1
        self._commas = commas
        return " ".join(parts)

    def _inside(self) -> str:
        """Copy a bracketed part without its brackets."""
        opening = self._peek()
        self._at += 1
        inner = self._until(frozenset())
        if self._peek() != _CLOSING[opening]:
            raise CelError(f"{_CLOSING[opening]!r} is missing")
        self._at += 1
        return inner

    def _arguments(self) -> list[str]:
        """Copy the arguments of a call, one by one."""
        self._at += 1
        found = []
        while self._peek() not in (")", ""):
            found.append(self._until(frozenset({","})))
            if self._peek() == ",":
                self._at += 1
        if self._peek() != ")":
            raise CelError("')' is missing")
        self._at += 1
        return found

    def _repeated(self, function: str, width: int) -> list[str]:
        """Copy the arguments of a method, which a macro evaluates for each element of its list.

        What would take too long is refused before it is tried, as kube-apiserver does.
        """
        if function not in _MACROS:
            return self._arguments()
        before = self._times
        self._times *= max(width, 1)
        self._steps += self._times
        if self._steps > STEPS_MAX:
            raise CelError(f"it may take more than {STEPS_MAX} steps")
        found = self._arguments()
        self._times = before
        return found

    def _operand(self) -> str:
        kind, text = self._tokens[self._at]
        if kind != "sign":
            self._at += 1
            if kind == "word" and text == "cel" and self._peek() == "." and self._peek(1) == "bind":
                self._at += 2
                return self._suffixes(self._bind())
            if kind == "word" and text == "device" and self._peek() == ".":
                return self._suffixes(self._of_device())
            if kind == "word" and self._peek() == "(":
                return self._suffixes(f"{text}({', '.join(self._arguments())})")
            return self._suffixes(text)
        closing, inner = _CLOSING[text], self._inside()
        width = self._commas + bool(inner) if text == "[" else _WIDTH
        return self._suffixes(f"{text}{inner}{closing}", width)

    def _bind(self) -> str:
        arguments = self._arguments() if self._peek() == "(" else []
        if len(arguments) != 3:
            raise CelError("cel.bind takes three arguments")
        name, value, body = arguments
        return f"[{value}].map({name}, {body})[0]"

    def _of_device(self) -> str:
        """Read ``device.attributes[E]`` and ``device.attributes.name``."""
        function = MAPS.get(self._peek(1))
        if function is None:
            return "device"
        if self._peek(2) == "[":
            self._at += 2
            return f"{function}({self._inside()})"
        is_name = self._at + 3 < len(self._tokens) and self._tokens[self._at + 3][0] == "word"
        if self._peek(2) == "." and is_name and self._peek(4) != "(":
            name = self._peek(3)
            self._at += 4
            return f'{function}("{name}")'
        return "device"

    def _suffixes(self, text: str, width: int = _WIDTH) -> str:
        while True:
            match self._peek():
                case "." if self._at + 1 < len(self._tokens):
                    name = self._peek(1)
                    self._at += 2
                    text = f"{text}.{name}"
                    if self._peek() == "(":
                        text = f"{text}({', '.join(self._repeated(name, width))})"
                    width = width if name in ("map", "filter") else _WIDTH
                case "[":
                    text = f"{text}[{self._inside()}]"
                case ".?":
                    text = f'{OPTIONAL}({text}, "{self._peek(1)}")'
                    self._at += 2
                case "[?":
                    text = f"{OPTIONAL}({text}, {self._inside()})"
                case "{":
                    text = f"{text}{{{self._inside()}}}"
                case _:
                    return text
