"""Profiles are read as they are; wrong ones are named by line and field."""

import pytest

from quorate.core.model.profile import KUBE_SCHEDULER, Profile
from quorate.shell.configuration.config import ConfigError, parse

HEAD = "apiVersion: quorate.dev/v1alpha1\nkind: SchedulerConfiguration\n"


def test_a_bare_profile_is_kube_schedulers_and_its_name_is_owned() -> None:
    policy = parse(f"{HEAD}profiles: [{{schedulerName: default-scheduler}}]", "file").policy
    assert policy.profiles == (("default-scheduler", KUBE_SCHEDULER),)
    assert policy.scheduler_names[-1] == "default-scheduler"
    assert policy.scheduler_names[0] == "quorate"


def test_a_profile_says_how_pods_are_packed_and_whether_they_preempt() -> None:
    body = "profiles: [{schedulerName: a, packing: mostAllocated, preemption: false}]"
    assert parse(HEAD + body, "file").policy.profiles == (
        ("a", Profile(packing="most-allocated", preempts=False)),
    )


@pytest.mark.parametrize(
    ("written", "field", "problem"),
    [
        ("[{packing: mostAllocated}]", "schedulerName", "default-scheduler"),
        ("[{schedulerName: a, packing: tight}]", "packing", "mostAllocated"),
        ("[{schedulerName: a, preemption: 3}]", "preemption", "Write true or false."),
        ("[{schedulerName: a, plugins: {}}]", "plugins", "schedulerName, packing, preemption"),
        ("[{schedulerName: a}, {schedulerName: a}]", "profiles", '"a" has two profiles'),
        ("[3]", "profiles", "holds no fields"),
    ],
)
def test_a_mistake_is_named_with_its_field(written: str, field: str, problem: str) -> None:
    with pytest.raises(ConfigError) as failed:
        parse(f"{HEAD}profiles: {written}", "file")
    said = str(failed.value)
    assert said.startswith("file:3: ")
    assert field in said
    assert problem in said
