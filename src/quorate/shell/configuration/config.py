"""The configuration file of ``quorate run``: YAML in, a frozen ``Config`` out.

Called by the command line. A bad file stops the start: ``ConfigError`` names every mistake at
once, each with its line, its field, and what to write instead. Keys are camelCase as in
Kubernetes' own configuration files; durations are plain seconds. The tables at the end say how each
field is read; ``yaml_fields`` walks the document.
"""

from __future__ import annotations

import ipaddress
import os
import re
from pathlib import Path
from typing import Any, Literal

import msgspec
import yaml

from quorate.core.model.life_cycle import LifeCycleLabels
from quorate.core.model.policy import DEFAULT_SCHEDULER_NAMES, Policy
from quorate.core.model.profile import Profile
from quorate.dialects.common.hold_time import HOLD_S_MAX
from quorate.shell.configuration.yaml_fields import (
    DNS_NAME,
    BadValueError,
    ConfigError,
    Field,
    Reader,
    boolean,
    choice,
    constant,
    items,
    label_key,
    matching,
    number,
    read_text,
    section,
    text,
    texts,
    whole_number,
)

API_VERSION = "quorate.dev/v1alpha1"
KIND = "SchedulerConfiguration"

__all__ = [
    "Config",
    "ConfigError",
    "LeaderElection",
    "RecorderConfig",
    "load",
    "parse",
]


class LeaderElection(msgspec.Struct, frozen=True, kw_only=True):
    """The Lease of the leader election. Times are in seconds; defaults are kube-scheduler's."""

    enabled: bool = True
    namespace: str = "quorate-system"
    name: str = "quorate"
    lease_duration_s: float = 15.0
    renew_deadline_s: float = 10.0
    retry_period_s: float = 2.0


class RecorderConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The recording for ``quorate replay``; an empty ``path`` means the temporary folder."""

    enabled: bool = True
    bytes_max: int = 64 << 20
    path: str = ""


def _health_host() -> str:
    """Return where health and metrics are heard: all addresses in a pod, else this machine alone.

    In a pod the kubelet and Prometheus ask from elsewhere.
    """
    return "0.0.0.0" if "KUBERNETES_SERVICE_HOST" in os.environ else "127.0.0.1"


class Config(msgspec.Struct, frozen=True, kw_only=True):
    """All that an operator can choose. ``policy`` is the core's part."""

    policy: Policy = Policy()
    leader_election: LeaderElection = LeaderElection()
    recorder: RecorderConfig = RecorderConfig()
    health_host: str = msgspec.field(default_factory=_health_host)
    health_port: int = 10271
    bind_concurrency: int = 64
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    log_format: Literal["json", "text"] = "json"

    @classmethod
    def default(cls) -> Config:
        """Return the configuration that is used without a file."""
        return cls()


def load(path: Path) -> Config:
    """Read the file. Raises ConfigError, also when it cannot be read."""
    return parse(read_text(path, "--config"), str(path))


def parse(document: str, source: str) -> Config:
    """Read the text of a configuration file; ``source`` names it in errors.

    Raises ConfigError with every problem of the text.
    """
    reader = Reader(source)
    root = reader.compose(document, hint=_HEAD_HINT)
    values = reader.read(root, _TOP)
    config = _build(values)
    _check_together(config, reader)
    reader.raise_problems()
    return config


def _build(values: dict[str, Any]) -> Config:
    values.pop("api_version", None)
    values.pop("kind", None)
    policy = {name: values.pop(name) for name in Policy.__struct_fields__ if name in values}
    # A profile's scheduler name counts as ours; users need not list it twice.
    named = policy.get("scheduler_names", DEFAULT_SCHEDULER_NAMES)
    profiled = [scheduler for scheduler, _ in policy.get("profiles", ())]
    policy["scheduler_names"] = tuple(dict.fromkeys((*named, *profiled)))
    if "health_address" in values:
        values["health_host"], values["health_port"] = values.pop("health_address")
    if "life_cycle" in policy:
        policy["life_cycle"] = LifeCycleLabels(**policy["life_cycle"])
    election = LeaderElection(**values.pop("leader_election", {}))
    recorder = RecorderConfig(**values.pop("recorder", {}))
    return Config(
        policy=Policy(**policy),
        leader_election=election,
        recorder=recorder,
        **values,
    )


def _check_together(config: Config, reader: Reader) -> None:
    """Check relations between fields; a field that was not read has its default."""
    policy, election = config.policy, config.leader_election
    reader.expect(
        policy.backoff_s_max >= policy.backoff_s,
        ("backoffMaxSeconds", "backoffSeconds"),
        f"the longest back-off, {policy.backoff_s_max:g} s, is below the first,"
        f" {policy.backoff_s:g} s",
        "Raise backoffMaxSeconds or lower backoffSeconds.",
    )
    reader.expect(
        policy.hold_s <= policy.hold_s_max,
        ("holdSlotSeconds", "holdSlotMaxSeconds"),
        f"slots would be held for {policy.hold_s:g} s where nobody asks for a length, and"
        f" {policy.hold_s_max:g} s are the most that may be asked for",
        "Lower holdSlotSeconds or raise holdSlotMaxSeconds.",
    )
    reader.expect(
        len(set(policy.life_cycle.keys)) == len(_LIFE_CYCLE),
        tuple(f"nodeLifeCycle.{key}" for key in _LIFE_CYCLE),
        "two of these labels are the same",
        "Give each a name of its own.",
    )
    if not election.enabled:
        return
    prefix = "leaderElection."
    reader.expect(
        election.renew_deadline_s < election.lease_duration_s,
        (prefix + "renewDeadlineSeconds", prefix + "leaseDurationSeconds"),
        f"the leader would give up after {election.renew_deadline_s:g} s, when its lease of"
        f" {election.lease_duration_s:g} s has run out and another may bind",
        "Make renewDeadlineSeconds smaller than leaseDurationSeconds.",
    )
    reader.expect(
        election.retry_period_s < election.renew_deadline_s,
        (prefix + "retryPeriodSeconds", prefix + "renewDeadlineSeconds"),
        f"with a renewal every {election.retry_period_s:g} s none is tried within the deadline of"
        f" {election.renew_deadline_s:g} s",
        "Make retryPeriodSeconds smaller than renewDeadlineSeconds, best a quarter of it.",
    )


