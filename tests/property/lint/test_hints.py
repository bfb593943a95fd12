"""Goal: who follows a hint of lint gets rid of that finding, and gets none that was not there.

Method: the manifests of the rules' own tables, and random ones; each hint that names a field and a
value is followed by ``following``, and lint looks again.
"""

import random

import pytest

from quorate.lint.rules import NAMES
from tests.property.lint.following import followed
from tests.property.seeds import SEED, times
from tests.unit.lint.cases import CASES
from tests.unit.lint.operators import job_set, training, volcano
from tests.unit.lint.world import (
    MIN_LABEL,
    X_LABEL,
    cron_job,
    group,
    job,
    labelled,
    lint,
    rules,
    stateful_set,
    template,
)

IN_ORDER = {"startupPolicy": {"startupPolicyOrder": "InOrder"}}
WORKERS = job_set({X_LABEL: "g"})
del WORKERS["spec"]["replicatedJobs"][0]
HANDMADE = {
    "a JobSet in order": [job_set(labelled("9", "w"), **IN_ORDER)],
    "a JobSet in order, with a PodGroup": [
        group(9),
        job_set({X_LABEL: "g"}, **IN_ORDER),
    ],
    "a JobSet of too few": [job_set(labelled("11", "w"))],
    "two Jobs of too few": [job(2, labels=labelled("9")), job(3, "k", labels=labelled("9"))],
    "no gang": [job(4, labels={})],
    "a JobSet of no gang": [job_set()],
    "a PyTorchJob of too few": [training(policy={"minAvailable": 5})],
    "a Volcano job of too few": [volcano(5, 4)],
    "a StatefulSet in order, of too few": [group(5), stateful_set(3)],
    "a StatefulSet in order, by labels": [stateful_set(3, template=template(labelled("3")))],
    "a Job whose other number limits it too": [group(3), job(1)],
    "a JobSet of 2 Jobs, whose other number limits it too": [group(11), WORKERS],
    "a CronJob whose runs overlap": [group(3), cron_job(job(2))],
}
NO_FORM = {
    "affinity-needs-others",
    "duplicate-key",
    "duplicate-object",
    "gang-label-incomplete",
    "gang-above-shape",
    "label-invalid",
    "min-available-invalid",
    "min-invalid",
    "min-not-positive",
    "min-resources-above-shape",
    "min-task-above-replicas",
    "namespaces-differ",
    "no-node-fits",
    "pod-invalid",
    "podgroup-api-unknown",
    "podgroup-field-ignored",
    "podgroup-invalid",
    "podgroup-missing",
    "podgroup-without-pods",
    "replicas-invalid",
    "several-dialects",
    "unknown-gang-label",
    "gang-label-not-current",
    "workload-min-invalid",
}
"""Findings whose hint leaves a choice to a person, or is about more than one field."""
WORLDS = times(300)


def random_objects(seed):
    """A gang of a few workloads, in which numbers, order, schedulers and priorities are drawn."""
    draw = random.Random(seed)
    by_labels, least = draw.random() < 0.5, draw.randint(1, 7)
    found = [] if by_labels else [group(least)]
    if not by_labels and draw.random() < 0.2:
        found[0]["spec"]["minResources"] = {"cpu": str(draw.randint(1, 40))}
    for number in range(draw.randint(1, 3)):
        says = least if draw.random() < 0.8 else draw.randint(1, 7)
        of_template = {"requests": {"cpu": "2"}} | (
            {"labels": labelled(str(says))} if by_labels else {}
        )
        if draw.random() < 0.2:
            of_template["schedulerName"] = draw.choice(["default-scheduler", "quorat", "volcano"])
        if draw.random() < 0.2:
            of_template["priorityClassName"] = draw.choice(["high", "low"])
        found.append(random_workload(draw, f"w{number}", of_template))
    return found


def random_workload(draw, name, of_template):
    count, made = draw.randint(1, 4), template(**of_template)
    match draw.choice(("Job", "StatefulSet", "JobSet", "CronJob")):
        case "StatefulSet":
            policy = draw.choice(({}, {"podManagementPolicy": "Parallel"}))
            return stateful_set(count, name, template=made, **policy)
        case "JobSet":
            one = job_set(made["metadata"]["labels"], **draw.choice(({}, IN_ORDER)))
            one["metadata"]["name"] = name
            for part in one["spec"]["replicatedJobs"]:
                part["template"]["spec"] |= {"parallelism": count, "template": made}
            return one
        case "CronJob":
            return cron_job(job(count, name, **of_template))
    one = job(count, name, **of_template)
    one["spec"]["completions"] = draw.randint(1, 4)
    return one


def of(finding, objects):
    """Return what lint finds of the same kind at the same place."""
    where = finding.rule, finding.object, finding.path
    return [one for one in lint(*objects).findings if (one.rule, one.object, one.path) == where]


def hints_are_followed(objects):
    """Follow each hint; return the rules whose hints could be followed."""
    report, done = lint(*objects), set()
    before = {(one.rule, one.object) for one in report.findings}
    for finding in report.findings:
        for words, then in followed(objects, finding):
            after = {(one.rule, one.object): one for one in lint(*then).findings}
            new = [after[one] for one in after if one not in before]
            assert not new, f"{finding.rule}: {words!r} was followed"
            assert not of(finding, then), f"{words!r} was followed in vain"
            done.add(finding.rule)
    return done


@pytest.mark.parametrize("rule", CASES)
def test_a_hint_of_the_rules_table_makes_no_new_finding(rule):
    done = hints_are_followed(CASES[rule][1])
    assert (rule in done) is (rule not in NO_FORM)


@pytest.mark.parametrize("objects", HANDMADE.values(), ids=HANDMADE)
def test_a_hint_about_workloads_makes_no_new_finding(objects):
    assert hints_are_followed(objects)


@pytest.mark.parametrize("number", range(WORLDS))
def test_a_hint_in_a_random_manifest_makes_no_new_finding(number):
    hints_are_followed(random_objects(SEED + number))


def test_each_finding_has_a_hint_that_is_followed_or_that_leaves_a_choice():
    done = set.union(*(hints_are_followed(one) for one in HANDMADE.values()))
    done |= set.union(*(hints_are_followed(bad) for _, bad, _ in CASES.values()))
    assert done | NO_FORM == set(NAMES)
    assert not done & NO_FORM


def test_the_min_of_a_jobset_in_order_is_lowered_in_all_its_templates():
    """Lint's own hint, followed in the one label that it named, gave another error."""
    [finding] = lint(*HANDMADE["a JobSet in order"]).findings
    assert finding.hint.startswith(
        f'lower spec.replicatedJobs[0].template.spec.template.metadata.labels[{MIN_LABEL}] to "3" '
        "in all templates of the gang"
    )
    [(_, then), *_] = followed(HANDMADE["a JobSet in order"], finding)
    assert rules(lint(*then)) == set()
