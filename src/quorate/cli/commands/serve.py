"""``quorate run`` and ``quorate cks-nodes``: files and credentials in, a running process out."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path

from quorate.cli.show import output
from quorate.shell import app
from quorate.shell.configuration.config import Config, ConfigError, load
from quorate.shell.configuration.yaml_fields import DNS_NAME
from quorate.shell.kube.identity.credentials import (
    Credentials,
    KubeConfigError,
    load_credentials,
)
from quorate.shell.lease.leadership import LeaseLostError
from quorate.shell.process import logs
from quorate.shell.process.clock import SystemClock
from quorate.shell.serve.bounded_http import ServeError

PORT_MAX = 65535

Work = Callable[[Credentials, asyncio.Event], Awaitable[None]]


def run(kubeconfig: Path | None, context: str | None, config_file: Path | None) -> int:
    """Schedule until a signal says stop; return the exit code."""

    def prepare() -> Work:
        config = load(config_file) if config_file else Config.default()
        logs.set_up(config.log_level, config.log_format)
        return lambda credentials, stop: app.run(config, credentials, stop)

    return _carried_out(prepare, kubeconfig, context)


def keep_nodes(
    rules_file: Path | None,
    namespace: str,
    port: int,
    kubeconfig: Path | None,
    context: str | None,
) -> int:
    """Keep nodes as the rules say until a signal says stop; return the exit code.

    The Lease is in ``namespace``; health and metrics are on ``port``.
    """
    if rules_file is None:
        return output.error(
            "--rules is needed: a file of kind WorkloadRules, as docs/operators/coreweave.md has"
            " one. See: quorate cks-nodes --help"
        )
    if not DNS_NAME.fullmatch(namespace):
        return output.error(f"--namespace {namespace!r} is no name of a namespace.")
    if not 0 <= port <= PORT_MAX:
        return output.error(f"--health-port {port} is no port. Use 1 to {PORT_MAX}, or 0 for any.")
    from quorate.cks.process import Process  # noqa: PLC0415 - not for those who schedule
    from quorate.cks.rules import load as load_rules  # noqa: PLC0415

    def prepare() -> Work:
        loaded = load_rules(rules_file)
        logs.set_up("info", "json")
        return lambda credentials, stop: Process(loaded, credentials, namespace).run(stop, port)

    return _carried_out(prepare, kubeconfig, context)


def _carried_out(prepare: Callable[[], Work], kubeconfig: Path | None, context: str | None) -> int:
    try:
        asyncio.run(_serve(prepare(), kubeconfig, context))
    except (ConfigError, KubeConfigError, ServeError) as error:
        return output.error(str(error))
    except LeaseLostError as error:
        output.error(str(error))
        return 1
    except Exception as error:  # a defect of ours: one line, with its traceback as a field
        logs.uncaught(error)
        return 1
    return 0


async def _serve(work: Work, kubeconfig: Path | None, context: str | None) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    credentials = await load_credentials(kubeconfig, context, clock=SystemClock())
    await work(credentials, stop)
