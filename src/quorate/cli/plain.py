"""The command line where the extra ``cli`` is not installed, as in a scheduler's image.

The commands of ``plain_options``, by argparse; the others are refused with the extras they need.
"""

# ruff: noqa: PLC0415 - numpy and aiohttp are imported for those who run

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from quorate import DISTRIBUTION, __version__
from quorate.cli.plain_options import COMMANDS, DESCRIPTION, OTHERS, Option
from quorate.cli.show import output

_EPILOG = f"""\
{", ".join(OTHERS)} need extras:
  pip install '{DISTRIBUTION}[cli]'             all but up
  pip install '{DISTRIBUTION}[cli,embedded]'    up
Pods with claims of devices need one where the scheduler runs:
  pip install '{DISTRIBUTION}[devices]'"""


def called_by() -> str:
    """Return the name that somebody typed to call us: as kubectl's plugin there are two words."""
    return "kubectl quorate" if Path(sys.argv[0]).name == "kubectl-quorate" else "quorate"


class _CallError(Exception):
    """The call is at fault; the text is what to print."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise _CallError(f"{message}. See: {self.prog} --help")


def parser() -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    whole = _Parser(
        prog=called_by(),
        description=DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    whole.add_argument(
        "--version", action="version", version=__version__, help="Print the version."
    )
    commands = whole.add_subparsers(dest="command", metavar="COMMAND")
    for name, command in COMMANDS.items():
        one = commands.add_parser(
            name, help=command.help, description=command.help, allow_abbrev=False
        )
        for option in command.options:
            _add(one, option)
    return whole


def _add(to: argparse.ArgumentParser, option: Option) -> None:
    more: dict[str, Any] = {"choices": option.choices} if option.choices else {}
    if not option.names[0].startswith("-"):
        more["nargs"] = "?"
    to.add_argument(
        *option.names,
        help=option.help,
        type=option.kind,
        default=option.default,
        metavar=option.metavar,
        **more,
    )


def call(args: Sequence[str] | None = None) -> int:
    """Carry out one command line, ``sys.argv``'s by default, and return the exit code."""
    given = sys.argv[1:] if args is None else list(args)
    try:
        if given and given[0] in OTHERS:
            raise _CallError(
                f"{called_by()} {given[0]} is not installed:"
                f" pip install '{DISTRIBUTION}[{OTHERS[given[0]]}]'"
            )
        asked = parser().parse_args(given)
    except _CallError as error:
        return output.error(str(error))
    except SystemExit as ended:  # --help has been printed
        return ended.code if isinstance(ended.code, int) else 0
    try:
        return _carry_out(asked)
    except KeyboardInterrupt:
        return 130


def _carry_out(asked: argparse.Namespace) -> int:
    if asked.command == "run":
        from quorate.cli.commands import serve

        return serve.run(_path(asked.kubeconfig), asked.context, _path(asked.config))
    if asked.command == "cks-nodes":
        from quorate.cli.commands import serve

        return serve.keep_nodes(
            _path(asked.rules),
            asked.namespace,
            asked.health_port,
            _path(asked.kubeconfig),
            asked.context,
        )
    if asked.command == "record":
        from quorate.cli.commands import record

        return record.record(asked.pid, asked.output, _path(asked.config))
    if asked.command == "version":
        return version(asked.output)
    parser().print_help()
    return 0


def version(form: str) -> int:
    """Print the version; return the exit code."""
    if form in ("table", "wide"):
        output.say(__version__)
    else:
        output.print_data({"version": __version__}, form)
    return 0


def _path(value: str | None) -> Path | None:
    return Path(value) if value is not None else None


def main() -> None:
    """Entry point where typer is not installed."""
    sys.exit(call())
