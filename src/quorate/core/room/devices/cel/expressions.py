"""CEL selectors of device classes and claims: whether a device matches, or an error; cached.

In: expressions and traits of devices. Out: verdicts. Above the bound, the least recently used
program is evicted with its answers. Called by ``looks``.
"""

from __future__ import annotations

from quorate.core.cluster.devices.pools import SharedTraits
from quorate.core.model import policy
from quorate.core.model.devices import DeviceTraits
from quorate.core.model.steps import Steps
from quorate.core.room.devices.cel.names import CelError, names_only
from quorate.core.room.devices.cel.programs import Broken, Library, Program

_Part = tuple[object, ...]
"""The part of a device's traits that an expression can read."""


class Expressions:
    """Programs and their answers. Devices that an expression cannot distinguish share one."""

    def __init__(self) -> None:
        self._known: dict[str, _Known] = {}
        """In the order of their last use."""
        self._library: Library | None = None
        self._text = 0
        """The number of characters of all expressions."""
        self._answers = 0

    def __len__(self) -> int:
        """Return the number of cached answers."""
        return self._answers

    def matches(
        self, expression: str, traits: SharedTraits, steps: Steps | None = None
    ) -> bool | Broken:
        """Return whether devices of these traits match, or why the evaluation failed.

        Raises ``OutOfStepsError`` before it would evaluate without a step left.
        """
        known = self._known.pop(expression, None)
        if known is None:
            if steps is not None:
                steps.expect()
            known = self._compiled(expression, steps)
        self._known[expression] = known
        answer = traits.answers.get(known.key)
        if answer is None:
            answer = self._by_part(known, traits.value, steps)
            traits.answers[known.key] = answer
            if len(traits.answers) > policy.CEL_ANSWERS_PER_TRAITS_MAX:
                del traits.answers[next(iter(traits.answers))]
        assert isinstance(answer, bool | Broken), "under its key a program finds its own"
        return answer

    def _by_part(self, known: _Known, traits: DeviceTraits, steps: Steps | None) -> bool | Broken:
        """Evaluate once for all devices that differ only in what the expression cannot read."""
        part = known.part_of(traits)
        answer = known.answers.pop(part, None)
        if answer is None:
            if steps is not None:
                steps.expect()
                steps.take(known.program.steps(traits))
            answer = known.program.run(traits)
            self._answers += 1
        known.answers[part] = answer
        self._make_room()
        return answer

    def _compiled(self, expression: str, steps: Steps | None) -> _Known:
        if self._library is None:
            self._library = Library()
        known = _Known(expression, Program(expression, self._library))
        if steps is not None:
            steps.take(known.program.compile_steps)
        self._text += len(expression)
        while self._known and self._text > policy.CEL_PROGRAMS_TEXT_MAX:
            self._forget_first()
        return known

    def _make_room(self) -> None:
        while self._answers > policy.CEL_ANSWERS_MAX:
            first = next(iter(self._known.values()))
            if len(self._known) > 1:
                self._forget_first()
            else:
                del first.answers[next(iter(first.answers))]
                self._answers -= 1

    def _forget_first(self) -> None:
        expression = next(iter(self._known))
        self._answers -= len(self._known.pop(expression).answers)
        self._text -= len(expression)


class _Known:
    """A program and its answers, in the order of their last use."""

    __slots__ = ("_expression", "_looks_at", "_names_only", "answers", "key", "program")

    def __init__(self, expression: str, program: Program) -> None:
        self.key = object()
        """The key of the answer in traits: unique, and without a reference to the program."""
        self.program = program
        self.answers: dict[_Part, bool | Broken] = {}
        self._expression = expression
        self._looks_at: dict[str, bool] = {}
        try:
            self._names_only = names_only(expression)
        except CelError:
            self._names_only = True  # it is broken whatever the device is

    def part_of(self, traits: DeviceTraits) -> _Part:
        """Return what the expression can read; the answer depends on nothing else."""
        return (
            traits.driver,
            traits.shareable,
            tuple([one for one in traits.attributes if self._sees(one.name) or not one.kind]),
            tuple([one for one in traits.capacity if self._sees(one.name)]),
        )

    def _sees(self, name: str) -> bool:
        """Whether the expression can read the attribute or capacity of this name."""
        found = self._looks_at.get(name)
        if found is None:
            found = not self._names_only or name.rpartition("/")[2] in self._expression
            if len(self._looks_at) < policy.CEL_NAMES_MAX:
                self._looks_at[name] = found
        return found
