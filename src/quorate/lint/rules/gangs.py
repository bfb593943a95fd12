"""Rules about gangs: pods together with the PodGroup that they name."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterator

from quorate.core.model import DEFAULT_SCHEDULER
from quorate.core.model.quantity import format_amount
from quorate.core.words.counting import counted
from quorate.core.words.owner_words import ELSEWHERE
from quorate.dialects import DIALECTS, PodKey, by_name
from quorate.lint.finding import Finding, Severity
from quorate.lint.manifests import GANG_SCHEDULERS, Gang, Group, Manifests
from quorate.lint.objects import KubeObject, mapping, path_text, text, value_at
from quorate.lint.pod_sources import PodSource
from quorate.lint.rules.pods import did_you_mean
from quorate.lint.rules.stages import made_together
from quorate.lint.tree import Path
from quorate.lint.workloads.promise import VOLCANO

_TYPO = 0.85
"""How much a name is like another that was meant: kai-scheduler does not mean coscheduler."""
_NAMED_WITHOUT_OBJECT = tuple(one.member_key for one in DIALECTS if one.object is None)


def mixed_eras(manifests: Manifests) -> Iterator[Finding]:
    """Pods that name a gang as in one API, and a PodGroup of that name in another API."""
    for gang in manifests.gangs:
        near = gang.near
        if near is None or gang.key.dialect == near.dialect.name:
            continue
        if near.spec.key.name != gang.key.name:
            continue
        said = _named_by(gang)
        for source in gang.sources:
            yield source.object.error(
                "label-era-mixed",
                membership_path(source),
                f"the pods name {gang.key.name} by {said}, and {near.title} is one of "
                f"{near.object.api_version}: the two never meet",
                f"use {near.dialect.member_key}: {gang.key.name} on the pods{_or_group(gang)}",
            )
    yield from _incomplete_labels_beside_a_group(manifests)


def _incomplete_labels_beside_a_group(manifests: Manifests) -> Iterator[Finding]:
    """Pods with only the gang key of an API without objects, and a PodGroup with that name."""
    groups = {(one.spec.key.namespace, one.spec.key.name): one for one in manifests.groups}
    for source in manifests.sources:
        for member_key in _NAMED_WITHOUT_OBJECT:
            name = member_key.value(source.facts) or ""
            near = groups.get((source.namespace, name))
            if source.resolution.membership is None and near is not None:
                yield source.object.error(
                    "label-era-mixed",
                    (*source.path, *member_key.path),
                    f"{member_key} does not look for a PodGroup, and {near.title} is one of "
                    f"{near.object.api_version}",
                    f"use {near.dialect.member_key}: {name} on the pods",
                )


def _named_by(gang: Gang) -> str:
    dialect = by_name(gang.key.dialect)
    return str(dialect.member_key) if dialect else gang.key.dialect


def _or_group(gang: Gang) -> str:
    dialect = by_name(gang.key.dialect)
    if dialect is None or dialect.resource is None:
        return ", or remove the PodGroup"
    return f", or make the PodGroup one of {dialect.resource.api_version}"


def missing_group(manifests: Manifests) -> Iterator[Finding]:
    """Pods that name a PodGroup which is not in the files, or is in another namespace."""
    for gang in manifests.gangs:
        dialect = by_name(gang.key.dialect)
        if gang.group is not None or gang.promise is not None:
            continue
        if dialect is None or dialect.resource is None:
            continue
        near = gang.near
        if near is None or (near.dialect is dialect and near.spec.key.name != gang.key.name):
            meant = f" (did you mean {near.object.name}?)" if near else ""
            yield gang.sources[0].object.warning(
                "podgroup-missing",
                membership_path(gang.sources[0]),
                f"PodGroup {gang.key.name} ({dialect.resource.api_version}) is in none of the "
                f"files{meant}; until it exists the pods wait",
                f"add it, or make sure that the cluster has it in namespace {gang.key.namespace}",
            )
        elif near.dialect is dialect:
            for source in gang.sources:
                yield _elsewhere(source, near, manifests)


def _elsewhere(source: PodSource, near: Group, manifests: Manifests) -> Finding:
    written = source.object.namespace or near.object.namespace
    both = bool(source.object.namespace and near.object.namespace)
    sure = both or manifests.options.namespace_given
    there, here = near.spec.key.namespace, source.namespace
    return source.object.finding(
        "namespaces-differ",
        Severity.ERROR if sure else Severity.WARNING,
        membership_path(source),
        f"{near.title} is in namespace {there} and the pods are in {here}"
        + ("" if sure else f" unless they are applied with -n {written}")
        + ": a gang is of one namespace",
        f"write the same metadata.namespace in both {near.object.kind} and {source.title}",
    )


def min_above_replicas(manifests: Manifests) -> Iterator[Finding]:
    """A gang that needs more members than the files create: it would wait for ever."""
    for gang in manifests.gangs:
        least, count = gang.min_count, gang.count
        if least is None or count is None or count >= least:
            continue
        made = Counter[str]()
        for source in gang.sources:
            made[source.title] += source.count or 0
        makes = " and ".join(f"{title} makes {number}" for title, number in made.items())
        in_all = f", {count} in all" if len(made) > 1 else ""
        one, path = min_place(gang)
        if gang.group is not None or gang.promise is not None:
            what = f"{gang.title} needs {counted(least, 'member')} ({path_text(path)})"
            lower = f"lower {path[-1]} to {count}"
        else:
            what = f"gang {gang.key.name} needs {counted(least, 'member')} ({_min_key(gang)})"
            lower = f'lower that label to "{count}"{in_all_templates(gang)}'
        yield one.error(
            "min-above-replicas",
            path,
            f"{what}, and {makes}{in_all}",
            _more(gang, least) + (f", or {lower}" if count else "") + _elsewhere_too(gang),
        )


def _elsewhere_too(gang: Gang) -> str:
    """Return that not all members are in the files, perhaps; an operator makes all of its own."""
    return f"; {ELSEWHERE}" if gang.promise is None else ""


def in_all_templates(gang: Gang) -> str:
    """Return where a label has to be changed: templates that differ in min make no gang."""
    return " in all templates of the gang" if len(gang.sources) > 1 else ""


def _more(gang: Gang, least: int) -> str:
    first = gang.sources[0]
    if len(gang.sources) > 1 or not first.count_path:
        return f"make {counted(least, 'pod')}"
    field, count = str(first.count_path[-1]), first.count
    if first.object.kind == "LeaderWorkerSet" or not count:
        return f"raise {field} of {first.title}"
    written = value_at(first.object.value, first.count_path)
    factor = written if isinstance(written, int) else 1  # of several, as in a JobSet
    if _limits_too(first, -(-least * factor // count)):
        field = "parallelism and completions"
    if factor != count:
        return f"raise {field} of {first.title} until it makes {counted(least, 'pod')}"
    return f"set {field} of {first.title} to {least}"


def _limits_too(source: PodSource, wanted: int) -> bool:
    """Whether a Job, made to have so many pods by one of its two numbers, is limited by the other.

    A Job has ``parallelism`` pods at once, and never more than ``completions``. "set parallelism of
    Job driver to 3" was said of one that has 1 of each.
    """
    where, field = source.count_path[:-1], source.count_path[-1]
    of_job = {"parallelism": "completions", "completions": "parallelism"}
    other = mapping(value_at(source.object.value, where)).get(of_job.get(str(field), ""))
    return isinstance(other, int) and other < wanted


def min_available(manifests: Manifests) -> Iterator[Finding]:
    """Templates of one gang with different values of min: the scheduler holds such a gang."""
    for gang in manifests.gangs:
        min_key = _min_key(gang)
        if min_key is None:
            continue
        first = gang.sources[0]
        wanted = min_key.value(first.facts)
        for source in gang.sources[1:]:
            written = min_key.value(source.facts)
            if _min(source) != _min(first):
                yield source.object.error(
                    "min-available-disagrees",
                    (*source.path, *min_key.path),
                    f"{first.title} says {wanted} and {source.title} says {written} for gang "
                    f"{gang.key.name}: it would be held",
                    f"give all members the same {min_key.key}{_at_most(gang)}",
                )


def _at_most(gang: Gang) -> str:
    """Return the largest min that the templates say and that can start; "" if that is unknown."""
    together, said = made_together(gang), [_min(source) or 0 for source in gang.sources]
    return "" if not together else f': "{min(together, max(said))}"'


def _min(source: PodSource) -> int | None:
    membership = source.resolution.membership
    return membership.min_count if membership else None


def schedulers(manifests: Manifests) -> Iterator[Finding]:
    """A gang whose pods name several schedulers, or a scheduler that places no gangs."""
    known = manifests.options.gang_schedulers
    for gang in manifests.gangs:
        yield from _of_operator(gang, known)
        sources = _naming(gang)
        for source in sources:
            first = sources[0]
            path = _scheduler_path(source)
            if source.scheduler != first.scheduler:
                yield source.object.error(
                    "scheduler-names-differ",
                    path,
                    f"{first.title} uses schedulerName {first.scheduler} and {source.title} uses "
                    f"{source.scheduler}, in one gang: no scheduler would see all of it",
                    f"use one, such as {_one_of(first, source, known)}, for all members",
                )
            if source.scheduler in known or _kubernetes_places(gang):
                continue
            if source.scheduler == DEFAULT_SCHEDULER:
                yield source.object.error(
                    "default-scheduler",
                    path,
                    f"the pods of gang {gang.key.name} use the {DEFAULT_SCHEDULER}, which starts "
                    "each alone",
                    f"write spec.schedulerName: {known[0]}{in_all_templates(gang)}",
                )
            else:
                yield _unknown(source, known, in_all_templates(gang))
    in_gangs = {id(source.object) for gang in manifests.gangs for source in gang.sources}
    for source in manifests.sources:
        is_other = id(source.object) not in in_gangs and source.scheduler not in known
        if is_other and difflib.get_close_matches(source.scheduler, known, cutoff=_TYPO):
            yield _unknown(source, known)


def _of_operator(gang: Gang, known: tuple[str, ...]) -> Iterator[Finding]:
    """A scheduler that an operator writes into the pods, and that is none of ours."""
    promise = gang.promise
    if promise is not None and promise.scheduler and promise.scheduler not in known:
        yield promise.object.warning(
            "scheduler-unknown",
            ("spec",),
            f"these pods will have schedulerName {promise.scheduler}, which quorate does not own "
            "unless it is configured to",
            f"add it to schedulerNames, and tell lint: --scheduler-name {promise.scheduler}",
        )


def _unknown(source: PodSource, known: tuple[str, ...], where: str = "") -> Finding:
    close = did_you_mean(source.scheduler, (*known, *GANG_SCHEDULERS))
    return source.object.warning(
        "scheduler-unknown",
        _scheduler_path(source),
        f"quorate does not own schedulerName {source.scheduler} unless it is configured to{close}",
        f"use {known[0]}{where}, or tell lint: --scheduler-name {source.scheduler}",
    )


def _naming(gang: Gang) -> list[PodSource]:
    """Return the pods whose schedulerName is what the files say, and not what an operator does."""
    written_by = gang.promise.names_scheduler if gang.promise is not None else ""
    if written_by == "always":
        return []
    return [one for one in gang.sources if not written_by or one.spec.get("schedulerName")]


def _one_of(first: PodSource, source: PodSource, known: tuple[str, ...]) -> str:
    return next((one.scheduler for one in (first, source) if one.scheduler in known), known[0])


def _scheduler_path(source: PodSource) -> Path:
    path: Path = (*source.path, "spec")
    return (*path, "schedulerName") if source.spec.get("schedulerName") else path


def priorities(manifests: Manifests) -> Iterator[Finding]:
    """Members of different priority: the scheduler holds such a gang, but one of Volcano's."""
    values = {
        one.name: one.value.get("value")
        for one in manifests.objects
        if one.kind == "PriorityClass" and one.group == "scheduling.k8s.io"
    }
    for gang in manifests.gangs:
        first = gang.sources[0]
        for source in gang.sources[1:] if gang.key.dialect != VOLCANO else ():
            one, other = _priority(first), _priority(source)
            if one == other or (values.get(one) is not None and values[one] == values.get(other)):
                continue
            yield source.object.error(
                "priorities-differ",
                (*source.path, "spec"),
                f"{first.title} has {_priority_words(one)} and {source.title} has "
                f"{_priority_words(other)}, in one gang: it would be held",
                "give all members the same priorityClassName",
            )


