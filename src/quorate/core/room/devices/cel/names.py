"""The tokens of a CEL expression, and which attributes of a device it can read."""

from __future__ import annotations

import re

from quorate.core.model import policy

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

MAPS = {"attributes": "attributes_of", "capacity": "capacity_of"}
"""The maps of a device, each with the function that looks a domain up in it."""


class CelError(ValueError):
    """An expression that cannot be read."""


def tokens_of(expression: str) -> list[Token]:
    """Return the tokens. Raises ``CelError`` if there are too many, or a string is not closed."""
    most = policy.CEL_TEXT_MAX
    if len(expression) > most:
        raise CelError(f"it has {len(expression)} characters, and at most {most} are read")
    most = policy.CEL_TOKENS_MAX
    found: list[Token] = []
    for match in _TOKEN.finditer(expression):
        kind, text = match.lastgroup or "sign", match.group()
        if kind == "sign" and text in "'\"":
            raise CelError(f"{text} is not closed")  # repeated searches for the end would be slow
        if kind != "space":
            found.append((kind, text))
            if len(found) > most:
                raise CelError(f"it has more than {most} names, numbers, texts and signs")
    return found


def names_only(expression: str) -> bool:
    """Whether the expression reads the device's maps by literal keys only.

    Then attributes whose names are not in its text cannot change the answer. The test is a list of
    what is allowed: look-ups by literal keys, and calls of known functions. Raises ``CelError``.
    """
    tokens = [("sign", ""), *tokens_of(expression), ("sign", ""), ("sign", "")]
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
