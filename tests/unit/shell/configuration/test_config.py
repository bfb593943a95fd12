"""Goal: a good file becomes the Config it says; a bad one says all that is wrong, and where.

Method: tables of small files. The text of an error is part of the contract: people read it.
"""

from pathlib import Path

import pytest

from quorate.core.model.life_cycle import LifeCycleLabels
from quorate.core.model.policy import Policy
from quorate.shell.configuration.config import (
    Config,
    ConfigError,
    LeaderElection,
    RecorderConfig,
    load,
    parse,
)

HEAD = "apiVersion: quorate.dev/v1alpha1\nkind: SchedulerConfiguration\n"
OWN_LABELS = LifeCycleLabels(state="x/s", reserved="x/r", desired="d", leaving="l")


def problems_of(document):
    with pytest.raises(ConfigError) as caught:
        parse(document, "f")
    return caught.value.problems


def test_a_file_with_only_its_head_is_the_default():
    assert parse(HEAD, "f") == Config.default() == Config()


def test_every_field_is_read():
    document = HEAD + (
        "schedulerNames: [quorate, default-scheduler]\n"
        "packing: leastAllocated\n"
        "attemptTimeoutSeconds: 30.5\n"
        "holdSlotSeconds: 0\n"
        "holdSlotMaxSeconds: 60\n"
        "heldSlotsMaxPerGang: 7\n"
        "heldSlotsMaxPerNamespace: 9\n"
        "backoffSeconds: 2\n"
        "backoffMaxSeconds: 20\n"
        "nodeLifeCycle: {stateLabel: x/s, reservedLabel: x/r, desiredLabel: d, leavingLabel: l}\n"
        "leaderElection:\n"
        "  enabled: false\n"
        "  namespace: ns\n"
        "  name: other\n"
        "  leaseDurationSeconds: 30\n"
        "  renewDeadlineSeconds: 20\n"
        "  retryPeriodSeconds: 4\n"
        "recorder: {enabled: false, maxBytes: 1048576, path: /tmp/a}\n"
        "healthAddress: '[::1]:0'\n"
        "bindConcurrency: 8\n"
        "logLevel: debug\n"
        "logFormat: text\n"
    )
    assert parse(document, "f") == Config(
        policy=Policy(
            scheduler_names=("quorate", "default-scheduler"),
            packing="least-allocated",
            attempt_timeout_s=30.5,
            hold_s=0,
            hold_s_max=60,
            held_slots_per_gang_max=7,
            held_slots_per_namespace_max=9,
            backoff_s=2,
            backoff_s_max=20,
            life_cycle=OWN_LABELS,
        ),
        leader_election=LeaderElection(
            enabled=False,
            namespace="ns",
            name="other",
            lease_duration_s=30,
            renew_deadline_s=20,
            retry_period_s=4,
        ),
        recorder=RecorderConfig(enabled=False, bytes_max=1 << 20, path="/tmp/a"),
        health_host="::1",
        health_port=0,
        bind_concurrency=8,
        log_level="debug",
        log_format="text",
    )


def test_anchors_are_followed():
    document = HEAD + "logFormat: &x text\nschedulerNames: [*x]\n"
    assert parse(document, "f").policy.scheduler_names == ("text",)