def _priority(source: PodSource) -> str:
    written = text(source.spec.get("priorityClassName"))
    number = source.spec.get("priority")
    return written or (str(number) if type(number) is int and number else "")


def _priority_words(name: str) -> str:
    return f"priority {name}" if name else "no priority class"


def min_resources(manifests: Manifests) -> Iterator[Finding]:
    """A minResources gate above the pods' requests: it may hold a gang that would fit."""
    for gang in manifests.gangs:
        if gang.group is None or not gang.group.spec.min_resources or gang.count is None:
            continue
        asked = Counter[str]()
        for source in gang.sources:
            asked["pods"] += source.count or 0
            for name, amount in source.pod.spec.requests:
                asked[name] += amount * (source.count or 0)
        is_known = all(source.requests_are_known for source in gang.sources)
        for name, wanted in gang.group.spec.min_resources:
            if wanted > asked[name] and (is_known or name == "pods"):
                yield gang.group.object.warning(
                    "min-resources-above-pods",
                    ("spec", "minResources", name),
                    f"minResources ask for {format_amount(name, wanted)} {name}, and all pods of "
                    f"the gang in these files for {format_amount(name, asked[name])}",
                    f"lower it to {format_amount(name, asked[name])}, or leave it out",
                )


def membership_path(source: PodSource) -> Path:
    """Return the field by which a pod names its gang."""
    membership = source.resolution.membership
    dialect = by_name(membership.key.dialect) if membership is not None else None
    if dialect is None:
        return source.path
    keys = (dialect.member_key, *dialect.other_keys)
    used = next((key for key in keys if key.value(source.facts)), dialect.member_key)
    return *source.path, *used.path


def min_place(gang: Gang) -> tuple[KubeObject, Path]:
    """Return the object and the field that say the gang's min."""
    if gang.group is not None:
        return gang.group.object, gang.group.api.min_path
    if gang.promise is not None:
        return gang.promise.object, gang.promise.min_path
    first, min_key = gang.sources[0], _min_key(gang)
    return first.object, (*first.path, *(min_key.path if min_key is not None else ()))


def _min_key(gang: Gang) -> PodKey | None:
    """Return where the gang's pods say min; None where an object does."""
    dialect = by_name(gang.key.dialect)
    return dialect.min_key if dialect is not None else None


def _kubernetes_places(gang: Gang) -> bool:
    """Whether Kubernetes' own scheduler places gangs of this dialect as gangs."""
    dialect = by_name(gang.key.dialect)
    api = dialect.object if dialect is not None else None
    return api is not None and api.kubernetes_places_it
