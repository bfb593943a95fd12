"""Entry point of the command ``quorate``: the whole command line where its extra is installed."""

from __future__ import annotations

import importlib.util


def main() -> None:
    """Carry out ``sys.argv`` and exit."""
    if all(importlib.util.find_spec(name) for name in ("typer", "rich")):
        from quorate.cli.main import main as whole  # noqa: PLC0415 - it needs both

        whole()
    else:
        from quorate.cli.plain import main as plain  # noqa: PLC0415 - either this or that

        plain()
