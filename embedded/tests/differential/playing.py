"""Sequences of requests, played on both servers side by side.

A ``Step`` is a request with places left open, which each server's own answers fill: the newest
object, its resourceVersion, its UID. ``@ns@`` becomes a name that no other sequence has.
"""

import copy
import itertools
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from embedded.tests.differential.asking import Answer, Request, Server
from embedded.tests.differential.comparing import Diff, advice_of, diffs_of
from embedded.tests.differential.normal import Normaliser

OWN = "@ns@"
_SEEN = re.compile(r"<<(rv|uid) ([^>]*)>>")
_numbers = itertools.count()

Pointer = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Seen:
    """A body: the newest object of a path as the server gave it, with some values changed."""

    path: str
    changes: tuple[tuple[Pointer, Any], ...] = ()


DELETE = "<<delete>>"


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request, as it was sent to each, and both normalised answers."""

    step: Request
    sent: tuple[Request, Request]
    real: Answer
    embedded: Answer
    diffs: list[Diff]
    advice: list[Diff]

    def __str__(self) -> str:
        """The request as it was sent, to be pasted, and the codes of both answers."""
        return f"{self.sent[0]}\n    {self.real.code}, embedded {self.embedded.code}"

    def in_full(self, diffs: Sequence[Diff]) -> str:
        """What was sent to each, both answers, and these of their differences."""
        lines = [str(self.sent[0])]
        if str(self.sent[0]) != str(self.sent[1]):
            lines.append(f"to the embedded server: {self.sent[1]}")
        for name, answer in (("real", self.real), ("embedded", self.embedded)):
            lines.append(f"    {name}: {answer.code} {json.dumps(answer.body)}")
        lines += [f"  {d.path}: real {d.real!r}, embedded {d.embedded!r}" for d in diffs]
        return "\n".join(lines)


class _Side:
    """One server during one sequence."""

    def __init__(self, server: Server, own: str) -> None:
        self._server = server
        self._own = own
        self._seen: dict[str, Any] = {}
        self._normal = Normaliser(own)

    def play(self, step: Request) -> tuple[Request, Answer]:
        sent = self._filled(step)
        answer = self._asked(sent)
        self._remember(sent, answer)
        answer = replace(answer, body=self._normal(answer.body))
        answer.warnings = [w.replace(self._own, OWN) for w in answer.warnings]
        return sent, answer

    def _asked(self, sent: Request) -> Answer:
        if sent.method == "WATCH":
            return self._server.watch(sent, f"{self._own}-last")
        return self._server.ask(sent)

    def _filled(self, step: Request) -> Request:
        body = step.body
        if isinstance(body, Seen):
            found = copy.deepcopy(self._seen.get(body.path.replace(OWN, self._own), {}))
            for pointer, value in body.changes:
                found = put(found, pointer, value)
            body = found
        query = tuple((key, self._text(value)) for key, value in step.query)
        if body is not None and not isinstance(body, bytes):
            body = json.loads(self._text(json.dumps(body)))
        return replace(step, path=self._text(step.path), query=query, body=body)

    def _text(self, text: str) -> str:
        return _SEEN.sub(self._of_seen, text.replace(OWN, self._own))

    def _of_seen(self, match: re.Match[str]) -> str:
        metadata = self._seen.get(match[2], {}).get("metadata", {})
        return str(metadata.get({"rv": "resourceVersion", "uid": "uid"}[match[1]], ""))

    def _remember(self, sent: Request, answer: Answer) -> None:
        metadata = answer.body.get("metadata") if isinstance(answer.body, dict) else None
        if answer.is_error or not isinstance(metadata, dict) or "uid" not in metadata:
            return
        if sent.accept != "application/json" or any(key == "dryRun" for key, _ in sent.query):
            return
        if answer.body.get("kind") == "Scale":
            return
        path = sent.path
        if sent.method == "POST":
            path += f"/{metadata['name']}"
        self._seen[path.removesuffix("/status")] = answer.body


def put(target: Any, pointer: Pointer, value: Any) -> Any:
    """Set (or delete) what a pointer names; where the way is not there, make objects."""
    if not pointer:
        return copy.deepcopy(value)
    head, *rest = pointer
    if isinstance(head, int):
        if not isinstance(target, list) or head > len(target):
            return target
        if value == DELETE and not rest:
            return target[:head] + target[head + 1 :]
        inner = target[head] if head < len(target) else None
        return [*target[:head], put(inner, tuple(rest), value), *target[head + 1 :]]
    target = dict(target) if isinstance(target, dict) else {}
    if value == DELETE and not rest:
        target.pop(head, None)
    else:
        target[head] = put(target.get(head), tuple(rest), value)
    return target


def play(real: Server, embedded: Server, steps: Sequence[Request]) -> Iterator[Exchange]:
    """Send each step to both servers, and give what each said."""
    own = f"d{next(_numbers):05d}"
    sides = (_Side(real, own), _Side(embedded, own))
    for step in steps:
        (sent_real, said_real), (sent_embedded, said_embedded) = (s.play(step) for s in sides)
        yield Exchange(
            step,
            (sent_real, sent_embedded),
            said_real,
            said_embedded,
            diffs_of(said_real, said_embedded),
            advice_of(said_real, said_embedded),
        )
