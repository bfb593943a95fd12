"""Plugins that get credentials: ``exec`` of a kubeconfig's user. In: its entry. Out: a token.

Called by ``kubeconfig_access``. The contract is client.authentication.k8s.io, v1 and v1beta1: the
plugin finds what it may know in $KUBERNETES_EXEC_INFO and writes an ExecCredential. What it writes
to its standard error is logged, escaped; what it writes to standard output is never shown.
"""

import asyncio
import base64
import contextlib
import logging
import os
import signal
import sys
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import msgspec

from quorate.core.words.plain_text import plain
from quorate.shell.kube.identity.access import KubeConfigError
from quorate.shell.kube.identity.kubeconfig import Chosen, Plugin, without_nulls

_GROUP: Final = "client.authentication.k8s.io"
_VERSIONS: Final = (f"{_GROUP}/v1", f"{_GROUP}/v1beta1")
_MODES: Final = ("Never", "IfAvailable", "Always")
_CLUSTER_CONFIG: Final = f"{_GROUP}/exec"
TIMEOUT_S: Final = 60.0
_TIMEOUT_OF_PEOPLE_S: Final = 600.0
_BURIAL_TIMEOUT_S: Final = 5.0
_OUTPUT_BYTES_MAX: Final = 1 << 20
_LINE_BYTES_MAX: Final = 2000
_LINES_MAX: Final = 100
_PAUSE_S: Final = 0.1
"""A line that has not gone on for so long is logged as it is."""


class Status(msgspec.Struct, frozen=True, rename="camel"):
    """The credentials that a plugin returns."""

    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""
    expiration_timestamp: datetime | None = None


class _Credential(msgspec.Struct, frozen=True, rename="camel"):
    kind: str
    api_version: str
    status: Status


async def run(plugin: Plugin, chosen: Chosen, timeout_s: float = TIMEOUT_S) -> Status:
    """Run the plugin of a context's user. Raises KubeConfigError, without what it printed."""
    where = f"{chosen.where_user}: exec"
    is_interactive = _check(plugin, where)
    info = {
        "kind": "ExecCredential",
        "apiVersion": plugin.api_version,
        "spec": {"interactive": is_interactive},
    }
    if plugin.provide_cluster_info:
        info["spec"]["cluster"] = _cluster_info(chosen)  # type: ignore[index]
    environ = {**os.environ, **{one.name: one.value for one in plugin.env}}
    environ["KUBERNETES_EXEC_INFO"] = msgspec.json.encode(info).decode()
    output = await _output(plugin, where, environ, is_interactive, timeout_s)
    try:
        credential = msgspec.convert(without_nulls(msgspec.json.decode(output)), _Credential)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        at = str(error).partition(" - at ")[2].strip("`") or "its output"
        raise KubeConfigError(
            f"{where}: {plugin.command} printed no valid ExecCredential (at {at}); run it by hand"
        ) from None
    if (credential.kind, credential.api_version) != ("ExecCredential", plugin.api_version):
        raise KubeConfigError(
            f"{where}: {plugin.command} answered in another version than {plugin.api_version}; "
            "correct apiVersion"
        )
    status = credential.status
    if bool(status.client_certificate_data) != bool(status.client_key_data) or not (
        status.token or status.client_key_data
    ):
        raise KubeConfigError(
            f"{where}: {plugin.command} gave neither a token nor a certificate with its key; "
            "run it by hand"
        )
    return status


def _check(plugin: Plugin, where: str) -> bool:
    """Return whether the plugin may prompt the user. Raises KubeConfigError."""
    if not plugin.command:
        raise KubeConfigError(f"{where}: command: there is none; add it")
    if plugin.api_version not in _VERSIONS:
        raise KubeConfigError(f"{where}: apiVersion: not known; use {' or '.join(_VERSIONS)}")
    mode = plugin.interactive_mode
    if not mode and plugin.api_version == _VERSIONS[1]:
        mode = "IfAvailable"
    if mode not in _MODES:
        raise KubeConfigError(f"{where}: interactiveMode: set it to one of {', '.join(_MODES)}")
    has_person = sys.stdin is not None and not sys.stdin.closed and sys.stdin.isatty()
    if mode == "Always" and not has_person:
        raise KubeConfigError(
            f"{where}: interactiveMode is Always, and standard input is no terminal; "
            "use a user whose plugin asks nobody"
        )
    return has_person and mode != "Never"


