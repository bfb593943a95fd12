"""Profiles of a KubeSchedulerConfiguration are read as they are; wrong ones by line and field."""

import pytest

from quorate.core.model import Requirement, SelectorTerm
from quorate.core.model.profile import KUBE_SCHEDULER, WEIGHTS, FitStrategy, Profile
from quorate.shell.configuration.config import ConfigError, parse

HEAD = "apiVersion: quorate.dev/v1alpha1\nkind: SchedulerConfiguration\n"


def profile(body: str) -> Profile:
    policy = parse(f"{HEAD}profiles:\n- schedulerName: default-scheduler\n{body}", "file").policy
    ((name, found),) = policy.profiles
    assert name == "default-scheduler"
    return found


def test_a_bare_profile_is_kube_schedulers_and_its_name_is_owned() -> None:
    policy = parse(f"{HEAD}profiles: [{{schedulerName: default-scheduler}}]", "file").policy
    assert policy.profiles == (("default-scheduler", KUBE_SCHEDULER),)
    assert policy.scheduler_names[-1] == "default-scheduler"
    assert policy.scheduler_names[0] == "quorate"


def test_weights_are_set_and_scores_turned_off() -> None:
    found = profile(
        "  plugins:\n    score:\n      disabled: [{name: ImageLocality}]\n"
        "      enabled: [{name: TaintToleration, weight: 7}]\n"
    )
    assert found.weight("TaintToleration") == 7
    assert found.weight("ImageLocality") == 0
    assert found.weight("NodeAffinity") == WEIGHTS["NodeAffinity"]


def test_a_star_turns_everything_off_but_what_is_enabled() -> None:
    found = profile(
        "  plugins:\n    multiPoint:\n      disabled: [{name: '*'}]\n"
        "      enabled: [{name: NodeResourcesFit}]\n"
    )
    assert found.weights == (("NodeResourcesFit", 1),)
    assert "NodeResourcesFit" not in found.disabled
    assert {"NodePorts", "InterPodAffinity", "DefaultPreemption"} <= set(found.disabled)


def test_arguments_of_plugins_are_read() -> None:
    found = profile(
        """  pluginConfig:
  - name: NodeAffinity
    args:
      apiVersion: kubescheduler.config.k8s.io/v1
      kind: NodeAffinityArgs
      addedAffinity:
        requiredDuringSchedulingIgnoredDuringExecution:
          nodeSelectorTerms:
          - matchExpressions: [{key: pool, operator: In, values: [batch]}]
  - name: NodeResourcesFit
    args:
      ignoredResourceGroups: [example.com]
      scoringStrategy:
        type: RequestedToCapacityRatio
        resources: [{name: nvidia.com/gpu, weight: 5}]
        requestedToCapacityRatio:
          shape: [{utilization: 0, score: 0}, {utilization: 100, score: 10}]
  - name: InterPodAffinity
    args: {hardPodAffinityWeight: 30, ignorePreferredTermsOfExistingPods: true}
  - name: PodTopologySpread
    args:
      defaultingType: List
      defaultConstraints:
      - {maxSkew: 2, topologyKey: rack, whenUnsatisfiable: DoNotSchedule}
"""
    )
    assert found.added_required == (
        SelectorTerm(expressions=(Requirement("pool", "In", ("batch",)),)),
    )
    assert found.ignored_resource_groups == ("example.com",)
    assert found.fit == FitStrategy(
        "RequestedToCapacityRatio", (("nvidia.com/gpu", 5),), ((0, 0), (100, 10))
    )
    assert found.hard_pod_affinity_weight == 30
    assert found.ignore_preferred_terms_of_existing_pods
    assert found.default_spread is not None
    assert [(one.max_skew, one.topology_key, one.hard) for one in found.default_spread] == [
        (2, "rack", True)
    ]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("profiles: 3", "file:3: profiles: 3 is not a list"),
        ("profiles:\n- plugins: {}", "profiles[0].schedulerName: the field is missing"),
        (
            "profiles:\n- schedulerName: a\n  plugins: {score: {enabled: [{name: Foo}]}}",
            'profiles[0].plugins.score.enabled[0].name: "Foo" is no plugin that quorate knows',
        ),
        (
            "profiles:\n- schedulerName: a\n  plugins: {permit: {}}",
            "profiles[0].plugins.permit: there is no such field",
        ),
        (
            "profiles:\n- schedulerName: a\n  pluginConfig: [{name: NodePorts, args: {}}]",
            '"NodePorts" takes no arguments here',
        ),
        (
            "profiles:\n- schedulerName: a\n"
            "  pluginConfig: [{name: NodeAffinity, args: {addedAffinity: {x: 1}}}]",
            "addedAffinity is no node affinity",
        ),
        ("profiles: [{schedulerName: a}, {schedulerName: a}]", '"a" has two profiles'),
        (
            "profiles:\n- schedulerName: a\n  pluginConfig:\n  - name: NodeResourcesFit\n"
            "    args: {scoringStrategy: {type: RequestedToCapacityRatio}}",
            "RequestedToCapacityRatio has no shape",
        ),
        (
            "profiles:\n- schedulerName: a\n  pluginConfig:\n  - name: PodTopologySpread\n"
            "    args: {defaultConstraints: [{maxSkew: 1, topologyKey: z,"
            " whenUnsatisfiable: ScheduleAnyway}]}",
            "defaultConstraints are set, and defaultingType is System",
        ),
    ],
)
def test_a_wrong_profile_is_refused_by_line_and_field(body: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(HEAD + body, "file")
    assert said in str(caught.value)
