"""Where two answers differ."""

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from embedded.tests.differential.asking import Answer

MISSING = "<absent>"
_MESSAGES_COMPARED = (403, 404, 409)


class Diff(NamedTuple):
    """One place: ``code``, ``causes``, ``warnings``, ``message``, or the path of a field."""

    path: str
    real: Any
    embedded: Any

    @property
    def place(self) -> str:
        """The path without indexes."""
        return re.sub(r"\[\d+\]", "[]", self.path)


def diffs_of(real: Answer, embedded: Answer) -> list[Diff]:
    """Compare two answers, already normalised."""
    if real.code != embedded.code:
        return [Diff("code", _shown(real), _shown(embedded))]
    found = []
    if real.media != embedded.media:
        found.append(Diff("media", real.media, embedded.media))
    if not real.is_error:
        return [*found, *_values(real.body, embedded.body, "")]
    if not (isinstance(real.body, dict) and isinstance(embedded.body, dict)):
        return [*found, *_values(real.body, embedded.body, "")]
    one, two = real.body, embedded.body
    if one.get("reason") != two.get("reason"):
        found.append(Diff("reason", one.get("reason"), two.get("reason")))
    causes = (_causes(one), _causes(two))
    if causes[0] != causes[1]:
        found.append(Diff("causes", *(sorted(map(str, each)) for each in causes)))
    if real.code in _MESSAGES_COMPARED and one.get("message") != two.get("message"):
        found.append(Diff("message", one.get("message"), two.get("message")))
    for key in ("name", "group", "kind", "retryAfterSeconds"):
        details = [(body.get("details") or {}).get(key) for body in (one, two)]
        if details[0] != details[1]:
            found.append(Diff(f"details.{key}", *details))
    return found


def advice_of(real: Answer, embedded: Answer) -> list[Diff]:
    """Compare what is told apart from the rest: messages of other codes, and warnings."""
    found = []
    if real.code == embedded.code and real.is_error:
        messages = [a.body.get("message") for a in (real, embedded) if isinstance(a.body, dict)]
        if len(messages) == 2 and messages[0] != messages[1]:
            found.append(Diff("message", *messages))
    if real.warnings != embedded.warnings and real.code == embedded.code:
        found.append(Diff("warnings", real.warnings, embedded.warnings))
    return found


def _shown(answer: Answer) -> str:
    body = answer.body
    if answer.is_error and isinstance(body, dict):
        return f"{answer.code} {body.get('reason')}: {body.get('message')}"
    return str(answer.code)


def _causes(status: dict[str, Any]) -> set[tuple[Any, Any]]:
    causes = (status.get("details") or {}).get("causes") or []
    return {(cause.get("reason"), cause.get("field")) for cause in causes}


def _values(one: Any, two: Any, path: str) -> Iterator[Diff]:
    if isinstance(one, dict) and isinstance(two, dict):
        for key in sorted(one.keys() | two.keys()):
            yield from _values(one.get(key, MISSING), two.get(key, MISSING), f"{path}.{key}")
    elif isinstance(one, list) and isinstance(two, list) and len(one) == len(two):
        for index, (left, right) in enumerate(zip(one, two, strict=True)):
            yield from _values(left, right, f"{path}[{index}]")
    elif one != two or type(one) is not type(two):
        yield Diff(path, one, two)
