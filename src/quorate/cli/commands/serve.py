"""``quorate run``: configuration and credentials in, a running scheduler out."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

from quorate.cli.show import output
from quorate.shell import app
from quorate.shell.configuration.config import Config, ConfigError, load
from quorate.shell.kube.identity.credentials import KubeConfigError, load_credentials
from quorate.shell.lease.leadership import LeaseLostError
from quorate.shell.process import logs
from quorate.shell.process.clock import SystemClock
from quorate.shell.serve.bounded_http import ServeError


def run(kubeconfig: Path | None, context: str | None, config_file: Path | None) -> int:
    """Schedule until a signal says stop; return the exit code."""
    try:
        config = load(config_file) if config_file else Config.default()
        logs.set_up(config.log_level, config.log_format)
        asyncio.run(_serve(kubeconfig, context, config))
    except (ConfigError, KubeConfigError, ServeError) as error:
        return output.error(str(error))
    except LeaseLostError as error:
        output.error(str(error))
        return 1
    except Exception as error:  # a defect of ours: one line, with its traceback as a field
        logs.uncaught(error)
        return 1
    return 0


async def _serve(kubeconfig: Path | None, context: str | None, config: Config) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    credentials = await load_credentials(kubeconfig, context, clock=SystemClock())
    await app.run(config, credentials, stop)