def _address(value: str) -> tuple[str, int]:
    """Split ``host:port``; port 0 lets the system choose one."""
    host, colon, port = value.rpartition(":")
    plain = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    bracketed = plain != host
    if not (colon and _PORT.fullmatch(port) and int(port) <= 65535 and _is_host(plain, bracketed)):
        raise BadValueError(
            "is no address with a port",
            "Write host:port, such as 0.0.0.0:10271, 127.0.0.1:10271 or [::]:10271.",
        )
    return plain or "0.0.0.0", int(port)


def _absolute_path(value: str) -> str:
    if not value.startswith("/") or "\0" in value or value.endswith("/"):
        raise BadValueError("is no absolute path of a file", "Write one that begins with a slash.")
    return value


def _profiles(reader: Reader, node: yaml.Node, path: str) -> tuple[tuple[str, Profile], ...]:
    """Read the profiles: pairs of scheduler name and profile."""
    written: Any = items(section(_PROFILE))(reader, node, path)
    made = [
        (values.pop("scheduler"), Profile(**values))
        for values in written
        if "scheduler" in values  # else it was reported before
    ]
    names = [scheduler for scheduler, _ in made]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise BadValueError(f'"{twice}" has two profiles', "Remove one of the two.")
    return tuple(made)


def _is_host(host: str, bracketed: bool) -> bool:
    if not host:
        return not bracketed
    try:
        version = ipaddress.ip_address(host).version
    except ValueError:
        return not bracketed and DNS_NAME.fullmatch(host) is not None
    return bracketed == (version == 6)


_dns_name = matching(
    DNS_NAME,
    253,
    "is no Kubernetes name",
    "Use lower-case letters, digits, '-' and '.', at most 253.",
)
_PORT = re.compile(r"[0-9]{1,5}")
_HEAD_HINT = f"Start it with:\napiVersion: {API_VERSION}\nkind: {KIND}"
_DAY_S = 86_400.0
_ATTEMPT_TIMEOUT_S_MAX = Policy().attempt_timeout_s_max
_BIND_CONCURRENCY_MAX = 1024
_HELD_SLOTS_MAX = 100_000

_ELECTION = {
    "enabled": Field("enabled", boolean),
    "namespace": Field("namespace", text(_dns_name)),
    "name": Field("name", text(_dns_name)),
    "leaseDurationSeconds": Field("lease_duration_s", whole_number(1, 3600)),
    "renewDeadlineSeconds": Field("renew_deadline_s", number(0.1, 3600)),
    "retryPeriodSeconds": Field("retry_period_s", number(0.1, 3600)),
}

_RECORDER = {
    "enabled": Field("enabled", boolean),
    "maxBytes": Field("bytes_max", whole_number(1 << 20, 1 << 30)),
    "path": Field("path", text(_absolute_path)),
}

_PACKING = {"mostAllocated": "most-allocated", "leastAllocated": "least-allocated"}

_PROFILE = {
    "schedulerName": Field("scheduler", text(_dns_name), required="default-scheduler"),
    "packing": Field("packing", choice(_PACKING)),
    "preemption": Field("preempts", boolean),
}

_LIFE_CYCLE = {
    "stateLabel": Field("state", text(label_key)),
    "reservedLabel": Field("reserved", text(label_key)),
    "desiredLabel": Field("desired", text(label_key)),
    "leavingLabel": Field("leaving", text(label_key)),
}

_TOP = {
    "apiVersion": Field("api_version", constant(API_VERSION), required=API_VERSION),
    "kind": Field("kind", constant(KIND), required=KIND),
    "schedulerNames": Field("scheduler_names", texts(_dns_name)),
    "packing": Field("packing", choice(_PACKING)),
    "profiles": Field("profiles", _profiles),
    "attemptTimeoutSeconds": Field("attempt_timeout_s", number(1, _ATTEMPT_TIMEOUT_S_MAX)),
    "holdSlotSeconds": Field("hold_s", number(0, HOLD_S_MAX)),
    "holdSlotMaxSeconds": Field("hold_s_max", number(0, HOLD_S_MAX)),
    "heldSlotsMaxPerGang": Field("held_slots_per_gang_max", whole_number(0, _HELD_SLOTS_MAX)),
    "heldSlotsMaxPerNamespace": Field(
        "held_slots_per_namespace_max", whole_number(0, _HELD_SLOTS_MAX)
    ),
    "backoffSeconds": Field("backoff_s", number(0.01, _DAY_S)),
    "backoffMaxSeconds": Field("backoff_s_max", number(0.01, _DAY_S)),
    "nodeLifeCycle": Field("life_cycle", section(_LIFE_CYCLE)),
    "leaderElection": Field("leader_election", section(_ELECTION)),
    "recorder": Field("recorder", section(_RECORDER)),
    "healthAddress": Field("health_address", text(_address)),
    "bindConcurrency": Field("bind_concurrency", whole_number(1, _BIND_CONCURRENCY_MAX)),
    "logLevel": Field("log_level", choice({n: n for n in ("debug", "info", "warning", "error")})),
    "logFormat": Field("log_format", choice({"json": "json", "text": "text"})),
}
