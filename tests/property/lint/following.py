"""Does what a hint of lint says, where it names a field and a value.

In: objects and a finding. Out: for each way out that the hint names, the objects as they are then;
none for a hint that leaves the choice to a person, such as "fix that field".
"""

import copy
import re

from quorate.core.words.owner_words import ELSEWHERE
from quorate.lint.finding import Finding
from quorate.lint.pod_sources import PodSource, pod_sources
from tests.unit.lint.world import objects_of

_ALL = " in all templates of the gang"
_FIELDS = r"\w+(?: and \w+)?"
_STEPS_MAX = 20
_ALTERNATIVES = re.compile(r", or (?=set |lower |leave |remove |let |make |raise |tell )")
_PART = re.compile(r"\[([^\]]*)\]|([^.\[]+)")


def parts(path: str) -> list[str | int]:
    """Return the parts of a path as lint writes it."""
    found = [(one.group(1), one.group(2)) for one in _PART.finditer(path)]
    return [int(key) if key and key.isdigit() else key or name for key, name in found]


def _value(text: str) -> object:
    return int(text) if text.isdigit() else text.strip('"')


class _Objects:
    """Objects that are changed, and the pods that they make."""

    def __init__(self, objects: list[dict], finding: Finding) -> None:
        self.values = copy.deepcopy(objects)
        self.finding = finding
        self.path = parts(finding.path)

    @property
    def about(self) -> dict:
        return self.values[self.finding.document]

    def titled(self, title: str) -> dict:
        """Return the object of this kind and name."""
        named = {f"{one['kind']} {one['metadata']['name']}": one for one in self.values}
        return named[title]

    def sources(self) -> list[tuple[dict, PodSource]]:
        pairs = zip(self.values, objects_of(*self.values), strict=True)
        return [(value, source) for value, one in pairs for source in pod_sources(one, "default")]

    def put(self, holder: dict, path: list, value: object) -> None:
        """Write a field; None removes it."""
        for part in path[:-1]:
            missing = isinstance(holder, dict) and not holder.get(part)
            holder = holder.setdefault(part, {}) if missing else holder[part]
        if value is None:
            holder.pop(path[-1])
        else:
            holder[path[-1]] = value

    def put_in_templates(self, path: list, value: object) -> None:
        """Write a label of the finding's template into all that have it."""
        *_, place, key = path
        for holder, source in self.sources():
            if key in (source.template["metadata"].get(place) or {}):
                self.put(holder, [*source.path, "metadata", place, key], value)

    def put_count(self, field: str, title: str, value: int) -> None:
        for holder, source in self.sources():
            if source.title == title:
                self.put(holder, [*source.count_path[:-1], field], value)
                return
        raise AssertionError(f"no pods of {title}")


def _set_count(made: _Objects, fields: str, title: str, value: str) -> None:
    for field in fields.split(" and "):
        made.put_count(field, title, int(value))


def _raise_count(made: _Objects, fields: str, title: str, wanted: str) -> None:
    """Raise a factor until the template makes so many."""
    for factor in range(1, _STEPS_MAX):
        _set_count(made, fields, title, str(factor))
        if next(one.count for _, one in made.sources() if one.title == title) >= int(wanted):
            return
    raise AssertionError(f"no {fields} makes {wanted} pods")


def _lower(made: _Objects, field: str, of: str, value: str, everywhere: str) -> None:
    """``field`` is a path, the last part of the finding's, "it" or "that label".

    ``of`` names the object, where that is not the one that the finding is about.
    """
    short = field in ("it", "that label", made.path[-1])
    path = made.path if short else parts(field)
    if everywhere:
        made.put_in_templates(path, _value(value))
    else:
        made.put(made.titled(of) if of else made.about, path, _value(value))


def _leave_out(made: _Objects) -> None:
    made.put(made.about, made.path, None)


def _write(made: _Objects, field: str, value: str) -> None:
    made.put(made.about, parts(field), value)


def _quote(made: _Objects, value: str) -> None:
    made.put(made.about, made.path, value)


def _same(made: _Objects, key: str, value: str) -> None:
    made.put_in_templates(["labels", key], value)


def _same_priority(made: _Objects) -> None:
    classes = [one.spec.get("priorityClassName") for _, one in made.sources()]
    for holder, source in made.sources():
        made.put(holder, [*source.path, "spec", "priorityClassName"], max(filter(None, classes)))


def _use_scheduler(made: _Objects, name: str, everywhere: str) -> None:
    """Write it into the template that the finding is about, or into all."""
    for holder, source in made.sources():
        path = [*source.path, "spec", "schedulerName"]
        if everywhere or (holder is made.about and path[: len(made.path)] == made.path):
            made.put(holder, path, name)


def _use_one(made: _Objects, name: str) -> None:
    _use_scheduler(made, name, _ALL)


def _rename(made: _Objects, field: str) -> None:
    holder = made.about["spec"]
    holder[field] = holder.pop(made.path[-1])


def _add_labels(made: _Objects, name_key: str, name: str, min_key: str, least: str) -> None:
    for holder, source in made.sources():
        for key, value in ((name_key, name), (min_key, least)):
            made.put(holder, [*source.path, "metadata", "labels", key], value)


def _use_key(made: _Objects, place: str, key: str, name: str) -> None:
    made.put(made.about, made.path, None)
    at = made.path[:-2]
    made.put(made.about, [*at, f"{place}s", key], name)


def _parallel(made: _Objects) -> None:
    for field in ("startupPolicy", "launcherCreationPolicy"):
        made.about["spec"].pop(field, None)
    for job in made.about["spec"].get("replicatedJobs", ()):
        job.pop("dependsOn", None)


_FORMS = (
    (rf"set ({_FIELDS}) of (.+) to (\d+)", _set_count),
    (rf"raise ({_FIELDS}) of (.+) until it makes (\d+) pods?", _raise_count),
    (rf'(?:lower|set) (\S+|that label)(?: of (PodGroup \S+))? to ("?[\w.]+"?)({_ALL})?', _lower),
    (r"(?:leave it out|remove it)", _leave_out),
    (rf"write spec\.schedulerName: (\w+)({_ALL})?", _use_scheduler),
    (r"write (spec\.\w+): (\w+)", _write),
    (r'write it in quotes: "(.*)"', _quote),
    (r"give all members the same priorityClassName", _same_priority),
    (r'give all members the same (\S+): "(\d+)"', _same),
    (r"use one, such as (\S+), for all members", _use_one),
    (r"did you mean (\w+)\?", _rename),
    (r'add labels (\S+): (\S+) and (\S+): "(\d+)" to .*', _add_labels),
    (r"use (label|annotation) (\S+): (\S+) on the pods", _use_key),
    (r"let all be made at once", _parallel),
    (rf"use (\w+)({_ALL})?", _use_scheduler),
)


def followed(objects: list[dict], finding: Finding) -> list[tuple[str, list[dict]]]:
    """Return each way out that the hint names, and the objects when it was taken."""
    found = []
    for words in _ALTERNATIVES.split(finding.hint.removesuffix(f"; {ELSEWHERE}")):
        for form, act in _FORMS:
            said = re.fullmatch(form, words)
            if said is not None:
                made = _Objects(objects, finding)
                act(made, *said.groups())
                found.append((words, made.values))
                break
    return found
