"""CEL selectors of device classes and claims: whether a device matches, or an error; cached.

In: expressions and traits of devices. Out: verdicts. Above the bound, the least recently used
program is evicted with its answers. Called by ``outcomes``.
"""

from __future__ import annotations

from quorate.core.cluster.devices.views import SharedTraits
from quorate.core.cluster.lru_cache import LruCache
from quorate.core.model import policy
from quorate.core.model.devices import DeviceTraits
from quorate.core.model.steps import Steps
from quorate.core.room.devices.cel.programs import Broken, Library, Program

_Part = tuple[object, ...]
"""The part of a device's traits that an expression can read."""


class Expressions:
    """Programs and their answers. Devices that an expression cannot distinguish share one."""

    def __init__(self) -> None:
        self._known: LruCache[str, _Known] = LruCache()
        self._library: Library | None = None

    def matches(
        self, expression: str, traits: SharedTraits, steps: Steps | None = None
    ) -> bool | Broken:
        """Return whether devices of these traits match, or why the evaluation failed.

        Raises ``OutOfStepsError`` before it would evaluate without a step left.
        """
        known = self._known.get(expression)
        if known is None:
            known = self._compiled(expression, steps)
        part = known.part_of(traits.value)
        answer = known.answers.get(part)
        if answer is None:
            if steps is not None:
                steps.expect()
                steps.take(known.program.steps(traits.value))
            answer = known.program.run(traits.value)
            known.answers.put(part, answer, policy.CEL_ANSWERS_MAX)
        return answer

    def _compiled(self, expression: str, steps: Steps | None) -> _Known:
        if steps is not None:
            steps.expect()
        if self._library is None:
            self._library = Library()
        known = _Known(expression, Program(expression, self._library))
        if steps is not None:
            steps.take(known.program.compile_steps)
        self._known.put(expression, known, policy.CEL_PROGRAMS_TEXT_MAX, len(expression) + 100)
        return known


class _Known:
    """A program and its answers."""

    __slots__ = ("_expression", "_looks_at", "answers", "program")

    def __init__(self, expression: str, program: Program) -> None:
        self.program = program
        self.answers: LruCache[_Part, bool | Broken] = LruCache()
        self._expression = expression
        self._looks_at: dict[str, bool] = {}

    def part_of(self, traits: DeviceTraits) -> _Part:
        """Return what the expression can read; the answer depends on nothing else."""
        return (
            traits.driver,
            tuple([one for one in traits.attributes if self._sees(one.name) or not one.kind]),
            tuple([one for one in traits.capacity if self._sees(one.name)]),
        )

    def _sees(self, name: str) -> bool:
        """Whether the expression can read the attribute or capacity of this name."""
        found = self._looks_at.get(name)
        if found is None:
            found = not self.program.names_only or name.rpartition("/")[2] in self._expression
            if len(self._looks_at) < policy.CEL_NAMES_MAX:
                self._looks_at[name] = found
        return found
