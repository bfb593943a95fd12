"""Goal: whatever is in the file, the answer is a Config or a ConfigError, never another exception.

Method: arbitrary text, arbitrary YAML built around the real field names, and round trips.
"""

import yaml
from hypothesis import given
from hypothesis import strategies as st

from quorate.core.model.policy import Policy
from quorate.shell.configuration.config import (
    _ELECTION,
    _TOP,
    Config,
    ConfigError,
    LeaderElection,
    parse,
)

HEAD = "apiVersion: quorate.dev/v1alpha1\nkind: SchedulerConfiguration\n"

names = st.from_regex(r"[a-z][a-z0-9-]{0,20}[a-z0-9]", fullmatch=True)
scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12)
keys = st.sampled_from([*_TOP, *_ELECTION]) | st.text(max_size=8)
trees = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=12,
)


def parse_or_explain(document):
    error = None
    try:
        parse(document, "f")
    except ConfigError as caught:
        error = caught
    if error is None:
        return
    line_breaks = sum(document.count(sign) for sign in "\n\r\x85\u2028\u2029")
    assert error.problems
    for problem in error.problems:
        assert 0 <= problem.line <= line_breaks + 2
        assert problem.what
        assert problem.hint


@given(st.text(max_size=80))
def test_any_text_is_a_config_or_a_config_error(text):
    parse_or_explain(text)
    parse_or_explain(HEAD + text)


@given(st.text(alphabet="ab:- \n[]{}&*!|>?'\"#%@,<=0.1", max_size=60))
def test_any_text_of_yaml_signs_is_a_config_or_a_config_error(text):
    parse_or_explain(text)
    parse_or_explain(HEAD + text)


@given(st.dictionaries(keys, trees, max_size=5))
def test_any_yaml_is_a_config_or_a_config_error(tree):
    parse_or_explain(HEAD + yaml.safe_dump(tree, allow_unicode=True) if tree else HEAD)


@given(
    scheduler_names=st.lists(names, min_size=1, max_size=4, unique=True),
    packing=st.sampled_from(["mostAllocated", "leastAllocated"]),
    backoffs=st.tuples(st.integers(1, 100), st.integers(0, 100)),
    timeout_s=st.integers(1, 900),
    periods=st.tuples(st.integers(1, 50), st.integers(1, 50), st.integers(1, 50)),
    enabled=st.booleans(),
    binds=st.integers(1, 1024),
    port=st.integers(0, 65535),
)
def test_what_is_written_is_what_is_read(
    scheduler_names, packing, backoffs, timeout_s, periods, enabled, binds, port
):
    retry_s, renew_s, lease_s = periods[0], sum(periods[:2]), sum(periods)
    document = {
        "apiVersion": "quorate.dev/v1alpha1",
        "kind": "SchedulerConfiguration",
        "schedulerNames": scheduler_names,
        "packing": packing,
        "attemptTimeoutSeconds": timeout_s,
        "backoffSeconds": backoffs[0],
        "backoffMaxSeconds": sum(backoffs),
        "leaderElection": {
            "enabled": enabled,
            "leaseDurationSeconds": lease_s,
            "renewDeadlineSeconds": renew_s,
            "retryPeriodSeconds": retry_s,
        },
        "healthAddress": f"127.0.0.1:{port}",
        "bindConcurrency": binds,
    }
    assert parse(yaml.safe_dump(document), "f") == Config(
        policy=Policy(
            scheduler_names=tuple(scheduler_names),
            packing="most-allocated" if packing == "mostAllocated" else "least-allocated",
            attempt_timeout_s=timeout_s,
            backoff_s=backoffs[0],
            backoff_s_max=sum(backoffs),
        ),
        leader_election=LeaderElection(
            enabled=enabled,
            lease_duration_s=lease_s,
            renew_deadline_s=renew_s,
            retry_period_s=retry_s,
        ),
        health_host="127.0.0.1",
        health_port=port,
        bind_concurrency=binds,
    )
