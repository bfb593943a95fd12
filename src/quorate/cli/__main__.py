"""``python -m quorate.cli`` is the same as ``quorate``."""

from quorate.cli.main import main

main()