def _cluster_info(chosen: Chosen) -> dict[str, Any]:
    cluster = chosen.cluster
    authority = cluster.certificate_authority_data
    if not authority and cluster.certificate_authority:
        with contextlib.suppress(OSError):  # TLS will say what is wrong with it
            authority = Path(cluster.certificate_authority).read_bytes()
    known: dict[str, Any] = {
        "server": cluster.server,
        "tls-server-name": cluster.tls_server_name,
        "insecure-skip-tls-verify": cluster.insecure_skip_tls_verify,
        "certificate-authority-data": base64.b64encode(authority).decode(),
        "proxy-url": cluster.proxy_url,
        "config": next(
            (
                one.get("extension")
                for one in cluster.extensions
                if one.get("name") == _CLUSTER_CONFIG
            ),
            None,
        ),
    }
    return {name: value for name, value in known.items() if value}


async def _output(
    plugin: Plugin, where: str, environ: dict[str, str], is_interactive: bool, timeout_s: float
) -> bytes:
    """Run the plugin and return its standard output. Raises KubeConfigError."""
    try:
        process = await asyncio.create_subprocess_exec(
            plugin.command,
            *plugin.args,
            env=environ,
            stdin=None if is_interactive else asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=not is_interactive,  # so that its children end with it
        )
    except (OSError, ValueError) as error:
        said = error.strerror if isinstance(error, OSError) else "not a valid command"
        hint = f" ({plain(plugin.install_hint)})" if plugin.install_hint else ""
        raise KubeConfigError(
            f"{where}: command: cannot run {plugin.command}: {said}; install it{hint} or correct it"
        ) from None
    assert process.stdout is not None
    assert process.stderr is not None
    limit_s = _TIMEOUT_OF_PEOPLE_S if is_interactive else timeout_s
    try:
        async with asyncio.timeout(limit_s):
            output, _ = await asyncio.gather(
                _bounded(process.stdout), _pass_on(process.stderr, plugin.command)
            )
            code = await process.wait()
    except TimeoutError:
        raise KubeConfigError(
            f"{where}: {plugin.command} gave no answer within {limit_s:g} s; run it by hand"
        ) from None
    finally:
        await _end(process, whole_group=not is_interactive)
    if code != 0:
        raise KubeConfigError(
            f"{where}: {plugin.command} ended with exit code {code}; run it by hand"
        )
    return output


async def _bounded(stream: asyncio.StreamReader) -> bytes:
    """Return the whole stream; above the bound, bytes that are no valid answer."""
    output = b""
    while part := await stream.read(1 << 16):
        output = output + part if len(output) <= _OUTPUT_BYTES_MAX else b"-"
    return output


async def _pass_on(stream: asyncio.StreamReader, command: str) -> None:
    """Log lines at once, because a person may have to act on one; above a bound drop them.

    So is the beginning of a line that does not go on: it may be a prompt.
    """
    left, line = _LINES_MAX, b""
    while True:
        part: bytes | None = None
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_PAUSE_S if line else None):
                part = await stream.read(_LINE_BYTES_MAX)
        *lines, line = (line + (part or b"")).split(b"\n")
        if not part or len(line) > _LINE_BYTES_MAX:
            lines, line = [*lines, line], b""
        for one in lines[:left]:
            _log(command, one)
        left = max(0, left - len(lines))
        if part == b"":
            return


def _log(command: str, line: bytes) -> None:
    said = plain(line.decode("utf-8", "replace").strip())
    if said:
        logging.getLogger(__name__).warning("%s: %s", os.path.basename(command), said)


async def _end(process: asyncio.subprocess.Process, *, whole_group: bool) -> None:
    """Kill the process, or its whole group, if it still runs; after an answer it has ended."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if process.returncode is None:
            if whole_group:
                os.killpg(process.pid, signal.SIGKILL)
            else:
                process.kill()
    process._transport.close()  # type: ignore[attr-defined]  # pipes that its children keep open
    with contextlib.suppress(TimeoutError):  # who was killed is buried too, or stays as a zombie
        async with asyncio.timeout(_BURIAL_TIMEOUT_S):
            await process.wait()
