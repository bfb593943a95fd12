"""Make a world that fails smaller: first its moves, then what it told, then the objects in it.

What is left is written as a program that needs nothing of this package but the core.
"""

from __future__ import annotations

import enum
import random

import msgspec

from quorate.core.model.changes import (
    BindFailed,
    Change,
    GangChanged,
    GangGone,
    NodeChanged,
    NodeGone,
    ObjectChanged,
    ObjectGone,
    PodBound,
    PodChanged,
    PodGone,
)
from tests.property.worlds.findings import kind_of
from tests.property.worlds.running import error_of
from tests.property.worlds.world import World

replace = msgspec.structs.replace


class Patience:
    """So many tries are made to make a world smaller."""

    def __init__(self, tries):
        self.left = tries

    def __bool__(self):
        self.left -= 1
        return self.left >= 0


def smallest(items, fails, patience):
    """Return a list with fewer items for which ``fails`` holds still."""
    size = max(1, len(items) // 2)
    while size:
        start, before = 0, len(items)
        while start < len(items) and patience:
            shorter = items[:start] + items[start + size :]
            if fails(shorter):
                items = shorter
            else:
                start += size
        if size > 1 or len(items) == before:
            size //= 2
    return items


def shrunk(setting, script, kind, tries=300):
    """Return a script with fewer moves that fails in the same way."""

    def fails(moves):
        return kind_of_error(error_of(setting, moves)) == kind

    return smallest(script, fails, Patience(tries))


def kind_of_error(error):
    return "" if error is None else kind_of(error)


class Told(World):
    """A world of news alone: changes, and times at which to decide; then, if asked, a rest."""

    def replay(self, news, rests):
        self.server.lags = False
        for one in news:
            if isinstance(one, Change):
                self._note(one)
                self.hear(one)
            else:
                self.now_s = max(self.now_s, one)
                self.decide(None, 0.0)
        if rests:
            self.rest(random.Random(0))

    def _note(self, change):
        """Make the news true at the API server."""
        server = self.server
        match change:
            case NodeChanged():
                server.nodes[change.node.name] = change.node
            case NodeGone():
                server.nodes.pop(change.name, None)
            case PodChanged():
                server.pods[change.pod.uid] = change.pod
            case PodGone():
                server.pods.pop(change.uid, None)
            case GangChanged():
                server.specs[change.spec.key] = change.spec
            case GangGone():
                server.specs.pop(change.key, None)
            case ObjectChanged():
                found = change.object
                name = type(found).__name__, getattr(found, "namespace", ""), found.name
                server.objects[name] = found
            case ObjectGone():
                server.objects.pop((change.kind, change.namespace, change.name), None)
            case PodBound() | BindFailed():
                self.commit.forget(change.uid)
            case _:
                pass


def error_of_news(setting, news, rests):
    try:
        Told(setting).replay(news, rests)
    except Exception as error:
        return error
    return None


def news_of(setting, script):
    """Return what a world told, and when it decided."""
    log = []
    error_of(setting, script, log)
    return [what[0] for kind, *what in log if kind in ("observe", "decide")]


def shrunk_news(setting, news, kind, tries=1000):
    """Return less news that lead to the same failure, and whether a rest does; None if none do."""
    for rests in (False, True):

        def fails(some, rests=rests):
            return kind_of_error(error_of_news(setting, some, rests)) == kind

        if fails(news):
            patience = Patience(tries)
            return plainer(smallest(news, fails, patience), fails, patience), rests
    return None


def plainer(news, fails, patience):
    """Return news of plainer objects: fields that do not matter are as they mostly are."""
    for place in range(len(news)):
        if isinstance(news[place], Change):
            news = _plainer_at(news, place, fails, patience)
    return news


def _plainer_at(news, place, fails, patience):
    changed = True
    while changed:
        changed = False
        for candidate in _plainer_values(news[place]):
            trial = [*news[:place], candidate, *news[place + 1 :]]
            if not patience:
                return news
            if fails(trial):
                news, changed = trial, True
                break
    return news


def _plainer_values(value):
    """Yield values like this one with one field, or one element, less."""
    if isinstance(value, msgspec.Struct):
        for field in msgspec.structs.fields(value):
            found = getattr(value, field.name)
            if field.default is not msgspec.NODEFAULT and found != field.default:
                yield replace(value, **{field.name: field.default})
            for candidate in _plainer_values(found):
                yield replace(value, **{field.name: candidate})
    elif type(value) is tuple:
        for place, one in enumerate(value):
            yield (*value[:place], *value[place + 1 :])
            for candidate in _plainer_values(one):
                yield (*value[:place], candidate, *value[place + 1 :])


def program(setting, news, rests):
    """Return a program that says the news to a scheduler."""
    lines = [f"s = Scheduler({short(setting.policy)}, identity='id1')"]
    for one in news:
        said = f"s.observe([{short(one)}])" if isinstance(one, Change) else f"decide(s, {one!r})"
        lines.append(said)
    return [*lines, "# then: all binds are answered, and time passes"] if rests else lines


def short(value):
    """Write a value as Python does, without the fields that are as they mostly are."""
    if isinstance(value, msgspec.Struct):
        said = [
            f"{field.name}={short(getattr(value, field.name))}"
            for field in msgspec.structs.fields(value)
            if getattr(value, field.name) != field.default
        ]
        return f"{type(value).__name__}({', '.join(said)})"
    if isinstance(value, enum.Enum):
        return f"{type(value).__name__}.{value.name}"
    if type(value) is tuple:
        inner = ", ".join(map(short, value))
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    return repr(value)


def story(setting, script):
    """Return what was told and decided in a world, in lines."""
    log = []
    error = error_of(setting, script, log)
    lines = [f"# {setting.theme}, seed {setting.seed}", f"# {short(setting.policy)}"]
    for kind, *what in log:
        if kind == "move":
            lines.append(f"-- {what[0]}")
        elif kind == "observe":
            lines.append(f"   {short(what[0])}")
        else:
            lines.append(f"   decide({what[0]:.2f}) -> {short(what[1])}")
    return [*lines, f"!! {error!r}"]