@pytest.mark.parametrize(
    ("lines", "line", "field", "words"),
    [
        ("schedulerName: x", 3, "schedulerName", "no such field|Did you mean schedulerNames?"),
        ("leaderElection: {Name: x}", 3, "leaderElection.Name", "Did you mean name?"),
        ("nodes: 1", 3, "nodes", "no such field|The fields here are apiVersion, kind,"),
        ("logLevel: info\nlogLevel: info", 4, "logLevel", "set twice|line 3"),
        ("packing:", 3, "packing", "no value|remove the line"),
        ("packing: mostAlocated", 3, "packing", "Did you mean mostAllocated?"),
        ("packing: [mostAllocated]", 3, "packing", "a list|mostAllocated or leastAllocated"),
        ("logLevel: yes", 3, "logLevel", "Write debug or info or warning or error."),
        ("attemptTimeoutSeconds: 60s", 3, "attemptTimeoutSeconds", '"60s"|without a unit'),
        ("attemptTimeoutSeconds: 901", 3, "attemptTimeoutSeconds", "out of range|1 to 900"),
        ("attemptTimeoutSeconds: 0", 3, "attemptTimeoutSeconds", "out of range"),
        ("attemptTimeoutSeconds: 1:30", 3, "attemptTimeoutSeconds", "not a plain number"),
        ("holdSlotSeconds: -1", 3, "holdSlotSeconds", "out of range|0 to 86400"),
        ("holdSlotMaxSeconds: 86401", 3, "holdSlotMaxSeconds", "out of range|0 to 86400"),
        ("heldSlotsMaxPerGang: 1.5", 3, "heldSlotsMaxPerGang", "not a whole number"),
        ("heldSlotsMaxPerNamespace: -1", 3, "heldSlotsMaxPerNamespace", "out of range"),
        (
            "holdSlotMaxSeconds: 200",
            3,
            "holdSlotMaxSeconds",
            "held for 300 s where nobody asks|200 s are the most|raise holdSlotMaxSeconds",
        ),
        ("holdSlotSeconds: 5m", 3, "holdSlotSeconds", '"5m"|without a unit'),
        ("backoffSeconds: .nan", 3, "backoffSeconds", "not a plain number"),
        ("backoffSeconds: 010", 3, "backoffSeconds", "not a plain number"),
        ("backoffSeconds: true", 3, "backoffSeconds", "not a plain number"),
        ("backoffSeconds: 100", 3, "backoffSeconds", "is below the first|Raise backoffMaxSeconds"),
        ("backoffMaxSeconds: 0.5", 3, "backoffMaxSeconds", "0.5 s, is below the first, 1 s"),
        ("bindConcurrency: 1.5", 3, "bindConcurrency", "not a whole number"),
        ("bindConcurrency: 0", 3, "bindConcurrency", "from 1 to 1024"),
        ("schedulerNames: quorate", 3, "schedulerNames", "not a list|Write [quorate]."),
        ("schedulerNames: []", 3, "schedulerNames", "empty"),
        ("schedulerNames: [a, a]", 3, "schedulerNames", '"a" is in the list twice'),
        ("schedulerNames: [7]", 3, "schedulerNames", '7 is not text|in quotes: "7"'),
        ("schedulerNames: [A_B]", 3, "schedulerNames", "no Kubernetes name"),
        ("healthAddress: 10271", 3, "healthAddress", "no address with a port|Write host:port"),
        ("healthAddress: a:70000", 3, "healthAddress", "no address with a port"),
        ("healthAddress: ::1:80", 3, "healthAddress", "[::]:10271"),
        ("leaderElection: 3", 3, "leaderElection", "holds no fields|such as enabled"),
        ("leaderElection:\n  enabled: yes", 4, "leaderElection.enabled", "Write true or false."),
        (
            "leaderElection:\n  renewDeadlineSeconds: 15",
            4,
            "leaderElection.renewDeadlineSeconds",
            "another may bind|smaller than leaseDurationSeconds",
        ),
        (
            "leaderElection:\n  renewDeadlineSeconds: 2",
            4,
            "leaderElection.renewDeadlineSeconds",
            "smaller than renewDeadlineSeconds",
        ),
        ("nodeLifeCycle: {stateLabel: a b}", 3, "nodeLifeCycle.stateLabel", "no key of a label"),
        (
            "nodeLifeCycle: {stateLabel: a, leavingLabel: a}",
            3,
            "nodeLifeCycle.stateLabel",
            "two of these labels are the same",
        ),
        ("? [a]\n: 3", 3, "", "a key is no plain text"),
    ],
)
def test_a_mistake_is_named_with_line_field_and_remedy(lines, line, field, words):
    (problem,) = problems_of(HEAD + lines + "\n")
    assert (problem.line, problem.field) == (line, field)
    for part in words.split("|"):
        assert part in f"{problem.what}. {problem.hint}"


@pytest.mark.parametrize(
    ("document", "line", "words"),
    [
        ("", 0, "the file is empty|apiVersion: quorate.dev/v1alpha1"),
        ("# only a comment\n", 0, "the file is empty"),
        ("- a\n", 1, "this is a list|kind: SchedulerConfiguration"),
        ("hello\n", 1, "a single value"),
        ("a: b: c\n", 1, "mapping values are not allowed here|valid YAML"),
        (HEAD + "x: [\n", 4, "valid YAML"),
        (HEAD + "---\n", 3, "another document"),
        (HEAD + "a: \x00\n", 3, "U+0000 is not allowed"),
        ("[" * 5000, 0, "nested too deeply"),
    ],
)
def test_a_file_that_is_no_mapping_is_refused(document, line, words):
    (problem,) = problems_of(document)
    assert problem.line == line
    for part in words.split("|"):
        assert part in f"{problem.what}. {problem.hint}"


def test_the_head_is_required_and_checked():
    missing = problems_of("logLevel: info\n")
    assert [p.field for p in missing] == ["apiVersion", "kind"]
    assert missing[0].hint == "Add the line: apiVersion: quorate.dev/v1alpha1"
    (wrong,) = problems_of(HEAD.replace("v1alpha1", "v2"))
    assert wrong.hint == "Write quorate.dev/v1alpha1."


def test_all_mistakes_are_reported_at_once_in_the_order_of_the_file():
    document = HEAD + "leaderElection: {nam: x}\npacking: up\nlogLevel: loud\n"
    with pytest.raises(ConfigError) as caught:
        parse(document, "conf.yaml")
    assert str(caught.value).splitlines() == [
        "conf.yaml:3: leaderElection.nam: there is no such field. Did you mean name?",
        'conf.yaml:4: packing: "up" is not known. Write mostAllocated or leastAllocated.',
        'conf.yaml:5: logLevel: "loud" is not known. Write debug or info or warning or error.',
    ]


def test_leader_election_times_do_not_matter_when_it_is_off():
    document = HEAD + "leaderElection: {enabled: false, renewDeadlineSeconds: 60}\n"
    assert not parse(document, "f").leader_election.enabled


@pytest.mark.parametrize(
    ("address", "host", "port"),
    [
        ("0.0.0.0:10271", "0.0.0.0", 10271),
        (":80", "0.0.0.0", 80),
        ("localhost:1", "localhost", 1),
        ("[::]:5", "::", 5),
    ],
)
def test_addresses(address, host, port):
    config = parse(HEAD + f'healthAddress: "{address}"\n', "f")
    assert (config.health_host, config.health_port) == (host, port)


def test_load_reads_a_file_also_with_a_byte_order_mark(tmp_path):
    path = tmp_path / "c.yaml"
    path.write_bytes(b"\xef\xbb\xbf" + HEAD.encode())
    assert load(path) == Config.default()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda path: None, "No such file or directory"),
        (lambda path: path.mkdir(), "Is a directory"),
        (lambda path: path.write_bytes(b"a: b\nc: \xff\n"), ":2: this is not UTF-8 text"),
        (lambda path: path.write_bytes(b"#" * (1 << 21)), "larger than 1 MiB"),
    ],
)
def test_load_says_why_a_file_cannot_be_read(tmp_path: Path, make, words):
    path = tmp_path / "c.yaml"
    make(path)
    with pytest.raises(ConfigError) as caught:
        load(path)
    assert str(path) in str(caught.value)
    assert words in str(caught.value)
